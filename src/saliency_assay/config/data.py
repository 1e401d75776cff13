"""Checks of the section ``data``: the sources of each entry, and the names of its sets."""

from collections.abc import Mapping
from pathlib import Path

from saliency_assay.config.checks import file, folder, look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalog, DataEntry, Parameters
from saliency_assay.config.settings import (
    BamData,
    CaptionData,
    CocoSource,
    ComposedData,
    DataSettings,
    ImageFolderData,
    SyntheticData,
)
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.set_names import set_label, set_names
from saliency_assay.data.image_lists import BOX_SUFFIXES, columns_of, is_list
from saliency_assay.registry.labels import label_of
from saliency_assay.runtime.shards import too_many


def read_data(name: str, entry: DataSettings, catalog: Catalog) -> DataEntry:
    """Return the checked record of the entry ``data.name``.

    Raises:
        ConfigError: a kind, key, value, file or folder does not exist or is not valid.
    """
    place = f"data.{name}"
    kind = look_up(f"{place}.kind", "kind of data", entry.kind, catalog.data_kinds)
    sources = _sources(place, entry)
    parameters = parameters_of(place, kind.parameters, entry.parameters, entry.own_keys())
    files: tuple[str, ...] = ()
    if isinstance(entry, ImageFolderData):
        images = _image_sources(place, entry, parameters)
        parameters |= images
        files = tuple(path for path in images.values() if Path(path).is_file())
    else:
        parameters |= {key: folder(f"{place}.{key}", getattr(entry, key)) for key in kind.sources}
    for least, greatest in (("smallest", "largest"), ("variant_smallest", "variant_largest")):
        if parameters.get(least, 0) >= parameters.get(greatest, 1):
            problem = f"found {parameters[least]}, expected less than {greatest} ({parameters[greatest]})"
            raise ConfigError(f"{place}.{least}: {problem}")
    common_sets = _common_sets(place, entry, sources)
    if fault := too_many(entry.shards, entry.max_explained_images):
        raise ConfigError(f"{place}.shards: {fault}")
    return DataEntry(
        name=name,
        label=label_of(name, entry.label, kind),
        kind=kind.name,
        function=kind.function,
        max_explained_images=entry.max_explained_images,
        explanation_order=entry.explanation_order,
        shards=entry.shards,
        resident_limit=entry.resident_limit,
        labels=kind.labels,
        members=(*kind.sets, *common_sets),
        member_labels={**kind.set_labels, **common_sets},
        parameters=parameters,
        files=(
            *(str(path) for pattern in kind.files for path in sorted(Path(parameters["path"]).glob(pattern))),
            *files,
        ),
        masks=bool(kind.sets) or has_masks(parameters),
        **sources,
    )


def has_masks(parameters: Parameters) -> bool:
    """Return True if the images of a folder or list have masks."""
    path = parameters.get("path", "")
    return "masks" in parameters or (is_list(path) and "mask" in columns_of(Path(path)))


def _image_sources(place: str, entry: ImageFolderData, parameters: Parameters) -> dict[str, str]:
    """Return the path of a folder or list of images, and that of its masks if it has any.

    Raises:
        ConfigError: a folder or file does not exist, or a key contradicts the list.
    """
    if not is_list(entry.path):
        sources = {"path": folder(f"{place}.path", entry.path)}
    else:
        sources = {"path": file(f"{place}.path", entry.path)}
        try:
            columns = columns_of(Path(entry.path))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{place}.path: {error}") from None
        if entry.masks and "mask" in columns:
            raise ConfigError(
                f"{place}.masks: found {entry.masks!r}, expected none with the column mask of {entry.path}"
            )
        if parameters["test_folder"] != "auto":
            expected = "expected only with a folder of images; a list has the column split"
            raise ConfigError(f"{place}.test_folder: found {parameters['test_folder']!r}, {expected}")
    if entry.masks is None:
        return sources
    is_boxes = Path(entry.masks).is_file() and Path(entry.masks).suffix.lower() in BOX_SUFFIXES
    if not is_boxes and (
        not Path(entry.masks).is_dir() or Path(entry.masks).resolve() == Path(entry.path).resolve()
    ):
        expected = (
            f"a folder of masks that exists, other than path, or a file of boxes ({', '.join(BOX_SUFFIXES)})"
        )
        raise ConfigError(f"{place}.masks: found {entry.masks!r}, expected {expected}")
    return {**sources, "masks": entry.masks}


def _sources(place: str, entry: DataSettings) -> Parameters:
    """Return the fields of ``DataEntry`` that only composed kinds of data have."""
    if isinstance(entry, CaptionData):
        return {
            "source": entry.source,
            "classes": entry.classes,
            "captions": entry.captions or entry.classes,
        }
    if isinstance(entry, BamData):
        return {
            "coco": _coco(f"{place}.coco", entry.coco),
            "miniplaces": folder(f"{place}.miniplaces", entry.miniplaces),
            "objects": entry.objects,
            "scenes": entry.scenes,
            "common_object": _common_object(place, entry, entry.objects),
        }
    if isinstance(entry, SyntheticData):
        return {
            "objects": OBJECTS,
            "scenes": SCENES,
            "common_object": _common_object(place, entry, OBJECTS),
        }
    return {}


def _common_object(place: str, entry: ComposedData, objects: tuple[str, ...]) -> str:
    """Return the common object, checked only if it is used.

    A list of objects without the default ``dog`` is therefore valid as long as no commonality is requested.
    """
    if entry.commonality:
        look_up(f"{place}.common_object", "object", entry.common_object, dict.fromkeys(objects))
    return entry.common_object


def _common_sets(place: str, entry: DataSettings, sources: Parameters) -> dict[str, str]:
    """Return the members of the entry's commonality series and their labels; empty without a series."""
    if not isinstance(entry, ComposedData) or not entry.commonality:
        return {}
    scenes = len(sources["scenes"])
    try:
        names = set_names(entry.commonality, scenes)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    return {name: set_label(name, sources["common_object"], scenes) for name in names}


def check_sources(data: Mapping[str, DataEntry]) -> None:
    """Check that the source of each entry of kind ``caption`` is a set with classes.

    Raises:
        ConfigError: the source does not exist, has other labels, or has captions itself.
    """
    sets = {name: entry for entry in data.values() for name in entry.sets}
    class_sets = {
        name: entry for name, entry in sets.items() if entry.labels == ("class",) and not entry.source
    }
    for entry in data.values():
        if entry.source:
            look_up(f"data.{entry.name}.source", "set with classes", entry.source, class_sets)


def _coco(place: str, value: str | tuple[CocoSource, ...]) -> tuple[tuple[str, str], ...]:
    """Return pairs of annotation file and image folder, which exist.

    ``value`` is the COCO folder, or the listed pairs.
    """
    if isinstance(value, str):
        root = Path(folder(place, value))
        annotations = sorted(root.glob("annotations/instances_*.json"))
        if not annotations:
            raise ConfigError(f"{place}: found {value!r}, expected annotations/instances_NAME.json in it")
        pairs = [(str(path), str(root / path.stem.removeprefix("instances_"))) for path in annotations]
    else:
        pairs = [(source.annotations, source.images) for source in value]
    for index, (instances, images) in enumerate(pairs):
        file(f"{place}.{index}.annotations", instances)
        folder(f"{place}.{index}.images", images)
    return tuple(pairs)
