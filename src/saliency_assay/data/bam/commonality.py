"""The plan of BAM's series of several commonalities: one object, on all scenes (Yang and Kim 2019, section 3.2)."""

from dataclasses import replace

import numpy as np

from saliency_assay.data.bam.placement import Collection, Plan, plan
from saliency_assay.data.splits import test_count


def plan_common(
    collection: Collection,
    *,
    common_object: str,
    size: int,
    images_per_scene: int,
    measure: str,
    smallest: float,
    largest: float,
    test_share: float,
    leak_free: bool,
    generator: np.random.Generator,
) -> Plan:
    """Draw a cut-out of ``common_object`` for ``images_per_scene`` images of each scene class, as ``plan`` draws pairs.

    All sets of the series follow it, whether the object is pasted or not, so that they have the same scenes and split.

    Raises:
        ValueError: an object that is not in the collection or has no cut-out, a scene class without scenes, or what
            ``plan`` refuses.
    """
    label = _label(collection, common_object)
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
    drawn = plan(
        _only(collection, members, common_object),
        size=size,
        images_per_pair=images_per_scene,
        measure=measure,
        smallest=smallest,
        largest=largest,
        test_share=test_share,
        leak_free=leak_free,
        generator=generator,
    )
    return replace(drawn, cutout=members[drawn.cutout], label_object=np.full_like(drawn.label_object, label))


def _label(collection: Collection, name: str) -> int:
    if name not in collection.object_names:
        raise ValueError(f"common_object: found {name!r}, valid: {', '.join(collection.object_names)}")
    return list(collection.object_names).index(name)


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
