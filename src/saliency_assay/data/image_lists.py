"""Lists in CSV and JSON files: images with their labels, masks and splits, and boxes of objects.

The configuration reads the headers of these files, so this module imports no library.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from saliency_assay.registry.records import short_repr

IMAGE_COLUMNS, OPTIONAL_COLUMNS = ("image", "label"), ("mask", "split", "group")
"""Columns of a list of images."""
SPLITS = ("train", "test")
BOX_COLUMNS = ("image", "x", "y", "width", "height")
"""Columns of a list of boxes."""
LIST_SUFFIX, BOX_SUFFIXES = ".csv", (".csv", ".json")
LONGEST_NAME = 1000  # characters of an image's path


@dataclass(frozen=True)
class ListedImage:
    """One row of a list of images; ``mask``, ``split`` and ``group`` are empty if the list does not have them."""

    image: str
    label: str
    mask: str
    split: str
    group: str


@dataclass(frozen=True)
class Box:
    """One box of an image, in pixels of its file; x and y are those of the upper left corner."""

    place: str
    """File and line, for errors."""
    x: float
    y: float
    width: float
    height: float


def is_list(path: str | Path) -> bool:
    """Return True if ``path`` is named as a list of images and not as a folder."""
    return Path(path).suffix.lower() == LIST_SUFFIX and not Path(path).is_dir()


def columns_of(path: Path) -> list[str]:
    """Return the columns of a list of images.

    Raises:
        ValueError: a column is missing, unknown or repeated, or the file cannot be read as CSV.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _header(path, csv.reader(file, strict=True), IMAGE_COLUMNS, OPTIONAL_COLUMNS)


def has_training_row(path: Path) -> bool:
    """Return True if a row of a list of images with the column ``split`` is a training image.

    Raises:
        ValueError: the file cannot be read as CSV.
    """
    return any(row["split"] == "train" for _, row in _rows(path, IMAGE_COLUMNS, OPTIONAL_COLUMNS))


def read_images(path: Path) -> list[ListedImage]:
    """Return the rows of a list of images, in order. An image may have several rows of different labels.

    Raises:
        ValueError: the file is not such a list; a row has no label or group, a path that leaves the folder, an image
            with the same label for the second time, or a split other than those of ``SPLITS``; rows of one image are in
            different groups, or rows of one image or group in different splits.
    """
    images: dict[tuple[str, str], ListedImage] = {}
    groups: dict[str, str] = {}
    splits: dict[str, str] = {}
    for place, row in _rows(path, IMAGE_COLUMNS, OPTIONAL_COLUMNS):
        image = _relative(place, "image", row["image"])
        if not row["label"].strip() or not row["label"].isprintable():
            raise ValueError(f"{place}: found label {short_repr(row['label'])}, expected the name of a class")
        if "split" in row and row["split"] not in SPLITS:
            valid = f"valid: {', '.join(SPLITS)}"
            raise ValueError(f"{place}: found split {short_repr(row['split'])}; {valid}")
        mask = row.get("mask", "") and _relative(place, "mask", row["mask"])
        listed = ListedImage(
            image, row["label"].strip(), mask, row.get("split", ""), row.get("group", "").strip()
        )
        if (image, listed.label) in images:
            expected = "expected each image once, or once with each of its labels"
            raise ValueError(
                f"{place}: found {short_repr(image)} with label {short_repr(listed.label)} again, {expected}"
            )
        if "group" in row and (not listed.group or not listed.group.isprintable()):
            raise ValueError(f"{place}: found group {short_repr(row['group'])}, expected the name of a group")
        group = listed.group or image
        for kind, name, values, value in (
            ("group", image, groups, group),
            ("split", group, splits, listed.split),
        ):
            if values.setdefault(name, value) != value:
                raise ValueError(
                    f"{place}: found {kind} {short_repr(value)} of {short_repr(name)}, expected "
                    f"{short_repr(values[name])} as before"
                )
        images[image, listed.label] = listed
    if not images:
        raise ValueError(f"{path}: found no image, expected one in each line after the first")
    return list(images.values())


def read_boxes(path: Path) -> dict[str, list[Box]]:
    """Return the boxes of each image, by the image's path.

    A CSV file has one box per line; a JSON file is a list of mappings with the same keys.

    Raises:
        ValueError: the file is not such a list, or a box has no area or a coordinate that is not a number.
    """
    is_json = path.suffix.lower() == ".json"
    rows = _json_rows(path) if is_json else _rows(path, BOX_COLUMNS, ())
    boxes: dict[str, list[Box]] = {}
    for place, row in rows:
        image = _relative(place, "image", row["image"])
        values = [_number(place, name, row[name]) for name in BOX_COLUMNS[1:]]
        box = Box(place, *values)
        if box.width <= 0 or box.height <= 0:
            raise ValueError(
                f"{place}: found a box of {box.width:g} × {box.height:g} pixels, expected above 0"
            )
        boxes.setdefault(image, []).append(box)
    return boxes


def _header(
    path: Path, lines: Iterator[list[str]], required: Sequence[str], optional: Sequence[str]
) -> list[str]:
    try:
        header = next(lines, [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: line 1: {error}; expected CSV in UTF-8") from None
    columns = [column.strip() for column in header]
    is_valid = set(required) <= set(columns) <= {*required, *optional}
    if not is_valid or len(set(columns)) < len(columns):
        choice = f" and optionally {', '.join(optional)}" if optional else ""
        raise ValueError(
            f"{path}: line 1: found columns {short_repr(', '.join(columns))}, expected {', '.join(required)}{choice}"
        )
    return columns


def _rows(
    path: Path, required: Sequence[str], optional: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield place and values by column of each line after the first; empty lines are skipped."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        columns = _header(path, lines, required, optional)
        try:
            for values in filter(None, lines):
                place = f"{path}: line {lines.line_num}"
                if len(values) != len(columns):
                    raise ValueError(
                        f"{place}: found {len(values)} values, expected {len(columns)} ({', '.join(columns)})"
                    )
                yield place, dict(zip(columns, values, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: line {lines.line_num + 1}: {error}; expected CSV in UTF-8") from None


def _json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and mapping of each entry of a JSON list of boxes."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    keys = ", ".join(BOX_COLUMNS)
    if not isinstance(content, list):
        raise ValueError(f"{path}: found {short_repr(content)}, expected a list of mappings with {keys}")
    for number, entry in enumerate(content, 1):
        place = f"{path}: entry {number}"
        if not isinstance(entry, dict) or set(entry) != set(BOX_COLUMNS):
            raise ValueError(f"{place}: found {short_repr(entry)}, expected a mapping with {keys}")
        yield place, entry


def _relative(place: str, column: str, name: object) -> str:
    """Return the relative path ``name`` in its normal form.

    Raises:
        ValueError: ``name`` is not the path of a file inside the folder.
    """
    path = PurePosixPath(name) if isinstance(name, str) else PurePosixPath()
    outside = not path.name or path.is_absolute() or ".." in path.parts
    if outside or len(str(name)) > LONGEST_NAME or not str(name).isprintable():
        raise ValueError(
            f"{place}: found {column} {short_repr(name)}, expected the relative path of a file inside the folder"
        )
    return path.as_posix()


def _number(place: str, name: str, value: object) -> float:
    try:
        number = (
            float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        )
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{place}: found {name} {short_repr(value)}, expected a number of pixels")
    return number
