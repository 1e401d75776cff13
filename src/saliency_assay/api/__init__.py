"""Functions for notebooks, on arrays in memory; ``saliency_assay`` exports them."""
