"""Pairs of equal images of two versions of a data set."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from saliency_assay.runs.results_folder import Results
from saliency_assay.storage.zarr_store import open_store

Pairs = dict[int, int]
"""For the number of an image in the new data set that of the image with the same pixels in the old one."""


def changed_sets(old: Results, new: Results) -> dict[str, Pairs]:
    """Return the pairs of equal images for each data set of both runs whose content differs.

    Images of all other data sets are the same under the same number.
    """
    names = [name for name in old.data if name in new.data]
    return {
        name: _pairs(old.data_files[name], new.data_files[name])
        for name in names
        if old.data[name]["digest"] != new.data[name]["digest"]
    }


def _pairs(old: Path, new: Path) -> Pairs:
    before, now = _digests(old), _digests(new)
    return {number: before[digest] for digest, number in now.items() if digest in before}


def _digests(file: Path) -> dict[bytes, int]:
    """Return the number of each image by the digest of its pixels, without images that occur several times."""
    digests: list[bytes] = []
    with open_store(file, kind="data") as data:
        for block in data.blocks("image"):
            shape = str(block["image"].shape[1:]).encode()
            digests += [
                hashlib.sha256(shape + np.ascontiguousarray(image).tobytes()).digest()
                for image in block["image"]
            ]
    counts = Counter(digests)
    return {digest: number for number, digest in enumerate(digests) if counts[digest] == 1}
