"""Inputs and parameters of the rules of fidelity studies."""

from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, select
from saliency_assay.studies.fidelity.fidelity_study import metric_pairs

NO_WILDCARDS = str.maketrans("{}", "()")
"""For texts that Snakemake would search for wildcards."""


class FidelityInputs(StudyInputs):
    """Inputs of the rules of fidelity studies."""

    def plot_metric(self, wildcards: Wildcards) -> Files:
        """Return the data set, the scores of a metric, and curves and model responses if the figure needs them."""
        metric, study = self.config.metrics[wildcards["metric"]], self.studies.study(wildcards["study"])
        reads = metric.figures[wildcards["figure"]].reads
        files: Files = {
            "data": self.data(study.data),
            "scores": self.of_study(self.paths.scores, study.name, [metric.name]),
        }
        if "curves" in reads:
            files["curves"] = self.of_study(self.paths.curves, study.name, [metric.name])
        if "responses" in reads:
            files["responses"] = self.all_shards(
                self.paths.responses,
                study.data,
                metric=metric.name,
                model=study.models[0],
                seed=self.config.seeds,
            )
        return files


class FidelityParams(StudyParams):
    """Settings of the rules of fidelity studies."""

    def tabulate_scores(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        return self.settings(
            "tabulate_scores", study=study.name, metrics=study.metrics, printed=study.printed
        )

    def plot_scores(self, wildcards: Wildcards) -> Settings:
        return self.settings("plot_scores", labels=self.descriptions.labels(wildcards["study"]))

    def plot_metric(self, wildcards: Wildcards) -> Settings:
        metric = self.config.metrics[wildcards["metric"]]
        function = metric.figures[wildcards["figure"]].function
        labels = self.descriptions.labels(wildcards["study"])
        return self.settings(
            "plot_metric",
            [function],
            function=function,
            parameters=metric.parameters,
            labels=labels["entry_scores"][metric.name],
            units=metric.units,
            names={
                **select(labels, "methods", "data", "places"),
                "metrics": {metric.name: metric.label},
                "sub_variants": {name: labels["sub_variants"].get(name, {}) for name in (metric.name, "")},
            },
            directions=metric.directions,
            methods=self.studies.study(wildcards["study"]).methods,
            seeds=self.config.seeds,
        )

    plot_curves = plot_areas = plot_metric

    def figure_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the title of a metric's figure in the report and, in a second line, the definition of the metric."""
        metric = self.config.metrics[wildcards["metric"]]
        summary = metric.summary.translate(NO_WILDCARDS)
        return {"result": f"{metric.label}: {wildcards['figure']}\n{metric.label}: {summary}."}

    def plot_scatter(self, wildcards: Wildcards) -> Settings:
        pairs = metric_pairs(self.studies.metrics(wildcards["study"]))
        return self.settings("plot_scatter", pairs=pairs, labels=self.descriptions.labels(wildcards["study"]))
