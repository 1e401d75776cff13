import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.coco import Instance, Source, cut_out, find_instances
from saliency_assay.data.bam.miniplaces import Scene, find_scenes, read_scene
from saliency_assay.data.synthetic.shapes import paint, place
from saliency_assay.data.synthetic.sources import write_sources
from saliency_assay.data.synthetic.textures import color_levels

EACH = 12


def make(folder: Path, seed: int = 0, **changes: Any) -> tuple[Source, Path]:
    settings = {"cutouts_per_object": EACH, "scenes_per_class": EACH, "source_size": 96, **changes}
    return write_sources(folder, generator=np.random.default_rng(seed), **settings)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Path]:
    return make(tmp_path_factory.mktemp("embedded"))


@pytest.fixture(scope="module")
def instances(written: tuple[Source, Path]) -> list[Instance]:
    return find_instances([written[0]], OBJECTS, min_area=256, limit=EACH)[0]


@pytest.fixture(scope="module")
def scenes(written: tuple[Source, Path]) -> list[Scene]:
    return find_scenes(written[1], SCENES, objects=OBJECTS, limit=EACH)[0]


def test_the_readers_find_every_class(
    written: tuple[Source, Path], instances: list[Instance], scenes: list[Scene]
) -> None:
    assert [i.category for i in instances] == [name for name in OBJECTS for _ in range(EACH)]
    assert [s.category for s in scenes] == [name for name in SCENES for _ in range(EACH)]
    annotations = json.loads(written[0].annotations.read_text())["annotations"]
    kinds = [(type(a["segmentation"]).__name__, a["iscrowd"]) for a in annotations]
    assert kinds.count(("dict", 1)) == len(OBJECTS)  # one photograph of each class has a crowd
    assert kinds.count(("list", 0)) > len(instances)  # and some have a second, smaller instance
    assert any(len(a["segmentation"]) > 3 for a in annotations)


@pytest.mark.parametrize("name", OBJECTS[::3])
def test_the_annotation_covers_what_is_painted(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    drawing = place(name, 128, 0.8, generator)
    blank = np.full((128, 128, 3), 255, np.uint8)
    coco_image = paint(blank, drawing, generator)
    painted = (coco_image != blank).any(axis=-1)
    left, top, width, height = drawing.box()
    assert min(left, top) >= -1e-6
    assert max(left + width, top + height) <= 128 + 1e-6
    assert max(width, height) == pytest.approx(0.8 * 128)
    (tmp_path / "photos").mkdir()
    Image.fromarray(coco_image).save(tmp_path / "photos" / "1.png")
    content = {
        "images": [{"id": 1, "file_name": "1.png", "height": 128, "width": 128}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "segmentation": drawing.polygons()}
        ],
        "categories": [{"id": 1, "name": name}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(content))
    source = Source(tmp_path / "instances.json", tmp_path / "photos")
    (instance,), _ = find_instances([source], [name], min_area=256, limit=1)
    rgba = cut_out(instance)
    alpha = rgba[..., 3] > 0
    assert abs(int(alpha.sum()) - int(painted.sum())) < 0.12 * painted.sum()
    assert (rgba[alpha] != 255).any(axis=-1).mean() > 0.97


def test_every_scene_has_the_same_distribution_of_levels() -> None:
    generator = np.random.default_rng(0)
    fields = [
        generator.normal(size=(20, 20)),
        np.tile(np.linspace(0, 1, 20) ** 5, (20, 1)),
        np.zeros((20, 20)),
    ]
    images = [color_levels(field, np.random.default_rng(1)).reshape(-1, 3) for field in fields]
    for image in images[1:]:
        assert (np.sort(image, axis=0) == np.sort(images[0], axis=0)).all()
    brightness = images[0].max(axis=1)[np.argsort(fields[0], axis=None)].astype(int)
    assert (np.diff(brightness) >= -1).all()  # a higher level is lighter, up to rounding


def _nearest_mean(features: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of the nearest class mean."""
    right = 0
    for index in range(len(features)):
        rest = np.arange(len(features)) != index
        means = np.stack([features[rest & (labels == label)].mean(axis=0) for label in np.unique(labels)])
        right += int(np.argmin(((means - features[index]) ** 2).sum(axis=1)) == labels[index])
    return right / len(features)


def test_color_tells_neither_label(instances: list[Instance], scenes: list[Scene]) -> None:
    objects = np.stack([cut_out(i)[cut_out(i)[..., 3] > 0][:, :3].mean(axis=0) for i in instances])
    places = np.stack([read_scene(scene, 96).mean(axis=(1, 2)) for scene in scenes])
    labels = np.repeat(np.arange(10), EACH)
    for colors in (objects, places):
        assert _nearest_mean(colors, labels) < 0.25  # chance is 0.1


def test_pattern_tells_the_scene(scenes: list[Scene]) -> None:
    """Spectra of gray levels, which neither color nor position changes, tell at least half of them."""
    gray = np.stack([read_scene(scene, 32).mean(axis=0) for scene in scenes])
    spectra = np.abs(np.fft.fft2(gray - gray.mean(axis=(1, 2), keepdims=True)))[:, :16, :16].reshape(
        len(gray), -1
    )
    spectra /= np.linalg.norm(spectra, axis=1, keepdims=True)
    assert _nearest_mean(spectra, np.repeat(np.arange(10), EACH)) > 0.5


def test_files_follow_the_seed(tmp_path: Path) -> None:
    def contents(name: str, seed: int) -> list[tuple[str, bytes]]:
        small = {
            "objects": ("dog", "kite"),
            "scenes": ("track",),
            "cutouts_per_object": 3,
            "scenes_per_class": 3,
        }
        make(tmp_path / name, seed, **small)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        return [(file.relative_to(tmp_path / name).as_posix(), file.read_bytes()) for file in files]

    one, same, other = contents("one", 3), contents("same", 3), contents("other", 4)
    assert one == same
    assert [name for name, _ in one] == [name for name, _ in other]
    # Images and annotations.
    assert sum(a != b for (_, a), (_, b) in zip(one, other, strict=True)) == 6 + 3 + 1
