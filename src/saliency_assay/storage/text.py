"""Text as rows of bytes, because stores contain only arrays of numbers and booleans."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def encode(texts: Sequence[str]) -> Bytes:
    """Return ``texts`` in UTF-8 as uint8 ``[N, L]``, padded with zeros; L is the length of the longest, at least 1.

    Names of files that are not UTF-8 keep their bytes.
    """
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    width = max([1, *map(len, encoded)])
    return np.array(encoded, dtype=f"S{width}").view(np.uint8).reshape(len(encoded), width)


def numbers(rows: Bytes) -> npt.NDArray[np.int64]:
    """Return the numbers ``[N]`` of the texts of uint8 ``[N, L]``, equal for equal texts."""
    texts = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel()
    return np.unique(texts, return_inverse=True)[1].astype(np.int64)


def decode(rows: Bytes) -> list[str]:
    """Return the texts of uint8 ``[N, L]``; bytes that are not UTF-8 become replacement characters."""
    return [row.tobytes().rstrip(b"\0").decode("utf-8", "replace") for row in rows]
