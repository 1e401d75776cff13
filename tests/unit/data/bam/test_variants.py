from typing import Any

import numpy as np
import pytest

from saliency_assay.data.bam.members import relocated, rescaled
from saliency_assay.data.bam.placement import Collection, Plan, canvas_side, plan, side_range

SIZE = 40


def collection(cutouts: int = 30) -> Collection:
    generator = np.random.default_rng(0)
    return Collection(
        object_names=("dog", "kite"),
        scene_names=("bedroom", "track"),
        cutouts=np.empty((2 * cutouts, 4, 0, 0), np.uint8),
        heights=generator.integers(1, 60, 2 * cutouts),
        widths=generator.integers(1, 60, 2 * cutouts),
        label_object=np.repeat([0, 1], cutouts),
        coco_image=np.arange(2 * cutouts),
        scenes=np.empty((50, 3, 0, 0), np.uint8),
        label_scene=np.repeat([0, 1], 25),
    )


def drawn(images_per_pair: int = 300, **changes: Any) -> Plan:
    settings = {
        "measure": "area",
        "smallest": 1 / 3,
        "largest": 1 / 2,
        "leak_free": False,
        "test_share": 0.1,
    }
    settings |= {"size": SIZE, "images_per_pair": images_per_pair, **changes}
    return plan(collection(), generator=np.random.default_rng(1), **settings)


def scaled(base: Plan, smallest: float = 1 / 6, largest: float = 1 / 3, **changes: Any) -> Plan:
    settings = {"measure": "area", "variant_smallest": smallest, "variant_largest": largest, **changes}
    return rescaled(base, collection(), generator=np.random.default_rng(2), **settings)


@pytest.mark.parametrize("measure", ["area", "side"])
@pytest.mark.parametrize(("smallest", "largest"), [(1 / 6, 1 / 3), (0.5, 0.9)])
def test_other_sizes(measure: str, smallest: float, largest: float) -> None:
    material, base = collection(), drawn(1000)
    variant = scaled(base, smallest, largest, measure=measure)
    least, greatest = side_range(SIZE, measure=measure, smallest=smallest, largest=largest)
    counts = np.bincount(variant.placement[:, 2:].max(axis=1), minlength=greatest + 1)
    assert len(counts) == greatest + 1
    assert counts[:least].sum() == 0
    expected = counts.sum() / (greatest - least + 1)
    chi_square = ((counts[least:] - expected) ** 2 / expected).sum()
    assert chi_square < 2.5 * (greatest - least) + 10
    for (top, left, height, width), old, cutout in zip(
        variant.placement.tolist(), base.placement.tolist(), variant.cutout.tolist(), strict=True
    ):
        tall, wide, longer = int(material.heights[cutout]), int(material.widths[cutout]), max(height, width)
        assert abs(height - longer * tall / max(tall, wide)) <= max(0.5, 1 - longer * tall / max(tall, wide))
        assert abs(width - longer * wide / max(tall, wide)) <= max(0.5, 1 - longer * wide / max(tall, wide))
        # No place inside the scene is nearer to the old center.
        for corner, side, before, extent in ((top, height, old[0], old[2]), (left, width, old[1], old[3])):
            center = before + extent / 2
            nearest = min(abs(place + side / 2 - center) for place in range(SIZE - side + 1))
            assert 0 <= corner <= SIZE - side
            assert abs(corner + side / 2 - center) == nearest


def test_other_places() -> None:
    base = drawn(3000)
    variant = relocated(base, generator=np.random.default_rng(2))
    assert (variant.placement[:, 2:] == base.placement[:, 2:]).all()
    room = SIZE - base.placement[:, 2:]
    for axis in range(2):
        corner = variant.placement[:, axis]
        assert corner.min() == 0
        assert (corner <= room[:, axis]).all()
        for space in np.unique(room[:, axis])[:3].tolist():
            counts = np.bincount(corner[room[:, axis] == space], minlength=space + 1)
            expected = counts.sum() / (space + 1)
            assert ((counts - expected) ** 2 / expected).sum() < 2.5 * space + 10
        # Drawn anew: where the object was says nothing about where it goes.
        assert abs(np.corrcoef(corner / room[:, axis], base.placement[:, axis] / room[:, axis])[0, 1]) < 0.03
    assert (variant.placement[:, 0] != variant.placement[:, 1]).any()


def test_a_range_without_a_whole_pixel_is_named_as_the_variants() -> None:
    with pytest.raises(
        ValueError, match=r"^variant_smallest, variant_largest: smallest 0\.51, largest 0\.52 "
    ):
        scaled(drawn(), 0.51, 0.52, measure="side")


@pytest.mark.parametrize(("variant_largest", "expected"), [(1 / 3, 56), (1 / 2, 56), (0.9, 74)])
def test_a_canvas_for_the_larger_of_both(variant_largest: float, expected: int) -> None:
    """40 / √2 = 28.3 and 40 √0.9 = 37.9 pixels, so 28 and 37 are the longest sides."""
    largest = max(1 / 2, variant_largest)
    assert canvas_side(SIZE, measure="area", smallest=1 / 3, largest=largest) == expected
    variant = scaled(drawn(2000), 1 / 6, variant_largest)
    assert 2 * variant.placement[:, 2:].max() <= expected
