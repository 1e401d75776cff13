"""Checks of the section ``metrics``: registered and custom metrics."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from saliency_assay.config.checks import custom_parameters, files_of, look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalog, Metric, Model, Parameters, Study
from saliency_assay.config.settings import CustomMetric, RegisteredMetric
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.properties import OTHER
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import GENERATOR, OFFERED, check_call, describe_function
from saliency_assay.training.settings import finetuning, training_from

POSITIONAL = ("predict", "images", "targets", "maps")
"""Positional arguments of a metric."""
DIRECTIONS = ("direction", "target")
"""Keys that define which scores of a custom metric are better."""


@dataclass(frozen=True)
class Boxes:
    """The figure of a custom metric: box plots of its scores."""

    function: str = "saliency_assay.studies.fidelity.figures:boxes"
    reads: tuple[str, ...] = ()


BOXES = Boxes()


def read_metrics(
    entries: Mapping[str, RegisteredMetric | CustomMetric], requested: Iterable[str], catalog: Catalog
) -> dict[str, Metric]:
    """Return the records of all entries and of registered metrics without an entry that studies use.

    The latter are metrics that compare models, and those ``requested`` by name.
    """
    records = {name: _metric(name, entry, catalog) for name, entry in entries.items()}
    for name, record in catalog.metrics.items():
        if name not in records and (not record.scores_single_maps or name in requested):
            records[name] = _metric(name, RegisteredMetric(), catalog)
    return records


def _metric(name: str, entry: RegisteredMetric | CustomMetric, catalog: Catalog) -> Metric:
    """Return the checked record of the entry ``metrics.name``."""
    place = f"metrics.{name}"
    namesake = catalog.metrics.get(name)
    kinds = [kind.name for kind in catalog.study_kinds.values() if name in kind.metrics]
    is_reserved = kinds or (namesake and not namesake.scores_single_maps)
    if is_reserved and (isinstance(entry, CustomMetric) or entry.metric not in (None, name)):
        owner = f" of {' and '.join(kinds)} studies" if kinds else ""
        raise ConfigError(f"{place}: is the name of a registered metric{owner}, expected another name")
    if isinstance(entry, CustomMetric):
        return _custom_metric(name, entry)
    for key in DIRECTIONS:
        if key in entry.parameters:
            raise ConfigError(
                f"{place}.{key}: found with a registered metric, which has its own; expected only with function"
            )
    record = look_up(place, "metric", name if entry.metric is None else entry.metric, catalog.metrics)
    if not record.scores_single_maps and record.name != name:
        raise ConfigError(f"{place}.metric: found {record.name!r}, expected only for an entry of that name")
    keys = [key for key in entry.own_keys() if key != "training" or record.finetuning]
    parameters = parameters_of(place, record.parameters, entry.parameters, keys)
    training = _finetuning(place, entry, record, parameters, catalog)
    misfit = resolve(record.check)(parameters) if record.check else ""
    if misfit:
        raise ConfigError(f"{place}.{misfit}")
    return Metric(
        name=name,
        label=label_of(name, entry.label, record),
        metric=record.name,
        function=record.function,
        parameters=parameters,
        scores_single_maps=record.scores_single_maps,
        takes=record.takes,
        responses=record.responses,
        directions={score.name: score.direction for score in record.scores},
        labels={score.name: score.label for score in record.scores},
        units={score.name: score.unit for score in record.scores},
        sub_variants=record.sub_variants,
        figures=dict(record.figures),
        measures=record.measures,
        summary=record.summary,
        score_summaries={score.name: score.summary or record.summary for score in record.scores},
        training=training,
    )


def _finetuning(
    place: str, entry: RegisteredMetric, record: Any, parameters: Parameters, catalog: Catalog
) -> Parameters:
    """Return the training parameters of the fine-tuned model that differ from those of the explained model.

    Raises:
        ConfigError: one does not exist, has no valid value, or follows from a parameter of the metric; or the metric
            does not fine-tune the model.
    """
    if entry.training and not record.finetuning:
        valid = ", ".join(name for name, other in catalog.metrics.items() if other.finetuning)
        actual = f"found with {record.name}, which does not fine-tune the model"
        raise ConfigError(f"{place}.training: {actual}; expected only with {valid}")
    for key, parameter in record.finetuning.items():
        if key in entry.training:
            raise ConfigError(
                f"{place}.training.{key}: found a value, expected none: it is {place}.{parameter}"
            )
    parameters_of(f"{place}.training", catalog.training, entry.training)
    return {**entry.training, **{key: parameters[name] for key, name in record.finetuning.items()}}


def check_finetuning(study: Study, models: Mapping[str, Model], metrics: Mapping[str, Metric]) -> None:
    """Check that the models of a study can be trained with the training parameters of its metrics.

    Raises:
        ConfigError: two of the parameters contradict each other.
    """
    for metric in metrics.values():
        for model in study.all_models if metric.training and metric.name in study.metrics else ():
            try:
                training_from(finetuning(models[model].training, metric.training))
            except ValueError as error:
                raise ConfigError(f"metrics.{metric.name}.training.{error} (models.{model})") from None


def check_scores(study: Study, metrics: Mapping[str, Metric]) -> None:
    """Check that no other metric of a study has a score of the name of a custom metric.

    Scores of equal names are variants of one score, with one direction.

    Raises:
        ConfigError: a metric has such a score.
    """
    selected = [metric for name, metric in metrics.items() if name in study.metrics]
    for custom in (metric for metric in selected if not metric.metric):
        for other in selected:
            if other is not custom and custom.name in other.directions:
                raise ConfigError(
                    f"metrics.{custom.name}: is the name of a score of metrics.{other.name}, with which studies."
                    f"{study.name} compares it; expected another name"
                )


def _custom_metric(name: str, entry: CustomMetric) -> Metric:
    """Return the record of a custom metric, whose only score has the name of the entry."""
    place = f"metrics.{name}"
    if "metric" in entry.parameters:
        raise ConfigError(f"{place}: found both function and metric, expected one of them")
    try:
        takes = check_call(entry.function, entry.parameters, positional=POSITIONAL, offered=OFFERED)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    description = describe_function(entry.function, passed=(*POSITIONAL, GENERATOR, *OFFERED))
    label = label_of(name, entry.label)
    return Metric(
        name=name,
        label=label,
        metric="",
        function=entry.function,
        parameters=custom_parameters(place, {**description.defaults, **entry.parameters}),
        scores_single_maps=True,
        takes=takes,
        responses="",
        directions={name: _direction(place, entry)},
        labels={name: label},
        units={name: ""},
        sub_variants={},
        figures={"scores": BOXES},
        measures=entry.measures or OTHER,
        summary=description.summary or entry.function,
        score_summaries={name: description.summary or entry.function},
        files=files_of(place, entry.function, entry.files),
    )


def _direction(place: str, entry: CustomMetric) -> str:
    """Return the direction of a custom metric from its ``direction`` or ``target``.

    Raises:
        ConfigError: the entry has both, or neither.
    """
    if entry.direction and entry.target is not None:
        raise ConfigError(f"{place}: found both direction and target, expected one of them")
    if entry.direction:
        return entry.direction
    if entry.target is None:
        expected = "expected higher or lower, or target, the ideal value, in its place"
        raise ConfigError(f"{place}.direction: missing, {expected}")
    return f"target {float(entry.target)!r}".removesuffix(".0")
