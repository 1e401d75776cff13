"""Inputs and parameters of the rules of validity studies."""

from itertools import combinations
from typing import cast

from saliency_assay.config.configuration import Configuration
from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, read_by
from saliency_assay.pipeline.paths import expand
from saliency_assay.studies.validity.validity_study import ValidityStudy


def degraded_methods(config: Configuration, study: ValidityStudy) -> list[str]:
    """Return the methods of a study whose maps are degraded."""
    if not study.degradations:
        return []
    return list(study.degraded_methods or (name for name in study.methods if config.methods[name].uses_model))


class ValidityInputs(StudyInputs):
    """Inputs of the rules of validity studies."""

    def score_validity(self, wildcards: Wildcards) -> Files:
        """Return the model and the images of a study, and the fine-tuned model if the metric takes one."""
        study = cast(ValidityStudy, self.studies.study(wildcards["study"]))
        of_model = {"metric": wildcards["metric"], "model": study.models[0], "seed": wildcards["seed"]}
        weights = self.paths.weights.format(**of_model)
        return {"weights": weights, "data": self.study_data(wildcards), "finetuned": self.finetuned(of_model)}

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of the maps of all methods."""
        return self.study_scores(wildcards)

    def method_files(self, wildcards: Wildcards) -> list[str]:
        return [*self.study_scores(wildcards), *self.rescored(wildcards)]

    def rescored(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of degraded maps, changed models and changed images."""
        study = cast(ValidityStudy, self.studies.study(wildcards["study"]))
        # Without changes of models and images, only degraded maps have further scores.
        methods = study.methods if study.iterations else degraded_methods(self.config, study)
        return expand(
            self.paths.validity_scores,
            study=study.name,
            metric=study.metrics,
            method=methods,
            seed=self.config.seeds,
        )


class ValidityParams(StudyParams):
    """Settings of the rules of validity studies."""

    def score_validity(self, wildcards: Wildcards) -> Settings:
        study, method = cast(ValidityStudy, self.studies.study(wildcards["study"])), wildcards["method"]
        metric, model = self.config.metrics[wildcards["metric"]], self.config.models[study.models[0]]
        degraded = method in degraded_methods(self.config, study)
        explained = self.explained({"model": model.name, "data": study.data})
        functions = [model.function, metric.function, *filter(None, [metric.responses])]
        return self.settings(
            "score_validity",
            [*functions, *self.method_functions(method)],
            model=self.explaining_model(model.name, method),
            model_name=model.name,
            data=study.data,
            explained={**explained, "limit": min(study.images, explained["limit"])},
            method=self.method(method),
            function=metric.function,
            parameters=read_by(metric.function, metric.parameters) if metric.metric else metric.parameters,
            responses=metric.responses,
            response_parameters=read_by(metric.responses, metric.parameters) if metric.responses else {},
            takes=metric.takes,
            scores=list(metric.directions),
            noise_group=self.metric_noise_group(metric),
            tests={
                "degradations": study.degradations if degraded else [],
                "levels": study.levels,
                "iterations": study.iterations,
                "perturbations": study.perturbations,
                "model_noise": study.model_noise,
                "input_noise": study.input_noise,
            },
            **self.read_files(model, metric, self.config.methods[method]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def tabulate_validity(self, wildcards: Wildcards) -> Settings:
        study = cast(ValidityStudy, self.studies.study(wildcards["study"]))
        return self.settings(
            "tabulate_validity",
            directions=self.studies.directions(study.name),
            measures=self.studies.measured(study.name),
            data=study.data,
            baselines=self.studies.baselines(study.name),
            perturbations=study.perturbations,
            pairs=self._pairs(study.name),
        )

    def _pairs(self, study: str) -> list[Settings]:
        """Return the pairs of entries of one metric that differ in the value of a single parameter."""
        pairs = []
        for first, second in combinations(self.studies.metrics(study), 2):
            if first.function == second.function:
                names = [
                    name for name, value in first.parameters.items() if second.parameters.get(name) != value
                ]
                if len(names) == 1:
                    pairs.append({"first": first.name, "second": second.name, "setting": names[0]})
        return pairs

    def plot_validity(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_validity",
            study=wildcards["study"],
            level=self.config.reliability.level,
            labels=self.descriptions.labels(wildcards["study"]),
        )
