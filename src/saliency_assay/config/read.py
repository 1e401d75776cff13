"""The configuration as typed records; every error names the key, the value and the valid choices.

``read`` validates keys, types and ranges (``config.settings``) and then the meaning: names that refer to each other,
parameters against the registry record of what they belong to, files that must exist, and what a method needs of a
model. Nothing here imports torch: the Snakefile reads the configuration each time it is parsed, in every cluster job.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from saliency_assay.config.bam import check_methods, read_comparison
from saliency_assay.config.caption import METRICS, read_caption_study
from saliency_assay.config.checks import look_up
from saliency_assay.config.data import check_sources, read_data
from saliency_assay.config.errors import ConfigError, line_of
from saliency_assay.config.methods import check_needs, read_methods
from saliency_assay.config.metrics import check_masks, check_printed, metrics_of, read_metrics
from saliency_assay.config.models import read_model
from saliency_assay.config.records import Catalogue, Config, DataEntry, Method, Model, Reliability, Study
from saliency_assay.config.retrain import read_retraining
from saliency_assay.config.settings import Configuration
from saliency_assay.studies.bam.settings import BamStudy
from saliency_assay.studies.caption.settings import CaptionStudy
from saliency_assay.studies.fidelity.settings import FidelityStudy
from saliency_assay.studies.gallery.settings import GalleryStudy
from saliency_assay.studies.retrain.settings import RetrainStudy


def read(raw: Mapping[str, Any], *, catalogue: Catalogue, source: str) -> Config:
    """Return the configuration ``raw``, checked whole.

    Raises:
        ConfigError: the first fault found, in one line that starts with ``source``.
    """
    try:
        return _read(Configuration.model_validate(raw), catalogue)
    except ValidationError as error:
        raise ConfigError(f"{source}: {line_of(error.errors(include_url=False))}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _read(raw: Configuration, catalogue: Catalogue) -> Config:
    for section in ("models", "methods"):
        if raw.studies and not getattr(raw, section):
            raise ConfigError(f"{section}: found none, expected at least one, because there are studies")
    data = {name: read_data(name, entry, catalogue) for name, entry in raw.data.items()}
    makers: dict[str, str] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name]} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry.name
    check_sources(data)
    models = {name: read_model(name, model, data, catalogue) for name, model in raw.models.items()}
    methods = read_methods(raw.methods, catalogue)
    requested: list[str] = []
    for settings in raw.studies.values():
        if isinstance(settings, FidelityStudy):
            requested += settings.metrics or ()
        elif isinstance(settings, CaptionStudy):
            requested += METRICS
    metrics = read_metrics(raw.metrics, requested, catalogue)
    chosen_metrics = {
        name: metrics_of(name, settings, metrics, raw.metrics, catalogue)
        for name, settings in raw.studies.items()
        if isinstance(settings, FidelityStudy)
    }
    studies = {
        name: _study(name, settings, data, models, methods, chosen_metrics.get(name, ()))
        for name, settings in raw.studies.items()
    }
    for study in studies.values():
        check_needs(study, models, methods, catalogue)
        check_methods(study, methods)
        check_masks(study, metrics, data)
        check_printed(study, metrics, methods)
    return Config(
        results=_results(raw.results),
        device=raw.device,
        seeds=raw.seeds,
        data=data,
        models=models,
        methods=methods,
        metrics=metrics,
        studies=studies,
        reliability=Reliability(raw.reliability.resamples, raw.reliability.level),
        gallery_images=raw.report.gallery_images,
    )


def _results(path: str) -> str:
    """Return the folder of results, in which a brace would be a wildcard of Snakemake."""
    if not path.isprintable() or not path.strip("/") or {"{", "}"} & set(path):
        wanted = "a folder's path without braces, line breaks and other control characters"
        raise ConfigError(f"results: found {path!r}, expected {wanted}")
    return path.rstrip("/")


def _study(
    name: str,
    entry: BamStudy | GalleryStudy | FidelityStudy | RetrainStudy | CaptionStudy,
    data: Mapping[str, DataEntry],
    models: Mapping[str, Model],
    methods: Mapping[str, Method],
    metrics: tuple[str, ...],
) -> Study:
    place = f"studies.{name}"
    chosen = entry.methods or tuple(methods)
    for method in chosen:
        look_up(f"{place}.methods", "method", method, methods)
    if isinstance(entry, CaptionStudy):
        return read_caption_study(name, entry, chosen, data, models)
    if isinstance(entry, BamStudy):
        comparison = read_comparison(place, entry, data, models)
        pair = (comparison.object_model, comparison.scene_model)
        return Study(name, entry.kind, entry.data, pair, chosen, comparison=comparison)
    model = look_up(f"{place}.model", "model", entry.model, models)
    study = Study(name, entry.kind, model.data, (model.name,), chosen)
    if isinstance(entry, RetrainStudy):
        return replace(study, retraining=read_retraining(place, entry, model, chosen))
    if isinstance(entry, FidelityStudy):
        return replace(
            study,
            metrics=metrics,
            printed=entry.printed,
            printed_alpha=entry.printed_alpha,
            printed_correlation=entry.printed_correlation,
        )
    return study
