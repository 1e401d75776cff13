"""Functions for notebooks, on arrays in memory; offered by ``saliency_assay`` itself."""
