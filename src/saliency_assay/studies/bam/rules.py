"""Inputs and parameters of the rules of BAM studies."""

from collections.abc import Iterable

from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.pipeline.inputs import Files, StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams, omit, rebuilding, select
from saliency_assay.pipeline.paths import expand, flatten
from saliency_assay.studies.bam.settings import BamStudy, IndependenceSettings, delta_set


class BamInputs(StudyInputs):
    """Inputs of the rules of BAM studies."""

    # ---- what a study compares

    def entry(self, study: str) -> BamStudy:
        """Return the entry of a study in the configuration."""
        entry: BamStudy = self.studies.study(study).settings
        return entry

    def variants(self, study: str) -> list[str]:
        """Return the sets on which MCS and IDR are measured beside X_os."""
        entry = self.entry(study)
        return [f"{entry.data}_os_{variant}" for variant in entry.robustness]

    def series(self, study: str) -> tuple[str, ...]:
        """Return the models of growing commonality."""
        return self.entry(study).series or ()

    def series_sets(self, study: str) -> list[str]:
        """Return the set of each model of the series."""
        return [self.config.models[model].data for model in self.series(study)]

    def independence(self, study: str) -> IndependenceSettings:
        """Return the settings of the input independence of a study that measures it."""
        independence = self.entry(study).independence
        assert independence, study
        return independence

    # ---- files that rules of all kinds of study read

    def rating(self, study: str) -> Files:
        """Return the scores of MCS, IDR and IIR, and X_os."""
        scores = self.of_methods(self.paths.bam_scores, study)
        if self.entry(study).independence:
            scores += self.of_methods(self.paths.delta_scores, study)
        return {"scores": scores, "data": self.data(f"{self.entry(study).data}_os")}

    def scores(self, study: str) -> list[str]:
        """Return the score tables of all jobs of a study."""
        paths = [self.paths.bam_scores]
        paths += [self.paths.series_scores] if self.series(study) else []
        paths += [self.paths.delta_scores] if self.entry(study).independence else []
        return flatten(self.of_methods(path, study) for path in paths)

    # ---- rules

    def score_bam(self, wildcards: Wildcards) -> Files:
        """Return maps and predictions of both models on X_os and its variants, and the scene model's maps on X_0s."""
        study = self.studies.study(wildcards["study"])
        f_o, f_s = study.models
        at = {"seed": wildcards["seed"], "method": wildcards["method"]}
        variants = self.variants(study.name)
        maps = self.paths.maps
        return {
            "maps_o_os": self.all_parts(maps, f"{study.data}_os", model=f_o, **at),
            "maps_s_os": self.all_parts(maps, f"{study.data}_os", model=f_s, **at),
            "maps_s_0s": self.all_parts(maps, f"{study.data}_0s", model=f_s, **at),
            "predictions_o": self.paths.predictions.format(model=f_o, seed=wildcards["seed"]),
            "predictions_s": self.paths.predictions.format(model=f_s, seed=wildcards["seed"]),
            "data": self.data(f"{study.data}_os"),
            "data_without": self.data(f"{study.data}_0s"),
            "variant_data": expand(self.paths.data, data=variants),
            "variant_maps_o": flatten(self.all_parts(maps, name, model=f_o, **at) for name in variants),
            "variant_maps_s": flatten(self.all_parts(maps, name, model=f_s, **at) for name in variants),
        }

    def tabulate_bam(self, wildcards: Wildcards) -> Files:
        """Return the scores of all methods of a BAM study, and the predictions of its models."""
        return {
            "scores": self.of_methods(self.paths.bam_scores, wildcards["study"]),
            "predictions": self.study_predictions(wildcards),
        }

    def score_series(self, wildcards: Wildcards) -> Files:
        """Return maps and predictions of each model of the series, and the set whose object is in all scenes."""
        study, seed = wildcards["study"], wildcards["seed"]
        return {
            "maps": self._series_maps(study, seed, wildcards["method"]),
            "predictions": self._series_predictions(study, seed),
            "data": self.data(self.series_sets(study)[-1]),
        }

    def tabulate_series(self, wildcards: Wildcards) -> Files:
        """Return scores and predictions of a series, and its TCAV where the study measures that."""
        study = wildcards["study"]
        in_study = "concepts" in self.studies.study(study).options
        return {
            "scores": self.of_methods(self.paths.series_scores, study),
            "predictions": self._series_predictions(study, self.config.seeds),
            "concepts": f"{self.paths.tables}/concepts.csv".format(study=study) if in_study else [],
        }

    def plot_series(self, wildcards: Wildcards) -> Files:
        """Return predictions, sets and the maps of every method of a series with the first seed."""
        study, seed = self.studies.study(wildcards["study"]), self.config.seeds[0]
        return {
            "predictions": self._series_predictions(study.name, str(seed)),
            "data": expand(self.paths.data, data=self.series_sets(study.name)),
            "maps": flatten(self._series_maps(study.name, seed, method) for method in study.methods),
        }

    def find_delta(self, wildcards: Wildcards) -> Files:
        """Return the model that is to give the same answer with and without a patch, and the images."""
        model = self.independence(wildcards["study"]).model
        return {
            "weights": self.paths.weights.format(model=model, seed=wildcards["seed"]),
            **self._with_and_without(wildcards["study"], "data", "data_without"),
        }

    def score_independence(self, wildcards: Wildcards) -> Files:
        """Return a method's maps of images with and without the invariant patch, and the model's predictions."""
        model = self.independence(wildcards["study"]).model
        data = delta_set(wildcards["study"], wildcards["seed"])
        at = {"model": model, "seed": wildcards["seed"]}
        return {
            "maps": self.all_parts(self.paths.maps, data, **at, method=wildcards["method"]),
            "data": self.data(data),
            "predictions": self.paths.predictions.format(**at),
        }

    def tabulate_independence(self, wildcards: Wildcards) -> Files:
        """Return the scores of all methods, and the sets with the patches of every seed."""
        scores = self.of_methods(self.paths.delta_scores, wildcards["study"])
        return {"scores": scores, "deltas": self._delta_sets(wildcards["study"])}

    def plot_independence(self, wildcards: Wildcards) -> Files:
        """Return the sets with the patches of every seed, and the images without."""
        data = self.data(f"{self.studies.study(wildcards['study']).data}_os")
        return {"deltas": self._delta_sets(wildcards["study"]), "data": data}

    def _delta_sets(self, study: str) -> list[str]:
        return [self.data(delta_set(study, seed)) for seed in self.config.seeds]

    def plot_pairs(self, wildcards: Wildcards) -> Files:
        """Return the images with and without the invariant patch of the first seed, and all methods' maps of them."""
        study, seed = self.studies.study(wildcards["study"]), self.config.seeds[0]
        data, model = delta_set(study.name, seed), self.independence(study.name).model
        maps = self.all_parts(self.paths.maps, data, model=model, seed=seed, method=study.methods)
        return {"data": self.data(data), "maps": maps}

    def score_concepts(self, wildcards: Wildcards) -> Files:
        """Return images with and without the concept, and those of the model's own set, which are tested."""
        return {
            **self._with_and_without(wildcards["study"], "with_concept", "without"),
            "data": self.data(self.config.models[wildcards["model"]].data),
        }

    def concept_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of all models whose dependence on the concept is measured."""
        study = self.studies.study(wildcards["study"])
        models = [*study.models, *self.series(study.name)]
        return expand(self.paths.concept_scores, study=study.name, seed=self.config.seeds, model=models)

    def judge_bam(self, wildcards: Wildcards) -> Files:
        """Return the tables by which the paper's claims are checked."""
        tables = self.paths.tables.format(study=wildcards["study"])
        return {name: f"{tables}/{name}.csv" for name in self._claims_tables(wildcards["study"])}

    def _with_and_without(self, study: str, with_object: str, without: str) -> Files:
        """Return a BAM study's set of objects in scenes and its set of the scenes alone, by these names."""
        data = self.studies.study(study).data
        return {with_object: self.data(f"{data}_os"), without: self.data(f"{data}_0s")}

    def _series_maps(self, study: str, seed: int | str, method: str) -> list[str]:
        """Return a method's maps by each model of the series, whose sets are never split."""
        models = zip(self.series(study), self.series_sets(study), strict=True)
        return flatten(
            self.all_parts(self.paths.maps, data, model=model, seed=seed, method=method)
            for model, data in models
        )

    def _series_predictions(self, study: str, seeds: Iterable[int] | str) -> list[str]:
        return expand(self.paths.predictions, model=self.series(study), seed=seeds)

    def _claims_tables(self, study: str) -> list[str]:
        """Return the names of the tables by which the paper's claims are checked."""
        tables = self.studies.kind(study).tables(self.studies.study(study).options)
        return [table for table in tables if table not in ("ranking", "claims")]


class BamParams(StudyParams):
    """Settings of the rules of BAM studies."""

    inputs: BamInputs

    def score_bam(self, wildcards: Wildcards) -> Settings:
        """Score a method by MCS and IDR."""
        return self.settings(
            "score_bam",
            reduction=self.catalogue.metrics["mcs"].reduction,
            study=wildcards["study"],
            **self._compared(wildcards["study"]),
            variants=self.inputs.variants(wildcards["study"]),
            method=wildcards["method"],
            seed=int(wildcards["seed"]),
        )

    def tabulate_bam(self, wildcards: Wildcards) -> Settings:
        """Tabulate the premise, MCS and IDR of a BAM study."""
        return self.settings(
            "tabulate_bam",
            **self._compared(wildcards["study"]),
            variants=self.inputs.variants(wildcards["study"]),
            metrics=self._metric_parameters("mcs", "idr"),
        )

    def score_series(self, wildcards: Wildcards) -> Settings:
        """Score a method by MCS between the models of a series."""
        return self.settings(
            "score_series",
            reduction=self.catalogue.metrics["mcs"].reduction,
            study=wildcards["study"],
            method=wildcards["method"],
            seed=int(wildcards["seed"]),
            **self._series(wildcards["study"]),
        )

    def find_delta(self, wildcards: Wildcards) -> Settings:
        """Optimize a patch that leaves the model's output as it is."""
        study = self.studies.study(wildcards["study"])
        independence = self.inputs.independence(wildcards["study"])
        model, parameters = self.config.models[independence.model], self.config.metrics["iir"].parameters
        return self.settings(
            "find_delta",
            [model.function],
            model=rebuilding(model),
            common_object=self.config.data[study.data].common_object,
            images=independence.images,
            parameters=omit(parameters, "threshold", "draws", "draw_size"),  # which only scores are made with
            batch_size=model.batch_size,
            device=self.config.device,
        )

    def score_independence(self, wildcards: Wildcards) -> Settings:
        """Score a method by IIR."""
        return self.settings(
            "score_independence",
            reduction=self.catalogue.metrics["iir"].reduction,
            study=wildcards["study"],
            data=self.studies.study(wildcards["study"]).data,
            model=self.inputs.independence(wildcards["study"]).model,
            method=wildcards["method"],
            threshold=self.config.metrics["iir"].parameters["threshold"],
            seed=int(wildcards["seed"]),
        )

    def score_concepts(self, wildcards: Wildcards) -> Settings:
        """Measure by TCAV how much a model depends on the common object."""
        study, model = self.studies.study(wildcards["study"]), self.config.models[wildcards["model"]]
        data = self.config.data[study.data]
        return self.settings(
            "score_concepts",
            [model.function],
            model={**rebuilding(model), "concept_layers": model.concept_layers},
            name=model.name,
            study=study.name,
            data=model.data,
            label=model.label,
            concept=data.common_object,
            # Sets of one commonality have no label of the object; their first scenes have it under every k.
            where={"label_scene": 0} if data.is_common(model.data) else {},
            limit=data.explain,
            parameters=omit(self.config.metrics["tcav"].parameters, "significance"),
            batch_size=model.batch_size,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def plot_bam(self, wildcards: Wildcards) -> Settings:
        """Plot the premise, MCS and IDR."""
        metrics = self._metric_parameters("mcs", "idr")
        return self.settings("plot_bam", study=wildcards["study"], metrics=metrics)

    def tabulate_series(self, wildcards: Wildcards) -> Settings:
        """Tabulate a series."""
        return self.settings("tabulate_series", **self._series(wildcards["study"]))

    def plot_series(self, wildcards: Wildcards) -> Settings:
        """Plot a series."""
        return self.settings(
            "plot_series",
            methods=self.studies.study(wildcards["study"]).methods,
            seed=self.config.seeds[0],
            **self._series(wildcards["study"]),
        )

    def tabulate_concepts(self, wildcards: Wildcards) -> Settings:
        """Tabulate TCAV."""
        significance = self.config.metrics["tcav"].parameters["significance"]
        return self.settings("tabulate_concepts", significance=significance)

    def plot_concepts(self, wildcards: Wildcards) -> Settings:
        """Plot TCAV."""
        return self.settings(
            "plot_concepts",
            concept=self.config.data[self.studies.study(wildcards["study"]).data].common_object,
            **select(self.config.metrics["tcav"].parameters, "significance", "experiments"),
        )

    def tabulate_independence(self, wildcards: Wildcards) -> Settings:
        """Tabulate IIR and the patches."""
        return self.settings(
            "tabulate_independence",
            data=self.studies.study(wildcards["study"]).data,
            seeds=self.config.seeds,
            metrics=self._metric_parameters("iir"),
        )

    def plot_independence(self, wildcards: Wildcards) -> Settings:
        """Plot IIR and the patches."""
        return self.settings(
            "plot_independence",
            study=wildcards["study"],
            images=self.config.gallery_images,
            iir=select(self.config.metrics["iir"].parameters, "threshold", "draws", "draw_size"),
        )

    def plot_pairs(self, wildcards: Wildcards) -> Settings:
        """Plot maps with and without the patch."""
        return self.settings(
            "plot_pairs",
            study=wildcards["study"],
            model=self.inputs.independence(wildcards["study"]).model,
            methods=self.studies.study(wildcards["study"]).methods,
            images=self.config.gallery_images,
        )

    def judge_bam(self, wildcards: Wildcards) -> Settings:
        """Rank the methods by every metric, and check the paper's claims."""
        study = self.studies.study(wildcards["study"])
        data = self.config.data[study.data]
        return self.settings(
            "judge_bam",
            study=study.name,
            **self._compared(study.name),
            methods={name: self.facts.paper_method(name) for name in study.methods},
            classes={"object": len(data.objects), "scene": len(data.scenes)},
        )

    def _compared(self, study: str) -> Settings:
        """Return the data and the two models of a BAM study."""
        entry = self.studies.study(study)
        return {"data": entry.data, "object_model": entry.models[0], "scene_model": entry.models[1]}

    def _metric_parameters(self, *names: str) -> Settings:
        """Return parameters of metrics in this order: that of the configuration must not run anything again."""
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
