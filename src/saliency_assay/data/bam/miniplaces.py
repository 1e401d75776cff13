"""Scenes from MiniPlaces: which images there are, and reading one."""

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
from saliency_assay.registry.records import shown, unknown

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

    Two layouts are read. MiniPlaces' own has ``categories.txt`` with ``train.txt`` and/or ``val.txt`` (from its
    development kit) beside ``images/``; training images come first. Otherwise each category is a folder of
    images, by name. A category stands for the one of the same path (``track/outdoor``), the same path joined by
    underscores (``track_outdoor``) or, if there is only one, the path that begins with it (``track``).

    In MiniPlaces' layout, a scene whose annotation ``objects/<path of the image>.xml`` holds one of ``objects`` is
    left out. MiniPlaces annotates 3,873 of its images, and only toilet and truck of BAM's ten objects. An image of the
    same content as an earlier one is left out, too.

    Args:
        folder: the root of either layout.
        categories: the scene classes, in the order of the result.
        objects: names that no scene may hold (``_numbers_of``).
        limit: most scenes of a category; the first are kept.

    Returns:
        The scenes; the number of images left out, by category and reason; and the reason for each file (relative to
        ``folder``) that was left out for its content.

    Raises:
        FileNotFoundError: the folder, or an image that a list names, is missing.
        ValueError: a category that does not exist or is ambiguous, one without images, an unreadable list or
            annotation.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of scenes")
    own = (folder / "categories.txt").is_file()
    root = folder / "images" if own else folder
    available = _listed(folder) if own else _by_folder(folder)
    annotated = _Annotations.of(folder, objects) if own else None
    known = KnownFiles()
    scenes: list[Scene] = []
    skipped = {category: Counter[str]() for category in categories}
    left_out: dict[str, str] = {}
    for category in categories:
        free = []
        for file in available[_resolve(category, available, folder)]:
            held = annotated.objects_in(file) if annotated else []
            if held:
                skipped[category]["holds one of the objects"] += 1
                left_out[(root / file).relative_to(folder).as_posix()] = f"holds {', '.join(held)}"
            else:
                free.append(Scene(category, root / file))
        kept: list[Scene] = []
        for position, scene in enumerate(free):
            if len(kept) == limit:
                skipped[category]["beyond the limit"] = len(free) - position
                break
            if not scene.path.is_file():
                fault = no_file(scene.path)
                raise type(fault)(f"{fault}, though {folder}'s lists name it" if own else str(fault))
            first = known.first(scene.path)
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
    """Return the scene as RGB ``[3, size, size]``: the largest centred square, resized with antialiasing.

    Raises:
        FileNotFoundError, ValueError: the file is missing, not an image, or truncated.
    """
    image = read_rgb(scene.path)
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(square).transpose(2, 0, 1))


def _listed(folder: Path) -> dict[str, list[str]]:
    names = {}
    for number, line in _lines(folder / "categories.txt"):
        match = re.fullmatch(r"(\S+)\s+(\d{1,9})|(\d{1,9})\s+(\S+)", line)
        if not match:
            raise ValueError(
                f"{folder / 'categories.txt'}: line {number} is {shown(line)}, expected a path and a number"
            )
        # The kit writes "/b/bedroom 18"; the letter says where the folder is, not what the scene is called.
        name = re.sub(r"^/?([a-z]/)?", "", match[1] or match[4])
        names[int(match[2] or match[3])] = name
    lists = [folder / name for name in _LISTS if (folder / name).is_file()]
    if not lists:
        raise ValueError(f"{folder}: found categories.txt, expected {' or '.join(_LISTS)} beside it")
    # Dicts, not lists: an image that is listed twice is one scene, or it could be trained on and tested on.
    available: dict[str, dict[str, None]] = {name: {} for name in names.values()}
    for file in lists:
        for number, line in _lines(file):
            path, _, label = line.rpartition(" ")
            if not LABEL.fullmatch(label) or int(label) not in names or not _inside(path):
                raise ValueError(
                    f"{file}: line {number} is {shown(line)}, expected an image's path and its category"
                )
            available[names[int(label)]][path.strip().lstrip("/")] = None
    return {name: list(files) for name, files in available.items()}


def _inside(path: str) -> bool:
    """Return whether ``path``, from an outside list, names something below the folder of the images."""
    parts = Path(path.strip().lstrip("/")).parts
    return bool(parts) and ".." not in parts and len(path) <= LONGEST_NAME


def _lines(file: Path) -> Iterable[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: expected a text file; {error.reason} at byte {error.start}") from error
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _by_folder(folder: Path) -> dict[str, list[str]]:
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
        raise ValueError(f"{folder}: scene {category!r} may be any of {', '.join(matches)}; name one in full")
    return matches[0]


@dataclass(frozen=True)
class _Annotations:
    """MiniPlaces' object annotations, and the objects that are looked for in them.

    ``names`` are those of all object categories by number, ``numbers`` those of the objects that are looked for.
    """

    folder: Path
    names: Mapping[int, str]
    numbers: frozenset[int]

    @classmethod
    def of(cls, root: Path, objects: Sequence[str]) -> "_Annotations | None":
        """Return the annotations below MiniPlaces' folder ``root``; None if there are none, or none of ``objects``.

        Raises:
            ValueError: the list of object names is missing or unreadable.
        """
        folder = root / "objects"
        if not objects or not folder.is_dir():
            return None
        names = _object_names(root / _OBJECT_LIST)
        numbers = _numbers_of(objects, names)
        logger.info(
            "%s: of the objects, it annotates %s", folder, [names[n] for n in sorted(numbers)] or "none"
        )
        return cls(folder, names, numbers) if numbers else None

    def objects_in(self, image: str) -> list[str]:
        """Return the names of the objects in an image (its path below ``images/``) that are looked for."""
        file = self.folder / Path(image).with_suffix(".xml")
        if not file.is_file():
            return []
        return [self.names[number] for number in sorted(_annotated(file, self.names) & self.numbers)]


def _object_names(file: Path) -> dict[int, str]:
    """Return the names in the development kit's list of object categories (lines like ``truck 165``) by number."""
    if not file.is_file():
        raise ValueError(
            f"{file}: no such file; objects/ holds numbers, which this list of MiniPlaces' development kit names"
        )
    names = {}
    for number, line in _lines(file):
        match = re.fullmatch(r"(\S+)\s+(\d{1,9})", line)
        if not match or int(match[2]) in names:
            raise ValueError(
                f"{file}: line {number} is {shown(line)}, expected a name and a number of its own"
            )
        names[int(match[2])] = match[1]
    return names


def _numbers_of(objects: Sequence[str], names: Mapping[int, str]) -> frozenset[int]:
    """Return the numbers of the categories whose name is one of ``objects``, its plural, or has it as a word.

    So ``lamp`` stands for ``desk_lamp`` and ``book`` for ``books``, but not for ``bookcase``.
    """
    pattern = "|".join(re.escape(name.replace("_", " ")) for name in objects)
    matching = re.compile(rf"\b({pattern})(e?s)?\b", re.IGNORECASE)
    return frozenset(number for number, name in names.items() if matching.search(name.replace("_", " ")))


def _annotated(file: Path, names: Mapping[int, str]) -> set[int]:
    """Return the numbers of the objects in an annotation file.

    The file is no XML document but several elements one after another: ``filename``, ``folder``, in some
    ``scenedescription``, ``class`` (the number of the scene), and ``objects`` for each object, with its number as
    ``class``, a ``polygon`` and a ``bndbox``.
    """
    expected = "expected MiniPlaces' object annotations"
    size = file.stat().st_size
    if size > LARGEST_ANNOTATION:
        raise ValueError(f"{file}: found {size} bytes, {expected} of at most {LARGEST_ANNOTATION}")
    try:
        # Within an element there can be no document type, hence no entities either.
        root = ElementTree.fromstring(b"<annotation>\n" + file.read_bytes() + b"\n</annotation>")
    except ElementTree.ParseError as error:
        line = error.position[0] - 1
        raise ValueError(f"{file}: line {line}: {ErrorString(error.code)}; {expected}") from error
    if root.find("filename") is None:
        found = ", ".join(dict.fromkeys(element.tag for element in root)) or "no element"
        raise ValueError(f"{file}: found {shown(found)}, {expected}: filename, folder, class, objects …")
    numbers = set()
    for position, element in enumerate(root.iterfind("objects"), 1):
        number = (element.findtext("class") or "").strip()
        if not LABEL.fullmatch(number) or int(number) not in names:
            raise ValueError(
                f"{file}: class of objects {position} is {shown(number)}, expected a number that {_OBJECT_LIST} names"
            )
        numbers.add(int(number))
    return numbers
