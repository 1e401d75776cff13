"""Reading of the configuration into typed records; every error names the key, the value and the valid choices.

``read`` validates keys, types and ranges (``config.settings``) and then references between entries, parameters against
their registry records, the existence of files, and the layers that methods need. This module does not import torch,
because the Snakefile reads the configuration each time it is parsed, in every cluster job too.
"""

from collections.abc import Mapping
from dataclasses import replace
from os.path import normpath
from typing import Any

from pydantic import ValidationError

from saliency_assay.config.checks import look_up
from saliency_assay.config.data import check_sources, read_data
from saliency_assay.config.errors import ConfigError, line_of
from saliency_assay.config.labels import check_distinct
from saliency_assay.config.methods import check_needs, read_methods
from saliency_assay.config.metrics import check_finetuning, check_scores, read_metrics
from saliency_assay.config.models import read_model
from saliency_assay.config.records import Catalog, Config, DataEntry, Reliability, Sections, Study
from saliency_assay.config.settings import Configuration, StudySettings, configuration_of
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import resolve


def read(raw: Mapping[str, Any], *, catalog: Catalog, source: str) -> Config:
    """Return the checked configuration.

    Args:
        raw: the content of the configuration file.
        catalog: all registries.
        source: the name of the file, for error messages.

    Raises:
        ConfigError: the configuration is not valid; the message is one line for the first fault, after ``source``.
    """
    model = configuration_of(tuple(catalog.study_kinds.values()))
    try:
        return _read(model.model_validate(raw), catalog)
    except ValidationError as error:
        raise ConfigError(f"{source}: {line_of(error.errors(include_url=False))}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _read(raw: Configuration, catalog: Catalog) -> Config:
    for section in ("models", "methods"):
        if raw.studies and not getattr(raw, section):
            raise ConfigError(f"{section}: found none, expected at least one, because there are studies")
    data = {name: read_data(name, entry, catalog) for name, entry in raw.data.items()}
    _check_sets(data)
    check_sources(data)
    models = {name: read_model(name, model, data, catalog) for name, model in raw.models.items()}
    methods = read_methods(raw.methods, catalog)
    requested = [
        metric
        for study in raw.studies.values()
        for metric in getattr(study, "metrics", None) or catalog.study_kinds[study.kind].metrics
    ]
    metrics = read_metrics(raw.metrics, requested, catalog)
    sections = Sections(data, models, methods, metrics, tuple(raw.metrics), raw.seeds, catalog)
    studies = {name: _study(name, entry, sections) for name, entry in raw.studies.items()}
    for section, records in (
        ("data", data),
        ("models", models),
        ("methods", methods),
        ("metrics", metrics),
        ("studies", studies),
    ):
        check_distinct(section, records, getattr(raw, section))
    for study in studies.values():
        check_needs(study, models, methods, catalog)
        check_finetuning(study, models, metrics)
        check_scores(study, metrics)
    return Config(
        results=_results(raw.results),
        device=raw.device,
        seeds=raw.seeds,
        data=data,
        models=models,
        methods=methods,
        metrics=metrics,
        studies=studies,
        reliability=Reliability(
            resamples=raw.reliability.resamples,
            level=raw.reliability.level,
            ranks=raw.reliability.ranks,
            margin=raw.reliability.margin,
            margin_unit=raw.reliability.margin_unit,
        ),
        gallery_images=raw.report.gallery_images,
    )


def _check_sets(data: Mapping[str, DataEntry]) -> None:
    """Check that no two entries provide sets of the same name."""
    makers: dict[str, str] = {}
    for entry in data.values():
        for name in entry.sets:
            if name in makers:
                other = f"which data.{makers[name]} makes too"
                raise ConfigError(f"data.{entry.name}: makes the set {name!r}, {other}; rename one")
            makers[name] = entry.name


def _results(path: str) -> str:
    """Return the folder of results in its shortest form, since Snakemake compares paths as text.

    Braces and angle brackets are refused, because Snakemake would read them as wildcards and path variables; ``~`` and
    ``$``, because neither is expanded.
    """
    if not path.isprintable() or not path.strip("/ ") or path[0] in "-~" or set("{}<>$") & set(path):
        expected = (
            "a folder's path without ~ at its beginning, braces, $, <, >, line breaks and other control "
            "characters"
        )
        raise ConfigError(f"results: found {path!r}, expected {expected}")
    return normpath(path)


def _study(name: str, entry: StudySettings, sections: Sections) -> Study:
    """Return the record of a study, as the reader of its kind returns it."""
    methods = entry.methods or tuple(sections.methods)
    for method in methods:
        look_up(f"studies.{name}.methods", "method", method, sections.methods)
    kind = sections.catalog.study_kinds[entry.kind]
    study: Study = resolve(kind.read)(name, entry, methods, sections)
    label = label_of(name, entry.label, kind)
    return replace(study, label=label, metrics=kind.metrics or study.metrics)
