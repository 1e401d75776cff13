"""MiniPlaces scenes: selection of image files, and reading of an image."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers.expat import ErrorString

import numpy as np
from PIL import Image

from saliency_assay.data.images import KnownFiles, Pixels, find_images, log_left_out, no_file, read_rgb
from saliency_assay.registry.records import short_repr, unknown

logger = logging.getLogger(__name__)

_LISTS = ("train.txt", "val.txt")
_OBJECT_LIST = "object_categories.txt"
LABEL = re.compile(r"[0-9]{1,9}")
LONGEST_NAME = 1000  # characters of an image's path
LARGEST_ANNOTATION = 1 << 20  # bytes; the largest of the publishers' 3,873 files has 78,331


@dataclass(frozen=True)
class Scene:
    """One image file of a scene class."""

    category: str
    path: Path


def find_scenes(
    folder: Path, categories: Sequence[str], *, objects: Sequence[str] = (), limit: int
) -> tuple[list[Scene], dict[str, Counter[str]], dict[str, str]]:
    """Find the scenes of each category.

    Two layouts are supported. In the layout of MiniPlaces, ``categories.txt`` and ``train.txt`` and/or ``val.txt``
    (from its development kit) are next to ``images/``; training images come first. Otherwise each category is a folder
    of images. The name of a category may be its path (``track/outdoor``), the path joined by underscores
    (``track_outdoor``) or, if only one path begins with it, the beginning of the path (``track``).

    In the layout of MiniPlaces, a scene is skipped if its annotation ``objects/<path of the image>.xml`` contains one
    of ``objects``. MiniPlaces annotates 3,873 of its images; of BAM's ten objects, only toilet and truck are annotated.
    An image with the same content as an earlier one is also skipped.

    Args:
        folder: root folder of either layout.
        categories: scene classes, in the order of the result.
        objects: names of objects that no scene may contain; compared by ``_find_object_numbers``.
        limit: largest number of scenes of a category; the first ones are kept.

    Returns:
        The scenes; the number of skipped images by category and reason; and the reason for each file (relative to
        ``folder``) that was skipped for its content.

    Raises:
        FileNotFoundError: the folder or a listed image is missing.
        ValueError: a category does not exist, is ambiguous or has no images; a list or annotation is unreadable.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of scenes")
    is_miniplaces = (folder / "categories.txt").is_file()
    root = folder / "images" if is_miniplaces else folder
    available = _read_lists(folder) if is_miniplaces else _group_by_folder(folder)
    annotations = _Annotations.of(folder, objects) if is_miniplaces else None
    registered_files = KnownFiles()
    scenes: list[Scene] = []
    skipped = {category: Counter[str]() for category in categories}
    left_out: dict[str, str] = {}
    for category in categories:
        candidates = []
        for file in available[_resolve(category, available, folder)]:
            present_objects = annotations.objects_in(file) if annotations else []
            if present_objects:
                skipped[category]["contains one of the objects"] += 1
                left_out[(root / file).relative_to(folder).as_posix()] = (
                    f"contains {', '.join(present_objects)}"
                )
            else:
                candidates.append(Scene(category, root / file))
        kept: list[Scene] = []
        for position, scene in enumerate(candidates):
            if len(kept) == limit:
                skipped[category]["beyond the limit"] = len(candidates) - position
                break
            if not scene.path.is_file():
                error = no_file(scene.path)
                raise type(error)(
                    f"{error}; the lists in {folder} refer to it" if is_miniplaces else str(error)
                )
            first = registered_files.first(scene.path)
            if first == scene.path:
                kept.append(scene)
            else:
                skipped[category]["same image as another"] += 1
                left_out[scene.path.relative_to(folder).as_posix()] = (
                    f"same image as {first.relative_to(folder).as_posix()}"
                )
        if not kept:
            counts = ", ".join(f"{reason} {count}" for reason, count in skipped[category].items())
            raise ValueError(f"{folder}: no usable image of scene {category!r}; found: {counts or 'none'}")
        scenes += kept
    return scenes, skipped, left_out


def read_scene(scene: Scene, size: int) -> Pixels:
    """Return the scene as RGB ``[3, size, size]``: the largest central square, resized with antialiasing.

    Raises:
        FileNotFoundError, ValueError: the file is missing, not an image, or truncated.
    """
    image = read_rgb(scene.path)
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(square).transpose(2, 0, 1))


def _read_lists(folder: Path) -> dict[str, list[str]]:
    names = {}
    for number, line in _read_lines(folder / "categories.txt"):
        match = re.fullmatch(r"(\S+)\s+(\d{1,9})|(\d{1,9})\s+(\S+)", line)
        if not match:
            raise ValueError(
                f"{folder / 'categories.txt'}: line {number} is {short_repr(line)}, expected a path and a number"
            )
        # The development kit has lines such as "/b/bedroom 18"; the letter is a folder and not part of the name.
        name = re.sub(r"^/?([a-z]/)?", "", match[1] or match[4])
        names[int(match[2] or match[3])] = name
    lists = [folder / name for name in _LISTS if (folder / name).is_file()]
    if not lists:
        raise ValueError(f"{folder}: found categories.txt, expected {' or '.join(_LISTS)} next to it")
    # Dicts instead of lists remove duplicates: an image listed twice could otherwise be in both splits.
    available: dict[str, dict[str, None]] = {name: {} for name in names.values()}
    for file in lists:
        for number, line in _read_lines(file):
            path, _, label = line.rpartition(" ")
            if not LABEL.fullmatch(label) or int(label) not in names or not _is_inside(path):
                raise ValueError(
                    f"{file}: line {number} is {short_repr(line)}, expected an image's path and its category"
                )
            available[names[int(label)]][path.strip().lstrip("/")] = None
    return {name: list(files) for name, files in available.items()}


def _is_inside(path: str) -> bool:
    """Return True if ``path``, from an untrusted list, is below the image folder."""
    parts = Path(path.strip().lstrip("/")).parts
    return bool(parts) and ".." not in parts and len(path) <= LONGEST_NAME


def _read_lines(file: Path) -> Iterable[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: expected a text file; {error.reason} at byte {error.start}") from error
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _group_by_folder(folder: Path) -> dict[str, list[str]]:
    images, left_out = find_images(folder)
    log_left_out(folder, left_out)
    available: dict[str, list[str]] = {}
    for image in images:
        available.setdefault(Path(image).parent.as_posix(), []).append(image)
    return available


def _resolve(category: str, available: Mapping[str, list[str]], folder: Path) -> str:
    exact = [name for name in available if category in (name, name.replace("/", "_"))]
    matches = exact or [name for name in available if name.startswith(f"{category}/")]
    if not matches:
        raise ValueError(f"{folder}: {unknown('scene', category, available)}")
    if len(matches) > 1:
        raise ValueError(f"{folder}: scene {category!r} is ambiguous: {', '.join(matches)}; use a full name")
    return matches[0]


@dataclass(frozen=True)
class _Annotations:
    """MiniPlaces' object annotations, and the objects to search for in them.

    ``names`` are the names of all object categories by number, ``numbers`` the numbers of the objects to search for.
    """

    folder: Path
    names: Mapping[int, str]
    numbers: frozenset[int]

    @classmethod
    def of(cls, root: Path, objects: Sequence[str]) -> "_Annotations | None":
        """Return the annotations in MiniPlaces' folder ``root``; None if they are missing or have none of ``objects``.

        Raises:
            ValueError: the list of object names is missing or unreadable.
        """
        folder = root / "objects"
        if not objects or not folder.is_dir():
            return None
        names = _read_object_names(root / _OBJECT_LIST)
        numbers = _find_object_numbers(objects, names)
        logger.info(
            "%s: annotations exist for %s of the objects",
            folder,
            [names[n] for n in sorted(numbers)] or "none",
        )
        return cls(folder, names, numbers) if numbers else None

    def objects_in(self, image: str) -> list[str]:
        """Return the names of the searched objects in the image at path ``image`` below ``images/``."""
        file = self.folder / Path(image).with_suffix(".xml")
        if not file.is_file():
            return []
        return [self.names[number] for number in sorted(_read_annotation(file, self.names) & self.numbers)]


def _read_object_names(file: Path) -> dict[int, str]:
    """Read the development kit's list of object categories (lines such as ``truck 165``); return names by number."""
    if not file.is_file():
        raise ValueError(
            f"{file}: no such file; expected MiniPlaces' development kit's list, which names the numbers in objects/"
        )
    names = {}
    for number, line in _read_lines(file):
        match = re.fullmatch(r"(\S+)\s+(\d{1,9})", line)
        if not match or int(match[2]) in names:
            raise ValueError(
                f"{file}: line {number} is {short_repr(line)}, expected a name and a unique number"
            )
        names[int(match[2])] = match[1]
    return names


def _find_object_numbers(objects: Sequence[str], names: Mapping[int, str]) -> frozenset[int]:
    """Return the numbers of the categories whose name contains one of ``objects``, singular or plural, as a word.

    ``lamp`` matches ``desk_lamp`` and ``book`` matches ``books``, but not ``bookcase``.
    """
    pattern = "|".join(re.escape(name.replace("_", " ")) for name in objects)
    matching = re.compile(rf"\b({pattern})(e?s)?\b", re.IGNORECASE)
    return frozenset(number for number, name in names.items() if matching.search(name.replace("_", " ")))


def _read_annotation(file: Path, names: Mapping[int, str]) -> set[int]:
    """Return the numbers of the objects in an annotation file.

    The file is not an XML document but a sequence of elements: ``filename``, ``folder``, in some files
    ``scenedescription``, ``class`` (the number of the scene), and for each object ``objects``, with its number as
    ``class``, a ``polygon`` and a ``bndbox``.
    """
    expected = "expected MiniPlaces' object annotations"
    size = file.stat().st_size
    if size > LARGEST_ANNOTATION:
        raise ValueError(f"{file}: found {size} bytes, {expected} of at most {LARGEST_ANNOTATION}")
    try:
        # The enclosing element makes the file one document. Inside an element, a document type declaration is an
        # error, which excludes entities and with them files that expand to fill the memory.
        root = ElementTree.fromstring(b"<annotation>\n" + file.read_bytes() + b"\n</annotation>")
    except ElementTree.ParseError as error:
        line = error.position[0] - 1  # without the line of the enclosing element
        raise ValueError(f"{file}: line {line}: {ErrorString(error.code)}; {expected}") from error
    if root.find("filename") is None:
        tags = ", ".join(dict.fromkeys(element.tag for element in root)) or "no element"
        raise ValueError(f"{file}: found {short_repr(tags)}, {expected}: filename, folder, class, objects …")
    numbers = set()
    for position, element in enumerate(root.iterfind("objects"), 1):
        number = (element.findtext("class") or "").strip()
        if not LABEL.fullmatch(number) or int(number) not in names:
            raise ValueError(
                f"{file}: class of objects {position} is {short_repr(number)}, expected a number in {_OBJECT_LIST}"
            )
        numbers.add(int(number))
    return numbers
