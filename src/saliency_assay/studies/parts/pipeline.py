"""Inputs and parameters of the rules of parts studies."""

from typing import cast

from saliency_assay.pipeline.inputs import StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, rebuilding
from saliency_assay.pipeline.paths import expand
from saliency_assay.studies.parts.parts_study import PartsStudy


class PartsInputs(StudyInputs):
    """Inputs of the rules of parts studies."""

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all methods and seeds."""
        study = self.studies.study(wildcards["study"])
        values = {"study": study.name, "seed": self.config.seeds, "method": study.methods}
        return expand(self.paths.parts_scores, **values)

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        return self.study_scores(wildcards)

    def study_weights(self, wildcards: Wildcards) -> str:
        """Return the weights of a study's model."""
        model = self.studies.study(wildcards["study"]).models[0]
        return self.paths.weights.format(model=model, seed=wildcards["seed"])

    def study_maps(self, wildcards: Wildcards) -> list[str]:
        """Return the maps of a method."""
        study = self.studies.study(wildcards["study"])
        values = {"model": study.models[0], "seed": wildcards["seed"], "method": wildcards["method"]}
        return self.all_shards(self.paths.maps, study.data, **values)


class PartsParams(StudyParams):
    """Settings of the rules of parts studies."""

    def evaluate_interventions(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        model = self.config.models[study.models[0]]
        return self.settings(
            "evaluate_interventions",
            [model.function],
            model=rebuilding(model),
            explained=self.explained({"model": model.name, "data": study.data}),
            objects=self.config.sets[study.data].parameters["object_count"],
            **self.read_files(model),
            device=self.config.device,
        )

    def score_parts(self, wildcards: Wildcards) -> Settings:
        study = cast(PartsStudy, self.studies.study(wildcards["study"]))
        model, method = self.config.models[study.models[0]], wildcards["method"]
        return self.settings(
            "score_parts",
            [model.function, *self.method_functions(method)],
            model=self.explaining_model(model.name, method),
            model_name=model.name,
            data=study.data,
            method=self.method(method),
            dilation=study.dilation,
            batch_size=model.batch_size,
            **self.read_files(model, self.config.methods[method]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def tabulate_parts(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        return self.settings("tabulate_parts", study=study.name, seeds=self.config.seeds)

    def plot_parts(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_parts",
            baselines=self.studies.baselines(wildcards["study"]),
            level=self.config.reliability.level,
            labels=self.descriptions.labels(wildcards["study"]),
        )
