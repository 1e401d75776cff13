"""Objects from COCO: which instances there are, and how one is cut out.

The annotation files are read with the standard JSON module, and pycocotools only turns segmentations into masks:
its own reader prints, checks nothing and takes crowds for instances.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from reprlib import repr as short
from typing import Any
from unicodedata import category as kind_of

import numpy as np
import numpy.typing as npt
from PIL import Image
from pycocotools import mask as rle

from saliency_assay.data.images import KnownFiles, Pixels, no_file, read_rgb
from saliency_assay.registry.records import unknown

Skipped = dict[str, Counter[str]]
_Place = tuple[Path, str, int]  # file, list in it, index in the list

LONGEST_NAME = 1000  # characters of a photograph's path
LARGEST_SIDE = 65_535  # px, what a JPEG can hold; Pillow's limit is of pixels
LONGEST_OUTLINE = 100  # times the sum of a photograph's sides
LIMIT = 1e300  # of a coordinate: NaN, infinity and what no float can hold are none
LONGEST_RUN = 7  # characters, five bits each, of a run length in COCO's compressed form; it is of 32 bits


@dataclass(frozen=True)
class Source:
    """An annotation file in COCO's instances format, and the folder of its photographs."""

    annotations: Path
    images: Path


@dataclass(frozen=True)
class Instance:
    """One annotated object; ``area`` in px of the image, ``mask`` run-length encoded.

    ``source`` is the index of its annotation file among those that are pooled.
    """

    category: str
    photo: Path
    annotation: int
    area: int
    mask: dict[str, Any] = field(repr=False)
    source: int = 0


@dataclass(frozen=True)
class _Candidate:
    order: tuple[int, int]  # source, image id: how the result is sorted
    instance: Instance
    place: str


def find_instances(
    sources: Sequence[Source], categories: Sequence[str], *, min_area: int, limit: int
) -> tuple[list[Instance], Skipped]:
    """Return the largest instance of each category in each image, sources pooled.

    Files of the same content are one image, wherever they lie and however often they are annotated. Crowds do
    not count. Instances come sorted by category (in the order given), source and image id; of each category the first
    ``limit`` are kept. Every instance left out is counted by category and reason.

    Args:
        sources: annotation files and their folders.
        categories: COCO's names.
        min_area: least size of an instance, in px² of its mask.
        limit: most instances of a category.

    Raises:
        FileNotFoundError: an annotation file, or the photograph of a chosen instance, is missing.
        ValueError: a file is not COCO's instances JSON; a category is in none of the files or has no instance.
    """
    skipped: Skipped = {category: Counter() for category in categories}
    found: dict[str, list[_Candidate]] = {category: [] for category in categories}
    known: set[str] = set()
    for number, source in enumerate(sources):
        content = _load(source.annotations)
        known |= _names(content, source.annotations)
        for candidate in _largest(number, source, content, skipped, min_area):
            found[candidate.instance.category].append(candidate)
    files = ", ".join(str(source.annotations) for source in sources)
    photos = KnownFiles()
    chosen = []
    for category in categories:
        if category not in known:
            raise ValueError(f"{files}: {unknown('category', category, known)}")
        if not found[category]:
            counts = ", ".join(f"{reason} {count}" for reason, count in (+skipped[category]).items())
            raise ValueError(f"{files}: no usable instance of {category!r}; found: {counts or 'none at all'}")
        candidates = _one_of_each_photo(found[category], photos)
        skipped[category]["same photograph listed again"] += len(found[category]) - len(candidates)
        skipped[category]["beyond the limit"] += len(candidates[limit:])
        chosen += candidates[:limit]
    for candidate in chosen:
        photo = candidate.instance.photo
        if not photo.is_file():
            fault = no_file(photo)
            raise type(fault)(f"{fault}; {candidate.place} needs it")
    return [candidate.instance for candidate in chosen], {name: +counts for name, counts in skipped.items()}


def _one_of_each_photo(candidates: Sequence[_Candidate], photos: KnownFiles) -> list[_Candidate]:
    """Return the largest candidate of each image in order; of equally large ones the first."""
    largest: dict[Path, _Candidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.order):
        photo = photos.first(candidate.instance.photo)
        rival = largest.setdefault(photo, candidate)
        if candidate.instance.area > rival.instance.area:
            largest[photo] = candidate
    return sorted(largest.values(), key=lambda candidate: candidate.order)


def cut_out(instance: Instance) -> Pixels:
    """The instance's pixels, cropped to its mask: RGBA ``[H, W, 4]``, alpha 255 on the mask and 0 elsewhere.

    Raises:
        FileNotFoundError, ValueError: the photograph is missing, not an image, truncated, or not of the size
            that the annotations say.
    """
    photo = read_rgb(instance.photo)
    height, width = instance.mask["size"]
    if photo.size != (width, height):
        found = f"{photo.width} × {photo.height}"
        raise ValueError(f"{instance.photo}: found {found} pixels, its annotations say {width} × {height}")
    mask = _decode(instance.mask)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return np.dstack([np.asarray(photo)[box], mask[box] * np.uint8(255)])


def _load(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such annotation file")
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{file}: not JSON: {error.msg} at {place}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not JSON: {error.reason} at byte {error.start}") from error
    except RecursionError:
        raise ValueError(
            f"{file}: lists within lists too deep to read; expected COCO's instances format"
        ) from None
    except ValueError as error:  # an integer of thousands of digits
        raise ValueError(f"{file}: not JSON: {error}") from error
    for section in ("images", "annotations", "categories"):
        if not isinstance(content, dict) or not isinstance(content.get(section), list):
            raise ValueError(f"{file}: no list {section!r}; expected COCO's instances format")
    return content


def _get(entry: Any, key: str, kind: type | tuple[type, ...], place: _Place) -> Any:
    """``entry[key]``, or an error that names the place."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if kind is int and isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{_place(place)}: {key} is {short(value)}, expected an integer of 64 bits")
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(k.__name__ for k in kinds)
        raise ValueError(f"{_place(place)}: {key} is {short(value)}, expected {names}")
    return value


def _place(place: _Place) -> str:
    file, section, index = place
    return f"{file}: {section}[{index}]"


def _names(content: dict[str, Any], file: Path) -> set[str]:
    return {
        _get(entry, "name", str, (file, "categories", index))
        for index, entry in enumerate(content["categories"])
    }


def _by_id(content: dict[str, Any], file: Path, section: str) -> dict[int, tuple[int, Any]]:
    """Return index and entry of each of a section's ids."""
    entries: dict[int, tuple[int, Any]] = {}
    for index, entry in enumerate(content[section]):
        key = _get(entry, "id", int, (file, section, index))
        first, other = entries.setdefault(key, (index, entry))
        if entry != other:
            raise ValueError(
                f"{_place((file, section, index))}: id is {key}, as of {section}[{first}]; expected an id of its own"
            )
    return entries


def _largest(
    number: int, source: Source, content: dict[str, Any], skipped: Skipped, min_area: int
) -> Iterator[_Candidate]:
    """Of one source, the largest instance of each category in each photograph."""
    file = source.annotations
    categories, images = (_by_id(content, file, section) for section in ("categories", "images"))
    best: dict[tuple[str, int], _Candidate] = {}
    for index, annotation in enumerate(content["annotations"]):
        place = (file, "annotations", index)
        category_id = _get(annotation, "category_id", int, place)
        category = categories[category_id][1]["name"] if category_id in categories else None
        if category not in skipped:
            continue
        image_id = _get(annotation, "image_id", int, place)
        if image_id not in images:
            raise ValueError(
                f"{_place(place)}: image_id {image_id} is not the id of any of the file's images"
            )
        image_index, image = images[image_id]
        photo = source.images / _file_name(image, (file, "images", image_index))
        size = _size(image, (file, "images", image_index))
        instance = _instance(category, photo, annotation, size, min_area, skipped[category], place)
        if instance:
            instance = replace(instance, source=number)
            rival = best.get((category, image_id))
            skipped[category]["not the largest of its photograph"] += rival is not None
            if rival is None or instance.area > rival.instance.area:
                best[category, image_id] = _Candidate((number, image_id), instance, _place(place))
    yield from best.values()


def _instance(
    category: str,
    photo: Path,
    annotation: dict[str, Any],
    size: tuple[int, int],
    min_area: int,
    skipped: Counter[str],
    place: _Place,
) -> Instance | None:
    """The annotated instance, or None with the reason counted."""
    if annotation.get("iscrowd"):
        skipped["crowd"] += 1
        return None
    mask = _mask(annotation, size, skipped, place)
    area = int(rle.area(mask)) if mask else 0
    if mask is None or not area:
        skipped["degenerate polygon"] += 1
        return None
    if area < min_area:
        skipped[f"smaller than {min_area} px²"] += 1
        return None
    return Instance(category, photo, _get(annotation, "id", int, place), area, mask)


def _file_name(image: Any, place: _Place) -> str:
    name: str = _get(image, "file_name", str, place)
    path = PurePosixPath(name.replace("\\", "/"))
    # Annotations come from elsewhere: they may not point out of the folder that the user named.
    outside = not path.name or path.is_absolute() or ".." in path.parts
    if outside or len(name) > LONGEST_NAME or any(kind_of(letter) in ("Cc", "Cs") for letter in name):
        raise ValueError(
            f"{_place(place)}: file_name is {short(name)}, expected a path inside the image folder"
        )
    return name


def _size(image: Any, place: _Place) -> tuple[int, int]:
    size = _get(image, "height", int, place), _get(image, "width", int, place)
    if min(size) < 1:
        raise ValueError(f"{_place(place)}: found {size[1]} × {size[0]} pixels, expected at least 1 × 1")
    most = Image.MAX_IMAGE_PIXELS or LARGEST_SIDE**2
    # A mask of that many pixels is made of it, whatever the photograph itself turns out to be.
    if max(size) > LARGEST_SIDE or size[0] * size[1] > most:
        expected = f"expected at most {LARGEST_SIDE} on a side and {most} in all"
        raise ValueError(f"{_place(place)}: found {short(size[1])} × {short(size[0])} pixels, {expected}")
    return size


def _mask(
    annotation: dict[str, Any], size: tuple[int, int], skipped: Counter[str], place: _Place
) -> dict[str, Any] | None:
    """The segmentation as one mask, or None if none of its parts bounds an area."""
    segmentation = _get(annotation, "segmentation", (list, dict), place)
    if isinstance(segmentation, dict):
        return _run_lengths(segmentation, size, place)
    # Fewer than three points bound no area, and pycocotools would take four numbers for a box.
    parts = [part for part in segmentation if _is_polygon(part, size, place)]
    if not parts:
        return None
    skipped["degenerate part of a polygon"] += len(segmentation) - len(parts)
    length, longest = sum(map(_outline, parts)), LONGEST_OUTLINE * sum(size)
    if length > longest:  # no object looks so, and memory is taken for every pixel of it
        raise ValueError(
            f"{_place(place)}: segmentation is {length:.0f} pixels around, expected at most {longest} "
            f"in {size[1]} × {size[0]} pixels"
        )
    merged: dict[str, Any] = rle.merge(rle.frPyObjects(parts, *size))
    return merged


def _is_polygon(part: Any, size: tuple[int, int], place: _Place) -> bool:
    """Whether ``part`` is pairs of coordinates for three points or more; an error if it is no coordinates."""
    numbers = part if isinstance(part, list) else [None]
    if not all(isinstance(number, int | float) and -LIMIT < number < LIMIT for number in numbers):
        raise ValueError(f"{_place(place)}: segmentation holds {short(part)}, expected lists of numbers")
    # pycocotools walks along edges pixel by pixel: a stray huge coordinate would fill the memory.
    reach = max(map(abs, numbers), default=0)
    if reach > 2 * max(size):
        extent = f"{size[1]} × {size[0]} pixels"
        raise ValueError(
            f"{_place(place)}: segmentation reaches {reach}, expected coordinates within {extent}"
        )
    return len(numbers) >= 6 and len(numbers) % 2 == 0


def _outline(polygon: list[float]) -> float:
    """Pixels from corner to corner, all around, as pycocotools counts them."""
    corners = [polygon[at : at + 2] for at in range(0, len(polygon), 2)]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return sum(max(abs(x - u), abs(y - v)) for (x, y), (u, v) in sides)


def _run_lengths(segmentation: dict[str, Any], size: tuple[int, int], place: _Place) -> dict[str, Any]:
    """The mask of run lengths, plain or compressed; checked, because pycocotools leaves missing pixels undefined."""
    counts = segmentation.get("counts")
    lengths = _uncompressed(counts) if isinstance(counts, str) else counts
    fits = (
        segmentation.get("size") == list(size)
        and isinstance(lengths, list)
        and all(isinstance(length, int) and length >= 0 for length in lengths)
        and sum(lengths) == size[0] * size[1]
    )
    if not fits:
        extent = f"{size[1]} × {size[0]} pixels"
        raise ValueError(
            f"{_place(place)}: segmentation is {short(segmentation)}, expected run lengths that fill {extent}"
        )
    mask: dict[str, Any] = rle.frPyObjects({"size": list(size), "counts": lengths}, *size)
    return mask


def _uncompressed(text: str) -> list[int]:
    """Run lengths from COCO's compressed form: five bits a character, from the third on as differences."""
    lengths: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if shift >= 5 * LONGEST_RUN or not 0 <= bits < 64:
            return []  # no run length
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:  # the last character of a number; its highest bit is the sign
            value -= (bits & 16) << (shift - 4)
            lengths.append(value + lengths[-2] if len(lengths) > 2 else value)
            value = shift = 0
    return lengths


def _decode(mask: dict[str, Any]) -> npt.NDArray[np.uint8]:
    with warnings.catch_warnings():  # pycocotools 2.0.11 does not yet know NumPy 2's copy keyword
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
        pixels: npt.NDArray[np.uint8] = rle.decode(mask)
    return pixels
