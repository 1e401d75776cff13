"""Inputs and parameters of the rules of grid studies."""

from typing import cast

from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, rebuilding
from saliency_assay.pipeline.paths import expand
from saliency_assay.studies.grid.grid_study import GridStudy


class GridInputs(StudyInputs):
    """Inputs of the rules of grid studies."""

    def entry(self, study: str) -> GridStudy:
        """Return the entry of a study in the configuration."""
        return cast(GridStudy, self.studies.study(study))

    def compose_grid(self, wildcards: Wildcards) -> Files:
        """Return the images of a study, and the weights of its model for all seeds."""
        model = self.entry(wildcards["study"]).models[0]
        weights = expand(self.paths.weights, model=model, seed=self.config.seeds)
        return {"data": self.study_data(wildcards), "weights": weights}

    def score_grid(self, wildcards: Wildcards) -> Files:
        """Return the grids of a study, the weights of its model, and the images if the method takes a background."""
        study, method = self.entry(wildcards["study"]), self.config.methods[wildcards["method"]]
        weights = self.paths.weights.format(model=study.models[0], seed=wildcards["seed"])
        background: Files = {"background": self.study_data(wildcards)} if method.background else {}
        return {"grids": self.rated_data(wildcards), "weights": weights, **background}

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        study = self.entry(wildcards["study"])
        return expand(
            self.paths.grid_scores,
            study=study.name,
            setting=study.settings,
            method=study.methods,
            seed=self.config.seeds,
        )

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of all settings."""
        return self.study_scores(wildcards)

    def rated_data(self, wildcards: Wildcards) -> str:
        """Return the images of the grids, grid by grid."""
        return self.paths.grids.format(**wildcards)

    def aggregates(self, wildcards: Wildcards) -> list[str]:
        """Return the aggregated maps of all methods in a setting, with the first seed."""
        methods = self.entry(wildcards["study"]).methods
        seed = self.config.seeds[0]
        return expand(self.paths.grid_maps, **{**wildcards, "method": methods, "seed": seed})


class GridParams(StudyParams):
    """Settings of the rules of grid studies."""

    inputs: GridInputs

    def model_uses(self, study: str) -> dict[str, str]:
        """Return the checks that the network takes grids, for each setting that gives it more than one image."""
        checked = {"gridpg": "check_gridpg", "dipart": "check_dipart"}
        return {
            f"studies.{study}.settings.{setting}": f"saliency_assay.models.grid_settings:{checked[setting]}"
            for setting in self.inputs.entry(study).settings
            if setting in checked
        }

    def compose_grid(self, wildcards: Wildcards) -> Settings:
        study = self.inputs.entry(wildcards["study"])
        model = self.config.models[study.models[0]]
        explained = self.explained({"model": model.name, "data": study.data})
        names = ("label", "target", "classes", "where", "batch_size")
        return self.settings(
            "compose_grid",
            [model.function],
            model=rebuilding(model),
            **self.read_files(model),
            **{name: explained[name] for name in names if name in explained},
            cells=study.cells,
            grids=study.grids,
            confidence=study.confidence,
            seed=study.seed,
            device=self.config.device,
        )

    def score_grid(self, wildcards: Wildcards) -> Settings:
        study, method = self.inputs.entry(wildcards["study"]), self.config.methods[wildcards["method"]]
        model = self.config.models[study.models[0]]
        return self.settings(
            "score_grid",
            [model.function, *self.method_functions(method.name)],
            # DiPart splits the output of the CAM layer.
            model={**self.explaining_model(model.name, method.name), "cam_layer": model.cam_layer},
            model_name=model.name,
            data=study.data,
            method=self.method(method.name),
            **self.read_files(model, method),
            cells=study.cells,
            batch_size=model.batch_size,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def tabulate_grid(self, wildcards: Wildcards) -> Settings:
        study = self.inputs.entry(wildcards["study"])
        return self.settings(
            "tabulate_grid",
            layers=self._layers(study),
            baselines=self.studies.baselines(study.name),
            ranks=self.config.reliability.ranks,
        )

    def _layers(self, study: GridStudy) -> dict[str, str]:
        """Return the layer whose feature maps a method combines, for each method that takes one."""
        cam_layer = self.config.models[study.models[0]].cam_layer
        methods = [self.config.methods[name] for name in study.methods]
        return {
            method.name: str(source.parameters.get("layer") or cam_layer)
            for method in methods
            if "cam_layer" in (source := method.smoothed or method).needs
        }

    def plot_grid(self, wildcards: Wildcards) -> Settings:
        study = self.inputs.entry(wildcards["study"])
        return self.settings(
            "plot_grid", cells=study.cells, labels=self.descriptions.labels(wildcards["study"])
        )

    def figure_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the title of the figure of aggregated maps in the report."""
        setting = next(
            score
            for score in self.studies.kind(wildcards["study"]).scores
            if score.name == wildcards["setting"]
        )
        return {"result": f"Aggregated maps: {setting.label}"}

    def plot_aggatt(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_aggatt",
            methods=self.studies.study(wildcards["study"]).methods,
            cells=self.inputs.entry(wildcards["study"]).cells,
            labels=self.descriptions.labels(wildcards["study"], only=("methods", "scores")),
        )
