"""Contract of every registered data set that needs no files and is built in one step."""

from collections.abc import Mapping

import numpy as np
import pytest

from saliency_assay.data import DATA_KINDS, DataKind
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.registry.records import resolve

Arrays = Mapping[str, np.ndarray]
FEW = {"images": 200, "images_per_class": 20}
"""Used where a data set has such a parameter."""

EVERY_KIND = pytest.mark.parametrize(
    "kind",
    [kind for kind in DATA_KINDS if not (kind.sources or kind.sets)],
    ids=lambda kind: kind.name,
)


def built(kind: DataKind, seed: int = 0, block: int = 512) -> tuple[dict[str, tuple[str, ...]], Arrays]:
    """The classes of each label, and the arrays of all blocks."""
    few = {name: count for name, count in FEW.items() if name in kind.parameters}
    classes, blocks = resolve(kind.function)(generator=np.random.default_rng(seed), block=block, **few)
    parts = list(blocks)
    assert all(len({len(values) for values in part.values()}) == 1 for part in parts)
    assert [len(part["image"]) for part in parts[:-1]] == [block] * (len(parts) - 1)
    return classes, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def alike(first: Arrays, second: Arrays) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@EVERY_KIND
def test_arrays_have_their_types_and_values(kind: DataKind) -> None:
    classes, arrays = built(kind)
    assert tuple(classes) == kind.labels
    count, channels, *_ = arrays["image"].shape
    assert arrays["image"].dtype == arrays["split"].dtype == np.uint8
    assert arrays["image"].ndim == 4
    assert channels in (1, 3)
    assert set(arrays["split"]) == {TRAIN, TEST}
    for label, names in classes.items():
        values = arrays[f"label_{label}"]
        assert (values.dtype, values.shape) == (np.int64, (count,))
        for split in (TRAIN, TEST):
            assert set(values[arrays["split"] == split]) == set(range(len(names)))


@EVERY_KIND
def test_one_seed_gives_one_data_set(kind: DataKind) -> None:
    first = built(kind, seed=5)[1]
    assert alike(built(kind, seed=5)[1], first)
    assert not alike(built(kind, seed=6)[1], first)


@EVERY_KIND
def test_blocks_do_not_change_the_images(kind: DataKind) -> None:
    assert alike(built(kind, block=64)[1], built(kind)[1])
