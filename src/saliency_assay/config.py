"""The configuration as typed records; every error names the key, the value and the valid choices.

``read`` checks the shape against the schema and then the meaning: names that refer to each other, parameters
against the registry record of what they belong to, files that must exist, and what a method needs of a model.
Nothing here imports torch: the Snakefile reads the configuration each time it is parsed, in every cluster job.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saliency_assay.config_checks import look_up, parameters_of
from saliency_assay.config_methods import check_needs, read_methods
from saliency_assay.config_metrics import check_masks, check_printed, metrics_of, read_metrics
from saliency_assay.config_records import Catalogue, Config, DataEntry, Method, Model, Settings, Study
from saliency_assay.config_retrain import check_training, read_retraining, trials_of
from saliency_assay.schema import ConfigError, check_shape


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
    methods = read_methods(raw["methods"], catalogue)
    asked = [name for study in raw["studies"].values() for name in study.get("metrics", ())]
    metrics = read_metrics(raw["metrics"], asked, catalogue)
    judges = {
        name: metrics_of(name, entry, metrics, raw["metrics"], catalogue)
        for name, entry in raw["studies"].items()
        if entry["kind"] == "fidelity"
    }
    studies = {
        name: _study(name, entry, data, models, methods, judges.get(name, ()))
        for name, entry in raw["studies"].items()
    }
    for study in studies.values():
        check_needs(study, models, methods, catalogue)
        check_masks(study, metrics, data)
        check_printed(study, metrics)
    return Config(
        results=raw["results"].rstrip("/"),
        device=raw["device"],
        seeds=tuple(raw["seeds"]),
        data=data,
        models=models,
        methods=methods,
        metrics=metrics,
        studies=studies,
        gallery_images=raw["report"]["gallery_images"],
    )


def _data_entry(name: str, entry: Settings, catalogue: Catalogue) -> DataEntry:
    place = f"data.{name}"
    kind = look_up(f"{place}.kind", "kind of data", entry["kind"], catalogue.data_kinds)
    keys = {"kind", "explain", "explain_order", "resident_limit", *kind.sources}
    sources: Settings = {}
    if kind.name == "bam":
        keys |= {"coco", "miniplaces", "objects", "scenes"}
        sources = {
            "coco": _coco(f"{place}.coco", entry["coco"]),
            "miniplaces": _folder(f"{place}.miniplaces", entry["miniplaces"]),
            "objects": tuple(entry["objects"]),
            "scenes": tuple(entry["scenes"]),
        }
    parameters = parameters_of(place, kind.parameters, entry, keys)
    parameters |= {key: _folder(f"{place}.{key}", entry[key]) for key in kind.sources}
    if parameters.get("smallest", 0) >= parameters.get("largest", 1):
        found = f"found {parameters['smallest']}, expected less than largest ({parameters['largest']})"
        raise ConfigError(f"{place}.smallest: {found}")
    return DataEntry(
        name=name,
        kind=kind.name,
        function=kind.function,
        explain=entry["explain"],
        explain_order=entry["explain_order"],
        resident_limit=entry["resident_limit"],
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
    architecture = look_up(
        f"{place}.architecture", "architecture", entry["architecture"], catalogue.architectures
    )
    sets = {set_name: maker for maker in data.values() for set_name in maker.sets}
    maker = look_up(f"{place}.data", "set", entry["data"], sets)
    look_up(f"{place}.label", "label", entry["label"], dict.fromkeys(maker.labels))
    weights = _file(f"{place}.weights", entry["weights"]) if "weights" in entry else ""
    training = parameters_of(f"{place}.training", catalogue.training, entry["training"], ())
    check_training(f"{place}.training", training)
    if not weights and training.get("epochs") == 0:
        raise ConfigError(
            f"{place}.training.epochs: found 0, expected at least 1, or weights to be used as they are"
        )
    keys = ("architecture", "data", "label", "target", "weights", "batch_size", "training", "search")
    return Model(
        name=name,
        architecture=architecture.name,
        function=architecture.function,
        cam_layer=architecture.cam_layer,
        concept_layers=architecture.concept_layers,
        parameters=parameters_of(place, architecture.parameters, entry, keys),
        data=entry["data"],
        label=entry["label"],
        target=entry["target"],
        weights=weights,
        batch_size=entry["batch_size"],
        training=training,
        trials=trials_of(place, entry.get("search", {}), training, catalogue),
    )


def _study(
    name: str,
    entry: Settings,
    data: Mapping[str, DataEntry],
    models: Mapping[str, Model],
    methods: Mapping[str, Method],
    judges: tuple[str, ...],
) -> Study:
    place = f"studies.{name}"
    chosen = tuple(entry.get("methods", methods))
    for method in chosen:
        look_up(f"{place}.methods", "method", method, methods)
    if entry["kind"] in ("gallery", "fidelity"):
        model = look_up(f"{place}.model", "model", entry["model"], models)
        printed = entry.get("printed", {})
        return Study(name, entry["kind"], model.data, (model.name,), chosen, judges, printed)
    if entry["kind"] == "retrain":
        model = look_up(f"{place}.model", "model", entry["model"], models)
        retraining = read_retraining(place, entry, model, chosen)
        return Study(name, "retrain", model.data, (model.name,), chosen, retraining=retraining)
    collections = {key: value for key, value in data.items() if {"os", "0s", "og"} <= set(value.members)}
    look_up(f"{place}.data", "BAM data", entry["data"], collections)
    for role, label in (("object_model", "object"), ("scene_model", "scene")):
        model = look_up(f"{place}.{role}", "model", entry[role], models)
        wanted = (f"{entry['data']}_os", label)
        if (model.data, model.label) != wanted:
            found = f"trained on {model.data} with the {model.label} label"
            raise ConfigError(
                f"{place}.{role}: {model.name} is {found}, expected {wanted[0]} and {wanted[1]}"
            )
    return Study(name, "bam", entry["data"], (entry["object_model"], entry["scene_model"]), chosen)
