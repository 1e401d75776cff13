"""Inputs and parameters of the rules of retrain studies."""

from typing import Any

from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, rebuilding
from saliency_assay.pipeline.paths import expand, flatten
from saliency_assay.runtime.shards import part_names
from saliency_assay.studies.retrain.settings import Retraining

SHARED = "shared"
"""The fill of the masks of f_0, which serve every fill."""


class RetrainInputs(StudyInputs):
    """Inputs of the rules of retrain studies."""

    def retraining(self, study: str) -> Retraining:
        """Return what a study occludes."""
        retraining: Retraining = self.studies.study(study).settings
        return retraining

    # ---- files that rules of all kinds of study read

    def scores(self, study: str) -> list[str]:
        """Return the score tables of all arms of a study."""
        return self._of_arms(study, self.paths.retrain_scores)

    def predictions(self, study: str) -> list[str]:
        """Return the predictions of all models of a study, the retrained ones included."""
        path = f"{self.paths.retrained}/predictions.parquet"
        steps = range(1, self.retraining(study).iterations + 1)
        retrained = flatten(self._of_arms(study, path, iteration=step) for step in steps)
        return [*super().predictions(study), *retrained]

    # ---- rules

    def remask(self, wildcards: Wildcards) -> Files:
        """Return f_i, the images, and the masks behind D_i."""
        return {
            "weights": self._retrained("weights.pt", wildcards, int(wildcards["iteration"])),
            "data": self.gallery_data(wildcards),
            "masks": self._masks_before(wildcards, int(wildcards["iteration"])),
        }

    def retrain(self, wildcards: Wildcards) -> Files:
        """Return the inputs of ``train``, the masks behind D_i, and f_0, whose normalization all f_i share."""
        model = self.studies.first_model(wildcards["study"])
        return {
            **self.initial_weights(model),
            **self.chosen(model),
            "data": self.data(model.data),
            "first": self.paths.weights.format(model=model.name, seed=wildcards["seed"]),
            "masks": self._masks_before(wildcards, int(wildcards["iteration"])),
        }

    def leak(self, wildcards: Wildcards) -> Files:
        """Return the inputs of ``retrain`` but for initial weights: those have not learned masks."""
        inputs = self.retrain(wildcards)
        return {name: inputs[name] for name in ("data", "masks", "chosen") if name in inputs}

    def score_retrain(self, wildcards: Wildcards) -> Files:
        """Return all of an arm: the masks behind D_I, the predictions of each f_i, and the leakage where measured."""
        retraining = self.retraining(wildcards["study"])
        steps = range(retraining.iterations + 1)
        return {
            "data": self.gallery_data(wildcards),
            "masks": self._masks_before(wildcards, retraining.iterations),
            "predictions": [self._retrained("predictions.parquet", wildcards, step) for step in steps],
            "leakage": expand(self.paths.leakage, **wildcards, iteration=retraining.leak_iterations),
        }

    def tabulate_retrain(self, wildcards: Wildcards) -> Files:
        """Return the scores of every arm, and the images."""
        scores = self._of_arms(wildcards["study"], self.paths.retrain_scores)
        return {"scores": scores, "data": self.study_data(wildcards)}

    def plot_arm(self, wildcards: Wildcards) -> Files:
        """Return the masks of all methods with the first seed, each method's in their order."""
        study = self.studies.study(wildcards["study"])
        last, seed = self.retraining(study.name).iterations, str(self.config.seeds[0])
        arms = ({**wildcards, "method": method, "seed": seed} for method in study.methods)
        masks = [path for arm in arms for path in self._masks_before(arm, last)]
        return {"data": self.gallery_data(wildcards), "masks": masks}

    def _masks_before(self, arm: Wildcards, iteration: int) -> list[str]:
        """Return the stores of masks behind D_i: ROAR's are all in the first, IteROAR has one an iteration."""
        steps = range(min(iteration, 1) if arm["protocol"] == "roar" else iteration)
        return [path for step in steps for path in self._masks(arm, step)]

    def _masks(self, arm: Wildcards, iteration: int) -> list[str]:
        """Return the parts of the masks of f_i on D_i, in their order."""
        at = {**arm, "iteration": iteration, "fill": arm["fill"] if iteration else SHARED}
        return expand(self.paths.masks, **{**at, "part": part_names(self.retraining(arm["study"]).shards)})

    def _retrained(self, name: str, arm: Wildcards, iteration: int) -> str:
        """Return a file of f_i; of f_0 that of the study's ordinary model."""
        if iteration:
            return f"{self.paths.retrained}/{name}".format(**{**arm, "iteration": iteration})
        model = self.studies.first_model(arm["study"]).name
        return f"{self.paths.model}/{name}".format(model=model, seed=arm["seed"])

    def _of_arms(self, study: str, path: str, **at: Any) -> list[str]:
        """Return a file of every arm of a retrain study: methods in their order, their seeds together."""
        retraining = self.retraining(study)
        return expand(
            path,
            study=study,
            protocol=retraining.protocols,
            fill=retraining.fills,
            method=self.studies.study(study).methods,
            **at,
            seed=self.config.seeds,
        )


class RetrainParams(StudyParams):
    """Settings of the rules of retrain studies."""

    inputs: RetrainInputs

    def plan(self, study: str, plan: Settings) -> Settings:
        """Return the plan with the trainings and masks of all arms."""
        retraining = self.inputs.retraining(study)
        arms = len(self.studies.study(study).methods) * len(self.config.seeds)
        classifiers, like = 2 * retraining.repeats, plan["like"]
        stores = [[arms, retraining.iterations]] if "roar" in retraining.protocols else []
        if "iteroar" in retraining.protocols:
            later = arms * len(retraining.fills) * (retraining.iterations - 1)
            stores.append([arms + later, 1])
        return {
            **plan,
            "mask_stores": stores,
            "like": {
                **like,
                "retrain": [[f"retrain/{study}", 1], *like["train"]],
                "remask": [[f"remask/{study}", 1 / retraining.shards]],
                "leak": [[f"leak/{study}", 1], *([folder, classifiers] for folder, _ in like["train"])],
            },
            "weights_by": [*plan["weights_by"], "retrain"],
            "models_each": {**plan["models_each"], "retrain": 1, "leak": classifiers},
        }

    # ---- rules

    def remask(self, wildcards: Wildcards) -> Settings:
        """Occlude what the maps of f_i point at.

        Apart from the state, independent of the study: equal masks of two studies have equal noise.
        """
        model = self.studies.first_model(wildcards["study"])
        method = self.config.methods[wildcards["method"]]
        retraining = self.inputs.retraining(wildcards["study"])
        return self.settings(
            "remask",
            [model.function, *self.method_functions(method.name)],
            model=self.explaining_model(model.name, method.name),
            name=model.name,
            data=model.data,
            label=model.label,
            target=model.target,
            batch_size=model.batch_size,
            method=method.method,
            registered=method.registered,
            **self.method(method.name),
            fill=wildcards["fill"],
            percentile=retraining.percentile,
            masks=retraining.iterations if wildcards["protocol"] == "roar" else 1,
            reduction=retraining.reduction_of(method.name),
            transform=retraining.transform,
            keep_maps=retraining.keep_maps,
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self._arm_state('remask', wildcards)}{wildcards['part']}",
        )

    def retrain(self, wildcards: Wildcards) -> Settings:
        """Train f_i on what is left of the images."""
        model = self.studies.first_model(wildcards["study"])
        return self.settings(
            "retrain",
            [model.function],
            model=rebuilding(model),
            name=model.name,
            data=model.data,
            label=model.label,
            training=model.training,
            **self.initial(model),
            fill=wildcards["fill"],
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self._arm_state('retrain', wildcards)}.pt",
        )

    def leak(self, wildcards: Wildcards) -> Settings:
        """Train classifiers on masks alone."""
        model = self.studies.first_model(wildcards["study"])
        return self.settings(
            "leak",
            [model.function],
            model=rebuilding(model),
            label=model.label,
            training=model.training,
            repeats=self.inputs.retraining(wildcards["study"]).repeats,
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=self._arm_state("leak", wildcards),
        )

    def score_retrain(self, wildcards: Wildcards) -> Settings:
        """Score an arm: accuracy, overlap and leakage by iteration."""
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
        """Tabulate a retrain study."""
        retrained = self._retrained(wildcards["study"])
        return self.settings("tabulate_retrain", **retrained, seeds=len(self.config.seeds))

    def plot_retrain(self, wildcards: Wildcards) -> Settings:
        """Plot accuracy and overlap."""
        return self.settings("plot_retrain", **self._retrained(wildcards["study"]))

    def plot_arm(self, wildcards: Wildcards) -> Settings:
        """Plot the masks of all methods, and images under them."""
        data = self.config.sets[self.studies.gallery_set(wildcards["study"])]
        return self.settings(
            "plot_arm",
            **self._retrained(wildcards["study"]),
            methods=self.studies.study(wildcards["study"]).methods,
            images=min(self.config.gallery_images, data.explain),
            order=data.explain_order,
            seed=self.config.seeds[0],
        )

    def tabulate_leakage(self, wildcards: Wildcards) -> Settings:
        """Tabulate leakage."""
        label = self.studies.first_model(wildcards["study"]).label
        return self.settings("tabulate_leakage", label=label)

    def plot_leakage(self, wildcards: Wildcards) -> Settings:
        """Plot leakage."""
        return self.settings("plot_leakage")

    def _retrained(self, study: str) -> Settings:
        """Return what the numbers of a retrain study are shares of."""
        retraining = self.inputs.retraining(study)
        return {
            "label": self.studies.first_model(study).label,
            "percentile": retraining.percentile,
            "iterations": retraining.iterations,
        }

    def _arm_state(self, rule: str, wildcards: Wildcards) -> str:
        state = f"{self.paths.state}/{rule}/{self.paths.arm}/iteration{{iteration}}"
        return state.format(**wildcards)
