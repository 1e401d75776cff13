"""Keys and checks that all kinds of study share whose entries select metrics of single maps."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import Distinct
from saliency_assay.config.studies import Study
from saliency_assay.config.sweeps import with_members

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration


class MetricsStudy(Study):
    """Keys of studies whose metrics can be selected."""

    metrics: Annotated[Distinct[str], Field(min_length=1)] = Field(
        (),
        description="Entries or registered metrics; by default all entries that score single maps.",
    )

    def complete_metrics(self, config: "Configuration") -> None:
        """Check the metrics on the data and the models of the study, which are set before.

        Raises:
            ConfigError: a metric does not exist, or needs masks that the images lack.
        """
        place = f"{self.place}.metrics"
        configured = [name for name, metric in config.metrics.items() if metric.scores_single_maps]
        registered = [name for name, record in config.catalog.metrics.items() if record.scores_single_maps]
        valid = dict.fromkeys([*configured, *registered])
        self.metrics = self.metrics or tuple(name for name in config.listed_metrics if name in configured)
        self.metrics = with_members(place, self.metrics, config.metrics)
        for name in self.metrics:
            look_up(place, "metric of single maps", name, valid)
        if not self.metrics:
            actual = "missing, and no entry under metrics scores single maps"
            raise ConfigError(f"{place}: {actual}; valid: {', '.join(sorted(valid))}")
        for name in self.metrics:
            if "mask" in config.metrics[name].takes and self.data not in config.masked_sets:
                sets = ", ".join([*config.masked_sets, "image files with the key masks (docs/data.md)"])
                raise ConfigError(
                    f"{place}: {name} needs the object's mask, which the set {self.data} (models.{self.models[0]}) "
                    f"does not have; valid: {sets}"
                )


class ScoredStudy(MetricsStudy):
    """Keys of studies that score one model's maps."""

    model: str = Field(description="The explained model, on its own data set.")

    def complete_kind(self, config: "Configuration") -> None:
        """Check the model and the metrics.

        Raises:
            ConfigError: a model or metric does not exist, or a metric needs masks that the images lack.
        """
        model = look_up(f"{self.place}.model", "model", self.model, config.models)
        self.data, self.models = model.data, (model.name,)
        self.complete_metrics(config)
