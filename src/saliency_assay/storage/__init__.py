"""File formats: Zarr stores of arrays, and tables of scores and results."""
