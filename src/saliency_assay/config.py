"""The configuration as typed records; every error names the key, the value and the valid choices.

``read`` checks the shape against the schema and then the meaning: names that refer to each other, parameters
against the registry record of what they belong to, files that must exist, and what a method needs of a model.
Nothing here imports torch: the Snakefile reads the configuration each time it is parsed, in every cluster job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from saliency_assay.registry import Parameter, unknown, with_defaults
from saliency_assay.schema import ConfigError, check_shape

Settings = dict[str, Any]


class Registered(Protocol):
    """What a registry record must tell the configuration."""

    @property
    def name(self) -> str:
        """How the configuration calls it."""
        ...

    @property
    def function(self) -> str:
        """``package.module:name`` of its callable."""
        ...

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its parameters, with defaults and ranges."""
        ...


@dataclass(frozen=True)
class Catalogue:
    """All that a configuration may name, by name. ``catalogue.CATALOGUE`` holds what is registered."""

    data_kinds: Mapping[str, Any]
    architectures: Mapping[str, Any]
    methods: Mapping[str, Any]
    metrics: Mapping[str, Any]
    training: Mapping[str, Parameter]


@dataclass(frozen=True)
class DataEntry:
    """One entry under ``data``. Kinds with ``members`` make a set for each, others one set of the entry's name."""

    name: str
    kind: str
    function: str
    explain: int
    labels: tuple[str, ...]
    members: tuple[str, ...]
    channels: int
    parameters: Settings
    coco: tuple[tuple[str, str], ...] = ()
    miniplaces: str = ""
    objects: tuple[str, ...] = ()
    scenes: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets that it makes."""
        return tuple(f"{self.name}_{member}" for member in self.members) or (self.name,)


@dataclass(frozen=True)
class Model:
    """One entry under ``models``."""

    name: str
    architecture: str
    function: str
    cam_layer: str
    concept_layers: tuple[str, ...]
    parameters: Settings
    data: str
    label: str
    weights: str
    batch_size: int
    training: Settings


@dataclass(frozen=True)
class Method:
    """One entry under ``methods``."""

    name: str
    method: str
    function: str
    parameters: Settings


@dataclass(frozen=True)
class Study:
    """One entry under ``studies``; a gallery has one model, BAM an object model and a scene model."""

    name: str
    kind: str
    data: str
    models: tuple[str, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """A whole, checked configuration."""

    results: str
    device: str
    seeds: tuple[int, ...]
    data: Mapping[str, DataEntry]
    models: Mapping[str, Model]
    methods: Mapping[str, Method]
    metrics: Mapping[str, Settings]
    studies: Mapping[str, Study]
    gallery_images: int

    @property
    def sets(self) -> dict[str, DataEntry]:
        """Every set's name, with the entry that makes it."""
        return {name: entry for entry in self.data.values() for name in entry.sets}


def read(raw: Mapping[str, Any], *, schema: Mapping[str, Any], catalogue: Catalogue, source: str) -> Config:
    """The configuration ``raw``, checked whole.

    Raises:
        ConfigError: the first fault found, in one line that starts with ``source``.
    """
    filled = check_shape(raw, schema, source)
    try:
        return _read(filled, catalogue)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _read(raw: Settings, catalogue: Catalogue) -> Config:
    data = {name: _data_entry(name, entry, catalogue) for name, entry in raw["data"].items()}
    makers: dict[str, str] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name]} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry.name
    models = {name: _model(name, entry, data, catalogue) for name, entry in raw["models"].items()}
    methods = {name: _method(name, entry, catalogue) for name, entry in raw["methods"].items()}
    studies = {name: _study(name, entry, data, models, methods) for name, entry in raw["studies"].items()}
    for study in studies.values():
        _check_needs(study, models, methods, catalogue)
    return Config(
        results=raw["results"].rstrip("/"),
        device=raw["device"],
        seeds=tuple(raw["seeds"]),
        data=data,
        models=models,
        methods=methods,
        metrics=_metrics(raw["metrics"], catalogue),
        studies=studies,
        gallery_images=raw["report"]["gallery_images"],
    )


V = TypeVar("V")


def _look_up(place: str, kind: str, name: str, known: Mapping[str, V]) -> V:
    if name not in known:
        raise ConfigError(f"{place}: {unknown(kind, name, known)}")
    return known[name]


def _parameters(place: str, known: Mapping[str, Parameter], entry: Settings, keys: Iterable[str]) -> Settings:
    """What ``entry`` holds beside the workflow's own ``keys``, as parameters of a registered thing."""
    own = set(keys)
    given = {key: value for key, value in entry.items() if key not in own}
    for key in given:
        if key not in known:
            raise ConfigError(f"{place}: {unknown('key', key, [*known, *own])}")
    try:
        return with_defaults(known, given)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None


def _data_entry(name: str, entry: Settings, catalogue: Catalogue) -> DataEntry:
    place = f"data.{name}"
    kind = _look_up(f"{place}.kind", "kind of data", entry["kind"], catalogue.data_kinds)
    keys = {"kind", "explain"}
    sources: Settings = {}
    if kind.name == "bam":
        keys |= {"coco", "miniplaces", "objects", "scenes"}
        sources = {
            "coco": _coco(f"{place}.coco", entry["coco"]),
            "miniplaces": _folder(f"{place}.miniplaces", entry["miniplaces"]),
            "objects": tuple(entry["objects"]),
            "scenes": tuple(entry["scenes"]),
        }
    parameters = _parameters(place, kind.parameters, entry, keys)
    if parameters.get("smallest", 0) >= parameters.get("largest", 1):
        found = f"found {parameters['smallest']}, expected less than largest ({parameters['largest']})"
        raise ConfigError(f"{place}.smallest: {found}")
    return DataEntry(
        name=name,
        kind=kind.name,
        function=kind.function,
        explain=entry["explain"],
        labels=kind.labels,
        members=kind.sets,
        channels=kind.channels,
        parameters=parameters,
        **sources,
    )


def _coco(place: str, given: str | list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    """Pairs of annotation file and image folder."""
    if isinstance(given, str):
        root = Path(_folder(place, given))
        files = sorted(root.glob("annotations/instances_*.json"))
        if not files:
            raise ConfigError(f"{place}: found {given!r}, expected annotations/instances_NAME.json in it")
        given = [
            {"annotations": str(file), "images": str(root / file.stem.removeprefix("instances_"))}
            for file in files
        ]
    for index, source in enumerate(given):
        _file(f"{place}.{index}.annotations", source["annotations"])
        _folder(f"{place}.{index}.images", source["images"])
    return tuple((source["annotations"], source["images"]) for source in given)


def _folder(place: str, path: str) -> str:
    if not Path(path).is_dir():
        raise ConfigError(f"{place}: found {path!r}, expected a folder that exists")
    return path


def _file(place: str, path: str) -> str:
    if not Path(path).is_file():
        raise ConfigError(f"{place}: found {path!r}, expected a file that exists")
    return path


def _model(name: str, entry: Settings, data: Mapping[str, DataEntry], catalogue: Catalogue) -> Model:
    place = f"models.{name}"
    architecture = _look_up(
        f"{place}.architecture", "architecture", entry["architecture"], catalogue.architectures
    )
    sets = {set_name: maker for maker in data.values() for set_name in maker.sets}
    maker = _look_up(f"{place}.data", "set", entry["data"], sets)
    _look_up(f"{place}.label", "label", entry["label"], dict.fromkeys(maker.labels))
    weights = _file(f"{place}.weights", entry["weights"]) if "weights" in entry else ""
    keys = ("architecture", "data", "label", "weights", "batch_size", "training")
    return Model(
        name=name,
        architecture=architecture.name,
        function=architecture.function,
        cam_layer=architecture.cam_layer,
        concept_layers=architecture.concept_layers,
        parameters=_parameters(place, architecture.parameters, entry, keys),
        data=entry["data"],
        label=entry["label"],
        weights=weights,
        batch_size=entry["batch_size"],
        training=_parameters(f"{place}.training", catalogue.training, entry["training"], ()),
    )


def _method(name: str, entry: Settings, catalogue: Catalogue) -> Method:
    place = f"methods.{name}"
    record = _look_up(place, "method", entry.get("method", name), catalogue.methods)
    parameters = _parameters(place, record.parameters, entry, ("method",))
    return Method(name=name, method=record.name, function=record.function, parameters=parameters)


def _metrics(entries: Settings, catalogue: Catalogue) -> dict[str, Settings]:
    for name in entries:
        _look_up("metrics", "metric", name, catalogue.metrics)
    return {
        name: _parameters(f"metrics.{name}", record.parameters, entries.get(name, {}), ())
        for name, record in catalogue.metrics.items()
    }


def _study(
    name: str,
    entry: Settings,
    data: Mapping[str, DataEntry],
    models: Mapping[str, Model],
    methods: Mapping[str, Method],
) -> Study:
    place = f"studies.{name}"
    chosen = tuple(entry.get("methods", methods))
    for method in chosen:
        _look_up(f"{place}.methods", "method", method, methods)
    if entry["kind"] == "gallery":
        model = _look_up(f"{place}.model", "model", entry["model"], models)
        return Study(name, "gallery", model.data, (model.name,), chosen)
    collections = {key: value for key, value in data.items() if {"os", "0s", "og"} <= set(value.members)}
    _look_up(f"{place}.data", "BAM data", entry["data"], collections)
    for role, label in (("object_model", "object"), ("scene_model", "scene")):
        model = _look_up(f"{place}.{role}", "model", entry[role], models)
        wanted = (f"{entry['data']}_os", label)
        if (model.data, model.label) != wanted:
            found = f"trained on {model.data} with the {model.label} label"
            raise ConfigError(
                f"{place}.{role}: {model.name} is {found}, expected {wanted[0]} and {wanted[1]}"
            )
    return Study(name, "bam", entry["data"], (entry["object_model"], entry["scene_model"]), chosen)


def _check_needs(
    study: Study, models: Mapping[str, Model], methods: Mapping[str, Method], catalogue: Catalogue
) -> None:
    """What a method needs of an architecture, beyond gradients, is a layer for class activation maps."""
    for name in study.methods:
        needs = catalogue.methods[methods[name].method].needs
        for model in study.models:
            if "cam_layer" in needs and not models[model].cam_layer:
                able = [name for name, record in catalogue.architectures.items() if record.cam_layer]
                raise ConfigError(
                    f"studies.{study.name}.methods: {name} needs a layer for class activation maps, which "
                    f"{models[model].architecture} (models.{model}) does not declare; valid: {', '.join(able)}"
                )
