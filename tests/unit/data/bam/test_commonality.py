from typing import Any

import numpy as np
import pytest

from saliency_assay.data.bam.compose import compose_common
from saliency_assay.data.bam.members import plan_common
from saliency_assay.data.bam.placement import Collection, Plan, side_range
from saliency_assay.data.splits import TEST

SIZE, CANVAS, SCENES, EACH = 24, 32, 10, 12
OBJECTS = ("bird", "dog", "zebra")
RANGE = {"measure": "area", "smallest": 1 / 3, "largest": 1 / 2}


def material(cutouts: tuple[int, ...] = (6, 7, 5), scenes: tuple[int, ...] = (8,) * SCENES) -> Collection:
    """Opaque cut-outs of random sizes and scenes of random pixels; photographs hold one object each."""
    generator = np.random.default_rng(0)
    count = sum(cutouts)
    pixels = generator.integers(0, 256, (count, 4, CANVAS, CANVAS), dtype=np.uint8)
    pixels[:, 3] = 255
    return Collection(
        object_names=OBJECTS[: len(cutouts)],
        scene_names=tuple(f"scene{label}" for label in range(len(scenes))),
        cutouts=pixels,
        heights=generator.integers(5, CANVAS + 1, count),
        widths=generator.integers(5, CANVAS + 1, count),
        label_object=np.repeat(np.arange(len(cutouts)), cutouts),
        coco_image=np.arange(count),
        scenes=generator.integers(0, 256, (sum(scenes), 3, SIZE, SIZE), dtype=np.uint8),
        label_scene=np.repeat(np.arange(len(scenes)), scenes),
    )


def planned(collection: Collection, seed: int = 1, **changes: Any) -> Plan:
    settings = {"common_object": "dog", "size": SIZE, "images_per_scene": EACH, "test_share": 0.25, **RANGE}
    settings |= {"leak_free": False, **changes}
    return plan_common(collection, generator=np.random.default_rng(seed), **settings)


def whole(drawing: Plan, collection: Collection, classes: int, block: int = 7) -> dict[str, np.ndarray]:
    blocks = list(compose_common(drawing, collection, classes, block=block))
    assert max(len(part["image"]) for part in blocks) <= block
    return {key: np.concatenate([part[key] for part in blocks]) for key in blocks[0]}


@pytest.mark.parametrize("leak_free", [False, True])
def test_the_plan_deals_one_object_to_all_scenes(leak_free: bool) -> None:
    collection = material()
    drawing = planned(collection, leak_free=leak_free)
    assert len(drawing) == SCENES * EACH
    assert drawing.label_scene.tolist() == sorted([*range(SCENES)] * EACH)
    assert (drawing.label_scene == collection.label_scene[drawing.scene]).all()
    assert set(drawing.label_object.tolist()) == {1}
    assert (collection.label_object[drawing.cutout] == 1).all()
    height, width = drawing.placement[:, 2:].T
    longer = np.maximum(height, width)
    assert (longer.min(), longer.max()) == side_range(SIZE, **RANGE)
    tall, wide = collection.heights[drawing.cutout], collection.widths[drawing.cutout]
    assert (np.abs(height - longer * tall / np.maximum(tall, wide)) <= 0.5).all()
    tested = drawing.split == TEST
    assert tested.sum() == SCENES * EACH // 4
    shared = set(drawing.cutout[tested].tolist()) & set(drawing.cutout[~tested].tolist())
    assert bool(shared) == (not leak_free)


@pytest.mark.parametrize("classes", [0, 4, SCENES])
def test_the_object_is_pasted_in_exactly_the_first_classes(classes: int) -> None:
    collection = material()
    drawing = planned(collection)
    images, without = whole(drawing, collection, classes), whole(drawing, collection, 0)
    mask, scenes = images["mask"][:, None], np.asarray(collection.scenes)[drawing.scene]
    assert images["present"].tolist() == [label < classes for label in drawing.label_scene.tolist()]
    assert images["present"].sum() == classes * EACH
    assert (without["image"] == scenes).all()
    assert images["mask"].any(axis=(1, 2)).all()
    # Random pixels on random pixels: an object that is there changes nearly all that it covers.
    changed = (images["image"] != scenes).any(axis=1)
    assert not changed[~images["mask"]].any()
    assert not changed[~images["present"]].any()
    for image, present in enumerate(images["present"].tolist()):
        assert not present or changed[image].sum() > 0.95 * mask[image].sum()
    everywhere = whole(drawing, collection, SCENES)["image"]
    assert (images["image"][images["present"]] == everywhere[images["present"]]).all()
    assert (images["covered"] == np.where(mask, scenes, 0)).all()
    for name in set(images) - {"image", "present"}:
        assert (images[name] == without[name]).all()
    for name in ("label_scene", "split", "cutout", "scene", "placement"):
        assert (images[name] == getattr(drawing, name)).all()


def test_masks_are_the_boxes_of_opaque_cutouts() -> None:
    collection = material()
    drawing = planned(collection)
    images = whole(drawing, collection, 2)
    for mask, (top, left, height, width) in zip(images["mask"], drawing.placement.tolist(), strict=True):
        expected = np.zeros((SIZE, SIZE), bool)
        expected[top : top + height, left : left + width] = True
        assert (mask == expected).all()


def test_blocks_do_not_matter() -> None:
    collection = material()
    drawing = planned(collection)
    few, many = whole(drawing, collection, 3, block=5), whole(drawing, collection, 3, block=1000)
    assert all((few[key] == many[key]).all() for key in many)


@pytest.mark.parametrize(
    ("collection", "changes", "message"),
    [
        (material(), {"common_object": "cat"}, "common_object: found 'cat', valid: bird, dog, zebra"),
        (material((6, 0, 5)), {}, "common_object: 'dog' has no cut-outs, expected at least one"),
        (material((6, 1, 5)), {"leak_free": True}, "leak_free: 'dog' has 1 cut-outs, 0 to train on and 1 to"),
        (material(scenes=(8, 0, 8)), {}, "scenes: 'scene1' has no scenes"),
        (material(scenes=(8, 8, 1)), {"leak_free": True}, "leak_free: 'scene2' has 1 scenes, 0 to train on"),
        (material(), {"leak_free": True, "images_per_scene": 1}, "images_per_scene: found 1, leak_free"),
    ],
)
def test_too_little_to_compose_of(collection: Collection, changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        planned(collection, **changes)
