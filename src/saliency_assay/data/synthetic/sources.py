"""Embedded data: drawn photographs and scenes, written to disk as COCO and MiniPlaces are laid out.

Nothing is downloaded, and everything after the writing is what real data goes through: the COCO reader with its
polygons, crowds and second instances, MiniPlaces' lists, the composition.
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
CROWD_EVERY = 20  # photographs
COMPANION_EVERY = 5  # photographs
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

    Each photograph holds one object that is wholly in view; some hold a smaller one of the same class, and some
    are annotated with a crowd, both of which the reader must leave out. Object and scene colours are drawn alike
    for all classes.

    Args:
        folder: created if needed; files of the same names are replaced.
        objects: classes to draw, of BAM's ten.
        scenes: classes to draw, of BAM's ten.
        cutouts_per_object: photographs of each object class.
        scenes_per_class: scenes of each class; every tenth is filed as a validation image.
        source_size: side of photographs and scenes in pixels.
        generator: photographs and scenes each have their own child of it.
    """
    photographing, filming = generator.spawn(2)
    source = _write_coco(folder / "coco", objects, cutouts_per_object, source_size, photographing)
    _write_miniplaces(folder / "miniplaces", scenes, scenes_per_class, source_size, filming)
    return source, folder / "miniplaces"


def _write_coco(
    folder: Path, objects: Sequence[str], each: int, size: int, generator: np.random.Generator
) -> Source:
    source = Source(folder / "annotations" / "instances.json", folder / "images")
    source.annotations.parent.mkdir(parents=True, exist_ok=True)
    source.images.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for category, name in enumerate(objects, 1):
        for number in range(each):
            image_id = len(images) + 1
            photo, drawings = _photograph(name, size, number % COMPANION_EVERY == 1, generator)
            file_name = f"{image_id:012d}.jpg"
            _save(photo, source.images / file_name)
            images.append({"id": image_id, "file_name": file_name, "height": size, "width": size})
            entries = [_annotation(drawing) for drawing in drawings]
            if number % CROWD_EVERY == 2:
                entries.append(_crowd(size))
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


def _photograph(
    name: str, size: int, companion: bool, generator: np.random.Generator
) -> tuple[Pixels, list[Drawing]]:
    """Return a photograph of one object, in front of a smaller one if ``companion``, and all drawings in it."""
    photo = generate_background(size, generator)
    shares = [generator.uniform(0.25, 0.35)] if companion else []
    drawings = [place(name, size, share, generator) for share in [*shares, generator.uniform(0.7, 0.95)]]
    for drawing in drawings:
        photo = paint(photo, drawing, generator)
    return photo, drawings


def _annotation(drawing: Drawing) -> dict[str, Any]:
    left, top, width, height = drawing.box()
    return {
        "iscrowd": 0,
        "segmentation": drawing.polygons(),
        "bbox": [round(value, 2) for value in (left, top, width, height)],
        "area": round(width * height, 2),
    }


def _crowd(size: int) -> dict[str, Any]:
    """Return a crowd over the left half of the photograph, as uncompressed run lengths (column by column)."""
    half = size * (size // 2)
    return {
        "iscrowd": 1,
        "segmentation": {"size": [size, size], "counts": [0, half, size * size - half]},
        "bbox": [0, 0, size // 2, size],
        "area": half,
    }


def _write_miniplaces(
    folder: Path, scenes: Sequence[str], each: int, size: int, generator: np.random.Generator
) -> None:
    """MiniPlaces' own layout; ``track`` is filed under ``t/track/outdoor``, as it is there."""
    lists: dict[str, list[str]] = {"train": [], "val": []}
    for label, name in enumerate(scenes):
        for number in range(1, each + 1):
            if number % VALIDATION_EVERY:
                file, kind = f"train/{_path(name)}/{number:08d}.jpg", "train"
            else:
                file, kind = f"val/{len(lists['val']) + 1:08d}.jpg", "val"
            _save(generate_scene(name, size, generator), folder / "images" / file)
            lists[kind].append(f"{file} {label}")
    categories = [f"/{_path(name)} {label}" for label, name in enumerate(scenes)]
    for kind, lines in {**lists, "categories": categories}.items():
        (folder / f"{kind}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _path(scene: str) -> str:
    return f"{scene[0]}/{scene}/outdoor" if scene == "track" else f"{scene[0]}/{scene}"


def _save(image: Pixels, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, quality=QUALITY, subsampling=0)
