"""The version of what Zarr stores and score tables look like on disk, apart from the library's own."""

import re

FORMAT = "1.0"
"""Major and minor: a change that older readers would misread is a new major one, an addition that they may pass over a
new minor one. What an array holds is its rule's matter and not part of it."""


def unreadable(found: object) -> str:
    """Return the reason that a file of the format ``found`` is not read; empty where it is.

    One of the same major format is, whatever its minor one.
    """
    major = FORMAT.partition(".")[0]
    if isinstance(found, str) and re.fullmatch(rf"{major}\.[0-9]+", found, re.ASCII):
        return ""
    shown = "missing" if found is None else repr(found)
    return f"format is {shown}, expected {major}.x; write it anew with this version, or read it with its own"
