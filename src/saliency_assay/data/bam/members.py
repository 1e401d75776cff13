"""Plan and composition of a BAM set, selected by the name of the set.

The sets ``os_scale`` and ``os_location`` change only the sizes or only the locations of the objects, to measure how far
a BAM metric depends on them (Yang and Kim 2019, section 5.1: "robust to the scale and location of objects"). The paper
does not state the sizes and locations, so they are this project's choice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saliency_assay.data.bam.compose import SETS, Block, compose, compose_common
from saliency_assay.data.bam.placement import Collection, Plan, box_sides, plan, sample_boxes, side_range
from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.data.splits import test_count
from saliency_assay.runtime.provenance import seed_of


def rescaled(
    plan: Plan,
    collection: Collection,
    *,
    measure: str,
    variant_smallest: float,
    variant_largest: float,
    generator: np.random.Generator,
) -> Plan:
    """Return ``plan`` with longer sides resampled uniformly from another range (see ``side_range``).

    Each box keeps its center within half a pixel, or is moved by the fewest pixels that keep it inside the scene.

    Raises:
        ValueError: the range contains no whole number of pixels.
    """
    try:
        least, greatest = side_range(
            plan.size, measure=measure, smallest=variant_smallest, largest=variant_largest
        )
    except ValueError as error:
        raise ValueError(f"variant_smallest, variant_largest: {error}") from None
    longer = generator.integers(least, greatest, endpoint=True, size=len(plan))
    sides = np.stack(
        box_sides(collection.heights[plan.cutout], collection.widths[plan.cutout], longer), axis=1
    )
    # ``rint`` rounds halves to the even pixel, so that boxes are not shifted in one direction on average.
    corners = np.rint(plan.placement[:, :2] + (plan.placement[:, 2:] - sides) / 2).astype(np.int64)
    corners = np.clip(corners, 0, plan.size - sides)
    return replace(plan, placement=np.concatenate([corners, sides], axis=1))


def relocated(plan: Plan, *, generator: np.random.Generator) -> Plan:
    """Return ``plan`` with boxes of the same size at locations resampled uniformly inside the scene."""
    return replace(
        plan, placement=sample_boxes(plan.placement[:, 2], plan.placement[:, 3], plan.size, generator)
    )


def plan_common(
    collection: Collection,
    *,
    common_object: str,
    images_per_scene: int,
    test_share: float,
    leak_free: bool,
    **parameters: Any,
) -> Plan:
    """Plan BAM's commonality series, one object on scenes of all classes (Yang and Kim 2019, section 3.2).

    Cut-outs of ``common_object`` are sampled for ``images_per_scene`` images of each scene class, in the same way as
    the pairs of ``plan``, which receives the other ``parameters``. All sets of the series share this plan, and
    therefore scenes and split, whether they contain the object or not.

    Raises:
        ValueError: the object is not in the collection or has no cut-out, a scene class has no scenes, or an error of
            ``plan``.
    """
    if common_object not in collection.object_names:
        raise ValueError(
            f"common_object: found {common_object!r}, valid: {', '.join(collection.object_names)}"
        )
    label = list(collection.object_names).index(common_object)
    members = np.flatnonzero(collection.label_object == label)
    if not len(members):
        raise ValueError(f"common_object: {common_object!r} has no cut-outs, expected at least one")
    empty = np.setdiff1d(np.arange(len(collection.scene_names)), collection.label_scene)
    if len(empty):
        raise ValueError(
            f"scenes: {collection.scene_names[empty[0]]!r} has no scenes, expected at least one of each class"
        )
    if leak_free and test_count(images_per_scene, test_share) >= images_per_scene:
        raise ValueError(f"images_per_scene: found {images_per_scene}, leak_free needs at least 2")
    pair_plan = plan(
        _restrict_to(collection, members, common_object),
        images_per_pair=images_per_scene,
        test_share=test_share,
        leak_free=leak_free,
        **parameters,
    )
    # Indices into the restricted collection become indices into the complete one.
    return replace(
        pair_plan, cutout=members[pair_plan.cutout], label_object=np.full_like(pair_plan.label_object, label)
    )


def _restrict_to(collection: Collection, members: np.ndarray, name: str) -> Collection:
    """Return the collection with labels and sizes of only the cut-outs ``members``, all of class ``name``.

    ``cutouts`` is unchanged, because a plan reads no pixels.
    """
    return replace(
        collection,
        object_names=(name,),
        heights=collection.heights[members],
        widths=collection.widths[members],
        label_object=np.zeros(len(members), dtype=np.int64),
        coco_image=collection.coco_image[members],
    )


VARIANTS = ("os_scale", "os_location")


def compose_member(
    collection: Collection,
    member: str,
    parameters: Mapping[str, Any],
    *,
    seed: int,
    common_object: str = "",
    block: int = 256,
) -> Iterator[Block]:
    """Compose the images of the set ``member`` in blocks, by ``compose`` or ``compose_common``.

    Args:
        collection: cut-outs and scenes.
        member: ``os``, ``0s`` or ``og``; ``os_scale`` or ``os_location``; ``os_kNN`` or ``0s_k``.
        parameters: arguments of ``plan``; for ``os_scale`` also ``variant_smallest`` and ``variant_largest``; for
            ``os_kNN`` and ``0s_k`` those of ``plan_common``.
        seed: seed of the collection; aligned sets get the same plan from it.
        common_object: object of the commonality series.
        block: number of images per block.

    Raises:
        ValueError: an unknown ``member``, or an error of its plan.
    """
    if is_series(member):
        generator = np.random.default_rng(seed_of(seed, "compose_bam", "commonality"))
        common = plan_common(collection, common_object=common_object, **parameters, generator=generator)
        return compose_common(common, collection, classes_of(member), block=block)
    if member in VARIANTS:
        return compose(_plan_variant(collection, member, parameters, seed), collection, "os", block=block)
    base_plan = plan(collection, **parameters, generator=_generator(seed))
    return compose(base_plan, collection, member, block=block)


def is_series(member: str) -> bool:
    """Return True if ``member`` is a set of the commonality series; these have only a scene label.

    Raises:
        ValueError: no set has this name.
    """
    if member in (*SETS, *VARIANTS):
        return False
    try:
        return classes_of(member) >= 0
    except ValueError:
        known_sets = ", ".join((*SETS, *VARIANTS))
        raise ValueError(f"set {member!r}: expected one of {known_sets}, os_kNN, 0s_k") from None


def _plan_variant(collection: Collection, member: str, parameters: Mapping[str, Any], seed: int) -> Plan:
    generator, base_parameters = _generator(seed), dict(parameters)
    sizes = {
        name: base_parameters.pop(name)
        for name in ("variant_smallest", "variant_largest")
        if name in base_parameters
    }
    base_plan = plan(collection, **base_parameters, generator=generator)
    # ``plan`` uses the first four child generators; a variant uses the next two, so that the base plan is unchanged.
    scaling, locating = generator.spawn(2)
    if member == "os_location":
        return relocated(base_plan, generator=locating)
    return rescaled(base_plan, collection, measure=base_parameters["measure"], **sizes, generator=scaling)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed_of(seed, "compose_bam"))
