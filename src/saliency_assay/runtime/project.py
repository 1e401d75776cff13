"""Folder of the project: that of the checkout or, in an installed package, a copy of what the workflow needs."""

from saliency_assay.runtime.provenance import SOURCE

_INSTALLED = SOURCE / "saliency_assay/share"  # setup.py writes it into wheels
ROOT = _INSTALLED if _INSTALLED.is_dir() else SOURCE.parent
"""Folder with ``workflow``, ``config`` and ``profiles``."""
