import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saliency_assay.data.bam.compose import GRAY, SETS, compose, paste
from saliency_assay.data.bam.placement import Collection, Plan, collection_of, plan
from saliency_assay.data.splits import TEST, TRAIN

SIZE, CANVAS = 24, 32


def material() -> Collection:
    """Random cut-outs with soft edges of random sizes, and random scenes."""
    generator = np.random.default_rng(0)
    label_object, label_scene = np.repeat([0, 1], [6, 9]), np.repeat([0, 1, 2], 8)
    cutouts = generator.integers(0, 256, (15, 4, CANVAS, CANVAS), dtype=np.uint8)
    return collection_of(
        {
            "image": cutouts,
            "height": generator.integers(5, CANVAS + 1, 15),
            "width": generator.integers(5, CANVAS + 1, 15),
            "label_object": label_object,
            "coco_image": np.arange(15),
        },
        {
            "image": generator.integers(0, 256, (24, 3, SIZE, SIZE), dtype=np.uint8),
            "label_scene": label_scene,
        },
        object_names=("dog", "kite"),
        scene_names=("bedroom", "runway", "track"),
    )


def planned(collection: Collection, images_per_pair: int = 7) -> Plan:
    return plan(
        collection,
        size=SIZE,
        images_per_pair=images_per_pair,
        measure="area",
        smallest=1 / 3,
        largest=1 / 2,
        test_share=0.1,
        leak_free=False,
        generator=np.random.default_rng(1),
    )


def whole(drawing: Plan, collection: Collection, name: str, block: int = 10) -> dict[str, np.ndarray]:
    blocks = list(compose(drawing, collection, name, block=block))
    assert max(len(part["image"]) for part in blocks) <= block
    return {key: np.concatenate([part[key] for part in blocks]) for key in blocks[0]}


def test_the_sets_are_aligned() -> None:
    collection = material()
    drawing = planned(collection)
    os, none, og = (whole(drawing, collection, name) for name in SETS)
    for name in set(os) - {"image"}:
        assert (os[name] == none[name]).all()
        assert (os[name] == og[name]).all()
    for name in ("label_object", "label_scene", "split", "cutout", "scene", "placement"):
        assert (os[name] == getattr(drawing, name)).all()
    assert os["image"].shape == (42, 3, SIZE, SIZE)
    assert (os["split"] == TEST).sum() == 4
    mask = os["mask"][:, None]
    assert mask.any(axis=(1, 2, 3)).all()
    many = whole(drawing, collection, "os", block=1000)
    assert all((os[key] == many[key]).all() for key in os)
    assert os["image"].dtype == os["covered"].dtype == np.uint8
    assert mask.dtype == bool
    assert (none["image"] == collection.scenes[drawing.scene]).all()
    assert (np.where(mask, os["covered"], os["image"]) == none["image"]).all()
    assert (os["covered"] == np.where(mask, none["image"], 0)).all()
    assert (og["image"] == np.where(mask, os["image"], GRAY)).all()


def test_only_what_a_block_needs_is_read() -> None:
    class Watched:
        def __init__(self, images: Any) -> None:
            self.images, self.most = images, 0

        def __getitem__(self, index: Any) -> Any:
            self.most = max(self.most, len(index))
            return self.images[index]

    collection = material()
    cutouts, scenes = Watched(collection.cutouts), Watched(collection.scenes)
    drawing = planned(collection, images_per_pair=30)
    for _ in compose(drawing, replace(collection, cutouts=cutouts, scenes=scenes), "os", block=4):
        pass
    assert cutouts.most == scenes.most == 4


def test_paste_at_the_same_size_copies_pixels() -> None:
    generator = np.random.default_rng(3)
    cutout = generator.integers(0, 256, (4, 6, 9), dtype=np.uint8)
    cutout[3, 0, :2] = 127, 128
    color, mask = paste(cutout, (2, 3, 6, 9), 20)
    assert (mask[2:8, 3:12] == (cutout[3] >= 128)).all()
    assert mask.sum() == (cutout[3] >= 128).sum()
    assert (color[:, mask] == cutout[:3, cutout[3] >= 128]).all()


def test_shrinking_takes_no_color_from_around_the_object() -> None:
    cutout = np.zeros((4, 40, 40), np.uint8)
    cutout[:3] = np.array([0, 255, 0])[:, None, None]  # a green photograph around
    y, x = np.mgrid[:40, :40]
    disc = (y - 19.5) ** 2 + (x - 19.5) ** 2 < 19**2
    cutout[:3, disc] = np.array([200, 60, 120])[:, None]
    cutout[3] = disc * np.uint8(255)
    color, mask = paste(cutout, (0, 0, 17, 17), 20)
    assert np.abs(color[:, mask].astype(int) - np.array([200, 60, 120])[:, None]).max() <= 2
    assert abs(mask.sum() - disc.sum() * (17 / 40) ** 2) < 8


def test_an_object_that_is_too_thin_keeps_its_most_opaque_pixels() -> None:
    cutout = np.zeros((4, 64, 64), np.uint8)
    cutout[:, :, 30] = 255
    color, mask = paste(cutout, (1, 1, 16, 16), 20)
    assert mask.any(axis=1).sum() == 16
    assert (color[:, mask] >= 250).all()


def test_an_unknown_set() -> None:
    collection = material()
    with pytest.raises(ValueError, match="set 'X_os': expected one of os, 0s, og"):
        next(compose(planned(collection), collection, "X_os"))


def test_test_images_that_are_training_images_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Without an object, images of the same scene are identical."""
    collection = material()
    drawing = planned(collection)
    images = whole(drawing, collection, "0s")
    training = {image.tobytes() for image in images["image"][images["split"] == TRAIN]}
    caplog.set_level(logging.INFO)
    whole(drawing, collection, "os")
    assert not caplog.records
    whole(drawing, collection, "0s")
    tests = [image.tobytes() for image in images["image"][images["split"] == TEST]]
    identical = sum(image in training for image in tests)
    assert identical > 0
    (message,) = caplog.messages
    assert message.startswith(f"{identical} of {len(tests)} test images without an object are identical to a")


def test_shrinking_averages() -> None:
    cutout = np.full((4, 64, 64), 255, np.uint8)
    cutout[:3, :, ::2] = 0
    color, mask = paste(cutout, (0, 0, 16, 16), 16)
    assert mask.all()
    assert np.abs(color[:, :, 1:-1].astype(int) - 128).max() <= 8
