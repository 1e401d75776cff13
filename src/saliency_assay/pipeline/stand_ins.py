"""Stand-ins for missing data, which allow a run to be planned but not started.

Planning needs the files that a configuration names to exist, and the sizes of its data sets. Empty files and folders
replace missing ones, and published sizes of public data replace the sizes of data sets that were not built.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from saliency_assay.config.configuration import Configuration as Config
from saliency_assay.config.models import Model
from saliency_assay.config.studies import Study
from saliency_assay.data.download.catalog import DOWNLOADS

IMAGES = {
    "mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "stl10": (5_000, 8_000),
    "imagenet": (1_281_167, 50_000),
}
"""Numbers of training and test images of public data, by kind of data set or, for kind ``folder``, by name."""
SIZES = {"mnist": 28, "cifar10": 32, "stl10": 96}
DIGITS = 1797
CLASSES = {"imagenet": 1000}
"""Numbers of classes other than ten."""
CAPTION_CLASSES = 2


def image_counts(config: Config, name: str) -> tuple[int, int]:
    """Return the numbers of training and test images of a set.

    Raises:
        KeyError: the set is not public or composed, so that its size is unknown.
    """
    entry = config.sets.get(name)
    if entry is None:
        return 0, 2 * _study_of_pairs(config, name).pair_sets[name]
    parameters = entry.parameters
    if entry.source:
        train, test = image_counts(config, entry.source)
        return train * CAPTION_CLASSES // 10, test * CAPTION_CLASSES // 10
    if entry.scenes:
        groups = 1 if entry.is_common(name) else len(entry.objects)
        each = parameters["images_per_scene" if entry.is_common(name) else "images_per_pair"]
        images = len(entry.scenes) * groups * each
        return round(images * (1 - parameters["test_share"])), round(images * parameters["test_share"])
    if entry.kind == "digits":
        test = round(DIGITS * parameters["test_share"])
        return DIGITS - test, test
    kind = entry.kind if entry.kind in IMAGES else entry.name
    limits = (parameters.get("images_per_class", 0), parameters.get("test_images_per_class", 0))
    limits = (limits[0], limits[1] or limits[0])
    train, test = (
        min(count, limit * CLASSES.get(kind, 10)) if limit else count
        for count, limit in zip(IMAGES[kind], limits, strict=True)
    )
    return train, test


def explained_count(config: Config, name: str) -> int:
    """Return the number of explained images of a set; ``max_explained_images`` if the size of the set is unknown."""
    entry = config.sets.get(name)
    if entry is None:
        return image_counts(config, name)[1]
    try:
        return min(entry.max_explained_images, image_counts(config, name)[1])
    except KeyError:
        return entry.max_explained_images


def image_size(config: Config, name: str) -> tuple[int, int]:
    """Return the channels and the side length in pixels of a set.

    Raises:
        KeyError: the set is of a custom kind without the parameter ``size``.
    """
    entry = config.sets.get(name) or config.data[_study_of_pairs(config, name).data]
    if entry.source:
        return image_size(config, entry.source)
    gray = entry.kind in ("mnist", "digits") or entry.parameters.get("gray")
    return 1 if gray else 3, entry.parameters.get("size") or SIZES[entry.kind]


def _study_of_pairs(config: Config, name: str) -> Study:
    """Return the study that has the set ``name`` of image pairs."""
    return next(study for study in config.studies.values() if name in study.pair_sets)


def image_shape(config: Config, name: str) -> tuple[int, int, int, int]:
    """Return the shape N, C, H, W of all images of a set.

    Raises:
        KeyError: the size of the set is unknown.
    """
    return sum(image_counts(config, name)), *one_image_shape(config, name)


def one_image_shape(config: Config, name: str) -> tuple[int, int, int]:
    """Return the shape C, H, W of an image of a set.

    Raises:
        KeyError: as ``image_size``.
    """
    channels, size = image_size(config, name)
    # The caption is placed next to the image.
    width = 2 * size if name in config.sets and config.sets[name].source else size
    return channels, size, width


def is_shape_known(config: Config, name: str) -> bool:
    """Return True if the shape of a set's images follows from the configuration, False for a set of a custom kind."""
    entry = config.sets[name]
    if entry.source:
        return is_shape_known(config, entry.source)
    return bool(entry.scenes) or entry.kind in (*SIZES, "digits", "folder")


def class_count(config: Config, model: Model) -> int:
    """Return the number of classes of a model."""
    entry = config.sets[model.data]
    if entry.source:
        return CAPTION_CLASSES
    return len({"object": entry.objects, "scene": entry.scenes}.get(model.trained_on, ())) or CLASSES.get(
        entry.name, 10
    )


def missing_sources(configuration: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """Return the missing data folders and weights files of a configuration.

    The value of each contains the files (True) and folders (False) below it that planning needs. Invalid entries are
    ignored.
    """
    sources: dict[str, dict[str, bool]] = {}
    for entry in _entries(configuration, "data"):
        splits = ("train", str(entry.get("test_folder", "test"))) if entry.get("kind") == "folder" else ()
        sources[str(entry.get("path", ""))] = dict.fromkeys(splits, False)
        sources |= {str(entry.get(key, "")): {} for key in ("miniplaces", "masks")}
        coco = entry.get("coco", "")
        if isinstance(coco, str):
            sources[coco] = {"annotations/instances_train2017.json": True, "train2017": False}
        else:
            for pair in filter(lambda pair: isinstance(pair, Mapping), coco):
                sources |= {str(pair.get("annotations", "")): {"": True}, str(pair.get("images", "")): {}}
    for entry in _entries(configuration, "models"):
        sources[str(entry.get("weights", ""))] = {"": True}
    return {path: files for path, files in sources.items() if path and not Path(path).exists()}


def _entries(configuration: Mapping[str, Any], section: str) -> Iterator[Mapping[str, Any]]:
    entries = configuration.get(section)
    return (
        (entry for entry in entries.values() if isinstance(entry, Mapping))
        if isinstance(entries, Mapping)
        else iter(())
    )


@contextmanager
def stand_ins(missing: Mapping[str, Mapping[str, bool]]) -> Iterator[None]:
    """Run the block in a copy of the working directory in which the ``missing`` files exist and are empty.

    The copy is a temporary folder of links, in which only the folders that get new files are real ones.
    """
    if not missing:
        yield
        return
    original = Path.cwd()
    with TemporaryDirectory() as temporary:
        copy = _LinkedCopy(Path(temporary))
        # Snakemake writes to this folder.
        (copy.folder(original) / ".snakemake").unlink(missing_ok=True)
        for path, files in missing.items():
            for name, is_file in {"": False, **files}.items():
                target = Path(os.path.normpath(original / path / name))
                if is_file:
                    (copy.folder(target.parent) / target.name).touch()
                else:
                    copy.folder(target)
        os.chdir(copy.folder(original))
        try:
            yield
        finally:
            os.chdir(original)


class _LinkedCopy:
    """Copy of the file system that consists of links, with some real folders to which files can be added."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[Path] = set()

    def folder(self, path: Path) -> Path:
        """Return the folder that stands for ``path``: a new one, with links to the content of ``path``."""
        copy = self._root / path.relative_to(path.anchor)
        if path not in self._made:
            if path != path.parent:
                self.folder(path.parent)
                copy.unlink(missing_ok=True)
                copy.mkdir()
            self._made.add(path)
            with suppress(OSError):  # no such folder, or no permission to list it
                for entry in path.iterdir():
                    (copy / entry.name).symlink_to(entry)
        return copy


def missing_text(missing: Iterable[str]) -> str:
    """Return lines that list missing data and how to get those that are public."""
    names = {
        Path(path).parts[1] for path in missing if Path(path).parts[:1] == ("data",) and Path(path).parts[1:]
    }
    public = [download for download in DOWNLOADS if download.layout.partition("/")[0] in names]
    lines = [f"not found: {', '.join(missing)}; the plan uses published sizes"]
    if loaded := [download.name for download in public if download.files]:
        lines.append(f'  make download DATA="{" ".join(loaded)}"')
    lines += [f"  {download.page}: {download.by_hand}" for download in public if download.by_hand]
    return "\n".join(lines)
