"""The settings of every rule: a method of the rule's name takes the wildcards of a job and returns its one parameter.

A job runs again when its settings change, so they hold what its results depend on, and nothing else.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.config.records import Catalogue, Config, DataEntry, Model
from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.pipeline.facts import Facts
from saliency_assay.pipeline.inputs import Inputs, Wildcards, image_lists
from saliency_assay.pipeline.settings import ON_DEVICE, JobSettings
from saliency_assay.registry.signatures import declared
from saliency_assay.runtime.file_digests import FileDigests
from saliency_assay.runtime.provenance import fingerprint

Settings = dict[str, Any]

PLACEMENT = ("size", "measure", "smallest", "largest", "test_share", "leak_free")
"""The parameters of BAM data by which all of its sets are composed."""


class Params:
    """Settings of jobs by rule."""

    def __init__(
        self, inputs: Inputs, catalogue: Catalogue, settings: JobSettings, configuration: Mapping[str, Any]
    ) -> None:
        """Take the inputs of rules, the registries, and the configuration as it was given."""
        self.inputs = inputs
        self.paths = inputs.paths
        self.config: Config = inputs.config
        self.studies = inputs.studies
        self.catalogue = catalogue
        self._settings = settings
        self.configuration = configuration
        self.facts = Facts(inputs.config, catalogue, inputs.studies)
        self.files = FileDigests(Path(inputs.paths.state) / "digests.json")

    # ---- data

    def download(self, wildcards: Wildcards) -> Settings:
        """Fetch public data."""
        return self._settings("download")

    def write_sources(self, wildcards: Wildcards) -> Settings:
        """Write synthetic objects and scenes."""
        entry = self.config.data[wildcards["collection"]]
        names = ("cutouts_per_object", "scenes_per_class", "source_size", "seed")
        return self._settings("write_sources", parameters=select(entry.parameters, *names))

    def collect_bam(self, wildcards: Wildcards) -> Settings:
        """Collect cut-outs and scenes; the lists that a user names count by content."""
        entry = self.config.data[wildcards["collection"]]
        names = ("size", "measure", "smallest", "cutouts_per_object", "scenes_per_class", "min_object_area")
        parameters = select(entry.parameters, *names)
        # Cut-outs are kept for the largest that any set pastes.
        parameters["largest"] = max(entry.parameters["largest"], entry.parameters["variant_largest"])
        return self._settings(
            "collect_bam",
            **({} if entry.kind == "embedded" else self._image_lists(entry)),
            coco=entry.coco,
            miniplaces=entry.miniplaces,
            objects=entry.objects,
            scenes=entry.scenes,
            parameters=parameters,
        )

    def _image_lists(self, entry: DataEntry) -> Settings:
        """Return digests of the lists of images, and of the paths of the scenes' annotations, which are thousands."""
        lists = {"files": self.files.of_all(image_lists(entry))}
        root = Path(entry.miniplaces) / "objects"
        return {**lists, "annotated_scenes": paths_digest(root)} if root.is_dir() else lists

    def compose_bam(self, wildcards: Wildcards) -> Settings:
        """Compose a set; parameters of a variant are no reason to compose the others again."""
        entry = self.config.sets[wildcards["data"]]
        member = wildcards["data"].removeprefix(f"{entry.name}_")
        is_common = entry.is_common(wildcards["data"])
        names = [*PLACEMENT, "images_per_scene" if is_common else "images_per_pair"]
        names += ["variant_smallest", "variant_largest"] if member == "os_scale" else []
        return self._settings(
            "compose_bam",
            parameters=select(entry.parameters, *names),
            common_object=entry.common_object if is_common else "",
            seed=entry.parameters["seed"],
            member=member,
        )

    def compose_caption(self, wildcards: Wildcards) -> Settings:
        """Write captions on the images of a set."""
        entry = self.config.sets[wildcards["data"]]
        return self._settings(
            "compose_caption",
            classes=entry.classes,
            captions=entry.captions,
            parameters=entry.parameters,
            member=wildcards["data"].removeprefix(f"{entry.name}_"),
        )

    def build_data(self, wildcards: Wildcards) -> Settings:
        """Build a set by one function; the files that it reads count by content."""
        entry = self.config.sets[wildcards["data"]]
        return self._settings(
            "build_data",
            [entry.function],
            function=entry.function,
            parameters=entry.parameters,
            **({"files": self.files.of_all(entry.files)} if entry.files else {}),
        )

    # ---- models

    def train(self, wildcards: Wildcards) -> Settings:
        """Train a model."""
        model = self.config.models[wildcards["model"]]
        return self._settings(
            "train",
            [model.function],
            **self._training(model, model.training),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self.paths.state}/train/{model.name}/seed{wildcards['seed']}.pt",
        )

    def trial(self, wildcards: Wildcards) -> Settings:
        """Train with one combination of a search, with the first seed: what is chosen holds for all of them."""
        model, trial = self.config.models[wildcards["model"]], int(wildcards["trial"])
        return self._settings(
            "trial",
            [model.function],
            **self._training(model, {**model.training, **model.trials[trial]}),
            seed=self.config.seeds[0],
            device=self.config.device,
            state=f"{self.paths.state}/trial/{model.name}/trial{wildcards['trial']}.pt",
        )

    def _training(self, model: Model, training: Mapping[str, Any]) -> Settings:
        # Of a model whose entry names none, a retraining takes the normalization from the first model's weights.
        normalization = {"normalisation": model.normalisation} if model.normalisation else {}
        return {
            "model": rebuilding(model),
            "label": model.label,
            "training": training,
            **normalization,
            **self._initial(model),
        }

    def _initial(self, model: Model) -> Settings:
        """Return the digest of the file that a training starts from, if no job of this run makes it."""
        is_outside = model.weights and not self.inputs.is_result(model.weights)
        return {"files": self.files.of_all([model.weights])} if is_outside else {}

    def choose(self, wildcards: Wildcards) -> Settings:
        """Choose the best combination of a search."""
        model = self.config.models[wildcards["model"]]
        return self._settings("choose", training=model.training, trials=model.trials)

    def evaluate(self, wildcards: Wildcards) -> Settings:
        """Evaluate a model on every set that a study compares it on."""
        model = self.config.models[wildcards["model"]]
        return self._settings(
            "evaluate",
            [model.function],
            model=rebuilding(model),
            label=model.label,
            sets=self.studies.evaluated_sets(model.name),
            validation_share=model.training["validation_share"],
            seed=int(wildcards["seed"]),
            batch_size=model.batch_size,
            device=self.config.device,
        )

    def resident_limit_of_model(self, wildcards: Wildcards) -> int:
        """Return the megabytes of images that the training of a model keeps on its device.

        A resource, not a setting: where images are kept is no reason to train again.
        """
        return self._resident_limit(self.config.models[wildcards["model"]].data)

    def resident_limit_of_study(self, wildcards: Wildcards) -> int:
        """Return the megabytes of images that a job of a retrain study keeps on its device."""
        return self._resident_limit(self.studies.study(wildcards["study"]).data)

    def _resident_limit(self, data: str) -> int:
        return round(1000 * self.config.sets[data].resident_limit)

    # ---- maps and scores

    def attribute(self, wildcards: Wildcards) -> Settings:
        """Compute the maps of a method."""
        method = self.config.methods[wildcards["method"]]
        model = self.config.models[wildcards["model"]]
        return self._settings(
            "attribute",
            [model.function, *self._method_functions(method.name)],
            model=self._explaining_model(model.name, method.name),
            explained=self._explained(wildcards),
            method=method.method,
            registered=method.registered,
            **self._method(method.name),
            pairs=wildcards["data"] in self.studies.delta_sets,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def probe(self, wildcards: Wildcards) -> Settings:
        """Compute the model responses that a metric compares maps with."""
        metric = self.config.metrics[wildcards["metric"]]
        model = self.config.models[wildcards["model"]]
        return self._settings(
            "probe",
            [model.function, metric.probe],
            model=rebuilding(model),
            explained=self._explained(wildcards),
            probe=metric.probe,
            parameters=read_by(metric.probe, metric.parameters),
            stream=metric.metric,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def score(self, wildcards: Wildcards) -> Settings:
        """Score maps; the code of the method counts only where the metric computes maps by it."""
        metric, method = self.config.metrics[wildcards["metric"]], wildcards["method"]
        model, explains = self.config.models[wildcards["model"]], "explain" in metric.takes
        return self._settings(
            "score",
            [model.function, metric.function, *(self._method_functions(method) if explains else [])],
            model=self._explaining_model(model.name, method) if explains else rebuilding(model),
            function=metric.function,
            parameters=read_by(metric.function, metric.parameters) if metric.metric else metric.parameters,
            takes=metric.takes,
            scores=list(metric.directions),
            stream=metric.metric or metric.function,
            **({"method": self._method(method)} if explains else {}),
            batch_size=model.batch_size,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def tabulate_scores(self, wildcards: Wildcards) -> Settings:
        """Tabulate the scores of a fidelity study."""
        study = self.studies.study(wildcards["study"])
        return self._settings("tabulate_scores", study=study.name, printed=study.printed)

    def _explained(self, wildcards: Wildcards) -> Settings:
        """Return which images of a set are explained, and which class of each."""
        model = self.config.models[wildcards["model"]]
        target = {"label": model.label, "target": model.target, "batch_size": model.batch_size}
        if independence := self.studies.delta_sets.get(wildcards["data"]):
            return {"explain": 2 * independence.images, "order": "first", "where": {}, **target}
        data = self.config.sets[wildcards["data"]]
        where = self._explained_where(wildcards["data"])
        return {"explain": data.explain, "order": data.explain_order, "where": where, **target}

    def _explained_where(self, data: str) -> dict[str, int]:
        """Return what the explained images of a set have in common, by its arrays."""
        entry = self.config.sets[data]
        if entry.is_common(data):
            return {"label_scene": 0}  # the class whose images have the object under every k
        return {"aligned": 1} if entry.source else {}

    def _method(self, name: str) -> Settings:
        """Return what calls a method: of the entry only what its maps depend on."""
        method = self.config.methods[name]
        settings: Settings = {
            "function": method.function,
            "parameters": method.parameters,
            "stream": method.stream,
        }
        if method.base:
            settings["base"] = {"function": method.base.function, "parameters": method.base.parameters}
        if method.background:
            settings["background"] = method.background
        return settings

    def _method_functions(self, name: str) -> list[str]:
        method = self.config.methods[name]
        return [method.function, *([method.base.function] if method.base else [])]

    def _explaining_model(self, model: str, method: str) -> Settings:
        """Return what rebuilds a model for a method: with its CAM layer only where the method needs one."""
        entry, needs = self.config.models[model], self.config.methods[method].needs
        return {**rebuilding(entry), **({"cam_layer": entry.cam_layer} if "cam_layer" in needs else {})}

    # ---- BAM

    def score_bam(self, wildcards: Wildcards) -> Settings:
        """Score a method by MCS and IDR."""
        return self._settings(
            "score_bam",
            reduction=self.catalogue.metrics["mcs"].reduction,
            study=wildcards["study"],
            **self._compared(wildcards["study"]),
            variants=self.studies.variants(wildcards["study"]),
            method=wildcards["method"],
            seed=int(wildcards["seed"]),
        )

    def tabulate_bam(self, wildcards: Wildcards) -> Settings:
        """Tabulate the premise, MCS and IDR of a BAM study."""
        return self._settings(
            "tabulate_bam",
            **self._compared(wildcards["study"]),
            variants=self.studies.variants(wildcards["study"]),
            metrics=self._metric_parameters("mcs", "idr"),
        )

    def score_series(self, wildcards: Wildcards) -> Settings:
        """Score a method by MCS between the models of a series."""
        return self._settings(
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
        independence = self.studies.independence(wildcards["study"])
        model, parameters = self.config.models[independence.model], self.config.metrics["iir"].parameters
        return self._settings(
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
        return self._settings(
            "score_independence",
            reduction=self.catalogue.metrics["iir"].reduction,
            study=wildcards["study"],
            data=self.studies.study(wildcards["study"]).data,
            model=self.studies.independence(wildcards["study"]).model,
            method=wildcards["method"],
            threshold=self.config.metrics["iir"].parameters["threshold"],
            seed=int(wildcards["seed"]),
        )

    def score_concepts(self, wildcards: Wildcards) -> Settings:
        """Measure by TCAV how much a model depends on the common object."""
        study, model = self.studies.study(wildcards["study"]), self.config.models[wildcards["model"]]
        data = self.config.data[study.data]
        return self._settings(
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
        return self._settings("plot_bam", study=wildcards["study"], metrics=metrics)

    def plot_series(self, wildcards: Wildcards) -> Settings:
        """Tabulate and plot a series."""
        return self._settings(
            "plot_series",
            methods=self.studies.study(wildcards["study"]).methods,
            seeds=self.config.seeds,
            **self._series(wildcards["study"]),
        )

    def plot_concepts(self, wildcards: Wildcards) -> Settings:
        """Tabulate and plot TCAV."""
        return self._settings(
            "plot_concepts",
            concept=self.config.data[self.studies.study(wildcards["study"]).data].common_object,
            parameters=select(self.config.metrics["tcav"].parameters, "experiments", "significance"),
        )

    def plot_independence(self, wildcards: Wildcards) -> Settings:
        """Tabulate and plot IIR and the patches."""
        return self._settings(
            "plot_independence",
            study=wildcards["study"],
            data=self.studies.study(wildcards["study"]).data,
            seeds=self.config.seeds,
            images=self.config.gallery_images,
            metrics=self._metric_parameters("iir"),
        )

    def plot_pairs(self, wildcards: Wildcards) -> Settings:
        """Plot maps with and without the patch."""
        return self._settings(
            "plot_pairs",
            study=wildcards["study"],
            model=self.studies.independence(wildcards["study"]).model,
            methods=self.studies.study(wildcards["study"]).methods,
            images=self.config.gallery_images,
        )

    def judge_bam(self, wildcards: Wildcards) -> Settings:
        """Rank the methods by every metric, and check the paper's claims."""
        study = self.studies.study(wildcards["study"])
        data = self.config.data[study.data]
        return self._settings(
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
        data, sets = self.config.data[self.studies.study(study).data], self.studies.series_sets(study)
        members = [name.removeprefix(f"{data.name}_") for name in sets]
        return {
            "models": self.studies.comparison(study).series,
            "sets": sets,
            "without": f"{data.name}_0s_k",
            "k": [classes_of(member) / len(data.scenes) for member in members],
            "scene": data.scenes[0],
        }

    # ---- image or caption

    def plot_caption(self, wildcards: Wildcards) -> Settings:
        """Tabulate and plot which half of an image maps point at."""
        study = self.studies.study(wildcards["study"])
        return self._settings(
            "plot_caption",
            study=study.name,
            image_model=study.models[0],
            caption_model=study.models[1],
            data=[self.config.sets[self.config.models[model].data].name for model in study.models],
            methods={name: self.facts.table_method(name) for name in study.methods},
        )

    # ---- retraining

    def remask(self, wildcards: Wildcards) -> Settings:
        """Occlude what the maps of f_i point at.

        Apart from the state, independent of the study: equal masks of two studies have equal noise.
        """
        model = self.studies.first_model(wildcards["study"])
        method = self.config.methods[wildcards["method"]]
        retraining = self.studies.retraining(wildcards["study"])
        return self._settings(
            "remask",
            [model.function, *self._method_functions(method.name)],
            model=self._explaining_model(model.name, method.name),
            name=model.name,
            data=model.data,
            label=model.label,
            target=model.target,
            batch_size=model.batch_size,
            method=method.method,
            registered=method.registered,
            **self._method(method.name),
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
        return self._settings(
            "retrain",
            [model.function],
            model=rebuilding(model),
            name=model.name,
            data=model.data,
            label=model.label,
            training=model.training,
            **self._initial(model),
            fill=wildcards["fill"],
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self._arm_state('retrain', wildcards)}.pt",
        )

    def leak(self, wildcards: Wildcards) -> Settings:
        """Train classifiers on masks alone."""
        model = self.studies.first_model(wildcards["study"])
        return self._settings(
            "leak",
            [model.function],
            model=rebuilding(model),
            label=model.label,
            training=model.training,
            repeats=self.studies.retraining(wildcards["study"]).repeats,
            iteration=int(wildcards["iteration"]),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=self._arm_state("leak", wildcards),
        )

    def score_retrain(self, wildcards: Wildcards) -> Settings:
        """Score an arm: accuracy, overlap and leakage by iteration."""
        model = self.studies.first_model(wildcards["study"])
        retraining = self.studies.retraining(wildcards["study"])
        return self._settings(
            "score_retrain",
            model=model.name,
            data=model.data,
            iterations=retraining.iterations,
            leak_iterations=retraining.leak_iterations,
        )

    def tabulate_retrain(self, wildcards: Wildcards) -> Settings:
        """Tabulate a retrain study."""
        retrained = self._retrained(wildcards["study"])
        return self._settings("tabulate_retrain", **retrained, seeds=len(self.config.seeds))

    def plot_retrain(self, wildcards: Wildcards) -> Settings:
        """Plot accuracy and overlap."""
        return self._settings("plot_retrain", **self._retrained(wildcards["study"]))

    def plot_arm(self, wildcards: Wildcards) -> Settings:
        """Plot the masks of all methods, and images under them."""
        data = self.config.sets[self.studies.gallery_set(wildcards["study"])]
        return self._settings(
            "plot_arm",
            **self._retrained(wildcards["study"]),
            methods=self.studies.study(wildcards["study"]).methods,
            images=min(self.config.gallery_images, data.explain),
            order=data.explain_order,
            seed=self.config.seeds[0],
        )

    def plot_leakage(self, wildcards: Wildcards) -> Settings:
        """Tabulate and plot leakage."""
        return self._settings("plot_leakage", label=self.studies.first_model(wildcards["study"]).label)

    def _retrained(self, study: str) -> Settings:
        """Return what the numbers of a retrain study are shares of."""
        retraining = self.studies.retraining(study)
        return {
            "label": self.studies.first_model(study).label,
            "percentile": retraining.percentile,
            "iterations": retraining.iterations,
        }

    def _arm_state(self, rule: str, wildcards: Wildcards) -> str:
        state = f"{self.paths.state}/{rule}/{self.paths.arm}/iteration{{iteration}}"
        return state.format(**wildcards)

    # ---- figures and reliability

    def plot_scores(self, wildcards: Wildcards) -> Settings:
        """Write all scores in numbers."""
        return self._settings("plot_scores")

    def plot_metric(self, wildcards: Wildcards) -> Settings:
        """Plot a figure of a metric."""
        metric = self.config.metrics[wildcards["metric"]]
        function = metric.figures[wildcards["figure"]].function
        return self._settings(
            "plot_metric",
            [function],
            function=function,
            parameters=metric.parameters,
            labels=metric.labels,
            directions=metric.directions,
            methods=self.studies.study(wildcards["study"]).methods,
            seeds=self.config.seeds,
            caption=metric.summary,
        )

    def plot_scatter(self, wildcards: Wildcards) -> Settings:
        """Plot infidelity against sensitivity."""
        return self._settings("plot_scatter", pairs=self.studies.metric_pairs(wildcards["study"]))

    def plot_gallery(self, wildcards: Wildcards) -> Settings:
        """Plot the same images under every method."""
        study, data = self.studies.study(wildcards["study"]), self.studies.gallery_set(wildcards["study"])
        return self._settings(
            "plot_gallery",
            models=study.models,
            methods=study.methods,
            images=min(self.config.gallery_images, self.config.sets[data].explain),
            order=self.config.sets[data].explain_order,
            where=self._explained_where(data),
            seed=self.config.seeds[0],
        )

    def plot_training(self, wildcards: Wildcards) -> Settings:
        """Plot training curves and accuracies."""
        return self._settings("plot_training", arms=self._trained())

    def _trained(self) -> list[list[str | int]]:
        return [[model, seed] for model in self.studies.models for seed in self.config.seeds]

    def tabulate_reliability(self, wildcards: Wildcards) -> Settings:
        """Measure the reliability of a study's metrics, and rank its methods."""
        study, kind = self.studies.study(wildcards["study"]), self.studies.kind(wildcards["study"])
        return self._settings(
            "tabulate_reliability",
            [kind.rated_scores],
            rated_scores=kind.rated_scores,
            variants=kind.variants,
            data=study.data,
            models=study.models,
            label=self.studies.class_label(study.name),
            controls=self.studies.baselines(study.name),
            directions=self.studies.directions(study.name),
            resamples=self.config.reliability.resamples,
            level=self.config.reliability.level,
            printed_alpha=study.printed_alpha,
            printed_correlation=study.printed_correlation,
        )

    def plot_reliability(self, wildcards: Wildcards) -> Settings:
        """Plot the reliability of a study's metrics and the ranks of its methods."""
        controls = self.studies.baselines(wildcards["study"])
        return self._settings("plot_reliability", controls=controls, level=self.config.reliability.level)

    # ---- report, export and plan

    def summarise(self, wildcards: Wildcards) -> Settings:
        """Put a study into words."""
        study = wildcards["study"]
        return self._settings("summarise", self._cautions(study), study=self.facts.study(study))

    def describe(self, wildcards: Wildcards) -> Settings:
        """Write the pages of methods and metrics."""
        studies = self.studies.all
        methods = dict.fromkeys(method for name in studies for method in self.studies.study(name).methods)
        metrics = {metric.name: metric for name in studies for metric in self.studies.metrics(name)}
        return self._settings(
            "describe",
            methods=[self.facts.method(self.config.methods[name]) for name in methods],
            metrics=[self.facts.metric(metric) for metric in metrics.values()],
            drawn=[
                {
                    **at,
                    "batch": self.config.models[str(at["model"])].batch_size,
                    "parts": len(self.inputs.parts(str(at["data"]))),
                }
                for at in self.studies.gallery_maps
            ],
            sets=self.studies.gallery_sets,
            studies=self.studies.rated,
        )

    def overview(self, wildcards: Wildcards) -> Settings:
        """Write the page that is read first."""
        studies = [
            {
                **self.facts.study(name),
                "files": self.inputs.summary_files(name),
                "evaluations": self.inputs.evaluations(name),
            }
            for name in self.studies.all
        ]
        return self._settings(
            "overview",
            self._cautions(*self.studies.all),
            studies=studies,
            sets=[] if studies else self.studies.gallery_sets,
            models=list(self.config.models),
            seeds=self.config.seeds,
            benchmarks=self.paths.benchmarks,
        )

    def provenance(self, wildcards: Wildcards) -> Settings:
        """Write the page of configuration, versions, data and times."""
        configuration = yaml.safe_dump(self.configuration, sort_keys=False, allow_unicode=True)
        return self._settings(
            "provenance",
            sets=self.studies.gallery_sets,
            benchmarks=self.paths.benchmarks,
            configuration=configuration,
        )

    def report(self, wildcards: Wildcards) -> Settings:
        """Write the report."""
        return self._settings("report", targets=self.inputs.report(), configuration=self.configuration)

    def _cautions(self, *studies: str) -> list[str]:
        """Return the functions that state the limits of the ranks of studies."""
        return sorted({self.studies.kind(name).cautions for name in studies} - {""})

    def table(self, wildcards: Wildcards) -> Settings:
        """Export all results."""
        kinds = {name: self.studies.kind(name) for name in self.studies.rated}
        return self._settings(
            "table",
            sorted({kind.latex for kind in kinds.values()} - {""}),
            studies={
                name: {"kind": kind.name, "printed_table": kind.printed_table, "latex": kind.latex}
                for name, kind in kinds.items()
            },
            arms=self._trained(),
            level=self.config.reliability.level,
        )

    def plan(self, wildcards: Wildcards) -> Settings:
        """Estimate what each study takes."""
        return self._settings(
            "plan",
            studies=list(map(self._plan, self.studies.all)),
            on_device=list(ON_DEVICE),
            benchmarks=self.paths.benchmarks,
            configuration=self.configuration,
        )

    def _plan(self, name: str) -> Settings:
        """Return a study's files, its array sizes, and benchmarks that stand for rules that have not run yet."""
        study, model = self.studies.study(name), self.studies.first_model(name)
        data, shards = self.config.sets[model.data], self.config.sets[model.data].shards
        trained: list[list[Any]] = [[f"train/{model.name}", 1], [f"trial/{model.name}", 1]]
        plan: Settings = {
            "name": name,
            "targets": self.inputs.figures(name),
            "data": self.paths.data.format(data=model.data),
            "map_images": data.explain / shards,
            "mask_stores": [],
            "weights": self.paths.weights.format(model=model.name, seed=self.config.seeds[0]),
            "like": {
                "train": trained,
                "trial": trained[::-1],
                "retrain": [[f"retrain/{name}", 1], *trained],
                "remask": [[f"remask/{name}", 1.0]],
                "evaluate": [[f"evaluate/{model.name}", 1]],
                "attribute": [[f"attribute/{model.name}", 1 / shards]],
                "probe": [["probe", 1 / shards]],
                "score": [["score", 1 / shards]],
            },
            "models_each": {"train": 1, "trial": 1, "retrain": 1},
        }
        if name not in self.studies.retrain:
            return plan
        retraining, arms = self.studies.retraining(name), len(study.methods) * len(self.config.seeds)
        classifiers = 2 * retraining.repeats
        plan["models_each"]["leak"] = classifiers
        plan["like"]["remask"] = [[f"remask/{name}", 1 / retraining.shards]]
        plan["like"]["leak"] = [[f"leak/{name}", 1], *([folder, classifiers] for folder, _ in trained)]
        if "roar" in retraining.protocols:
            plan["mask_stores"].append([arms, retraining.iterations])
        if "iteroar" in retraining.protocols:
            later = arms * len(retraining.fills) * (retraining.iterations - 1)
            plan["mask_stores"].append([arms + later, 1])
        return plan


def rebuilding(model: Model) -> Settings:
    """Return what rebuilds a model from its weights file."""
    return {
        "architecture": model.architecture,
        "function": model.function,
        "parameters": model.parameters,
    }


def read_by(function: str, parameters: Mapping[str, Any]) -> Settings:
    """Return the parameters of a metric that one of its functions reads: the others must not run it again."""
    return {name: value for name, value in parameters.items() if name in declared(function)}


def select(parameters: Mapping[str, Any], *names: str) -> Settings:
    """Return only the parameters that a job reads: a change of the others must not run it again."""
    return {name: parameters[name] for name in names}


def omit(parameters: Mapping[str, Any], *names: str) -> Settings:
    """Return all parameters but these."""
    return {name: value for name, value in parameters.items() if name not in names}


def paths_digest(root: Path) -> str:
    """Return the digest of the relative paths of all files below a folder."""
    folders = os.walk(root, followlinks=True)
    return fingerprint(
        sorted(f"{os.path.relpath(place, root)}/{file}" for place, _, files in folders for file in files)
    )
