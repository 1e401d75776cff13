"""Classes of a model that keeps its own, and the class of the model for each class of a data set.

The configuration reads them, so this module imports no library.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from saliency_assay.registry.records import short_repr

IMAGENET = "imagenet"
"""The classes of ImageNet (ILSVRC 2012), whose indices are in the order of their WordNet IDs (wnids)."""
MAP_COLUMNS = ("class", "model_class")
"""Columns of a CSV file of ``class_map``: the data set's classes, and their names or indices in the model."""


@dataclass(frozen=True)
class Classes:
    """The classes of a model."""

    names: Sequence[str]
    """A unique name of each class."""
    spellings: Mapping[str, Sequence[int]]
    """Classes by each of their names, as ``_spelling`` returns it; an ambiguous name has several."""
    has_indices: bool
    """True if the index of a class is one of its names."""

    def index(self, name: str | int, *, or_index: bool = False) -> int:
        """Return the index of the class that is called ``name`` or, with ``or_index``, has this index.

        Raises:
            ValueError: no class or several classes have this name.
        """
        count = len(self.names)
        if name in self.names:
            return self.names.index(str(name))
        indices = self.spellings.get(_spelling(str(name)), ())
        is_index = isinstance(name, int) or name.strip().isdecimal()
        if is_index and (self.has_indices or or_index) and not indices and 0 <= int(name) < count:
            return int(name)
        if len(indices) == 1:
            return indices[0]
        if indices:
            several = " and ".join(f"{self.names[index]!r} ({index})" for index in indices)
            raise ValueError(f"found {name!r}, which is a name of {several}; use one of these names")
        names = ", ".join(self.names[:3]) + (", …" if count > 3 else "")
        raise ValueError(f"found {short_repr(name)}, expected one of the model's {count} classes ({names})")


def _spelling(name: str) -> str:
    """Return a name as it is compared: without case, and with underscores and hyphens as spaces."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def read_classes(classes: int | str | Sequence[str]) -> Classes:
    """Return the classes of a model: a number of them, their names, ``imagenet``, or a text file.

    The file has the names of one class in each line, separated by commas or tabs; a wnid at its beginning is a name,
    too. The classes of a number are called by their indices.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there are fewer than two classes, or two lines have the same first name.
    """
    if isinstance(classes, int):
        names: list[list[str]] = [[str(index)] for index in range(classes)]
    elif isinstance(classes, str):
        return _imagenet() if classes == IMAGENET else _classes(_lines(Path(classes)), place=classes)
    else:
        names = [[name] for name in classes]
    return _classes(names, has_indices=isinstance(classes, int))


@cache
def _imagenet() -> Classes:
    # As a path beside this module, so that the file is part of the code of jobs (``pipeline.code_digest``).
    path = Path(__file__).with_name("assets") / "imagenet_classes.tsv"
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    names = [[wnid, *map(str.strip, lemmas.split(","))] for wnid, lemmas in lines]
    frequency = Counter(lemma for _, lemma, *_ in names)
    labels = [lemma if frequency[lemma] == 1 else f"{lemma} {wnid}" for wnid, lemma, *_ in names]
    return _classes([[label, *each] for label, each in zip(labels, names, strict=True)], has_indices=True)


def _lines(path: Path) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text in UTF-8") from None
    # ImageNet's own list has a wnid, a space, and names.
    lines = [re.sub(r"^(n\d{8})\s+", r"\1,", line).replace("\t", ",") for line in lines if line.strip()]
    names = [[name.strip() for name in line.split(",")] for line in lines]
    return [list(filter(None, each)) for each in names]


def _classes(names: Sequence[Sequence[str]], *, place: str = "classes", has_indices: bool = False) -> Classes:
    first = [each[0] if each else "" for each in names]
    repeated = [name for name, count in Counter(first).items() if count > 1 or not name]
    if len(first) < 2 or repeated:
        problem = f"{short_repr(repeated[0])} several times" if repeated else f"{len(first)} classes"
        raise ValueError(f"{place}: found {problem}, expected two or more classes of different names")
    spellings: dict[str, list[int]] = {}
    for index, each in enumerate(names):
        for spelling in {_spelling(name) for name in each}:
            spellings.setdefault(spelling, []).append(index)
    return Classes(first, spellings, has_indices)


def read_class_map(path: str | Path) -> dict[str, str]:
    """Return the class of the model for each class of a data set, from a CSV file with the columns ``MAP_COLUMNS``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file has other columns, or a class has no or several lines.
    """
    classes: dict[str, str] = {}
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        try:
            reader = csv.DictReader(file, strict=True)
            if tuple(map(str.strip, reader.fieldnames or ())) != MAP_COLUMNS:
                columns = ", ".join(reader.fieldnames or ())
                raise ValueError(f"{path}: found columns {columns!r}, expected {', '.join(MAP_COLUMNS)}")
            for row in reader:
                name, model_class = (row[column] or "" for column in reader.fieldnames or ())
                if not name.strip() or not model_class.strip() or name.strip() in classes or None in row:
                    raise ValueError(
                        f"{path}: line {reader.line_num}: found {short_repr(name)}, expected one line for each class "
                        "with a class of the model"
                    )
                classes[name.strip()] = model_class.strip()
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: {error}; expected CSV in UTF-8") from None
    return classes


def class_indices(
    names: Sequence[str], classes: Classes, class_map: Mapping[str, str | int] | None = None
) -> list[int]:
    """Return the index in the model of each of the classes ``names`` of a data set: that of its name or in the map.

    Raises:
        ValueError: a class is not in the map, or is none of the model's.
    """
    indices = []
    for name in names:
        if class_map is not None and name not in class_map:
            raise ValueError(
                f"class_map: found no entry of the class {name!r}, expected one for each class of the data"
            )
        try:
            indices.append(
                classes.index(name) if class_map is None else classes.index(class_map[name], or_index=True)
            )
        except ValueError as error:
            if class_map is not None:
                raise ValueError(f"class_map: {name}: {error}") from None
            raise ValueError(f"classes: {error}; set class_map to name the model's class") from None
    return indices


def model_classes(settings: Mapping[str, Any]) -> Classes:
    """Return the classes of a model from its settings, see ``of_data``."""
    return read_classes(settings["of"])


def of_data(names: Sequence[str], settings: Mapping[str, Any] | None) -> tuple[list[int], Sequence[str]]:
    """Return the class of a model for each class of a data set, and the names of the model's classes.

    ``settings`` of a model with its own classes are ``of`` (see ``read_classes``) and ``map`` (a file, a mapping or
    None); without settings, a model has the classes of the data.

    Raises:
        FileNotFoundError, ValueError: as ``read_classes``, ``read_class_map`` and ``class_indices``.
    """
    if settings is None:
        return list(range(len(names))), names
    classes, class_map = model_classes(settings), settings["map"]
    return class_indices(
        names, classes, read_class_map(class_map) if isinstance(class_map, str) else class_map
    ), classes.names
