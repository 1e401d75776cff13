"""The section ``metrics``: registered and custom metrics."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from saliency_assay.config.checks import (
    Catalog,
    Parameters,
    custom_parameters,
    files_of,
    look_up,
    parameters_of,
)
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import (
    FILES,
    FUNCTION,
    LABEL,
    WITHOUT_FUNCTION,
    Derived,
    Distinct,
    Entry,
    Line,
    Number,
    OrAbsent,
    Text,
    entry_kind,
)
from saliency_assay.config.models import Model
from saliency_assay.config.sweeps import SWEEP, Sweep, errors_of_family
from saliency_assay.metrics import BOXES, Figure, Score
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.properties import COMPLEXITY, FAITHFULNESS, OTHER
from saliency_assay.registry.signatures import GENERATOR, OFFERED, check_call, describe_function
from saliency_assay.registry.sweeps import Member
from saliency_assay.training.hyperparameters import finetuning, training_from

POSITIONAL = ("predict", "images", "targets", "maps")
"""Positional arguments of a metric."""


class Metric(Entry):
    """An entry under ``metrics``: a registered metric, or a custom function."""

    label: Line = Field("", description=LABEL)

    member: Derived[Member | None] = None
    """Its membership in a family; None for an entry without ``sweep``."""
    metric: Derived[str] = ""
    """Name of the registered metric; empty for a custom function."""
    function: Derived[str] = ""
    scores_single_maps: Derived[bool] = True
    takes: Derived[tuple[str, ...]] = ()
    """Arguments in addition to its parameters."""
    needs: Derived[tuple[str, ...]] = ()
    """Requirements on the model, as those of a method."""
    responses: Derived[str] = ""
    scores: Derived[tuple[Score, ...]] = ()
    sub_variants: Derived[Mapping[str, str]] = Field({})
    """Patterns of the labels of sub-variants (``registry.labels``)."""
    figures: Derived[Mapping[str, Figure]] = Field({})
    measures: Derived[str] = ""
    """Property of a map that it measures (``registry.properties``)."""
    summary: Derived[str] = ""
    in_domain: Derived[Mapping[str, str]] = Field({})
    """Training parameters of models that are trained on images as it evaluates, and the parameters that they equal."""
    training: Derived[dict[Any, Any]] = Field({})
    """Training parameters of the fine-tuned model, if the metric takes one, that differ from those of the model."""

    def complete(self, name: str, catalog: Catalog) -> None:
        """Check the entry ``metrics.name`` and set the derived fields.

        Raises:
            ConfigError: the entry is not valid.
        """
        raise NotImplementedError

    @property
    def directions(self) -> dict[str, Direction]:
        """Direction of each of its scores."""
        return {score.name: score.direction for score in self.scores}

    @property
    def labels(self) -> dict[str, str]:
        """Label of each of its scores, as registered."""
        return {score.name: score.label for score in self.scores}

    @property
    def units(self) -> dict[str, str]:
        """Unit or statistic of each of its scores, for axes; empty if it has none."""
        return {score.name: score.unit for score in self.scores}

    @property
    def score_summaries(self) -> dict[str, str]:
        """Description of each of its scores."""
        return {score.name: score.summary or self.summary for score in self.scores}

    def _check_name(self, name: str, catalog: Catalog) -> None:
        """Check that an entry of another metric does not have the name of one that kinds of study use by its name."""
        namesake = catalog.metrics.get(name)
        kinds = [kind.name for kind in catalog.study_kinds.values() if name in kind.metrics]
        if kinds or (namesake and not namesake.scores_single_maps):
            owner = f" of {' and '.join(kinds)} studies" if kinds else ""
            raise ConfigError(
                f"metrics.{name}: is the name of a registered metric{owner}, expected another name"
            )


class RegisteredMetric(Metric):
    """A registered metric. Any other key is a parameter of the metric."""

    model_config = WITHOUT_FUNCTION

    metric: str = Field(
        "", description="The registered [metric](metrics.md); by default the name of the entry."
    )
    label: Line = Field("", description=LABEL)
    training: dict[Any, Any] = Field(
        {},
        description="Only for metrics that [fine-tune the model](metrics/perturbation.md#f_fidelity): [training "
        "parameters](models.md#training) that differ from those of the model.",
    )
    sweep: Sweep = Field({}, description=SWEEP)

    def complete(self, name: str, catalog: Catalog) -> None:
        """Check the entry, and set the fields that follow from the record of the metric."""
        place = f"metrics.{name}"
        registered_name = self.metric if "metric" in self.model_fields_set else name
        if registered_name != name:
            self._check_name(name, catalog)
        for key in ("direction", "target"):
            if key in self.parameters:
                expected = "which has its own; expected only with function"
                raise ConfigError(f"{place}.{key}: found with a registered metric, {expected}")
        record = look_up(place, "metric", registered_name, catalog.metrics)
        if not record.scores_single_maps and record.name != name:
            raise ConfigError(
                f"{place}.metric: found {record.name!r}, expected only for an entry of that name"
            )
        keys = [key for key in self.own_keys() if key != "training" or record.finetuning]
        self.parameters = parameters_of(place, record.parameters, self.parameters, keys, check=record.check)
        self.training = self._finetuning(place, record, catalog)
        self.name, self.label, self.metric = name, label_of(name, self.label, record), record.name
        self.function, self.responses, self.takes = record.function, record.responses, record.takes
        self.needs = record.needs
        self.scores, self.sub_variants, self.figures = record.scores, record.sub_variants, record.figures
        self.measures, self.summary = record.measures, record.summary
        self.scores_single_maps, self.in_domain = record.scores_single_maps, record.in_domain

    def _finetuning(self, place: str, record: Any, catalog: Catalog) -> Parameters:
        """Return the training parameters of the fine-tuned model that differ from those of the explained model.

        Raises:
            ConfigError: one does not exist, has no valid value, or follows from a parameter of the metric; or the
                metric does not fine-tune the model.
        """
        if self.training and not record.finetuning:
            valid = ", ".join(name for name, other in catalog.metrics.items() if other.finetuning)
            actual = f"found with {record.name}, which does not fine-tune the model"
            raise ConfigError(f"{place}.training: {actual}; expected only with {valid}")
        for key, parameter in record.finetuning.items():
            if key in self.training:
                raise ConfigError(
                    f"{place}.training.{key}: found a value, expected none: it is {place}.{parameter}"
                )
        parameters_of(f"{place}.training", catalog.training, self.training)
        return {**self.training, **{key: self.parameters[name] for key, name in record.finetuning.items()}}


class CustomMetric(Metric):
    """A custom metric. An entry has either `direction` or `target`. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that scores maps, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)
    label: Line = Field("", description=LABEL)
    direction: OrAbsent[Literal["higher", "lower"]] = Field(None, description="Which scores are better.")
    target: OrAbsent[Number] = Field(None, description="The ideal score; scores closer to it are better.")
    measures: Line = Field(
        OTHER,
        description=f"Property under which heat maps group the metric, such as `{FAITHFULNESS}` or `{COMPLEXITY}`.",
    )
    sweep: Sweep = Field({}, description=SWEEP)

    def complete(self, name: str, catalog: Catalog) -> None:
        """Check the entry, whose only score has its name, against the source code of the function."""
        place = f"metrics.{name}"
        self._check_name(name, catalog)
        if "metric" in self.parameters:
            raise ConfigError(f"{place}: found both function and metric, expected one of them")
        try:
            self.takes = check_call(self.function, self.parameters, positional=POSITIONAL, offered=OFFERED)
        except ValueError as error:
            raise ConfigError(f"{place}.{error}") from None
        description = describe_function(self.function, passed=(*POSITIONAL, GENERATOR, *OFFERED))
        self.parameters = custom_parameters(place, {**description.defaults, **self.parameters})
        self.name, self.label = name, label_of(name, self.label)
        self.summary = description.summary or self.function
        self.scores = (Score(name, self._direction(place), (-inf, inf), self.label),)
        self.figures = {"scores": BOXES}
        self.sources = files_of(place, self.function, self.files)

    def _direction(self, place: str) -> Direction:
        """Return the direction from ``direction`` or ``target``.

        Raises:
            ConfigError: the entry has both, or neither.
        """
        if self.direction and self.target is not None:
            raise ConfigError(f"{place}: found both direction and target, expected one of them")
        if self.direction:
            return Direction(self.direction)
        if self.target is None:
            expected = "expected higher or lower, or target, the ideal value, in its place"
            raise ConfigError(f"{place}.direction: missing, {expected}")
        return Direction.closer_to(float(self.target))


AnyMetric = Annotated[
    Annotated[RegisteredMetric, Tag("registered")] | Annotated[CustomMetric, Tag("custom")],
    Discriminator(entry_kind),
]


def complete_metrics(
    entries: Mapping[str, Metric], requested: Iterable[str], catalog: Catalog
) -> dict[str, Metric]:
    """Complete all entries, and return them with the registered metrics without an entry that studies use.

    The latter are metrics that compare models, and those ``requested`` by name.
    """
    metrics = dict(entries)
    for name, record in catalog.metrics.items():
        if name not in metrics and (not record.scores_single_maps or name in requested):
            metrics[name] = RegisteredMetric()
    for name, metric in metrics.items():
        with errors_of_family("metrics", name, metric.member):
            metric.complete(name, catalog)
    return metrics


def check_finetuning(study: Any, models: Mapping[str, Model], metrics: Mapping[str, Metric]) -> None:
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


def check_new_weights(study: Any, models: Mapping[str, Model], metrics: Mapping[str, Metric]) -> None:
    """Check that no metric of a study randomizes or trains the weights of a designed network.

    Raises:
        ConfigError: a metric does.
    """
    selected = [metric for name, metric in metrics.items() if name in study.metrics]
    for metric in selected:
        changed = {"randomized_model", "finetuned_model"} & {*metric.takes}
        for model in study.all_models if changed else ():
            if models[model].is_designed:
                raise ConfigError(
                    f"studies.{study.name}.metrics: {metric.name} takes a model with other weights, but those of "
                    f"{models[model].architecture} (models.{model}) are set by hand; expected a model that is trained"
                )


def check_in_domain(study: Any, models: Mapping[str, Model], metrics: Mapping[str, Metric]) -> None:
    """Check that a model trained on perturbed images is not evaluated on differently perturbed ones.

    Raises:
        ConfigError: a metric perturbs images as in the training of a model, but with other parameters.
    """
    for metric in (metric for name, metric in metrics.items() if name in study.metrics and metric.in_domain):
        for model in (models[name] for name in study.all_models):
            for training in ({**model.training, **trial} for trial in model.trials or ({},)):
                if not training[next(iter(metric.in_domain))]:
                    continue
                for key, parameter in metric.in_domain.items():
                    if training[key] != metric.parameters[parameter]:
                        raise ConfigError(
                            f"studies.{study.name}.metrics: found {metric.name} with {parameter} "
                            f"{metric.parameters[parameter]}, expected {training[key]}, with which models.{model.name} "
                            f"is trained ({key})"
                        )


def check_scores(study: Any, metrics: Mapping[str, Metric]) -> None:
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
