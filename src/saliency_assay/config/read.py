"""The configuration as typed records; every error names the key, the value and the valid choices.

``read`` validates keys, types and ranges (``config.settings``) and then the meaning: names that refer to each other,
parameters against the registry record of what they belong to, files that must exist, and what a method needs of a
model. Nothing here imports torch: the Snakefile reads the configuration each time it is parsed, in every cluster job.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from saliency_assay.config.checks import look_up
from saliency_assay.config.data import check_sources, read_data
from saliency_assay.config.errors import ConfigError, line_of
from saliency_assay.config.methods import check_needs, read_methods
from saliency_assay.config.metrics import read_metrics
from saliency_assay.config.models import read_model
from saliency_assay.config.records import Catalogue, Config, DataEntry, Reliability, Sections, Study
from saliency_assay.config.settings import Configuration, StudySettings, configuration_of
from saliency_assay.registry.records import resolve


def read(raw: Mapping[str, Any], *, catalogue: Catalogue, source: str) -> Config:
    """Return the configuration ``raw``, checked whole.

    Raises:
        ConfigError: the first fault found, in one line that starts with ``source``.
    """
    model = configuration_of(tuple(catalogue.study_kinds.values()))
    try:
        return _read(model.model_validate(raw), catalogue)
    except ValidationError as error:
        raise ConfigError(f"{source}: {line_of(error.errors(include_url=False))}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _read(raw: Configuration, catalogue: Catalogue) -> Config:
    for section in ("models", "methods"):
        if raw.studies and not getattr(raw, section):
            raise ConfigError(f"{section}: found none, expected at least one, because there are studies")
    data = {name: read_data(name, entry, catalogue) for name, entry in raw.data.items()}
    _check_sets(data)
    check_sources(data)
    models = {name: read_model(name, model, data, catalogue) for name, model in raw.models.items()}
    methods = read_methods(raw.methods, catalogue)
    requested = [
        metric
        for study in raw.studies.values()
        for metric in getattr(study, "metrics", None) or catalogue.study_kinds[study.kind].metrics
    ]
    metrics = read_metrics(raw.metrics, requested, catalogue)
    sections = Sections(data, models, methods, metrics, tuple(raw.metrics), raw.seeds, catalogue)
    studies = {name: _study(name, entry, sections) for name, entry in raw.studies.items()}
    for study in studies.values():
        check_needs(study, models, methods, catalogue)
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


def _check_sets(data: Mapping[str, DataEntry]) -> None:
    """Check that no two entries make sets of the same name."""
    makers: dict[str, str] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name]} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry.name


def _results(path: str) -> str:
    """Return the folder of results, in which a brace would be a wildcard of Snakemake."""
    if not path.isprintable() or not path.strip("/") or {"{", "}"} & set(path):
        wanted = "a folder's path without braces, line breaks and other control characters"
        raise ConfigError(f"results: found {path!r}, expected {wanted}")
    return path.rstrip("/")


def _study(name: str, entry: StudySettings, sections: Sections) -> Study:
    methods = entry.methods or tuple(sections.methods)
    for method in methods:
        look_up(f"studies.{name}.methods", "method", method, sections.methods)
    kind = sections.catalogue.study_kinds[entry.kind]
    study: Study = resolve(kind.read)(name, entry, methods, sections)
    return replace(study, metrics=kind.metrics) if kind.metrics else study
