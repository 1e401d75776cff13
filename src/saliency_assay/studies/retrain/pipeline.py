"""Inputs and parameters of the rules of retrain studies, with the loop: maps of f_i, masks, training of f_{i+1}."""

from typing import Any, cast

from saliency_assay.config.models import Model
from saliency_assay.pipeline.inputs import StudyInputs, Wildcards
from saliency_assay.pipeline.limits import LONGEST_OF_LEAKAGE, training_minutes
from saliency_assay.pipeline.params import Settings, StudyParams, rebuilding
from saliency_assay.pipeline.paths import expand, flatten
from saliency_assay.runtime.shards import shard_suffixes
from saliency_assay.studies.retrain.parameters import (
    INTERPOLATE,
    INTERPOLATED,
    LEAST_FIRST,
    OF_FIRST_MAPS,
    PROTOCOLS,
)
from saliency_assay.studies.retrain.retrain_study import RetrainStudy

SHARED = "shared"
"""Name of the fill in paths of f_0's masks, which are the same for every fill."""


class RetrainInputs(StudyInputs):
    """Inputs of the rules of retrain studies."""

    def retraining(self, study: str) -> RetrainStudy:
        """Return the entry of a study in the configuration."""
        return cast(RetrainStudy, self.studies.study(study))

    def model(self, wildcards: Wildcards) -> Model:
        return self.studies.first_model(wildcards["study"])

    # ---- inputs of rules

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all arms of a study."""
        return self._arm_files(wildcards["study"], self.paths.retrain_scores)

    def study_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of all models of a study, including the retrained ones."""
        path = f"{self.paths.retrained}/predictions.parquet"
        study = wildcards["study"]
        steps = range(1, self.retraining(study).iterations + 1)
        retrained = flatten(self._arm_files(study, path, iteration=step) for step in steps)
        return [*super().study_predictions(wildcards), *retrained]

    def weights(self, wildcards: Wildcards) -> str:
        """Return the weights of f_i."""
        return self._retrained("weights.pt", wildcards, int(wildcards["iteration"]))

    def first_weights(self, wildcards: Wildcards) -> str:
        """Return the weights of f_0, whose normalization all f_i share."""
        return self._retrained("weights.pt", wildcards, 0)

    def masks_before(self, wildcards: Wildcards) -> list[str]:
        """Return the masks that occlude D_i."""
        return self._masks_up_to(wildcards, int(wildcards["iteration"]))

    def arm_masks(self, wildcards: Wildcards) -> list[str]:
        """Return the masks that occlude D_I, all masks of an arm."""
        return self._masks_up_to(wildcards, self.retraining(wildcards["study"]).iterations)

    def arm_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of each f_i of an arm."""
        steps = range(self.retraining(wildcards["study"]).iterations + 1)
        return [self._retrained("predictions.parquet", wildcards, step) for step in steps]

    def arm_leakage(self, wildcards: Wildcards) -> list[str]:
        """Return the leakage tables of an arm, if leakage is measured."""
        iterations = self.retraining(wildcards["study"]).leak_iterations
        return expand(self.paths.leakage, **wildcards, iteration=iterations)

    def first_masks(self, wildcards: Wildcards) -> list[str]:
        """Return the masks of all methods for the first seed, method by method."""
        methods, seed = self.studies.study(wildcards["study"]).methods, str(self.config.seeds[0])
        return flatten(self.arm_masks({**wildcards, "method": method, "seed": seed}) for method in methods)

    def _masks_up_to(self, arm: Wildcards, iteration: int) -> list[str]:
        """Return the stores of masks that occlude D_i: IteROAR has one per iteration, ROAR one for all."""
        steps = range(min(iteration, 1) if arm["protocol"] in OF_FIRST_MAPS else iteration)
        return [path for step in steps for path in self._masks(arm, step)]

    def _masks(self, arm: Wildcards, iteration: int) -> list[str]:
        """Return the shards of the masks of f_i on D_i, in order."""
        values = {**arm, "iteration": iteration, "fill": arm["fill"] if iteration else SHARED}
        return expand(
            self.paths.masks, **{**values, "shard": shard_suffixes(self.retraining(arm["study"]).shards)}
        )

    def _retrained(self, name: str, arm: Wildcards, iteration: int) -> str:
        """Return a file of f_i; for f_0 that of the study's original model."""
        if iteration:
            return f"{self.paths.retrained}/{name}".format(**{**arm, "iteration": iteration})
        model = self.studies.first_model(arm["study"]).name
        return f"{self.paths.model}/{name}".format(model=model, seed=arm["seed"])

    def _arm_files(self, study: str, path: str, **values: Any) -> list[str]:
        """Return the file of every arm of a retrain study, ordered by protocol, fill, method and seed."""
        retraining = self.retraining(study)
        return expand(
            path,
            study=study,
            protocol=retraining.protocols,
            fill=retraining.fills,
            method=self.studies.study(study).methods,
            **values,
            seed=self.config.seeds,
        )


class RetrainParams(StudyParams):
    """Settings of the rules of retrain studies."""

    inputs: RetrainInputs

    def workload(self, study: str, workload: Settings) -> Settings:
        """Add the trainings and masks of all arms to the workload."""
        retraining = self.inputs.retraining(study)
        arms = len(self.studies.study(study).methods) * len(self.config.seeds)
        classifiers, timed_as = 2 * retraining.repeats, workload["timed_as"]
        of_first_maps = sum(protocol in OF_FIRST_MAPS for protocol in retraining.protocols)
        stores = [[arms * of_first_maps, retraining.iterations]] if of_first_maps else []
        if "iteroar" in retraining.protocols:
            later = arms * len(retraining.fills) * (retraining.iterations - 1)
            stores.append([arms + later, 1])
        return {
            **workload,
            "mask_stores": stores,
            "timed_as": {
                **timed_as,
                "retrain": [[f"retrain/{study}", 1], *timed_as["train"]],
                "remask": [[f"remask/{study}", 1 / retraining.shards]],
                "measure_mask_leakage": [
                    [f"measure_mask_leakage/{study}", 1],
                    *([folder, classifiers] for folder, _ in timed_as["train"]),
                ],
            },
            "weights_by": [*workload["weights_by"], "retrain"],
            "models_each": {**workload["models_each"], "retrain": 1, "measure_mask_leakage": classifiers},
        }

    def derived_models(self, study: str) -> dict[str, tuple[str, int]]:
        """Return the classifiers of masks by which leakage is measured."""
        if not self.inputs.retraining(study).leak_iterations:
            return {}
        return {f"studies.{study}.leakage": (self.studies.first_model(study).name, 1)}

    # ---- rules

    def remask(self, wildcards: Wildcards) -> Settings:
        # Apart from the state, the settings do not depend on the study, so that equal masks of two studies have equal
        # noise.
        model = self.studies.first_model(wildcards["study"])
        method = self.config.methods[wildcards["method"]]
        retraining = self.inputs.retraining(wildcards["study"])
        return self.settings(
            "remask",
            [model.function, *self.method_functions(method.name), *_fill_functions(wildcards)],
            model=self.explaining_model(model.name, method.name),
            name=model.name,
            data=model.data,
            label=model.trained_on,
            target=model.target,
            batch_size=model.batch_size,
            method=method.method,
            registered=method.registered,
            **self.method(method.name),
            **self.read_files(model, method),
            fill=wildcards["fill"],
            percentile=retraining.percentile,
            masks=retraining.iterations if wildcards["protocol"] in OF_FIRST_MAPS else 1,
            least_first=wildcards["protocol"] == LEAST_FIRST,
            reduction=retraining.reduction_of(method.name),
            transform=retraining.transform,
            keep_maps=retraining.keep_maps,
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self._arm_state('remask', wildcards)}{wildcards['shard']}",
        )

    def retrain(self, wildcards: Wildcards) -> Settings:
        model = self.studies.first_model(wildcards["study"])
        return self.settings(
            "retrain",
            [model.function, *_fill_functions(wildcards)],
            model=rebuilding(model),
            name=model.name,
            data=model.data,
            label=model.trained_on,
            training=model.training,
            **self.initial_weights(model),
            fill=wildcards["fill"],
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self._arm_state('retrain', wildcards)}.pt",
        )

    def measure_mask_leakage(self, wildcards: Wildcards) -> Settings:
        model = self.studies.first_model(wildcards["study"])
        return self.settings(
            "measure_mask_leakage",
            [model.function],
            model=rebuilding(model),
            **self.read_files(model),
            label=model.trained_on,
            training=model.training,
            repeats=self.inputs.retraining(wildcards["study"]).repeats,
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=self._arm_state("measure_mask_leakage", wildcards),
        )

    def leakage_minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the time limit of ``measure_mask_leakage`` in minutes."""
        model = self.studies.first_model(wildcards["study"])
        classifiers = 2 * self.inputs.retraining(wildcards["study"]).repeats
        epochs, longest = model.training["epochs"], LONGEST_OF_LEAKAGE
        return attempt * training_minutes(self.config, model, epochs, trainings=classifiers, longest=longest)

    def score_retrain(self, wildcards: Wildcards) -> Settings:
        model = self.studies.first_model(wildcards["study"])
        retraining = self.inputs.retraining(wildcards["study"])
        return self.settings(
            "score_retrain",
            model=model.name,
            data=model.data,
            iterations=retraining.iterations,
            leak_iterations=retraining.leak_iterations,
        )

    def tabulate_retrain(self, wildcards: Wildcards) -> Settings:
        retrained = self._retrained(wildcards["study"])
        return self.settings("tabulate_retrain", **retrained, seeds=len(self.config.seeds))

    def tabulate_rank_agreement(self, wildcards: Wildcards) -> Settings:
        baselines = self.studies.baselines(wildcards["study"])
        methods = self.studies.study(wildcards["study"]).methods
        return self.settings(
            "tabulate_rank_agreement",
            methods=[method for method in methods if method not in baselines],
        )

    def plot_retrain(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_retrain",
            **self._retrained(wildcards["study"]),
            labels=self.descriptions.labels(wildcards["study"]),
        )

    def plot_masks(self, wildcards: Wildcards) -> Settings:
        data = self.config.sets[self.studies.gallery_set(wildcards["study"])]
        return self.settings(
            "plot_masks",
            _fill_functions(wildcards),
            labels=self.descriptions.labels(wildcards["study"]),
            **self._retrained(wildcards["study"]),
            methods=self.studies.study(wildcards["study"]).methods,
            images=min(self.config.report.gallery_images, data.max_explained_images),
            order=data.explanation_order,
            seed=self.config.seeds[0],
        )

    def matrices_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the title of a figure of mask overlaps in the report."""
        return {"result": f"Overlap of each pair of masks ({_arm_label(wildcards)})"}

    def images_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the title of a page of occluded images in the report."""
        return {"result": f"Images over the iterations ({_arm_label(wildcards)})"}

    def tabulate_leakage(self, wildcards: Wildcards) -> Settings:
        label = self.studies.first_model(wildcards["study"]).trained_on
        return self.settings("tabulate_leakage", label=label)

    def plot_leakage(self, wildcards: Wildcards) -> Settings:
        return self.settings("plot_leakage", labels=self.descriptions.labels(wildcards["study"]))

    def _retrained(self, study: str) -> Settings:
        """Return the settings with which pixel counts of a retrain study are converted to shares."""
        retraining = self.inputs.retraining(study)
        return {
            "label": self.studies.first_model(study).trained_on,
            "percentile": retraining.percentile,
            "iterations": retraining.iterations,
        }

    def _arm_state(self, rule: str, wildcards: Wildcards) -> str:
        state = f"{self.paths.state}/{rule}/{self.paths.arm}/iteration{{iteration}}"
        return state.format(**wildcards)


def _fill_functions(wildcards: Wildcards) -> list[str]:
    """Return the functions that compose the images of an arm and that not all fills need."""
    return [INTERPOLATE] if wildcards["fill"] == INTERPOLATED else []


def _arm_label(wildcards: Wildcards) -> str:
    return f"{PROTOCOLS[wildcards['protocol']]}, {wildcards['fill']} fill"
