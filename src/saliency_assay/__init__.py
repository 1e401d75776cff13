"""Saliency Assay: benchmarks of saliency methods, and of the metrics that judge them."""

__version__ = "0.1.0"
