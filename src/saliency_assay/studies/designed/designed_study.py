"""A study of kind ``designed`` in the configuration."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import Distinct
from saliency_assay.config.scored_study import MetricsStudy

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

TRUTH, AGREEMENT = "truth", "truth_agreement"
"""Registered method of exact maps, and registered metric of the closeness to them."""
LOCAL = ("infidelity_noisy_baseline",)
"""Registered metrics that multiply maps with the values of pixels, as if they were slopes."""


class DesignedStudy(MetricsStudy):
    """Methods and metrics on designed networks, whose exact importance of pixels is known."""

    kind: Literal["designed"] = Field(description="The kind of study.")
    models: Annotated[Distinct[str], Field(min_length=1)] = Field(
        description="Models with [designed architectures](designed.md), of one data set."
    )

    def complete_kind(self, config: "Configuration") -> None:
        """Check the models and the metrics, and that the study has the exact maps and their agreement.

        Raises:
            ConfigError: a model or metric does not exist or is not suitable, models are of several data sets, or the
                method or metric of the truth is missing or has several entries.
        """
        place = f"{self.place}.models"
        for name in self.models:
            model = look_up(place, "model", name, config.models)
            if not model.is_designed:
                designed = ", ".join(other.name for other in config.models.values() if other.is_designed)
                raise ConfigError(
                    f"{place}: found {name}, whose architecture is {model.architecture}, expected designed networks; "
                    f"valid: {designed or 'models of architectures designed/NAME'}"
                )
            if model.data != config.models[self.models[0]].data:
                sets = f"{config.models[self.models[0]].data} and {model.data}"
                raise ConfigError(f"{place}: found models of the sets {sets}, expected one set")
        self.data = config.models[self.models[0]].data
        self.complete_metrics(config)
        truths = [name for name in self.methods if config.methods[name].method == TRUTH]
        agreements = [name for name in self.metrics if config.metrics[name].metric == AGREEMENT]
        self._check_one("methods", TRUTH, truths)
        self._check_one("metrics", AGREEMENT, agreements)
        for name in self.metrics:
            metric = config.metrics[name]
            if metric.metric in LOCAL or metric.parameters.get("explanation") == "local":
                raise ConfigError(
                    f"{self.place}.metrics: found {name}, a metric of local explanations; expected metrics of "
                    "contributions to the output, as the exact maps are"
                )

    def _check_one(self, section: str, registered: str, names: Sequence[str]) -> None:
        if len(names) != 1:
            raise ConfigError(
                f"{self.place}.{section}: found {len(names)} entries of {registered}, expected one of them"
            )
