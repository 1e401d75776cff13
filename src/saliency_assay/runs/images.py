"""Pairs of equal images of two versions of a data set."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from saliency_assay.runs.results_folder import Results
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage.zarr_store import open_store

Pairs = dict[int, int]
"""For the number of an image in the new data set that of the image with the same pixels in the old one."""


def changed_sets(old: Results, new: Results) -> dict[str, Pairs]:
    """Return the pairs of equal images for each data set of both runs whose content differs.

    Images of all other data sets are the same under the same number. Two saved benchmarks are paired by blocks of
    images with equal inputs, others by number, unless the images that both have kept differ.
    """
    if old.benchmark and new.benchmark:
        name = str(new.configuration["data"])
        pairs = _pairs_of_benchmarks(old, new) if name == str(old.configuration["data"]) else None
        return {} if pairs is None else {name: pairs}
    names = [name for name in old.data if name in new.data]
    return {
        name: _pairs(*(_digests(run.data_files[name]) for run in (old, new)))
        for name in names
        if old.data[name]["digest"] != new.data[name]["digest"]
    }


def _pairs_of_benchmarks(old: Results, new: Results) -> Pairs | None:
    """Return the pairs of images of two benchmarks; None if all have the same numbers."""
    assert old.benchmark
    assert new.benchmark
    before, now = old.benchmark.inputs, new.benchmark.inputs
    places = {digest: block for block, digest in enumerate(before) if digest}
    free = {block for block, digest in enumerate(before) if not digest or digest not in now}
    kept = [[each for file in run.data_files.values() for each in _digests(file)] for run in (old, new)]
    is_same = all(one == other for one, other in zip(*kept, strict=False))
    others = {} if is_same else _pairs(*kept)
    pairs: Pairs = {}
    for number in range(new.benchmark.images):
        block, place = divmod(number, BLOCK)
        if now[block] in places:
            pairs[number] = places[now[block]] * BLOCK + place
        elif is_same and (block in free or block >= len(before)):
            pairs[number] = number
        elif number in others:
            pairs[number] = others[number]
    return None if pairs == {number: number for number in range(new.benchmark.images)} else pairs


def _pairs(old: Sequence[bytes], new: Sequence[bytes]) -> Pairs:
    """Return the pairs of equal images by their digests, without images that occur several times."""
    before, now = (
        {digest: number for number, digest in enumerate(of_set) if counts[digest] == 1}
        for of_set, counts in ((each, Counter(each)) for each in (old, new))
    )
    return {number: before[digest] for digest, number in now.items() if digest in before}


def _digests(file: Path) -> list[bytes]:
    """Return the digest of the pixels of each image."""
    digests: list[bytes] = []
    with open_store(file, kind="data") as data:
        for block in data.blocks("image"):
            shape = str(block["image"].shape[1:]).encode()
            digests += [
                hashlib.sha256(shape + np.ascontiguousarray(image).tobytes()).digest()
                for image in block["image"]
            ]
    return digests
