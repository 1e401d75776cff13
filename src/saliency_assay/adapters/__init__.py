"""Adapters between this package and captum, Quantus and pytorch-grad-cam; nothing else imports them."""
