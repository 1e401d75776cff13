"""Synthetic images: generated objects and scenes, written to disk in the layouts of COCO and MiniPlaces.

They need no download, and are read by the same code as real data: the COCO reader with polygons, crowds and second
instances, MiniPlaces' lists, and the composition.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.coco import Source
from saliency_assay.data.images import Pixels
from saliency_assay.data.synthetic.shapes import Drawing, paint, place
from saliency_assay.data.synthetic.textures import generate_background, generate_scene

QUALITY = 92  # of the JPEG files
CROWD_EVERY = 20  # object images
COMPANION_EVERY = 5  # object images
VALIDATION_EVERY = 10  # scenes


def write_sources(
    folder: Path,
    *,
    objects: Sequence[str] = OBJECTS,
    scenes: Sequence[str] = SCENES,
    cutouts_per_object: int,
    scenes_per_class: int,
    source_size: int,
    generator: np.random.Generator,
) -> tuple[Source, Path]:
    """Write ``coco/`` and ``miniplaces/`` below ``folder``; return the COCO source and the scenes' folder.

    Each object image contains one object that is completely visible. Some also contain a smaller one of the same
    class, and some have a crowd annotation; the reader must skip both. Colors of objects and scenes are sampled in the
    same way for all classes.

    Args:
        folder: created if needed; files with the same names are replaced.
        objects: object classes to generate, from BAM's ten.
        scenes: scene classes to generate, from BAM's ten.
        cutouts_per_object: number of images of each object class.
        scenes_per_class: number of scenes of each class; every tenth is written as a validation image.
        source_size: side of object images and scenes in pixels.
        generator: object images and scenes use separate child generators of it.
    """
    coco_generator, scene_generator = generator.spawn(2)
    source = _write_coco(folder / "coco", objects, cutouts_per_object, source_size, coco_generator)
    _write_miniplaces(folder / "miniplaces", scenes, scenes_per_class, source_size, scene_generator)
    return source, folder / "miniplaces"


def _write_coco(
    folder: Path, objects: Sequence[str], image_count: int, size: int, generator: np.random.Generator
) -> Source:
    source = Source(folder / "annotations" / "instances.json", folder / "images")
    source.annotations.parent.mkdir(parents=True, exist_ok=True)
    source.images.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for category, name in enumerate(objects, 1):
        for number in range(image_count):
            image_id = len(images) + 1
            coco_image, drawings = _generate_coco_image(name, size, number % COMPANION_EVERY == 1, generator)
            file_name = f"{image_id:012d}.jpg"
            _save(coco_image, source.images / file_name)
            images.append({"id": image_id, "file_name": file_name, "height": size, "width": size})
            entries = [_make_annotation(drawing) for drawing in drawings]
            if number % CROWD_EVERY == 2:
                entries.append(_make_crowd(size))
            for entry in entries:
                key = {"id": len(annotations) + 1, "image_id": image_id, "category_id": category}
                annotations.append({**key, **entry})
    content = {
        "info": {"description": "Drawn objects in COCO's format, made by Saliency Assay"},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in enumerate(objects, 1)],
    }
    source.annotations.write_text(json.dumps(content), encoding="utf-8")
    return source


def _generate_coco_image(
    name: str, size: int, companion: bool, generator: np.random.Generator
) -> tuple[Pixels, list[Drawing]]:
    """Generate an image of one object, with ``companion`` in front of a smaller one; return it and its drawings."""
    coco_image = generate_background(size, generator)
    shares = [generator.uniform(0.25, 0.35)] if companion else []
    drawings = [place(name, size, share, generator) for share in [*shares, generator.uniform(0.7, 0.95)]]
    for drawing in drawings:
        coco_image = paint(coco_image, drawing, generator)
    return coco_image, drawings


def _make_annotation(drawing: Drawing) -> dict[str, Any]:
    left, top, width, height = drawing.box()
    return {
        "iscrowd": 0,
        "segmentation": drawing.polygons(),
        "bbox": [round(value, 2) for value in (left, top, width, height)],
        "area": round(width * height, 2),
    }


def _make_crowd(size: int) -> dict[str, Any]:
    """Return a crowd annotation of the left half of an image, as uncompressed run lengths (column by column)."""
    half = size * (size // 2)
    return {
        "iscrowd": 1,
        "segmentation": {"size": [size, size], "counts": [0, half, size * size - half]},
        "bbox": [0, 0, size // 2, size],
        "area": half,
    }


def _write_miniplaces(
    folder: Path, scenes: Sequence[str], scene_count: int, size: int, generator: np.random.Generator
) -> None:
    """Write scenes and lists in MiniPlaces' layout; ``track`` is in ``t/track/outdoor``, as in MiniPlaces."""
    lists: dict[str, list[str]] = {"train": [], "val": []}
    for label, name in enumerate(scenes):
        for number in range(1, scene_count + 1):
            if number % VALIDATION_EVERY:
                file, kind = f"train/{_class_path(name)}/{number:08d}.jpg", "train"
            else:
                file, kind = f"val/{len(lists['val']) + 1:08d}.jpg", "val"
            _save(generate_scene(name, size, generator), folder / "images" / file)
            lists[kind].append(f"{file} {label}")
    categories = [f"/{_class_path(name)} {label}" for label, name in enumerate(scenes)]
    for kind, lines in {**lists, "categories": categories}.items():
        (folder / f"{kind}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _class_path(scene: str) -> str:
    return f"{scene[0]}/{scene}/outdoor" if scene == "track" else f"{scene[0]}/{scene}"


def _save(image: Pixels, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, quality=QUALITY, subsampling=0)
