from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as rle

from saliency_assay.data.bam.coco import Instance
from saliency_assay.data.bam.collection import collect_cutouts, collect_scenes, visible_part
from saliency_assay.data.bam.compose import paste, tight_box
from saliency_assay.data.bam.miniplaces import Scene


def photograph(folder: Path, name: str, size: tuple[int, int]) -> Path:
    path = folder / name
    generator = np.random.default_rng(len(name))
    Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)).save(path)
    return path


def instance(
    coco_image: Path, category: str, annotation: int, size: tuple[int, int], box: tuple[int, int]
) -> Instance:
    mask = np.zeros(size, np.uint8, order="F")
    mask[: box[0], : box[1]] = 1
    return Instance(category, coco_image, annotation, int(mask.sum()), rle.encode(mask))


def test_cutouts_are_shrunk_to_the_canvas_and_never_enlarged(tmp_path: Path) -> None:
    size = (50, 90)
    first, second = photograph(tmp_path, "a.png", size), photograph(tmp_path, "bb.png", size)
    instances = [
        instance(first, "dog", 11, size, (50, 80)),
        instance(second, "dog", 12, size, (10, 7)),
        instance(first, "zebra", 13, size, (48, 6)),
    ]
    blocks = list(collect_cutouts(instances, ("zebra", "dog"), canvas=20, least=10, block=2))
    assert [len(block["image"]) for block in blocks] == [2, 1]
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    assert whole["image"].shape == (3, 4, 20, 20)
    assert whole["image"].dtype == np.uint8
    assert whole["height"].tolist() == [12, 10, 20]  # 50 · 20/80, as it was, 48 · 20/48
    assert whole["width"].tolist() == [20, 7, 2]
    assert whole["label_object"].tolist() == [1, 1, 0]
    assert whole["coco_image"].tolist() == [0, 1, 0]
    assert whole["source"].tolist() == [0, 0, 0]
    assert whole["annotation"].tolist() == [11, 12, 13]
    coco_image = np.asarray(Image.open(second))
    assert (whole["image"][1, :3, :10, :7] == coco_image[:10, :7].transpose(2, 0, 1)).all()
    for image, height, width in zip(whole["image"], whole["height"], whole["width"], strict=True):
        assert (image[3, :height, :width] == 255).all()
        assert image.any(axis=0)[height:].sum() == image.any(axis=0)[:, width:].sum() == 0


def test_cutouts_of_one_photograph_have_one_number(tmp_path: Path) -> None:
    size = (50, 90)
    coco_images = [photograph(tmp_path, name, size) for name in ("a.png", "bb.png", "ccc.png")]
    coco_images[2].write_bytes(coco_images[0].read_bytes())
    instances = [
        replace(instance(coco_image, "dog", 1, size, (40, 40)), source=number)
        for number, coco_image in enumerate(coco_images)
    ]
    (block,) = collect_cutouts(instances, ("dog",), canvas=20, least=10)
    assert block["coco_image"].tolist() == [0, 1, 0]
    assert block["source"].tolist() == [0, 1, 2]


def lollipop(width: int, stick: int) -> np.ndarray:
    """A disc of 60 pixels on a stick of 200 × ``width`` pixels, ``stick`` of them opaque."""
    rgba = np.zeros((60, 260, 4), np.uint8)
    rgba[..., :3] = 200
    rows, columns = np.ogrid[:60, :60]
    rgba[:, :60, 3] = 255 * ((rows - 29.5) ** 2 + (columns - 29.5) ** 2 < 900)
    rgba[30 : 30 + width, 60 : 60 + stick, 3] = 255
    return rgba


@pytest.mark.parametrize("longer", [26, 37, 45])
def test_what_is_too_thin_to_be_seen_does_not_count_for_the_size(tmp_path: Path, longer: int) -> None:
    rgba = lollipop(2, 200)
    visible = visible_part(rgba, 90, longer)
    tall, wide = visible.shape[:2]
    assert 60 == tall <= wide <= 66
    assert (visible == rgba[:, :wide]).all()
    _, mask = paste(visible.transpose(2, 0, 1), (0, 0, round(longer * tall / wide), longer), 64)
    assert max(tight_box(mask)[2:]) >= longer - 2
    Image.fromarray(rgba[..., :3]).save(tmp_path / "a.png")
    annotated = np.asfortranarray(rgba[..., 3] // 255)
    cutout = Instance("dog", tmp_path / "a.png", 1, int(annotated.sum()), rle.encode(annotated))
    (block,) = collect_cutouts([cutout], ("dog",), canvas=90, least=longer)
    assert (block["height"][0], block["width"][0]) == (tall, wide)


@pytest.mark.parametrize("longer", [26, 45])
def test_an_object_that_is_thin_everywhere_is_kept_whole(longer: int) -> None:
    """A diagonal bar that covers no pixel by half at this size: its most opaque pixel is not the object."""
    rows, columns = np.ogrid[:600, :600]
    rgba = np.zeros((600, 600, 4), np.uint8)
    rgba[..., 3] = 255 * (np.abs(rows - columns) < 3 + columns / 200)
    assert visible_part(rgba, 90, longer) is rgba


def test_what_is_seen_is_kept(tmp_path: Path) -> None:
    rgba = lollipop(12, 200)
    assert visible_part(rgba, 90, 37) is rgba
    few = np.zeros((2, 3, 4), np.uint8)
    few[0, 0], few[1, 1:] = 255, 255
    assert visible_part(few, 90, 37) is few


def test_scenes(tmp_path: Path) -> None:
    scenes = [
        Scene(name, photograph(tmp_path, f"{name}.png", (16, 16))) for name in ("track", "bedroom", "track")
    ]
    blocks = list(collect_scenes(scenes, ("bedroom", "track"), size=16, block=2))
    assert [block["label_scene"].tolist() for block in blocks] == [[1, 0], [1]]
    images = np.concatenate([block["image"] for block in blocks])
    assert images.shape == (3, 3, 16, 16)
    assert (images[1] == np.asarray(Image.open(scenes[1].path)).transpose(2, 0, 1)).all()
