"""Zarr stores and score tables."""
