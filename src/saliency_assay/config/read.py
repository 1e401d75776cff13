"""The configuration as typed records; every error names the key, the value and the valid choices.

``read`` checks the shape against the schema and then the meaning: names that refer to each other, parameters
against the registry record of what they belong to, files that must exist, and what a method needs of a model.
Nothing here imports torch: the Snakefile reads the configuration each time it is parsed, in every cluster job.
"""

from collections.abc import Mapping
from typing import Any

from saliency_assay.config.bam import check_methods, read_comparison
from saliency_assay.config.caption import METRICS, read_caption_study
from saliency_assay.config.checks import look_up
from saliency_assay.config.data import check_sources, read_data
from saliency_assay.config.methods import check_needs, read_methods
from saliency_assay.config.metrics import check_masks, check_printed, metrics_of, read_metrics
from saliency_assay.config.models import read_model
from saliency_assay.config.records import (
    Catalogue,
    Config,
    DataEntry,
    Method,
    Model,
    Reliability,
    Settings,
    Study,
)
from saliency_assay.config.retrain import read_retraining
from saliency_assay.config.schema import ConfigError, check_shape


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
    for section in ("models", "methods"):
        if raw["studies"] and not raw[section]:
            raise ConfigError(f"{section}: found none, expected at least one, because there are studies")
    data = {name: read_data(name, entry, catalogue) for name, entry in raw["data"].items()}
    makers: dict[str, str] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name]} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry.name
    check_sources(data)
    models = {name: read_model(name, entry, data, catalogue) for name, entry in raw["models"].items()}
    methods = read_methods(raw["methods"], catalogue)
    asked = [name for study in raw["studies"].values() for name in study.get("metrics", ())]
    asked += METRICS if any(study["kind"] == "caption" for study in raw["studies"].values()) else ()
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
        check_methods(study, methods)
        check_masks(study, metrics, data)
        check_printed(study, metrics, methods)
    return Config(
        results=_results(raw["results"]),
        device=raw["device"],
        seeds=tuple(raw["seeds"]),
        data=data,
        models=models,
        methods=methods,
        metrics=metrics,
        studies=studies,
        reliability=Reliability(raw["reliability"]["resamples"], raw["reliability"]["level"]),
        gallery_images=raw["report"]["gallery_images"],
    )


def _results(path: str) -> str:
    """The folder of results, which is part of every pattern that Snakemake matches: a brace would be a wildcard."""
    if not path.isprintable() or not path.strip("/") or {"{", "}"} & set(path):
        wanted = "a folder's path without braces, line breaks and other control characters"
        raise ConfigError(f"results: found {path!r}, expected {wanted}")
    return path.rstrip("/")


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
        return Study(
            name,
            entry["kind"],
            model.data,
            (model.name,),
            chosen,
            judges,
            printed=entry.get("printed", {}),
            printed_alpha=entry.get("printed_alpha", {}),
            printed_correlation=entry.get("printed_correlation", {}),
        )
    if entry["kind"] == "retrain":
        model = look_up(f"{place}.model", "model", entry["model"], models)
        retraining = read_retraining(place, entry, model, chosen)
        return Study(name, "retrain", model.data, (model.name,), chosen, retraining=retraining)
    if entry["kind"] == "caption":
        return read_caption_study(name, entry, chosen, data, models)
    comparison = read_comparison(place, entry, data, models)
    pair = (comparison.object_model, comparison.scene_model)
    return Study(name, "bam", entry["data"], pair, chosen, comparison=comparison)
