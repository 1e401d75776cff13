"""Plan of the composites: pairs, split, sizes and locations, shared by aligned BAM sets (Yang and Kim 2019, 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.data.splits import TEST, TRAIN, Ints, Split, random_split, test_count


@dataclass(frozen=True)
class Collection:
    """Cut-outs and scenes to compose: the arrays of ``collection.py``, and the class names.

    ``cutouts`` and ``scenes``, uint8 ``[n, C, H, W]``, are indexed with integer arrays and may be arrays of a store.
    ``heights`` and ``widths`` are the sizes of the cut-outs in pixels, ``coco_image`` is their COCO image.
    """

    object_names: Sequence[str]
    scene_names: Sequence[str]
    cutouts: Any
    heights: Ints
    widths: Ints
    label_object: Ints
    coco_image: Ints
    scenes: Any
    label_scene: Ints


def collection_of(
    cutouts: Any, scenes: Any, *, object_names: Sequence[str], scene_names: Sequence[str]
) -> Collection:
    """Return the collection of the arrays that ``collection.py`` generates for cut-outs and scenes."""
    return Collection(
        object_names=object_names,
        scene_names=scene_names,
        cutouts=cutouts["image"],
        heights=cutouts["height"][:],
        widths=cutouts["width"][:],
        label_object=cutouts["label_object"][:],
        coco_image=cutouts["coco_image"][:],
        scenes=scenes["image"],
        label_scene=scenes["label_scene"][:],
    )


@dataclass(frozen=True)
class Plan:
    """Cut-out and scene (indices into the collection) of each composite, with labels, split and placement.

    All arrays are ``[N]`` except ``placement`` ``[N, 4]``: top, left, height and width of the cut-out's box in pixels.
    Composites are sorted by object, then by scene.
    """

    size: int
    cutout: Ints
    scene: Ints
    label_object: Ints
    label_scene: Ints
    split: Split
    placement: Ints

    def __len__(self) -> int:
        return len(self.cutout)


def side_range(size: int, *, measure: str, smallest: float, largest: float) -> tuple[int, int]:
    """Return the minimum and maximum (inclusive) of a pasted cut-out's longer side, in whole pixels.

    With ``measure`` ``area``, the square on the longer side covers at least ``smallest`` and less than ``largest`` of
    the scene, as in the paper's released code; with ``side``, the limits are fractions of the scene's side.

    Raises:
        ValueError: the range contains no whole number of pixels.
    """
    low, high = (size * (sqrt(share) if measure == "area" else share) for share in (smallest, largest))
    # The tolerance prevents floating-point error from rounding up a limit that is a whole number. The upper limit is
    # exclusive.
    least, greatest = ceil(low - 1e-9), ceil(high - 1e-9) - 1
    if not 1 <= least <= greatest:
        raise ValueError(
            f"smallest {smallest:g}, largest {largest:g} (measure {measure}) at size {size}: the longer side "
            f"would be from {low:.2f} to below {high:.2f} pixels, expected a whole number in between"
        )
    return least, greatest


def canvas_side(size: int, *, measure: str, smallest: float, largest: float) -> int:
    """Return the side of the square canvas in which cut-outs are stored: twice the longest side of a pasted cut-out.

    A large cut-out is first shrunk to the canvas and then by half or more when it is pasted, so that the first resizing
    is not visible; a smaller one is stored in its original resolution and resized only once. For a collection that is
    also used for variants, ``largest`` is the greater of both upper limits.
    """
    return 2 * side_range(size, measure=measure, smallest=smallest, largest=largest)[1]


def plan(
    collection: Collection,
    *,
    size: int,
    images_per_pair: int,
    measure: str,
    smallest: float,
    largest: float,
    test_share: float,
    leak_free: bool,
    generator: np.random.Generator,
) -> Plan:
    """Sample cut-out, scene, size, location and split of ``images_per_pair`` composites of each pair of classes.

    Cut-outs and scenes are dealt in shuffled rounds (``deal``): all those of a class are used equally often (±1), and
    no pair of classes uses one again before it has used all. With ``leak_free``, this is true within each split. A
    class with fewer cut-outs or scenes than ``images_per_pair`` reuses them with other partners, sizes and locations,
    so that all pairs have the same number of images and chance level is the same for every class.

    In the paper, the test set is a random ``test_share`` of all composites, so that cut-outs and scenes occur in both
    splits. With ``leak_free``, cut-outs and scenes are split first, within each class; all cut-outs of one COCO image
    are in the same split. ``test_share`` of each pair's composites are made of test cut-outs and test scenes, the rest
    of training ones. Both shares are rounded; only if the rounded shares are equal are cut-outs and scenes used equally
    often in both splits.

    Args:
        collection: cut-outs and scenes; only labels and sizes are read.
        size: side of the scenes in pixels.
        images_per_pair: number of composites of each pair of an object and a scene class.
        measure: ``area`` or ``side``, see ``side_range``.
        smallest: lower limit of the size, see ``side_range``.
        largest: upper limit of the size, see ``side_range``.
        test_share: share of the composites for testing.
        leak_free: True if no cut-out and no scene may occur in both splits.
        generator: its first four child generators sample pairs, split, sizes and locations; variants of the plan use
            later ones.

    Raises:
        ValueError: the size range contains no whole number of pixels; with ``leak_free``, a pair has images in only one
            split, or a class has too few cut-outs or scenes.
    """
    # A separate generator for each step: changing the sizes, for example, leaves pairs, split and locations unchanged.
    pairing, splitting, scaling, locating = generator.spawn(4)
    least, greatest = side_range(size, measure=measure, smallest=smallest, largest=largest)
    if leak_free:
        cutout, scene, split = _plan_leak_free(collection, images_per_pair, test_share, pairing, splitting)
    else:
        all_usable = np.ones(len(collection.label_object), bool), np.ones(len(collection.label_scene), bool)
        cutout, scene = _deal_pairs(collection, *all_usable, images_per_pair, pairing)
        cutout, scene = cutout.ravel(), scene.ravel()
        split = random_split(len(cutout), test_share, splitting)
    longer = scaling.integers(least, greatest, endpoint=True, size=len(cutout))
    sides = box_sides(collection.heights[cutout], collection.widths[cutout], longer)
    return Plan(
        size=size,
        cutout=cutout,
        scene=scene,
        label_object=collection.label_object[cutout],
        label_scene=collection.label_scene[scene],
        split=split,
        placement=sample_boxes(*sides, size, locating),
    )


def box_sides(heights: Ints, widths: Ints, longer: Ints) -> tuple[Ints, Ints]:
    """Return heights and widths ``[N]`` of boxes with these longer sides and the aspect ratios of their cut-outs."""
    scale = longer / np.maximum(heights, widths)
    # A very thin cut-out keeps a side of one pixel instead of vanishing by rounding.
    return (
        np.maximum(1, np.rint(heights * scale).astype(np.int64)),
        np.maximum(1, np.rint(widths * scale).astype(np.int64)),
    )


def sample_boxes(height: Ints, width: Ints, size: int, generator: np.random.Generator) -> Ints:
    """Return boxes ``[N, 4]`` with these sides, at positions sampled uniformly inside the scene."""
    top = generator.integers(0, size - height, endpoint=True)
    left = generator.integers(0, size - width, endpoint=True)
    return np.stack([top, left, height, width], axis=1)


def _plan_leak_free(
    collection: Collection,
    images_per_pair: int,
    test_share: float,
    pairing: np.random.Generator,
    splitting: np.random.Generator,
) -> tuple[Ints, Ints, Split]:
    """Return cut-outs, scenes and split ``[N]``; the test composites of each pair come last."""
    scene_ids = np.arange(len(collection.label_scene))
    objects = _split_by_image(collection.label_object, collection.coco_image, test_share, splitting)
    scenes = _split_by_image(collection.label_scene, scene_ids, test_share, splitting)
    _check_split(collection.object_names, collection.label_object, objects, "cut-outs")
    _check_split(collection.scene_names, collection.label_scene, scenes, "scenes")
    test_images = test_count(images_per_pair, test_share)
    if test_images >= images_per_pair:
        raise ValueError(f"images_per_pair: found {images_per_pair}, leak_free needs at least 2")
    dealt = [
        _deal_pairs(collection, objects == split_value, scenes == split_value, count, pairing)
        for split_value, count in ((TRAIN, images_per_pair - test_images), (TEST, test_images))
    ]
    cutout, scene = (np.concatenate(arrays, axis=2).ravel() for arrays in zip(*dealt, strict=True))
    pairs = len(cutout) // images_per_pair
    split = np.tile(
        np.repeat(np.array([TRAIN, TEST], dtype=np.uint8), [images_per_pair - test_images, test_images]),
        pairs,
    )
    return cutout, scene, split


def _split_by_image(
    labels: Ints, coco_images: Ints, test_share: float, generator: np.random.Generator
) -> Split:
    """Split cut-outs or scenes ``[n]`` within each class, keeping all of one source image in the same split."""
    split_of_image: dict[int, int] = {}
    # An image may contain objects of several classes. Small classes are split first, while the split of their images
    # is not yet determined by other classes.
    for label in sorted(set(labels.tolist()), key=lambda label: (int((labels == label).sum()), label)):
        members = np.flatnonzero(labels == label)
        missing_tests = test_count(len(members), test_share)
        missing_tests -= sum(
            split_of_image.get(coco_image) == TEST for coco_image in coco_images[members].tolist()
        )
        for coco_image in coco_images[generator.permutation(members)].tolist():
            # An image that another class has already assigned keeps its split.
            if coco_image not in split_of_image:
                split_of_image[coco_image] = TEST if missing_tests > 0 else TRAIN
                missing_tests -= 1
    return np.array([split_of_image[coco_image] for coco_image in coco_images.tolist()], dtype=np.uint8)


def _check_split(names: Sequence[str], labels: Ints, split: Split, kind: str) -> None:
    for label, name in enumerate(names):
        train, test = (
            int(((labels == label) & (split == split_value)).sum()) for split_value in (TRAIN, TEST)
        )
        if not train or not test:
            raise ValueError(
                f"leak_free: {name!r} has {train + test} {kind}, {train} to train on and {test} to test on; "
                f"expected at least one of each"
            )


def _deal_pairs(
    collection: Collection,
    usable_cutouts: npt.NDArray[np.bool_],
    usable_scenes: npt.NDArray[np.bool_],
    images_per_pair: int,
    generator: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Return indices of usable cut-outs and scenes for all pairs, both ``[objects, scenes, images_per_pair]``."""
    objects, scenes = np.unique(collection.label_object), np.unique(collection.label_scene)
    cutout = np.empty((len(objects), len(scenes), images_per_pair), dtype=np.int64)
    scene = np.empty_like(cutout)
    for row, label in enumerate(objects):
        items = np.flatnonzero((collection.label_object == label) & usable_cutouts)
        cutout[row] = deal(items, len(scenes), images_per_pair, generator)
    for column, label in enumerate(scenes):
        items = np.flatnonzero((collection.label_scene == label) & usable_scenes)
        scene[:, column] = deal(items, len(objects), images_per_pair, generator)
    return cutout, scene


def deal(items: Ints, groups: int, count: int, generator: np.random.Generator) -> Ints:
    """Deal ``items`` to groups in shuffled rounds; return ``[groups, count]``.

    All items are dealt equally often (±1), and no group gets an item again before it has all of them. A round that
    begins within a group therefore first deals the items that this group does not have yet.
    """
    dealt = np.empty((groups, count), dtype=np.int64)
    queue: Ints = items[:0]
    for group in dealt:
        filled = 0
        while filled < count:
            if not len(queue):
                used = group[filled - filled % len(items) : filled]  # in the group's current round
                unused = np.setdiff1d(items, used)
                queue = np.concatenate([generator.permutation(unused), generator.permutation(used)])
            taken = min(len(queue), count - filled)
            group[filled : filled + taken] = queue[:taken]
            queue, filled = queue[taken:], filled + taken
    return dealt
