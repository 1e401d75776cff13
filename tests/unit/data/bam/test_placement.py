from collections import Counter
from typing import Any

import numpy as np
import pytest

from saliency_assay.data.bam.placement import Collection, Plan, canvas_side, deal, plan, side_range
from saliency_assay.data.splits import TEST, TRAIN

SIZE = 32
AREA = {"measure": "area", "smallest": 1 / 3, "largest": 1 / 2}


def collection(
    cutouts: tuple[int, ...] = (7, 12, 20), scenes: tuple[int, ...] = (15, 30), coco_image: Any = None
) -> Collection:
    """Classes with so many cut-outs and scenes, of random proportions; the pixels are not needed to plan."""
    generator = np.random.default_rng(0)
    label_object = np.repeat(np.arange(len(cutouts)), cutouts)
    return Collection(
        object_names=("dog", "kite", "zebra")[: len(cutouts)],
        scene_names=("bedroom", "track")[: len(scenes)],
        cutouts=np.empty((sum(cutouts), 4, 0, 0), np.uint8),
        heights=generator.integers(1, 40, sum(cutouts)),
        widths=generator.integers(1, 40, sum(cutouts)),
        label_object=label_object,
        coco_image=np.arange(sum(cutouts)) if coco_image is None else np.asarray(coco_image),
        scenes=np.empty((sum(scenes), 3, 0, 0), np.uint8),
        label_scene=np.repeat(np.arange(len(scenes)), scenes),
    )


def drawn(material: Collection | None = None, seed: int = 0, **changes: Any) -> Plan:
    settings = {"size": SIZE, "images_per_pair": 40, "test_share": 0.1, "leak_free": False, **AREA, **changes}
    return plan(material or collection(), generator=np.random.default_rng(seed), **settings)


@pytest.mark.parametrize(("items", "hands", "each"), [(7, 5, 3), (7, 6, 17), (1, 3, 4), (40, 10, 13)])
def test_deal_is_even_overall_and_within_each_hand(items: int, hands: int, each: int) -> None:
    cards = np.arange(100, 100 + items)
    dealt = deal(cards, hands, each, np.random.default_rng(1))
    assert dealt.shape == (hands, each)
    for group in (dealt, *dealt):
        used = np.array([Counter(group.ravel().tolist())[card] for card in cards.tolist()])
        assert used.sum() == group.size
        assert used.max() - used.min() <= 1
    for hand in dealt:
        for start in range(0, each, items):
            round_ = hand[start : start + items].tolist()
            assert len(set(round_)) == len(round_)


def test_deal_shuffles_every_round() -> None:
    rounds = deal(np.arange(20), 6, 20, np.random.default_rng(2))
    assert len({tuple(round_.tolist()) for round_ in rounds}) == 6


@pytest.mark.parametrize(
    ("size", "measure", "smallest", "largest", "expected"),
    [
        (128, "area", 1 / 3, 1 / 2, (74, 90)),  # 128 / √3 = 73.9, 128 / √2 = 90.5
        (8, "area", 1 / 3, 1 / 2, (5, 5)),
        (64, "side", 0.25, 1.0, (16, 63)),
        (64, "area", 0.25, 0.49, (32, 44)),
    ],
)
def test_side_range(
    size: int, measure: str, smallest: float, largest: float, expected: tuple[int, int]
) -> None:
    settings = {"measure": measure, "smallest": smallest, "largest": largest}
    assert side_range(size, **settings) == expected
    assert canvas_side(size, **settings) == 2 * expected[1]


@pytest.mark.parametrize(("smallest", "largest"), [(0.5, 0.5), (0.51, 0.52)])
def test_a_range_without_a_whole_pixel(smallest: float, largest: float) -> None:
    message = rf"^smallest {smallest}, largest {largest} \(measure side\) at size 32: "
    with pytest.raises(ValueError, match=message):
        side_range(32, measure="side", smallest=smallest, largest=largest)


@pytest.mark.parametrize("measure", ["area", "side"])
def test_boxes_keep_size_proportions_and_stay_inside(measure: str) -> None:
    material = collection()
    drawing = drawn(material, measure=measure, images_per_pair=300)
    top, left, height, width = drawing.placement.T
    longer = np.maximum(height, width)
    share = (longer / SIZE) ** 2 if measure == "area" else longer / SIZE
    assert share.min() >= 1 / 3
    assert share.max() < 1 / 2
    least, greatest = side_range(SIZE, measure=measure, smallest=1 / 3, largest=1 / 2)
    counts = np.bincount(longer)[least : greatest + 1]
    assert counts.min() > 0.8 * len(drawing) / len(counts)
    assert min(top.min(), left.min(), height.min(), width.min()) >= 0
    assert (top + height).max() == SIZE
    assert (left + width).max() == SIZE
    heights, widths = material.heights[drawing.cutout], material.widths[drawing.cutout]
    exact = np.minimum(heights, widths) * longer / np.maximum(heights, widths)
    assert (np.abs(np.minimum(height, width) - exact) <= np.maximum(0.5, 1 - exact)).all()
    assert ((height >= width) == (heights >= widths))[height != width].all()


def test_locations_are_uniform() -> None:
    drawing = drawn(images_per_pair=2000)
    room = SIZE - drawing.placement[:, 2]
    for size in np.unique(room)[:3].tolist():
        counts = np.bincount(drawing.placement[room == size, 0], minlength=size + 1)
        expected = counts.sum() / (size + 1)
        assert ((counts - expected) ** 2 / expected).sum() < 2.5 * size + 10  # a chi-square of size degrees


@pytest.mark.parametrize("images_per_pair", [5, 40])
def test_every_pair_is_composed_equally_often_and_evenly(images_per_pair: int) -> None:
    material = collection()
    drawing = drawn(material, images_per_pair=images_per_pair)
    assert (drawing.label_object == material.label_object[drawing.cutout]).all()
    assert (drawing.label_scene == material.label_scene[drawing.scene]).all()
    pairs = list(zip(drawing.label_object.tolist(), drawing.label_scene.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert set(Counter(pairs).values()) == {images_per_pair}
    assert len(set(pairs)) == 6
    # As in the paper: an exact share of all images, with shared material.
    tested = drawing.split == TEST
    assert tested.sum() == round(0.1 * 6 * images_per_pair)
    assert set(drawing.cutout[~tested].tolist()) & set(drawing.cutout[tested].tolist())
    for used, labels in ((drawing.cutout, material.label_object), (drawing.scene, material.label_scene)):
        for label in np.unique(labels):
            counts = np.bincount(used, minlength=len(labels))[labels == label]
            assert counts.max() - counts.min() <= 1


def test_leak_free_shares_no_material() -> None:
    material = collection()
    drawing = drawn(material, leak_free=True)
    tested = drawing.split == TEST
    for used in (material.coco_image[drawing.cutout], drawing.scene):
        assert not set(used[tested].tolist()) & set(used[~tested].tolist())
    pairs = 2 * drawing.label_object + drawing.label_scene
    assert np.bincount(pairs[tested]).tolist() == [4] * 6
    assert np.bincount(pairs[~tested]).tolist() == [36] * 6
    # Of 7, 12 and 20 cut-outs and of 15 and 30 scenes, a tenth each is for testing.
    used = [set(drawing.cutout[tested & (drawing.label_object == label)].tolist()) for label in range(3)]
    assert [*map(len, used)] == [1, 1, 2]
    used = [set(drawing.scene[tested & (drawing.label_scene == label)].tolist()) for label in range(2)]
    assert [*map(len, used)] == [2, 3]


@pytest.mark.parametrize("images_per_pair", [7, 53])
def test_leak_free_uses_material_evenly_within_each_half(images_per_pair: int) -> None:
    material = collection()
    drawing = drawn(material, leak_free=True, images_per_pair=images_per_pair, test_share=0.3)
    for half in (TRAIN, TEST):
        for used, labels in ((drawing.cutout, material.label_object), (drawing.scene, material.label_scene)):
            for label in np.unique(labels):
                counts = np.bincount(used[drawing.split == half], minlength=len(labels))[labels == label]
                assert counts.max() > 0
                elsewhere = np.bincount(used[drawing.split != half], minlength=len(labels))[labels == label]
                assert np.ptp(counts[elsewhere == 0]) <= 1


def test_leak_free_keeps_cutouts_of_one_photograph_together() -> None:
    # Photographs 0 to 9 show a dog, a kite and a zebra each.
    material = collection(cutouts=(10, 10, 12), coco_image=[*range(10), *range(10), *range(12)])
    for seed in range(5):
        drawing = drawn(material, leak_free=True, test_share=0.3, seed=seed)
        coco_images, tested = material.coco_image[drawing.cutout], drawing.split == TEST
        assert not set(coco_images[tested].tolist()) & set(coco_images[~tested].tolist())
        assert len(set(coco_images[tested & (drawing.label_object == 0)].tolist())) == 3


@pytest.mark.parametrize(
    ("cutouts", "scenes", "message"),
    [
        ((7, 1, 9), (5, 5), "leak_free: 'kite' has 1 cut-outs, 0 to train on and 1 to test on"),
        ((7, 9, 9), (5, 1), "leak_free: 'track' has 1 scenes, 0 to train on and 1 to test on"),
    ],
)
def test_a_class_too_small_for_leak_free(
    cutouts: tuple[int, ...], scenes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        drawn(collection(cutouts, scenes), leak_free=True)
    assert len(drawn(collection(cutouts, scenes))) == 240


def test_a_pair_too_small_for_leak_free() -> None:
    with pytest.raises(ValueError, match="images_per_pair: found 1, leak_free needs at least 2"):
        drawn(leak_free=True, images_per_pair=1)


@pytest.mark.parametrize("leak_free", [False, True])
def test_plans_follow_the_seed(leak_free: bool) -> None:
    one, same, other = (drawn(leak_free=leak_free, seed=seed) for seed in (5, 5, 6))
    for name in ("cutout", "scene", "split", "placement"):
        assert (getattr(one, name) == getattr(same, name)).all()
    for name in ("cutout", "scene", "placement"):
        assert (getattr(one, name) != getattr(other, name)).any()


def test_other_sizes_keep_pairs_and_split() -> None:
    one, other = drawn(), drawn(smallest=0.1, largest=0.2)
    for name in ("cutout", "scene", "split"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert one.placement[:, 2:].max() > other.placement[:, 2:].max()
