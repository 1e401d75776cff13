"""Placement plan that all sets of BAM images follow (Yang and Kim 2019, section 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.data.splits import TEST, TRAIN, Ints, Split, random_split, test_count


@dataclass(frozen=True)
class Collection:
    """Sources of composed images: the arrays of ``collection.py``, and the classes' names.

    ``cutouts`` and ``scenes``, uint8 ``[n, C, H, W]``, are indexed by arrays of integers and may stay in their stores.
    """

    object_names: Sequence[str]
    scene_names: Sequence[str]
    cutouts: Any
    heights: Ints
    widths: Ints
    label_object: Ints
    photo: Ints
    scenes: Any
    label_scene: Ints


def collection_of(
    cutouts: Any, scenes: Any, *, object_names: Sequence[str], scene_names: Sequence[str]
) -> Collection:
    """Return the collection in the two groups of arrays that ``collection.py`` makes."""
    return Collection(
        object_names=object_names,
        scene_names=scene_names,
        cutouts=cutouts["image"],
        heights=cutouts["height"][:],
        widths=cutouts["width"][:],
        label_object=cutouts["label_object"][:],
        photo=cutouts["photo"][:],
        scenes=scenes["image"],
        label_scene=scenes["label_scene"][:],
    )


@dataclass(frozen=True)
class Plan:
    """Of each composite: cut-out and scene (indices into the collection), their labels, split and placement.

    All arrays are ``[N]``, ``placement`` is ``[N, 4]``: top, left, height, width of the cut-out's box in pixels.
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
    """Return the least and the greatest longer side of a pasted cut-out, both inclusive, in whole pixels.

    By ``area``, the square on the longer side covers at least ``smallest`` and less than ``largest`` of the
    scene, as in the released code; by ``side``, these are fractions of the scene's side.

    Raises:
        ValueError: no whole number of pixels is in between.
    """
    low, high = (size * (sqrt(share) if measure == "area" else share) for share in (smallest, largest))
    least, greatest = ceil(low - 1e-9), ceil(high - 1e-9) - 1
    if not 1 <= least <= greatest:
        raise ValueError(
            f"smallest {smallest:g}, largest {largest:g} (measure {measure}) at size {size}: the longer side "
            f"would be from {low:.2f} to below {high:.2f} pixels, expected a whole number in between"
        )
    return least, greatest


def canvas_side(size: int, *, measure: str, smallest: float, largest: float) -> int:
    """Side of the square on which cut-outs are kept: twice the longest side that is ever pasted.

    A large cut-out is thus shrunk to the canvas, and then by half or more when it is pasted, which leaves
    nothing of the first step to see; a smaller one is kept as it was in its photograph and resized only once.
    Where variants are pasted too, ``largest`` is the greater of both.
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
    """Draw cut-out, scene, size, location and split of ``images_per_pair`` composites of each class pair.

    Cut-outs and scenes are dealt in shuffled rounds: within its class each is used equally often (±1), and a
    pair repeats none before it had them all; with ``leak_free`` this holds in each half by itself. Where a pair
    has fewer than ``images_per_pair`` of them they are reused with other partners, sizes and locations, so that
    all pairs have the same number of images and chance is the same for every class.

    Split, in the paper: a random ``test_share`` of all composites, so cut-outs and scenes are in both halves.
    ``leak_free``: cut-outs (with all others of their photograph) and scenes are split first, within each class;
    ``test_share`` of each pair is composed of test material only, the rest of training material only. Both shares
    are rounded: between the halves, cut-outs and scenes are used equally often only where they come out alike.

    Args:
        collection: only its labels and sizes are read.
        size: side of the scenes in pixels.
        generator: pairs, split, sizes and locations each have their own child of it, the first four; variants
            of the plan take further ones.

    Raises:
        ValueError: sizes that leave no pixel to choose, a pair without both halves, or (``leak_free``) a class
            with too few cut-outs or scenes.
    """
    pairing, splitting, scaling, locating = generator.spawn(4)
    least, greatest = side_range(size, measure=measure, smallest=smallest, largest=largest)
    if leak_free:
        cutout, scene, split = _leak_free(collection, images_per_pair, test_share, pairing, splitting)
    else:
        everything = np.ones(len(collection.label_object), bool), np.ones(len(collection.label_scene), bool)
        cutout, scene = _dealt(collection, *everything, images_per_pair, pairing)
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
        placement=placed(*sides, size, locating),
    )


def box_sides(heights: Ints, widths: Ints, longer: Ints) -> tuple[Ints, Ints]:
    """Heights and widths ``[N]`` of boxes of the given longer sides, in the proportions of their cut-outs."""
    scale = longer / np.maximum(heights, widths)
    return (
        np.maximum(1, np.rint(heights * scale).astype(np.int64)),
        np.maximum(1, np.rint(widths * scale).astype(np.int64)),
    )


def placed(height: Ints, width: Ints, size: int, generator: np.random.Generator) -> Ints:
    """Boxes ``[N, 4]`` of the given sides, uniform among the places where they lie in the scene."""
    top = generator.integers(0, size - height, endpoint=True)
    left = generator.integers(0, size - width, endpoint=True)
    return np.stack([top, left, height, width], axis=1)


def _leak_free(
    collection: Collection,
    images_per_pair: int,
    test_share: float,
    pairing: np.random.Generator,
    splitting: np.random.Generator,
) -> tuple[Ints, Ints, Split]:
    """Cut-outs, scenes and split ``[N]``; in each pair the composites for testing come last."""
    each_scene = np.arange(len(collection.label_scene))
    objects = _split_material(collection.label_object, collection.photo, test_share, splitting)
    scenes = _split_material(collection.label_scene, each_scene, test_share, splitting)
    _check_halves(collection.object_names, collection.label_object, objects, "cut-outs")
    _check_halves(collection.scene_names, collection.label_scene, scenes, "scenes")
    tests = test_count(images_per_pair, test_share)
    if tests >= images_per_pair:
        raise ValueError(f"images_per_pair: found {images_per_pair}, leak_free needs at least 2")
    halves = [
        _dealt(collection, objects == side, scenes == side, count, pairing)
        for side, count in ((TRAIN, images_per_pair - tests), (TEST, tests))
    ]
    cutout, scene = (np.concatenate(parts, axis=2).ravel() for parts in zip(*halves, strict=True))
    pairs = len(cutout) // images_per_pair
    split = np.tile(
        np.repeat(np.array([TRAIN, TEST], dtype=np.uint8), [images_per_pair - tests, tests]), pairs
    )
    return cutout, scene, split


def _split_material(labels: Ints, photos: Ints, test_share: float, generator: np.random.Generator) -> Split:
    """Split cut-outs or scenes ``[n]`` within each class; those of one photograph stay together."""
    decided: dict[int, int] = {}
    # Classes with few members choose first, while their photographs are still undecided.
    for label in sorted(set(labels.tolist()), key=lambda label: (int((labels == label).sum()), label)):
        members = np.flatnonzero(labels == label)
        wanted = test_count(len(members), test_share)
        wanted -= sum(decided.get(photo) == TEST for photo in photos[members].tolist())
        for photo in photos[generator.permutation(members)].tolist():
            if photo not in decided:
                decided[photo] = TEST if wanted > 0 else TRAIN
                wanted -= 1
    return np.array([decided[photo] for photo in photos.tolist()], dtype=np.uint8)


def _check_halves(names: Sequence[str], labels: Ints, split: Split, what: str) -> None:
    for label, name in enumerate(names):
        train, test = (int(((labels == label) & (split == side)).sum()) for side in (TRAIN, TEST))
        if not train or not test:
            raise ValueError(
                f"leak_free: {name!r} has {train + test} {what}, {train} to train on and {test} to test on; "
                f"expected at least one of each"
            )


def _dealt(
    collection: Collection,
    usable_cutouts: npt.NDArray[np.bool_],
    usable_scenes: npt.NDArray[np.bool_],
    each: int,
    generator: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Cut-outs and scenes ``[objects, scenes, each]`` of every pair of classes."""
    objects, scenes = np.unique(collection.label_object), np.unique(collection.label_scene)
    cutout = np.empty((len(objects), len(scenes), each), dtype=np.int64)
    scene = np.empty_like(cutout)
    for row, label in enumerate(objects):
        items = np.flatnonzero((collection.label_object == label) & usable_cutouts)
        cutout[row] = deal(items, len(scenes), each, generator)
    for column, label in enumerate(scenes):
        items = np.flatnonzero((collection.label_scene == label) & usable_scenes)
        scene[:, column] = deal(items, len(objects), each, generator)
    return cutout, scene


def deal(items: Ints, hands: int, each: int, generator: np.random.Generator) -> Ints:
    """Deal ``items`` to ``[hands, each]`` in shuffled rounds.

    All items are dealt equally often (±1), and no hand gets one again before it had them all: a round that
    begins within a hand first deals what that hand has not had.
    """
    dealt = np.empty((hands, each), dtype=np.int64)
    deck: Ints = items[:0]
    for hand in dealt:
        filled = 0
        while filled < each:
            if not len(deck):
                held = hand[filled - filled % len(items) : filled]
                rest = np.setdiff1d(items, held)
                deck = np.concatenate([generator.permutation(rest), generator.permutation(held)])
            taken = min(len(deck), each - filled)
            hand[filled : filled + taken] = deck[:taken]
            deck, filled = deck[taken:], filled + taken
    return dealt
