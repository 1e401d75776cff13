"""Maps that differ between two runs, and the images on which they differ most."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from saliency_assay.runs.images import Pairs
from saliency_assay.runs.results_folder import Results
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage.zarr_store import Store, open_store

SHOWN = 4
"""Number of images of a method whose maps are shown."""
SHARD = re.compile(r"\.shard\d+of\d+$")


@dataclass(frozen=True)
class Example:
    """The maps of one image in both runs."""

    image: int
    """Number of the image in the new run's data set."""
    distance: float
    old: Array  # [C, H, W]
    new: Array  # [C, H, W]


@dataclass(frozen=True)
class MapChange:
    """Maps of one method, model, seed and data set, or of one shard of it, that differ between two runs.

    The distance of two maps is the norm of their difference relative to the larger of their norms: 0 for equal maps, at
    most 2. A map with values that are not finite counts as 0 there.
    """

    model: str
    seed: str
    data: str
    method: str
    images: int
    """Number of images with maps in both runs."""
    changed: int
    """Number of images with other maps."""
    median: float
    """Median of the distances of the maps that differ."""
    largest: float
    examples: tuple[Example, ...]
    """The images with the largest distances, largest first."""


def map_changes(
    old: Results, new: Results, changed_sets: Mapping[str, Pairs], *, shown: int = SHOWN
) -> tuple[int, list[MapChange]]:
    """Return the number of stores of maps in both runs, and the changes of those that differ, the largest first.

    Args:
        old, new: the runs.
        changed_sets: see ``images.changed_sets``.
        shown: number of examples.
    """
    common = [file for file in old.maps if file in new.maps]
    changes = []
    for file in common:
        if old.maps[file]["digest"] != new.maps[file]["digest"]:
            names = _names(file, new)
            with (
                open_store(old.folder / file, kind="maps") as before,
                open_store(new.folder / file, kind="maps") as now,
            ):
                change = _change(before, now, names, changed_sets.get(names["data"]), shown)
            if change.changed:
                changes.append(change)
    return len(common), sorted(changes, key=lambda change: -change.median)


def method_of(file: str) -> str:
    """Return the method of a store of maps from its path."""
    return SHARD.sub("", file.rpartition("/")[2].removesuffix(".zarr.zip"))


def _names(file: str, run: Results) -> dict[str, str]:
    """Return model, seed, data set and method of a store from its path."""
    parts = file.split("/")[1:-1]
    if run.is_benchmark:
        parts = [str(run.configuration["model"]), *parts, str(run.configuration["data"])]
    model, seed, data = parts
    return {"model": model, "seed": seed.removeprefix("seed"), "data": data, "method": method_of(file)}


def _change(old: Store, new: Store, names: Mapping[str, str], pairs: Pairs | None, shown: int) -> MapChange:
    numbers = new["image"][:].tolist()
    places = {number: place for place, number in enumerate(old["image"][:].tolist())}
    of_old = [places.get(number if pairs is None else pairs.get(number, -1), -1) for number in numbers]
    rows = [place for place, other in enumerate(of_old) if other >= 0]
    distances = np.zeros(len(rows))
    for start in range(0, len(rows), BLOCK):
        block = np.array(rows[start : start + BLOCK])
        distances[start : start + BLOCK] = _distances(old["map"][np.array(of_old)[block]], new["map"][block])
    changed = distances[distances > 0]
    examples = []
    for place in np.argsort(-distances, kind="stable")[: min(shown, len(changed))].tolist():
        row = rows[place]
        maps: list[Any] = [store["map"][at : at + 1][0] for store, at in ((old, of_old[row]), (new, row))]
        examples.append(Example(numbers[row], float(distances[place]), *maps))
    median, largest = (float(np.median(changed)), float(changed.max())) if len(changed) else (0.0, 0.0)
    return MapChange(
        **names,
        images=len(rows),
        changed=len(changed),
        median=median,
        largest=largest,
        examples=tuple(examples),
    )


def _distances(old: Array, new: Array) -> Array:
    """Return the distance of each pair of maps ``[n, C, H, W]``; 2 if their sizes differ."""
    if old.shape != new.shape:
        return np.full(len(new), 2.0)
    equal = (old == new) | (np.isnan(old) & np.isnan(new))
    first, second = (_finite(maps) for maps in (old, new))
    norms = np.maximum(*(np.linalg.norm(maps, axis=1) for maps in (first, second)))
    distance: Array = np.linalg.norm(first - second, axis=1) / np.where(norms > 0, norms, 1)
    # Equal maps have the distance 0; of others, even undefined and zero ones differ.
    return np.where(equal.reshape(len(equal), -1).all(1), 0, np.maximum(distance, np.finfo(float).tiny))


def _finite(maps: Array) -> Array:
    """Return maps as float64 ``[n, CHW]``, 0 everywhere in maps with values that are not finite."""
    flat = maps.reshape(len(maps), -1).astype(np.float64)
    return np.where(np.isfinite(flat).all(1, keepdims=True), flat, 0)
