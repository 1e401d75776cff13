"""Scenes from MiniPlaces: which images there are, and reading one."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from saliency_assay.data.images import Pixels, find_images, log_left_out, no_file, read_rgb
from saliency_assay.registry import shown, unknown

_LISTS = ("train.txt", "val.txt")
LABEL = re.compile(r"[0-9]{1,9}")
LONGEST_NAME = 1000  # characters of an image's path


@dataclass(frozen=True)
class Scene:
    """One image file of a scene class."""

    category: str
    path: Path


def find_scenes(
    folder: Path, categories: Sequence[str], *, objects: Sequence[str] = (), limit: int
) -> tuple[list[Scene], dict[str, Counter[str]]]:
    """The scenes of each category, those left out counted by category and reason.

    Two layouts are read. MiniPlaces' own has ``categories.txt`` with ``train.txt`` and/or ``val.txt`` (from its
    development kit) beside ``images/``; training images come first. Otherwise each category is a folder of
    images, by name. A category stands for the one of the same path (``track/outdoor``), the same path joined by
    underscores (``track_outdoor``) or, if there is only one, the path that begins with it (``track``).

    A scene whose annotation ``objects/<path of the image>.xml`` names one of ``objects``, as a word or its
    plural, is left out. MiniPlaces annotates few images, and only toilet and truck of BAM's ten objects.

    Args:
        folder: the root of either layout.
        categories: the scene classes, in the order of the result.
        objects: names that no scene may hold.
        limit: most scenes of a category; the first are kept.

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
    scenes: list[Scene] = []
    skipped = {category: Counter[str]() for category in categories}
    for category in categories:
        free = []
        for file in available[_resolve(category, available, folder)]:
            if _holds(folder / "objects" / Path(file).with_suffix(".xml"), objects):
                skipped[category]["holds one of the objects"] += 1
            else:
                free.append(Scene(category, root / file))
        if not free:
            counts = ", ".join(f"{reason} {count}" for reason, count in skipped[category].items())
            raise ValueError(f"{folder}: no usable image of scene {category!r}; found: {counts or 'none'}")
        if free[limit:]:
            skipped[category]["beyond the limit"] = len(free[limit:])
        scenes += free[:limit]
    for scene in scenes:
        if not scene.path.is_file():
            fault = no_file(scene.path)
            raise type(fault)(f"{fault}, though {folder}'s lists name it" if own else str(fault))
    return scenes, skipped


def read_scene(scene: Scene, size: int) -> Pixels:
    """The scene as RGB ``[3, size, size]``: the largest centred square, resized with antialiasing.

    Raises:
        FileNotFoundError, ValueError: the file is missing, not an image, or truncated.
    """
    image = read_rgb(scene.path)
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(square).transpose(2, 0, 1))


def _listed(folder: Path) -> dict[str, list[str]]:
    """Image paths below ``images/`` by category, from the development kit's lists."""
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
    """Whether ``path``, from a list that comes from elsewhere, names something below the folder of the images."""
    parts = Path(path.strip().lstrip("/")).parts
    return bool(parts) and ".." not in parts and len(path) <= LONGEST_NAME


def _lines(file: Path) -> Iterable[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: expected a text file; {error.reason} at byte {error.start}") from error
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _by_folder(folder: Path) -> dict[str, list[str]]:
    """Return the images below ``folder`` by the folder that they are in; other files are counted in the log."""
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


def _holds(annotation: Path, objects: Sequence[str]) -> bool:
    """Whether the annotation file, if there is one, names one of ``objects``."""
    if not objects or not annotation.is_file():
        return False
    try:
        names = [name.text or "" for name in ElementTree.parse(annotation).iter("name")]
    # Of an encoding that does not exist, of one that is not read, and of entities that grow beyond what expat allows.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{annotation}: not XML: {error}") from error
    pattern = "|".join(re.escape(name.replace("_", " ")) for name in objects)
    return any(re.search(rf"\b({pattern})s?\b", name.replace("_", " "), re.IGNORECASE) for name in names)
