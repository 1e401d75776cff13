"""Version of the file format of Zarr stores and score tables, separate from the library's version."""

import re

FORMAT = "1.0"
"""Major and minor version. A change that older readers would misread increases the major version; an addition that they
can ignore increases the minor one. The content of arrays is defined by the rules and not part of the format."""


def unreadable(version: object) -> str:
    """Return the reason why a file of format ``version`` cannot be read; an empty string if it can.

    Files of the same major version can be read, regardless of the minor version.
    """
    major = FORMAT.partition(".")[0]
    if isinstance(version, str) and re.fullmatch(rf"{major}\.[0-9]+", version, re.ASCII):
        return ""
    actual = "missing" if version is None else repr(version)
    return (
        f"format is {actual}, expected {major}.x; write the file again with this version, or read it with the one "
        "that wrote it"
    )
