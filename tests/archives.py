"""Unpacking of the archives of real images."""

import tarfile
from typing import Any

# Early patch releases of Python 3.11 have no filters; from 3.12 on one must be named.
SAFELY: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
