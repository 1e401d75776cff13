"""Parameters of the rules of studies of designed networks."""

from saliency_assay.pipeline.inputs import Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams
from saliency_assay.studies.designed.designed_study import AGREEMENT, TRUTH


class DesignedParams(StudyParams):
    """Settings of the rules of studies of designed networks."""

    def tabulate_designed(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        return self.settings(
            "tabulate_designed",
            directions=self.studies.directions(study.name),
            measures=self.studies.measured(study.name),
            truth=next(name for name in study.methods if self.config.methods[name].method == TRUTH),
            agreement=next(name for name in study.metrics if self.config.metrics[name].metric == AGREEMENT),
            baselines=self.studies.baselines(study.name),
            ranks=self.config.reliability.ranks,
        )

    def plot_designed(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_designed",
            study=wildcards["study"],
            labels=self.descriptions.labels(wildcards["study"]),
        )
