"""The section ``data``: what each entry is built from, and the sets that it makes."""

from collections.abc import Mapping
from pathlib import Path

from saliency_assay.config.checks import file, folder, look_up, parameters_of
from saliency_assay.config.records import Catalogue, DataEntry, Settings
from saliency_assay.config.schema import ConfigError
from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.set_names import set_names
from saliency_assay.runtime.shards import too_many

OWN = {
    "bam": ("coco", "miniplaces", "objects", "scenes", "common_object", "commonality"),
    "embedded": ("common_object", "commonality"),
    "caption": ("source", "classes", "captions"),
}
"""Keys of a kind that are not the scalar parameters of its record."""


def read_data(name: str, entry: Settings, catalogue: Catalogue) -> DataEntry:
    """The entry ``data.name``.

    Raises:
        ConfigError: a kind, key, value, file or folder that does not exist or is not valid.
    """
    place = f"data.{name}"
    kind = look_up(f"{place}.kind", "kind of data", entry["kind"], catalogue.data_kinds)
    composed = {"bam": _photographs, "embedded": _drawn, "caption": _captioned}.get(kind.name)
    sources = composed(place, entry) if composed else {}
    keys = {
        "kind",
        "explain",
        "explain_order",
        "shards",
        "resident_limit",
        *kind.sources,
        *OWN.get(kind.name, ()),
    }
    parameters = parameters_of(place, kind.parameters, entry, keys)
    parameters |= {key: folder(f"{place}.{key}", entry[key]) for key in kind.sources}
    for least, greatest in (("smallest", "largest"), ("variant_smallest", "variant_largest")):
        if parameters.get(least, 0) >= parameters.get(greatest, 1):
            found = f"found {parameters[least]}, expected less than {greatest} ({parameters[greatest]})"
            raise ConfigError(f"{place}.{least}: {found}")
    if fault := too_many(entry["shards"], entry["explain"]):
        raise ConfigError(f"{place}.shards: {fault}")
    return DataEntry(
        name=name,
        kind=kind.name,
        function=kind.function,
        explain=entry["explain"],
        explain_order=entry["explain_order"],
        shards=entry["shards"],
        resident_limit=entry["resident_limit"],
        labels=kind.labels,
        members=(*kind.sets, *_common_sets(place, entry, sources)),
        parameters=parameters,
        files=tuple(
            str(path) for pattern in kind.files for path in sorted(Path(parameters["path"]).glob(pattern))
        ),
        **sources,
    )


def _photographs(place: str, entry: Settings) -> Settings:
    return {
        "coco": _coco(f"{place}.coco", entry["coco"]),
        "miniplaces": folder(f"{place}.miniplaces", entry["miniplaces"]),
        "objects": tuple(entry["objects"]),
        "scenes": tuple(entry["scenes"]),
        "common_object": _common_object(place, entry, tuple(entry["objects"])),
    }


def _drawn(place: str, entry: Settings) -> Settings:
    return {"objects": OBJECTS, "scenes": SCENES, "common_object": _common_object(place, entry, OBJECTS)}


def _captioned(place: str, entry: Settings) -> Settings:
    classes = tuple(entry["classes"])
    return {
        "source": entry["source"],
        "classes": classes,
        "captions": tuple(entry.get("captions", classes)),
    }


def _common_object(place: str, entry: Settings, objects: tuple[str, ...]) -> str:
    """Checked only where it is asked for: other lists of objects need not have a dog."""
    name: str = entry["common_object"]
    if entry["commonality"]:
        look_up(f"{place}.common_object", "object", name, dict.fromkeys(objects))
    return name


def _common_sets(place: str, entry: Settings, sources: Settings) -> tuple[str, ...]:
    if not entry.get("commonality"):
        return ()
    try:
        return set_names(entry["commonality"], len(sources["scenes"]))
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def check_sources(data: Mapping[str, DataEntry]) -> None:
    """Whether each entry of kind ``caption`` is built from a set with classes.

    Raises:
        ConfigError: from one that does not exist, has other labels, or is captioned itself.
    """
    sets = {name: entry for entry in data.values() for name in entry.sets}
    pictures = {
        name: entry for name, entry in sets.items() if entry.labels == ("class",) and not entry.source
    }
    for entry in data.values():
        if entry.source:
            look_up(f"data.{entry.name}.source", "set with classes", entry.source, pictures)


def _coco(place: str, given: str | list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    """Pairs of annotation file and image folder."""
    if isinstance(given, str):
        root = Path(folder(place, given))
        found = sorted(root.glob("annotations/instances_*.json"))
        if not found:
            raise ConfigError(f"{place}: found {given!r}, expected annotations/instances_NAME.json in it")
        given = [
            {"annotations": str(path), "images": str(root / path.stem.removeprefix("instances_"))}
            for path in found
        ]
    for index, source in enumerate(given):
        file(f"{place}.{index}.annotations", source["annotations"])
        folder(f"{place}.{index}.images", source["images"])
    return tuple((source["annotations"], source["images"]) for source in given)
