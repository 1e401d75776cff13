"""Synthetic birds: images are determined by their scenes, and training images miss parts."""

import numpy as np
import pytest

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.data.synthetic.birds import MISSING, PARTS, birds, class_names, sample_classes, scene_of

OBJECTS = 3


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    _, blocks = birds(
        size=32,
        class_count=6,
        images_per_class=50,
        object_count=OBJECTS,
        generator=np.random.default_rng(3),
        block=70,
    )
    parts = list(blocks)
    assert [len(part["image"]) for part in parts] == [70, 70, 70, 70, 20]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_test_images_are_rendered_again_from_their_scenes(data: dict[str, np.ndarray]) -> None:
    for number in np.flatnonzero(data["split"] == TEST)[:5]:
        scene = scene_of(data["variants"][number], int(data["scene_seed"][number]), size=32, objects=OBJECTS)
        assert (scene.image() == data["image"][number]).all()


def test_removing_a_layer_changes_only_pixels_near_it(data: dict[str, np.ndarray]) -> None:
    scene = scene_of(data["variants"][0], int(data["scene_seed"][0]), size=64, objects=OBJECTS)
    layers = scene.layers()
    for layer in range(1, 1 + len(PARTS) + OBJECTS):
        changed = (scene.image() != scene.image((layer,))).any(0)
        inside = np.pad(layers == layer, 1)
        near = np.any([np.roll(inside, (x, y), (0, 1)) for x in (-1, 0, 1) for y in (-1, 0, 1)], axis=0)
        assert not (changed & ~near[1:-1, 1:-1]).any()
        assert changed.any() == (layers == layer).any()


def test_test_images_are_complete_and_half_of_the_training_images_are_not(
    data: dict[str, np.ndarray],
) -> None:
    missing = (data["variants"] == MISSING).sum(1)
    assert (missing[data["split"] == TEST] == 0).all()
    of_training = missing[data["split"] == TRAIN]
    # Half of the images miss 0 to 5 parts with equal probability.
    assert (of_training > 0).mean() == pytest.approx(5 / 12, abs=0.08)
    assert set(of_training) == set(range(6))


def test_each_class_has_the_same_share_of_test_images(data: dict[str, np.ndarray]) -> None:
    labels = data["label_class"][data["split"] == TEST]
    assert np.bincount(labels).tolist() == [5] * 6


def test_images_of_a_class_have_the_same_variants(data: dict[str, np.ndarray]) -> None:
    for label in range(6):
        parts = data["variants"][data["label_class"] == label]
        assert all(len(set(column) - {MISSING}) == 1 for column in parts.T)


def test_classes_differ() -> None:
    table = sample_classes(768, np.random.default_rng(0))
    assert len(np.unique(table, axis=0)) == 768
    assert table.max(0).tolist() == [3, 2, 3, 3, 3]


def test_names_of_classes_are_in_order() -> None:
    assert class_names(12) == (*(f"bird 0{number}" for number in range(10)), "bird 10", "bird 11")
