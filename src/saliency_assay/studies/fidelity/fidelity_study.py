"""A study of kind ``fidelity`` in the configuration: its metrics, and a paper's values to compare with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import NUMBER, Number
from saliency_assay.config.methods import Method
from saliency_assay.config.metrics import Metric
from saliency_assay.config.scored_study import ScoredStudy
from saliency_assay.config.studies import BaselineSubset
from saliency_assay.registry.records import unknown

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

Alpha = Annotated[float, Field(le=1), NUMBER]
Correlation = Annotated[float, Field(ge=-1, le=1), NUMBER]


class FidelityStudy(ScoredStudy):
    """Scores of one model's maps."""

    kind: Literal["fidelity"] = Field(description="The kind of study.")
    printed: dict[str, dict[str, Number]] = Field(
        {},
        description="A paper's means, for comparison: `{METHOD: {SCORE: value}}` "
        "([names of scores](metrics.md#names-of-scores)).",
    )
    printed_alpha: dict[str, Annotated[dict[BaselineSubset, Alpha], Field(min_length=1)]] = Field(
        {},
        description="Printed α with and without baseline methods: "
        "`{SCORE: {with: value, without: value}}` ([example](reliability.md#a-papers-printed-results)).",
    )
    printed_correlation: dict[str, dict[str, dict[str, Correlation]]] = Field(
        {},
        description="Printed Spearman's ρ of two scores: `{SCORE: {SCORE: {METHOD: value}}}` "
        "([example](reliability.md#a-papers-printed-results)).",
    )

    def complete_kind(self, config: "Configuration") -> None:
        """Check model and metrics, and the printed values.

        Raises:
            ConfigError: a model, metric, method or score does not exist, or a metric needs masks that the images lack.
        """
        super().complete_kind(config)
        metrics = [config.metrics[name] for name in self.metrics]
        self.options = ("scatter",) if metric_pairs(metrics) else ()
        self.figure_values = tuple(
            {"metric": metric.name, "figure": figure} for metric in metrics for figure in metric.figures
        )
        self._check_printed(metrics, config.methods)

    def _check_printed(self, metrics: Sequence[Metric], methods: Mapping[str, Method]) -> None:
        """Check that printed values of a paper belong to the study's methods, and each to one of its scores.

        Sub-variants after an entry's name (``aopc_morf aopc L=20``) are not checked; they are known only after scoring.
        """
        place, study_methods = self.place, dict.fromkeys(self.methods)
        pairs = [(score, metric.name) for metric in metrics for score in metric.directions]
        for method, values in self.printed.items():
            look_up(f"{place}.printed", "method", method, study_methods)
            for name in values:
                _check_score(f"{place}.printed.{method}", name, pairs)
        use_model = [methods[name].uses_model for name in self.methods]
        missing = {
            "with": "no baselines" if all(use_model) else "",
            "without": "" if any(use_model) else "only baselines",
        }
        for name, alphas in self.printed_alpha.items():
            _check_score(f"{place}.printed_alpha", name, pairs)
            for kind in alphas:
                if missing[kind]:
                    other = "without" if kind == "with" else "with"
                    raise ConfigError(
                        f"{place}.printed_alpha.{name}.{kind}: the study has {missing[kind]} (methods that do not use "
                        f"the model); valid: {other}"
                    )
        for name, others in self.printed_correlation.items():
            _check_score(f"{place}.printed_correlation", name, pairs)
            for other, values in others.items():
                _check_score(f"{place}.printed_correlation.{name}", other, pairs)
                if other == name:
                    raise ConfigError(
                        f"{place}.printed_correlation.{name}: found {other!r} again, expected another score"
                    )
                for method in values:
                    look_up(f"{place}.printed_correlation.{name}.{other}", "method", method, study_methods)


def metric_pairs(metrics: Iterable[Metric]) -> list[list[str]]:
    """Return all pairs of an infidelity metric and a sensitivity metric, by name."""
    metrics_by_score: dict[str, list[str]] = {"infidelity": [], "sensitivity_max": []}
    for metric in metrics:
        for score in metrics_by_score.keys() & metric.directions.keys():
            metrics_by_score[score].append(metric.name)
    return [
        [infidelity, sensitivity]
        for infidelity in metrics_by_score["infidelity"]
        for sensitivity in metrics_by_score["sensitivity_max"]
    ]


def _check_score(place: str, name: str, pairs: list[tuple[str, str]]) -> None:
    """Check that ``name`` belongs to exactly one of ``pairs``, a score and its entry."""
    matches = [pair for pair in pairs if name in pair or tuple(name.split(" ")[:2]) == pair]
    if not matches:
        valid_names = dict.fromkeys(name for pair in pairs for name in pair)
        raise ConfigError(f"{place}: {unknown('score', name, valid_names)}")
    if len(matches) > 1:
        actual = f"{name!r}, which has {len(matches)} scores"
        raise ConfigError(f"{place}: found {actual}, expected one of them, such as '{' '.join(matches[0])}'")
