"""COCO objects: selection of annotated instances, and cut-outs of their pixels.

The annotation files are read with the standard JSON module. pycocotools is used only to convert segmentations to masks,
because its reader prints to standard output, validates nothing and treats crowds as instances.
"""

import json
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from reprlib import repr as short
from typing import Any
from unicodedata import category as unicode_category

import numpy as np
import numpy.typing as npt
from PIL import Image
from pycocotools import mask as rle

from saliency_assay.data.images import KnownFiles, Pixels, no_file, read_rgb
from saliency_assay.registry.records import unknown

Skipped = dict[str, Counter[str]]  # by category: number of skipped instances by reason
_Location = tuple[Path, str, int]  # file, list in it, index in the list

LONGEST_NAME = 1000  # characters of an image's path
LARGEST_SIDE = 65_535  # px, the limit of JPEG; Pillow limits only the number of pixels
LONGEST_OUTLINE = 100  # times the sum of height and width of the image
LIMIT = 1e300  # of coordinates; excludes infinity, integers too large for a float and, by its comparison, NaN
LONGEST_RUN = 7  # characters, of five bits each, of a 32-bit run length in COCO's compressed form


@dataclass(frozen=True)
class Source:
    """An annotation file in COCO's instances format, and the folder of its images."""

    annotations: Path
    images: Path


@dataclass(frozen=True)
class Instance:
    """One annotated object; ``area`` in px² of the image, ``mask`` run-length encoded.

    ``source`` is the index of its annotation file among the pooled sources.
    """

    category: str
    coco_image: Path
    annotation: int
    area: int
    mask: dict[str, Any] = field(repr=False)
    source: int = 0


@dataclass(frozen=True)
class AnnotatedImage:
    """An image with objects of one category; the run-length encoded ``mask`` covers all of them."""

    file: Path
    category: str
    mask: dict[str, Any] = field(repr=False)

    def decoded_mask(self) -> npt.NDArray[np.uint8]:
        """Return the mask ``[H, W]``, 1 on the objects."""
        return _decode_mask(self.mask)


@dataclass(frozen=True)
class _Candidate:
    order: tuple[int, int]  # sort key: source, image id
    instance: Instance
    location: str


def find_instances(
    sources: Sequence[Source], categories: Sequence[str], *, min_area: int, limit: int
) -> tuple[list[Instance], Skipped]:
    """Return the largest instance of each category in each image of the pooled sources, and counts of the others.

    Image files with equal content are one image, even if several folders contain them. Crowds are skipped. Instances
    are sorted by category (in the order of ``categories``), source and image id; the first ``limit`` of each category
    are kept. Every skipped instance is counted by category and reason.

    Args:
        sources: annotation files and their folders.
        categories: names of COCO categories.
        min_area: smallest area of an instance's mask, in px².
        limit: largest number of instances of a category.

    Raises:
        FileNotFoundError: an annotation file, or the image of a selected instance, is missing.
        ValueError: a file is not COCO's instances JSON; a category is in none of the files or has no usable instance.
    """
    skipped: Skipped = {category: Counter() for category in categories}
    by_category: dict[str, list[_Candidate]] = {category: [] for category in categories}
    known_categories: set[str] = set()
    for number, source in enumerate(sources):
        content = _load_annotations(source.annotations)
        known_categories |= _read_category_names(content, source.annotations)
        for candidate in _find_largest(number, source, content, skipped, min_area):
            by_category[candidate.instance.category].append(candidate)
    files = ", ".join(str(source.annotations) for source in sources)
    coco_images = KnownFiles()
    selected = []
    for category in categories:
        if category not in known_categories:
            raise ValueError(f"{files}: {unknown('category', category, known_categories)}")
        if not by_category[category]:
            counts = ", ".join(f"{reason} {count}" for reason, count in (+skipped[category]).items())
            raise ValueError(f"{files}: no usable instance of {category!r}; found: {counts or 'none'}")
        candidates = _select_largest_per_image(by_category[category], coco_images)
        skipped[category]["duplicate of another image"] += len(by_category[category]) - len(candidates)
        skipped[category]["beyond the limit"] += len(candidates[limit:])
        selected += candidates[:limit]
    for candidate in selected:
        coco_image = candidate.instance.coco_image
        if not coco_image.is_file():
            error = no_file(coco_image)
            raise type(error)(f"{error}; {candidate.location} refers to it")
    return [candidate.instance for candidate in selected], {name: +counts for name, counts in skipped.items()}


def find_annotated_images(
    sources: Sequence[Source], categories: Sequence[str], *, min_area: int
) -> tuple[dict[str, list[AnnotatedImage]], Counter[str]]:
    """Return the images of the pooled sources with objects of exactly one of ``categories``, and counts of the others.

    The images of each category are in the order of sources and image ids. Image files with equal content are one image.

    Args:
        sources: annotation files and their folders.
        categories: names of COCO categories.
        min_area: smallest area of the largest object in px², without crowds.

    Raises:
        FileNotFoundError: an annotation file or an image is missing.
        ValueError: a file is not COCO's instances JSON; a category is in none of the files or has no image.
    """
    by_category: dict[str, list[AnnotatedImage]] = {category: [] for category in categories}
    left_out, known_categories, coco_images = Counter[str](), set[str](), KnownFiles()
    files = ", ".join(str(source.annotations) for source in sources)
    for source in sources:
        content = _load_annotations(source.annotations)
        known_categories |= _read_category_names(content, source.annotations)
        entries = _index_by_id(content, source.annotations, "images")
        for image_id, annotations in sorted(_annotations_of(source, content, categories).items()):
            image = _annotated_image(source, content, entries, image_id, annotations, min_area)
            if isinstance(image, str):
                left_out[image] += 1
            elif coco_images.first(image.file) != image.file:
                left_out["copies of another image"] += 1
            else:
                by_category[image.category].append(image)
    for category, images in by_category.items():
        if category not in known_categories:
            raise ValueError(f"{files}: {unknown('category', category, known_categories)}")
        if not images:
            counts = ", ".join(f"{reason} {count}" for reason, count in left_out.items())
            raise ValueError(f"{files}: no usable image of {category!r}; left out: {counts or 'none'}")
    return by_category, left_out


def annotated_images(source: Source, categories: Mapping[str, str]) -> list[AnnotatedImage]:
    """Return chosen images with the masks of their objects of one category each, including crowds.

    Args:
        source: annotation file and folder.
        categories: for each file name of an image the name of a COCO category.

    Raises:
        FileNotFoundError: the annotation file or an image is missing.
        ValueError: the file is not COCO's instances JSON, or has no object of the category in an image.
    """
    content = _load_annotations(source.annotations)
    entries = _index_by_id(content, source.annotations, "images")
    ids = {str(entry.get("file_name")): key for key, (_, entry) in entries.items()}
    annotations = _annotations_of(source, content, {*categories.values()})
    images = []
    for name, category in categories.items():
        found = [each for each in annotations.get(ids.get(name, -1), ()) if each[0] == category]
        image = _annotated_image(source, content, entries, ids[name], found, 1) if found else "none"
        if isinstance(image, str):
            raise ValueError(f"{source.annotations}: found no object of {category!r} in {name}, expected one")
        images.append(image)
    return images


def _annotations_of(
    source: Source, content: dict[str, Any], categories: Collection[str]
) -> dict[int, list[tuple[str, int]]]:
    """Return for each image its annotations of ``categories``: the category and the index of the annotation."""
    by_image: dict[int, list[tuple[str, int]]] = {}
    names = {
        key: entry["name"]
        for key, (_, entry) in _index_by_id(content, source.annotations, "categories").items()
    }
    for index, annotation in enumerate(content["annotations"]):
        location = (source.annotations, "annotations", index)
        category = names.get(_get_typed(annotation, "category_id", int, location))
        if category is not None and category in categories:
            image_id = _get_typed(annotation, "image_id", int, location)
            by_image.setdefault(image_id, []).append((category, index))
    return by_image


def _annotated_image(
    source: Source,
    content: dict[str, Any],
    images: dict[int, tuple[int, Any]],
    image_id: int,
    annotations: Sequence[tuple[str, int]],
    min_area: int,
) -> AnnotatedImage | str:
    """Return an image with the merged mask of its annotations, or the reason for which it is left out.

    Raises:
        FileNotFoundError: the image is missing.
        ValueError: an annotation is not valid.
    """
    file = source.annotations
    first = _format_location((file, "annotations", annotations[0][1]))
    if image_id not in images:
        raise ValueError(f"{first}: image_id is {image_id}, expected the id of one of the file's images")
    image_index, entry = images[image_id]
    coco_image = source.images / _read_file_name(entry, (file, "images", image_index))
    size = _read_size(entry, (file, "images", image_index))
    if len({category for category, _ in annotations}) > 1:
        return "objects of several of the classes"
    masks, largest = [], 0
    for _, index in annotations:
        location, annotation = (file, "annotations", index), content["annotations"][index]
        mask = _read_mask(annotation, size, Counter(), location)
        if mask is None or not rle.area(mask):
            continue
        masks.append(mask)
        if not _is_crowd(annotation, location):
            largest = max(largest, int(rle.area(mask)))
    if largest < min_area or not masks:
        return f"no object of {min_area} px² or more"
    if not coco_image.is_file():
        error = no_file(coco_image)
        raise type(error)(f"{error}; {first} refers to it")
    return AnnotatedImage(coco_image, annotations[0][0], rle.merge(masks))


def _select_largest_per_image(candidates: Sequence[_Candidate], coco_images: KnownFiles) -> list[_Candidate]:
    """Return the largest candidate of each image in order, the first of equally large ones."""
    largest: dict[Path, _Candidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.order):
        coco_image = coco_images.first(candidate.instance.coco_image)
        rival = largest.setdefault(coco_image, candidate)
        if candidate.instance.area > rival.instance.area:
            largest[coco_image] = candidate
    return sorted(largest.values(), key=lambda candidate: candidate.order)


def cut_out(instance: Instance) -> Pixels:
    """Return the instance's pixels, cropped to its mask: RGBA ``[H, W, 4]``, alpha 255 on the mask and 0 elsewhere.

    Raises:
        FileNotFoundError: the image file is missing.
        ValueError: the file is not an image, is truncated, or differs in size from the annotations.
    """
    coco_image = read_annotated(instance.coco_image, instance.mask)
    mask = _decode_mask(instance.mask)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return np.dstack([np.asarray(coco_image)[box], mask[box] * np.uint8(255)])


def read_annotated(file: Path, mask: Mapping[str, Any]) -> Image.Image:
    """Read an image in RGB, of the size of its run-length encoded mask.

    Raises:
        FileNotFoundError, ValueError: as ``cut_out``.
    """
    image = read_rgb(file)
    height, width = mask["size"]
    if image.size != (width, height):
        actual = f"{image.width} × {image.height}"
        raise ValueError(f"{file}: found {actual} pixels, expected {width} × {height}, as in its annotations")
    return image


def _load_annotations(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such annotation file")
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{file}: not JSON: {error.msg} at {position}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not JSON: {error.reason} at byte {error.start}") from error
    except RecursionError:
        raise ValueError(f"{file}: nested too deeply to read; expected COCO's instances format") from None
    except ValueError as error:  # an integer with thousands of digits
        raise ValueError(f"{file}: not JSON: {error}") from error
    for section in ("images", "annotations", "categories"):
        if not isinstance(content, dict) or not isinstance(content.get(section), list):
            raise ValueError(f"{file}: no list {section!r}; expected COCO's instances format")
    return content


def _get_typed(entry: Any, key: str, kind: type | tuple[type, ...], location: _Location) -> Any:
    """Return ``entry[key]``; raise a ValueError with the location if it is missing or of another type."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if kind is int and isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{_format_location(location)}: {key} is {short(value)}, expected a 64-bit integer")
    if not isinstance(value, kind) or isinstance(value, bool):  # True is an int to Python
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(k.__name__ for k in kinds)
        raise ValueError(f"{_format_location(location)}: {key} is {short(value)}, expected {names}")
    return value


def _format_location(location: _Location) -> str:
    file, section, index = location
    return f"{file}: {section}[{index}]"


def _read_category_names(content: dict[str, Any], file: Path) -> set[str]:
    return {
        _get_typed(entry, "name", str, (file, "categories", index))
        for index, entry in enumerate(content["categories"])
    }


def _index_by_id(content: dict[str, Any], file: Path, section: str) -> dict[int, tuple[int, Any]]:
    """Return index and entry of a section by id."""
    entries: dict[int, tuple[int, Any]] = {}
    for index, entry in enumerate(content[section]):
        key = _get_typed(entry, "id", int, (file, section, index))
        first, other = entries.setdefault(key, (index, entry))
        if entry != other:
            raise ValueError(
                f"{_format_location((file, section, index))}: id is {key}, the same as in {section}[{first}]; "
                "expected a unique id"
            )
    return entries


def _find_largest(
    number: int, source: Source, content: dict[str, Any], skipped: Skipped, min_area: int
) -> Iterator[_Candidate]:
    """Yield the largest instance of each category in each image of one source."""
    file = source.annotations
    categories, images = (_index_by_id(content, file, section) for section in ("categories", "images"))
    largest: dict[tuple[str, int], _Candidate] = {}
    for index, annotation in enumerate(content["annotations"]):
        location = (file, "annotations", index)
        category_id = _get_typed(annotation, "category_id", int, location)
        category = categories[category_id][1]["name"] if category_id in categories else None
        if category not in skipped:
            continue
        image_id = _get_typed(annotation, "image_id", int, location)
        if image_id not in images:
            raise ValueError(
                f"{_format_location(location)}: image_id is {image_id}, expected the id of one of the file's images"
            )
        image_index, image = images[image_id]
        coco_image = source.images / _read_file_name(image, (file, "images", image_index))
        size = _read_size(image, (file, "images", image_index))
        instance = _read_instance(
            category, coco_image, annotation, size, min_area, skipped[category], location
        )
        if instance:
            instance = replace(instance, source=number)
            rival = largest.get((category, image_id))
            skipped[category]["not the largest in its image"] += rival is not None
            if rival is None or instance.area > rival.instance.area:
                largest[category, image_id] = _Candidate(
                    (number, image_id), instance, _format_location(location)
                )
    yield from largest.values()


def _read_instance(
    category: str,
    coco_image: Path,
    annotation: dict[str, Any],
    size: tuple[int, int],
    min_area: int,
    skipped: Counter[str],
    location: _Location,
) -> Instance | None:
    """Return the annotated instance, or None after counting the reason."""
    if _is_crowd(annotation, location):
        skipped["crowd"] += 1
        return None
    mask = _read_mask(annotation, size, skipped, location)
    area = int(rle.area(mask)) if mask else 0
    if mask is None or not area:
        skipped["degenerate polygon"] += 1
        return None
    if area < min_area:
        skipped[f"smaller than {min_area} px²"] += 1
        return None
    return Instance(category, coco_image, _get_typed(annotation, "id", int, location), area, mask)


def _is_crowd(annotation: dict[str, Any], location: _Location) -> bool:
    """Return ``iscrowd``, which is 0 or 1, as a number, and False if it is missing."""
    value = annotation.get("iscrowd", 0)
    if not isinstance(value, int | float) or value not in (0, 1):  # text such as "0" is true to Python
        raise ValueError(f"{_format_location(location)}: iscrowd is {short(value)}, expected 0 or 1")
    return bool(value)


def _read_file_name(image: Any, location: _Location) -> str:
    name: str = _get_typed(image, "file_name", str, location)
    path = PurePosixPath(name.replace("\\", "/"))
    # Annotation files are untrusted: paths must not lead out of the image folder.
    outside = not path.name or path.is_absolute() or ".." in path.parts
    if (
        outside
        or len(name) > LONGEST_NAME
        or any(unicode_category(letter) in ("Cc", "Cs") for letter in name)
    ):
        raise ValueError(
            f"{_format_location(location)}: file_name is {short(name)}, expected a path inside the image folder"
        )
    return name


def _read_size(image: Any, location: _Location) -> tuple[int, int]:
    size = _get_typed(image, "height", int, location), _get_typed(image, "width", int, location)
    if min(size) < 1:
        raise ValueError(
            f"{_format_location(location)}: found {size[1]} × {size[0]} pixels, expected at least 1 × 1"
        )
    max_pixels = Image.MAX_IMAGE_PIXELS or LARGEST_SIDE**2
    # pycocotools builds masks of the annotated size, regardless of the size of the image file.
    if max(size) > LARGEST_SIDE or size[0] * size[1] > max_pixels:
        expected = f"expected at most {LARGEST_SIDE} per side and {max_pixels} in total"
        raise ValueError(
            f"{_format_location(location)}: found {short(size[1])} × {short(size[0])} pixels, {expected}"
        )
    return size


def _read_mask(
    annotation: dict[str, Any], size: tuple[int, int], skipped: Counter[str], location: _Location
) -> dict[str, Any] | None:
    segmentation = _get_typed(annotation, "segmentation", (list, dict), location)
    if isinstance(segmentation, dict):
        return _read_run_lengths(segmentation, size, location)
    # Fewer than three points enclose no area, and pycocotools would interpret four numbers as a box.
    polygons = [polygon for polygon in segmentation if _is_polygon(polygon, size, location)]
    if not polygons:
        return None
    skipped["degenerate part of a polygon"] += len(segmentation) - len(polygons)
    length, limit = sum(map(_outline_length, polygons)), LONGEST_OUTLINE * sum(size)
    # Not a plausible object, and pycocotools allocates memory for every pixel of the outline.
    if length > limit:
        raise ValueError(
            f"{_format_location(location)}: segmentation has an outline of {length:.0f} pixels, expected at most "
            f"{limit} for {size[1]} × {size[0]} pixels"
        )
    merged: dict[str, Any] = rle.merge(rle.frPyObjects(polygons, *size))
    return merged


def _is_polygon(polygon: Any, size: tuple[int, int], location: _Location) -> bool:
    """Return True if ``polygon`` has x and y of at least three points; raise a ValueError for invalid values."""
    numbers: list[Any] = polygon if isinstance(polygon, list) else [None]
    if not all(type(number) in (int, float) and -LIMIT < number < LIMIT for number in numbers):
        raise ValueError(
            f"{_format_location(location)}: segmentation contains {short(polygon)}, expected lists of numbers"
        )
    # pycocotools traces edges pixel by pixel: one huge coordinate would exhaust the memory.
    largest = max(map(abs, numbers), default=0)
    if largest > 2 * max(size):
        extent = f"{size[1]} × {size[0]} pixels"
        raise ValueError(
            f"{_format_location(location)}: segmentation has a coordinate {largest}, expected values within {extent}"
        )
    return len(numbers) >= 6 and len(numbers) % 2 == 0


def _outline_length(polygon: list[float]) -> float:
    """Return the length of a closed polygon in pixels; pycocotools renders max(|Δx|, |Δy|) pixels per edge."""
    corners = [polygon[start : start + 2] for start in range(0, len(polygon), 2)]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return sum(max(abs(x - u), abs(y - v)) for (x, y), (u, v) in sides)


def _read_run_lengths(
    segmentation: dict[str, Any], size: tuple[int, int], location: _Location
) -> dict[str, Any]:
    """Return the mask of run lengths, compressed or not.

    They must add up to the image, because pycocotools leaves missing pixels undefined.
    """
    counts = segmentation.get("counts")
    lengths = _decompress(counts) if isinstance(counts, str) else counts
    valid = (
        segmentation.get("size") == list(size)
        and isinstance(lengths, list)
        and all(type(length) is int and length >= 0 for length in lengths)
        and sum(lengths) == size[0] * size[1]
    )
    if not valid:
        extent = f"{size[1]} × {size[0]} pixels"
        raise ValueError(
            f"{_format_location(location)}: segmentation is {short(segmentation)}, "
            f"expected run lengths that add up to {extent}"
        )
    mask: dict[str, Any] = rle.frPyObjects({"size": list(size), "counts": lengths}, *size)
    return mask


def _decompress(text: str) -> list[int]:
    """Decode COCO's compressed run lengths: five bits per character; an empty list if they are invalid.

    From the fourth run length on, the difference from the one two places before is stored.
    """
    lengths: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48  # bits 0 to 4 are data, bit 5 is set if another character follows
        if shift >= 5 * LONGEST_RUN or not 0 <= bits < 64:
            return []  # invalid run length
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:  # the last character of a number; bit 4 is its sign
            value -= (bits & 16) << (shift - 4)
            lengths.append(value + lengths[-2] if len(lengths) > 2 else value)
            value = shift = 0
    return lengths


def _decode_mask(mask: dict[str, Any]) -> npt.NDArray[np.uint8]:
    with warnings.catch_warnings():  # pycocotools 2.0.11 does not yet support NumPy 2's copy keyword
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
        pixels: npt.NDArray[np.uint8] = rle.decode(mask)
    return pixels
