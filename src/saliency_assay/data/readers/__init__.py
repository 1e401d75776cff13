"""Readers of images on disk: publishers' data sets, and any folder of images; their records are in ``data``."""
