"""Every set of a BAM collection by its name: which plan it follows, and how it is composed.

Variants of a plan, its objects in other sizes or in other places and nothing else changed, show how far a metric of BAM
depends on either (Yang and Kim 2019, section 5.1: "robust to the scale and location of objects"). The paper does not
say which sizes and places.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saliency_assay.data.bam.compose import SETS, Block, compose, compose_common
from saliency_assay.data.bam.placement import Collection, Plan, box_sides, placed, plan, side_range
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
    """``plan`` with longer sides sampled again, uniformly, from another range, read as ``side_range`` does.

    Each box keeps its centre to half a pixel, or is moved by the fewest pixels that keep it inside the scene.

    Raises:
        ValueError: no whole number of pixels is in the range.
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
    # Halves go to the even pixel, so that boxes drift neither up nor down.
    corners = np.rint(plan.placement[:, :2] + (plan.placement[:, 2:] - sides) / 2).astype(np.int64)
    corners = np.clip(corners, 0, plan.size - sides)
    return replace(plan, placement=np.concatenate([corners, sides], axis=1))


def relocated(plan: Plan, *, generator: np.random.Generator) -> Plan:
    """``plan`` with the same boxes at places sampled again, uniformly among those where they lie in the scene."""
    return replace(plan, placement=placed(plan.placement[:, 2], plan.placement[:, 3], plan.size, generator))


def plan_common(
    collection: Collection,
    *,
    common_object: str,
    images_per_scene: int,
    test_share: float,
    leak_free: bool,
    **parameters: Any,
) -> Plan:
    """Plan BAM's series of several commonalities, one object on all scenes (Yang and Kim 2019, section 3.2).

    A cut-out of ``common_object`` is sampled for ``images_per_scene`` images of each scene class, as ``plan`` samples
    pairs; ``parameters`` are the others of ``plan``. All sets of the series follow it, whether the object is pasted or
    not: they have the same scenes and split.

    Raises:
        ValueError: an object that is not in the collection or has no cut-out, a scene class without scenes, or what
            ``plan`` refuses.
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
    common = plan(
        _only(collection, members, common_object),
        images_per_pair=images_per_scene,
        test_share=test_share,
        leak_free=leak_free,
        **parameters,
    )
    return replace(
        common, cutout=members[common.cutout], label_object=np.full_like(common.label_object, label)
    )


def _only(collection: Collection, members: np.ndarray, name: str) -> Collection:
    """The labels and sizes of one object's cut-outs ``members``, all that a plan reads; pixels stay where they are."""
    return replace(
        collection,
        object_names=(name,),
        heights=collection.heights[members],
        widths=collection.widths[members],
        label_object=np.zeros(len(members), dtype=np.int64),
        photo=collection.photo[members],
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
    """The images of the set ``member``, ``block`` at a time: what ``compose`` or ``compose_common`` yields.

    Args:
        member: ``os``, ``0s`` or ``og``; ``os_scale`` or ``os_location``; ``os_kNN`` or ``0s_k``.
        parameters: what ``plan`` reads, for ``os_scale`` also ``variant_smallest`` and ``variant_largest``; for a
            series, ``os_kNN`` and ``0s_k``, what ``plan_common`` reads.
        seed: of the collection; sets that are aligned draw the same from it.
        common_object: for a series.

    Raises:
        ValueError: another ``member``, or what its plan refuses.
    """
    if is_series(member):
        generator = np.random.default_rng(seed_of(seed, "compose_bam", "commonality"))
        common = plan_common(collection, common_object=common_object, **parameters, generator=generator)
        return compose_common(common, collection, classes_of(member), block=block)
    if member in VARIANTS:
        return compose(_variant(collection, member, parameters, seed), collection, "os", block=block)
    drawn = plan(collection, **parameters, generator=_generator(seed))
    return compose(drawn, collection, member, block=block)


def is_series(member: str) -> bool:
    """Whether ``member`` is one of the sets of several commonalities; those have a scene label only.

    Raises:
        ValueError: no set is called so.
    """
    if member in (*SETS, *VARIANTS):
        return False
    try:
        return classes_of(member) >= 0
    except ValueError:
        known = ", ".join((*SETS, *VARIANTS))
        raise ValueError(f"set {member!r}: expected one of {known}, os_kNN, 0s_k") from None


def _variant(collection: Collection, member: str, parameters: Mapping[str, Any], seed: int) -> Plan:
    generator, base = _generator(seed), dict(parameters)
    sizes = {name: base.pop(name) for name in ("variant_smallest", "variant_largest") if name in base}
    drawn = plan(collection, **base, generator=generator)
    # The plan took the first four children; a variant changes nothing that was drawn from them.
    scaling, locating = generator.spawn(2)
    if member == "os_location":
        return relocated(drawn, generator=locating)
    return rescaled(drawn, collection, measure=base["measure"], **sizes, generator=scaling)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed_of(seed, "compose_bam"))
