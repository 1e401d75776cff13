"""Inputs and parameters of the rules of BAM studies."""

from collections.abc import Iterable
from itertools import product
from typing import cast

from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, omit, rebuilding, select
from saliency_assay.pipeline.paths import expand, flatten
from saliency_assay.studies.bam.bam_study import BamStudy, IndependenceSettings, delta_set
from saliency_assay.studies.bam.paper_setting import compare_setting


class BamInputs(StudyInputs):
    """Inputs of the rules of BAM studies."""

    # ---- compared models and sets

    def entry(self, study: str) -> BamStudy:
        """Return the entry of a study in the configuration."""
        return cast(BamStudy, self.studies.study(study))

    def variants(self, study: str) -> list[str]:
        """Return the variants of X_os on which MCS and IDR are also measured."""
        entry = self.entry(study)
        return [f"{entry.data}_os_{variant}" for variant in entry.robustness]

    def series(self, study: str) -> tuple[str, ...]:
        """Return the models of the commonality series, in order of increasing k."""
        return self.entry(study).series

    def series_sets(self, study: str) -> list[str]:
        """Return the set of each model of the series."""
        return [self.config.models[model].data for model in self.series(study)]

    def independence(self, study: str) -> IndependenceSettings:
        """Return the settings of input independence, of a study that measures it."""
        independence = self.entry(study).independence
        assert independence, study
        return independence

    # ---- inputs of rules

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        study, paths = wildcards["study"], [self.paths.bam_scores]
        paths += [self.paths.series_scores] if self.series(study) else []
        paths += [self.paths.delta_scores] if self.entry(study).independence else []
        return flatten(self._method_files(path, study) for path in paths)

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of MCS, IDR and IIR, in the order of the study's methods."""
        study = self.studies.study(wildcards["study"])
        paths = [self.paths.bam_scores] + [self.paths.delta_scores] * bool(
            self.entry(study.name).independence
        )
        return [
            path
            for scores in paths
            for path in expand(scores, study=study.name, method=study.methods, seed=self.config.seeds)
        ]

    def rated_data(self, wildcards: Wildcards) -> str:
        return self.data_os(wildcards)

    def bam_scores(self, wildcards: Wildcards) -> list[str]:
        return self._method_files(self.paths.bam_scores, wildcards["study"])

    def series_scores(self, wildcards: Wildcards) -> list[str]:
        return self._method_files(self.paths.series_scores, wildcards["study"])

    def delta_scores(self, wildcards: Wildcards) -> list[str]:
        return self._method_files(self.paths.delta_scores, wildcards["study"])

    def concept_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the TCAV scores of all models of the study and its series."""
        study = self.studies.study(wildcards["study"])
        models = [*study.models, *self.series(study.name)]
        return expand(self.paths.concept_scores, study=study.name, seed=self.config.seeds, model=models)

    def concepts(self, wildcards: Wildcards) -> str | list[str]:
        """Return the table of TCAV, if the study measures it."""
        measured = "concepts" in self.studies.study(wildcards["study"]).options
        return f"{self.paths.tables}/concepts.csv".format(**wildcards) if measured else []

    def check_claims(self, wildcards: Wildcards) -> Files:
        """Return the tables with which the paper's claims are checked."""
        study, folder = wildcards["study"], self.paths.tables.format(**wildcards)
        tables = self.studies.kind(study).tables(self.studies.study(study).options)
        return {name: f"{folder}/{name}.csv" for name in tables if name not in ("ranking", "claims")}

    # ---- f_o and f_s on X_os, its variants and X_0s

    def data_os(self, wildcards: Wildcards) -> str:
        return self.data(f"{self.entry(wildcards['study']).data}_os")

    def data_0s(self, wildcards: Wildcards) -> str:
        return self.data(f"{self.entry(wildcards['study']).data}_0s")

    def variant_data(self, wildcards: Wildcards) -> list[str]:
        return expand(self.paths.data, data=self.variants(wildcards["study"]))

    def maps_o_os(self, wildcards: Wildcards) -> list[str]:
        entry = self.entry(wildcards["study"])
        return self._maps(wildcards, entry.object_model, f"{entry.data}_os")

    def maps_s_os(self, wildcards: Wildcards) -> list[str]:
        entry = self.entry(wildcards["study"])
        return self._maps(wildcards, entry.scene_model, f"{entry.data}_os")

    def maps_s_0s(self, wildcards: Wildcards) -> list[str]:
        entry = self.entry(wildcards["study"])
        return self._maps(wildcards, entry.scene_model, f"{entry.data}_0s")

    def variant_maps_o(self, wildcards: Wildcards) -> list[str]:
        study = wildcards["study"]
        return self._maps(wildcards, self.entry(study).object_model, *self.variants(study))

    def variant_maps_s(self, wildcards: Wildcards) -> list[str]:
        study = wildcards["study"]
        return self._maps(wildcards, self.entry(study).scene_model, *self.variants(study))

    def predictions_o(self, wildcards: Wildcards) -> str:
        model = self.entry(wildcards["study"]).object_model
        return self.paths.predictions.format(model=model, seed=wildcards["seed"])

    def predictions_s(self, wildcards: Wildcards) -> str:
        model = self.entry(wildcards["study"]).scene_model
        return self.paths.predictions.format(model=model, seed=wildcards["seed"])

    def _maps(self, wildcards: Wildcards, model: str, *sets: str) -> list[str]:
        wildcard_values = {"model": model, "seed": wildcards["seed"], "method": wildcards["method"]}
        return flatten(self.all_shards(self.paths.maps, data, **wildcard_values) for data in sets)

    # ---- the series

    def series_data(self, wildcards: Wildcards) -> list[str]:
        return expand(self.paths.data, data=self.series_sets(wildcards["study"]))

    def last_series_data(self, wildcards: Wildcards) -> str:
        """Return the set with the object in all scene classes."""
        return self.series_data(wildcards)[-1]

    def series_maps(self, wildcards: Wildcards) -> list[str]:
        return self._series_maps(wildcards["study"], wildcards["seed"], [wildcards["method"]])

    def first_series_maps(self, wildcards: Wildcards) -> list[str]:
        """Return the maps of every method for the first seed."""
        study = self.studies.study(wildcards["study"])
        return self._series_maps(study.name, self.config.seeds[0], study.methods)

    def _series_maps(self, study: str, seed: int | str, methods: Iterable[str]) -> list[str]:
        """Return each method's maps of each model of the series on its set."""
        models = zip(self.series(study), self.series_sets(study), strict=True)
        return flatten(
            self.all_shards(self.paths.maps, data, model=model, seed=seed, method=method)
            for method, (model, data) in product(methods, models)
        )

    def series_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of each model for the seed of the job, or for all seeds if the job has none."""
        seeds = wildcards.get("seed", self.config.seeds)
        return expand(self.paths.predictions, model=self.series(wildcards["study"]), seed=seeds)

    def first_series_predictions(self, wildcards: Wildcards) -> list[str]:
        return self.series_predictions({**wildcards, "seed": str(self.config.seeds[0])})

    # ---- images with and without an invariant patch

    def deltas(self, wildcards: Wildcards) -> list[str]:
        """Return the sets with the patches of every seed."""
        return [self.data(delta_set(wildcards["study"], seed)) for seed in self.config.seeds]

    def first_delta(self, wildcards: Wildcards) -> str:
        return self.deltas(wildcards)[0]

    def delta_maps(self, wildcards: Wildcards) -> list[str]:
        return self._delta_maps(wildcards["study"], wildcards["seed"], [wildcards["method"]])

    def first_delta_maps(self, wildcards: Wildcards) -> list[str]:
        """Return the maps of every method for the first seed."""
        study = self.studies.study(wildcards["study"])
        return self._delta_maps(study.name, self.config.seeds[0], study.methods)

    def _delta_maps(self, study: str, seed: int | str, methods: Iterable[str]) -> list[str]:
        wildcard_values = {"model": self.independence(study).model, "seed": seed, "method": methods}
        return self.all_shards(self.paths.maps, delta_set(study, seed), **wildcard_values)

    def independence_weights(self, wildcards: Wildcards) -> str:
        model = self.independence(wildcards["study"]).model
        return self.paths.weights.format(model=model, seed=wildcards["seed"])

    def independence_predictions(self, wildcards: Wildcards) -> str:
        model = self.independence(wildcards["study"]).model
        return self.paths.predictions.format(model=model, seed=wildcards["seed"])

    def _method_files(self, path: str, study: str) -> list[str]:
        """Return the file of each seed and method of a study."""
        methods = self.studies.study(study).methods
        return expand(path, study=study, seed=self.config.seeds, method=methods)


class BamParams(StudyParams):
    """Settings of the rules of BAM studies."""

    inputs: BamInputs

    def model_uses(self, study: str) -> dict[str, str]:
        """Return the check of the layers whose concepts are tested."""
        tests_concepts = "concepts" in self.studies.study(study).options
        key = f"studies.{study}.concepts"
        return {key: "saliency_assay.studies.bam.tcav:layer_outputs"} if tests_concepts else {}

    def score_bam(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "score_bam",
            reduction=self.catalog.metrics["mcs"].reduction,
            study=wildcards["study"],
            **self._compared(wildcards["study"]),
            variants=self.inputs.variants(wildcards["study"]),
            method=wildcards["method"],
            seed=int(wildcards["seed"]),
        )

    def tabulate_bam(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "tabulate_bam",
            **self._compared(wildcards["study"]),
            variants=self.inputs.variants(wildcards["study"]),
            metrics=self._metric_parameters("mcs", "idr"),
        )

    def score_series(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "score_series",
            reduction=self.catalog.metrics["mcs"].reduction,
            study=wildcards["study"],
            method=wildcards["method"],
            seed=int(wildcards["seed"]),
            **self._series(wildcards["study"]),
        )

    def optimize_patch(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        independence = self.inputs.independence(wildcards["study"])
        model, parameters = self.config.models[independence.model], self.config.metrics["iir"].parameters
        return self.settings(
            "optimize_patch",
            [model.function],
            model=rebuilding(model),
            **self.read_files(model),
            common_object=self.config.data[study.data].common_object,
            images=independence.images,
            parameters=omit(parameters, "threshold", "samples", "sample_size"),  # these only affect scores
            batch_size=model.batch_size,
            device=self.config.device,
        )

    def score_independence(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "score_independence",
            reduction=self.catalog.metrics["iir"].reduction,
            study=wildcards["study"],
            data=self.studies.study(wildcards["study"]).data,
            model=self.inputs.independence(wildcards["study"]).model,
            method=wildcards["method"],
            threshold=self.config.metrics["iir"].parameters["threshold"],
            seed=int(wildcards["seed"]),
        )

    def score_concepts(self, wildcards: Wildcards) -> Settings:
        study, model = self.studies.study(wildcards["study"]), self.config.models[wildcards["model"]]
        data = self.config.data[study.data]
        return self.settings(
            "score_concepts",
            [model.function],
            model={**rebuilding(model), "concept_layers": model.concept_layers},
            **self.read_files(model),
            name=model.name,
            study=study.name,
            data=model.data,
            label=model.trained_on,
            concept=data.common_object,
            # Sets of the series have no object label; images of their first scene class contain the object for every k.
            where={"label_scene": 0} if data.is_common(model.data) else {},
            limit=data.max_explained_images,
            parameters=omit(self.config.metrics["tcav"].parameters, "significance"),
            batch_size=model.batch_size,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def plot_bam(self, wildcards: Wildcards) -> Settings:
        metrics = self._metric_parameters("mcs", "idr")
        labels = self.descriptions.labels(wildcards["study"])
        robustness = list(cast(BamStudy, self.studies.study(wildcards["study"])).robustness)
        return self.settings(
            "plot_bam", study=wildcards["study"], metrics=metrics, robustness=robustness, labels=labels
        )

    def tabulate_series(self, wildcards: Wildcards) -> Settings:
        return self.settings("tabulate_series", **self._series(wildcards["study"]))

    def plot_series(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_series",
            labels=self.descriptions.labels(wildcards["study"]),
            methods=self.studies.study(wildcards["study"]).methods,
            seed=self.config.seeds[0],
            **self._series(wildcards["study"]),
        )

    def tabulate_concepts(self, wildcards: Wildcards) -> Settings:
        significance = self.config.metrics["tcav"].parameters["significance"]
        return self.settings("tabulate_concepts", significance=significance)

    def plot_concepts(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_concepts",
            labels=self.descriptions.labels(wildcards["study"], only=("models", "studies")),
            concept=self.config.data[self.studies.study(wildcards["study"]).data].common_object,
            **select(self.config.metrics["tcav"].parameters, "significance", "experiments"),
        )

    def tabulate_independence(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "tabulate_independence",
            data=self.studies.study(wildcards["study"]).data,
            seeds=self.config.seeds,
            metrics=self._metric_parameters("iir"),
        )

    def plot_independence(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_independence",
            labels=self.descriptions.labels(wildcards["study"]),
            study=wildcards["study"],
            images=self.config.report.gallery_images,
            iir=select(self.config.metrics["iir"].parameters, "threshold", "samples", "sample_size"),
        )

    def plot_pairs(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_pairs",
            labels=self.descriptions.labels(wildcards["study"]),
            study=wildcards["study"],
            model=self.inputs.independence(wildcards["study"]).model,
            methods=self.studies.study(wildcards["study"]).methods,
            images=self.config.report.gallery_images,
        )

    def check_claims(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        data = self.config.data[study.data]
        models = [self.config.models[name] for name in study.all_models]
        return self.settings(
            "check_claims",
            labels=self.descriptions.labels(wildcards["study"]),
            study=study.name,
            **self._compared(study.name),
            methods={name: self.descriptions.paper_method(name) for name in study.methods},
            baselines=self.studies.baselines(study.name),
            classes={"object": len(data.objects), "scene": len(data.scenes)},
            setting=compare_setting(
                data,
                [facts["architecture"] for facts in self.descriptions.study(study.name)["models"].values()],
                starts_from_weights=all(model.weights or model.finetuned_from for model in models),
            ),
        )

    def _compared(self, study: str) -> Settings:
        """Return the data and the two models of a BAM study."""
        entry = self.studies.study(study)
        return {"data": entry.data, "object_model": entry.models[0], "scene_model": entry.models[1]}

    def _metric_parameters(self, *names: str) -> Settings:
        """Return the parameters of metrics in this order, because reordering the configuration must not rerun jobs."""
        return {name: self.config.metrics[name].parameters for name in names}

    def _series(self, study: str) -> Settings:
        """Return the models of a series with their sets and k."""
        data, sets = self.config.data[self.studies.study(study).data], self.inputs.series_sets(study)
        members = [name.removeprefix(f"{data.name}_") for name in sets]
        return {
            "models": self.inputs.series(study),
            "sets": sets,
            "without": f"{data.name}_0s_k",
            "k": [classes_of(member) / len(data.scenes) for member in members],
            "scene": data.scenes[0],
        }
