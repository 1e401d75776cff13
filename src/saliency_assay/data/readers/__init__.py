"""Readers of publishers' data sets."""
