"""Folder of the project: that of the checkout or, in an installed package, a copy of what the workflow needs."""

from saliency_assay.runtime.provenance import SOURCE

_INSTALLED = SOURCE / "saliency_assay/share"  # setup.py writes it into wheels
ROOT = _INSTALLED if _INSTALLED.is_dir() else SOURCE.parent
"""Folder with ``workflow``, ``config`` and ``profiles``."""
RESULTS = "results"
"""Default of the key ``results``."""
LAST_LINES = "SALIENCY_ASSAY_LAST_LINES"
"""Environment variable of Snakemake if the command that starts it prints the last lines of the run."""
STORAGE = "SALIENCY_ASSAY_STORAGE"
"""Environment variable of jobs whose files are in object storage: the options with which Snakemake finds them."""
