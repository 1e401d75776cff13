"""Settings of every rule: the method with a rule's name takes the wildcards of a job and returns its only parameter.

A job reruns when its settings change, so they contain exactly the values on which its results depend.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.config.checks import Catalog
from saliency_assay.config.configuration import Configuration
from saliency_assay.config.data import BamData, CaptionData
from saliency_assay.config.methods import WILDCARDS, Method, StoredMaps
from saliency_assay.config.metrics import Metric
from saliency_assay.config.models import Model
from saliency_assay.models.checks import LOGITS
from saliency_assay.pipeline.descriptions import Descriptions
from saliency_assay.pipeline.inputs import Inputs, Wildcards
from saliency_assay.pipeline.job_settings import JobSettings
from saliency_assay.pipeline.limits import training_megabytes, training_minutes
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.studies import Studies
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import declared
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.runtime.user_files import Source
from saliency_assay.training.hyperparameters import finetuning

Settings = dict[str, Any]

PLACEMENT = ("size", "measure", "smallest", "largest", "test_share", "leak_free")
"""Parameters of BAM data that apply to the composition of all of its sets."""


class EntrySettings:
    """Settings that describe entries of the configuration."""

    def __init__(
        self,
        inputs: Any,
        catalog: Catalog,
        settings: JobSettings,
        configuration: Mapping[str, Any],
    ) -> None:
        """Store the inputs of rules, the registries and the configuration as Snakemake read it."""
        self.inputs = inputs
        self.paths: Paths = inputs.paths
        self.config: Configuration = inputs.config
        self.studies: Studies = inputs.studies
        self.catalog = catalog
        self.settings = settings
        self.configuration = configuration
        self.descriptions = Descriptions(inputs.config, catalog, inputs.studies)
        self.files = self.config.files

    def references(self, study: str) -> list[str]:
        """Return the methods of a study that are the best possible map under a metric."""
        upper = self.studies.controls(study)["upper"].values()
        return sorted({method for of_score in upper for methods in of_score.values() for method in methods})

    def method(self, name: str) -> Settings:
        """Return the settings with which a job calls a method: only those on which its maps depend."""
        method = self.config.methods[name]
        settings: Settings = {
            "function": method.function,
            "parameters": method.parameters,
            "noise_group": method.noise_group,
        }
        if base := method.smoothed:
            settings["base"] = {"function": base.function, "parameters": base.parameters}
        if method.background:
            settings["background"] = method.background
        if method.takes_mask:
            settings["takes_mask"] = True
        return settings

    def method_functions(self, name: str) -> list[str]:
        """Return the function of a method, and that of its base if it smooths another method."""
        method = self.config.methods[name]
        return [method.function, *([method.smoothed.function] if method.smoothed else [])]

    def explaining_model(self, model: str, method: str) -> Settings:
        """Return the settings to rebuild a model, with the CAM layer only if the method needs it."""
        entry, needs = self.config.models[model], self.config.methods[method].needs
        if "cam_layer" not in needs:
            return rebuilding(entry)
        grid = {"token_grid": entry.token_grid} if entry.token_grid else {}
        return {**rebuilding(entry), "cam_layer": entry.cam_layer, **grid}

    def read_files(self, *entries: Model | Method | Metric, others: Sequence[Source] = ()) -> Settings:
        """Return the digests of files that a job reads and that are no results; empty if there are none.

        These are the files of the custom functions of ``entries``, and ``others``.
        """
        files = [*others, *(source for entry in entries for source in entry.sources)]
        return {"files": self.files.of_all(files)} if files else {}

    def initial_weights(self, model: Model) -> Settings:
        """Return path and digests of the files of a job that trains a model from the initial weights of its entry."""
        if not model.weights or self.inputs.is_result(model.weights):
            return self.read_files(model)
        path = model.architecture if model.has_packaged_weights else model.weights
        return {"weights": path, **self.read_files(model, others=model.weights_files)}

    def label(self, model: Model) -> Settings:
        """Return the label that a model has learned and, if it has its own classes, how those of the data map to them.

        A file is represented by path and digest, since a list of 1,000 classes would be in the settings of each job.
        """
        if model.classes is None:
            return {"label": model.trained_on}
        digests = self.files.of_all(model.class_files)
        classes: Settings = {"of": model.classes, "map": model.class_map}
        return {"label": model.trained_on, "classes": {**classes, **({"files": digests} if digests else {})}}

    def metric_noise_group(self, metric: Metric) -> str:
        """Return the part of a metric's seed that is common to its entries in the configuration."""
        record = self.catalog.metrics.get(metric.metric)
        return (record.noise_group or record.name) if record else metric.function

    def explained(self, wildcards: Wildcards) -> Settings:
        """Return the settings that select the explained images of a set, and the explained class of each."""
        model = self.config.models[wildcards["model"]]
        target = {**self.label(model), "target": model.target, "batch_size": model.batch_size}
        if pairs := self.studies.pair_sets.get(wildcards["data"]):
            return {"limit": 2 * pairs, "order": "first", "where": {}, **target}
        data = self.config.sets[wildcards["data"]]
        where = self._explained_where(wildcards["data"])
        return {"limit": data.max_explained_images, "order": data.explanation_order, "where": where, **target}

    def _explained_where(self, data: str) -> dict[str, int | tuple[str, ...]]:
        """Return the condition on the explained images of a set, as values of its arrays; empty without a condition."""
        entry = self.config.sets[data]
        if entry.is_common(data):
            return {"label_scene": 0}  # the class whose images have the object under every k
        classes = {"label_class": entry.explained_classes} if entry.explained_classes else {}
        return {"aligned": 1, **classes} if entry.source else {**classes}


class StudyParams(EntrySettings):
    """Settings of the rules of one kind of study; the method with a rule's name returns those of a job."""

    def workload(self, study: str, workload: Settings) -> Settings:
        """Return the ``workload`` of a study, from which costs are estimated, adapted to the rules of its kind."""
        return workload

    def model_uses(self, study: str) -> dict[str, str]:
        """Return what a study does with its models other than explain them: for each key of the configuration a
        reference to a function of classifier and images, which raises an exception if it is impossible.
        """
        return {}

    def derived_models(self, study: str) -> dict[str, tuple[str, int]]:
        """Return for each key by which a study trains a model on other images the model and their channels."""
        return {}


class Params(EntrySettings):
    """Settings of the rules that all kinds of study share; the method with a rule's name returns those of a job."""

    inputs: Inputs

    def of_kind(self, kind: str) -> Any:
        """Return the settings of the rules of a kind of study."""
        params = resolve(self.studies.kinds[kind].params)
        inputs = self.inputs.of_kind(kind)
        return params(inputs, self.catalog, self.settings, self.configuration)

    # ---- data

    def download(self, wildcards: Wildcards) -> Settings:
        return self.settings("download")

    def write_sources(self, wildcards: Wildcards) -> Settings:
        entry = self.config.data[wildcards["collection"]]
        names = ("cutouts_per_object", "scenes_per_class", "source_size", "seed")
        return self.settings("write_sources", parameters=select(entry.parameters, *names))

    def collect_bam(self, wildcards: Wildcards) -> Settings:
        entry = self.config.data[wildcards["collection"]]
        names = ("size", "measure", "smallest", "cutouts_per_object", "scenes_per_class", "min_object_area")
        parameters = select(entry.parameters, *names)
        # Cut-outs are stored at the largest size in which any set, including the variant, pastes them.
        parameters["largest"] = max(entry.parameters["largest"], entry.parameters["variant_largest"])
        return self.settings(
            "collect_bam",
            **(self._real_images(entry) if isinstance(entry, BamData) else {"coco": (), "miniplaces": ""}),
            objects=entry.objects,
            scenes=entry.scenes,
            parameters=parameters,
        )

    def _real_images(self, entry: BamData) -> Settings:
        """Return the folders, and digests: of the image lists, and of the paths of thousands of scene annotations."""
        root = Path(entry.miniplaces) / "objects"
        scenes = self.files.recall(
            "objects", entry.miniplaces, lambda: paths_digest(root) if root.is_dir() else "", ""
        )
        return {
            "coco": entry.coco_sources,
            "miniplaces": entry.miniplaces,
            "files": self.files.of_all(entry.sources),
            **({"annotated_scenes": scenes} if scenes else {}),
        }

    def compose_bam(self, wildcards: Wildcards) -> Settings:
        # Only the parameters of this set: a change of a variant must not recompose the other sets.
        entry = self.config.sets[wildcards["data"]]
        member = wildcards["data"].removeprefix(f"{entry.name}_")
        is_common = entry.is_common(wildcards["data"])
        names = [*PLACEMENT, "images_per_scene" if is_common else "images_per_pair"]
        names += ["variant_smallest", "variant_largest"] if member == "os_scale" else []
        return self.settings(
            "compose_bam",
            parameters=select(entry.parameters, *names),
            common_object=entry.common_object if is_common else "",
            seed=entry.parameters["seed"],
            member=member,
        )

    def compose_caption(self, wildcards: Wildcards) -> Settings:
        entry = self.config.sets[wildcards["data"]]
        assert isinstance(entry, CaptionData)
        return self.settings(
            "compose_caption",
            classes=entry.classes,
            captions=entry.captions,
            parameters=entry.parameters,
            member=wildcards["data"].removeprefix(f"{entry.name}_"),
        )

    def build_data(self, wildcards: Wildcards) -> Settings:
        # The files that the function reads are tracked by content.
        entry = self.config.sets[wildcards["data"]]
        return self.settings(
            "build_data",
            [entry.function],
            function=entry.function,
            parameters=entry.parameters,
            **({"files": files} if (files := self.files.of_all(entry.sources)) else {}),
        )

    # ---- models

    def train(self, wildcards: Wildcards) -> Settings:
        model = self.config.models[wildcards["model"]]
        return self.settings(
            "train",
            [model.function],
            **self._training(model, model.training),
            **self.initial_weights(model),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self.paths.state}/train/{model.name}/seed{wildcards['seed']}.pt",
        )

    def trial(self, wildcards: Wildcards) -> Settings:
        # Hyperparameters are selected with the first seed, and used for all seeds.
        model, trial = self.config.models[wildcards["model"]], int(wildcards["trial"])
        return self.settings(
            "train",
            [model.function],
            **self._training(model, {**model.training, **model.trials[trial]}),
            **self.initial_weights(model),
            seed=self.config.seeds[0],
            device=self.config.device,
            state=f"{self.paths.state}/trial/{model.name}/trial{wildcards['trial']}.pt",
        )

    def finetune(self, wildcards: Wildcards) -> Settings:
        metric, model = self.config.metrics[wildcards["metric"]], self.config.models[wildcards["model"]]
        of_model = f"{metric.name}/{model.name}/seed{wildcards['seed']}"
        return self.settings(
            "train",
            [model.function],
            **self._training(model, finetuning(model.training, metric.training)),
            **self.read_files(model),
            seed=int(wildcards["seed"]),
            device=self.config.device,
            state=f"{self.paths.state}/finetune/{of_model}.pt",
        )

    def _training(self, model: Model, training: Mapping[str, Any]) -> Settings:
        """Return the settings of a training, whatever its initial weights."""
        # Without a normalization in the entry, a retrained model takes over that of the first model's weights.
        normalization = {"normalization": model.normalization.channels} if model.normalization else {}
        return {
            "model": rebuilding(model),
            **self.label(model),
            "training": training,
            **normalization,
        }

    def select_hyperparameters(self, wildcards: Wildcards) -> Settings:
        model = self.config.models[wildcards["model"]]
        return self.settings("select_hyperparameters", training=model.training, trials=model.trials)

    def evaluate(self, wildcards: Wildcards) -> Settings:
        model = self.config.models[wildcards["model"]]
        return self.settings(
            "evaluate",
            [model.function],
            model=rebuilding(model),
            **self.read_files(model),
            **self.label(model),
            sets=self.studies.evaluated_sets(model.name),
            validation_share=model.training["validation_share"],
            seed=int(wildcards["seed"]),
            batch_size=model.batch_size,
            device=self.config.device,
        )

    def resident_limit_of_model(self, wildcards: Wildcards) -> int:
        """Return the megabytes of images that the training of a model may keep on its device.

        This is a resource and not a setting, because a training must not rerun when only the limit changes.
        """
        return self._resident_limit(self.config.models[wildcards["model"]].data)

    def resident_limit_of_study(self, wildcards: Wildcards) -> int:
        """Return the megabytes of images that a job of a retrain study may keep on its device."""
        return self._resident_limit(self.studies.study(wildcards["study"]).data)

    def _resident_limit(self, data: str) -> int:
        return round(1000 * self.config.sets[data].resident_limit)

    def training_minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the time limit of a training, a trial of a search, a fine-tuning or a retraining, in minutes."""
        model = self._trained_model(wildcards)
        changes = [{"epochs": model.training["epochs"]}, *model.trials]
        if metric := wildcards.get("metric"):
            changes = [finetuning(model.training, self.config.metrics[metric].training)]
        epochs = max(change.get("epochs", 0) for change in changes)
        return attempt * training_minutes(self.config, model, epochs)

    def training_megabytes(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the memory of a job that trains a model, in MB."""
        return attempt * training_megabytes(self.config, self._trained_model(wildcards))

    def _trained_model(self, wildcards: Wildcards) -> Model:
        study = wildcards.get("study")
        return self.studies.first_model(study) if study else self.config.models[wildcards["model"]]

    # ---- maps and scores

    def attribute(self, wildcards: Wildcards) -> Settings:
        method = self.config.methods[wildcards["method"]]
        model = self.config.models[wildcards["model"]]
        maps = [method.source_of(**select(wildcards, *WILDCARDS))] if isinstance(method, StoredMaps) else []
        return self.settings(
            "attribute",
            [model.function, *self.method_functions(method.name)],
            model=self.explaining_model(model.name, method.name),
            explained=self.explained(wildcards),
            method=method.method,
            registered=method.registered,
            **self.method(method.name),
            **({"maps": maps[0].path} if maps else {}),
            **self.read_files(model, method, others=maps),
            pairs=wildcards["data"] in self.studies.pair_sets,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def respond(self, wildcards: Wildcards) -> Settings:
        metric = self.config.metrics[wildcards["metric"]]
        model = self.config.models[wildcards["model"]]
        return self.settings(
            "respond",
            [model.function, metric.responses],
            model=rebuilding(model),
            **self.read_files(model),
            explained=self.explained(wildcards),
            responses=metric.responses,
            parameters=read_by(metric.responses, metric.parameters),
            noise_group=self.metric_noise_group(metric),
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def score(self, wildcards: Wildcards) -> Settings:
        # The code of the method is included only if the metric calls the method to compute maps.
        metric, method = self.config.metrics[wildcards["metric"]], wildcards["method"]
        model, explains = self.config.models[wildcards["model"]], "explain" in metric.takes
        return self.settings(
            "score",
            [model.function, metric.function, *(self.method_functions(method) if explains else [])],
            model=self.explaining_model(model.name, method) if explains else rebuilding(model),
            function=metric.function,
            parameters=read_by(metric.function, metric.parameters) if metric.metric else metric.parameters,
            takes=metric.takes,
            scores=list(metric.directions),
            noise_group=self.metric_noise_group(metric),
            **({"method": self.method(method)} if explains else {}),
            **self.read_files(model, metric, *([self.config.methods[method]] if explains else [])),
            batch_size=model.batch_size,
            seed=int(wildcards["seed"]),
            device=self.config.device,
        )

    def plot_gallery(self, wildcards: Wildcards) -> Settings:
        study, data = self.studies.study(wildcards["study"]), self.studies.gallery_set(wildcards["study"])
        kind = self.studies.kind(study.name)
        scores = {
            "rated_scores": kind.rated_scores,
            "data": study.data,
            "variants": kind.variants,
            "directions": self.studies.directions(study.name),
            "left_out": self._not_compared(study.name),
            "retrained": kind.retrains_models,
        }
        return self.settings(
            "plot_gallery",
            [kind.rated_scores] if kind.is_rated else [],
            data=data,
            models={model: self.label(self.config.models[model]) for model in study.models},
            methods=study.methods,
            scores=scores if kind.is_rated else {},
            images=min(self.config.report.gallery_images, self.config.sets[data].max_explained_images),
            order=self.config.sets[data].explanation_order,
            where=self._explained_where(data),
            outlined=self._outlined(data),
            seed=self.config.seeds[0],
            labels=self.descriptions.labels(
                study.name, only=("methods", "models", "scores", "entry_scores", "sub_variants")
            ),
        )

    def _not_compared(self, study: str) -> list[str]:
        """Return the baselines of a study and the methods that are the best possible map under a metric."""
        return [*self.studies.baselines(study), *self.references(study)]

    def _outlined(self, data: str) -> str:
        """Return what the masks of a set show; empty if it has none."""
        entry = self.config.sets[data]
        return ("half with the caption" if entry.source else "object") if entry.has_masks else ""

    def plot_training(self, wildcards: Wildcards) -> Settings:
        models = self.studies.models
        labels = self.descriptions.labels_of_models(
            models, {name for model in models for name in self.studies.evaluated_sets(model)}
        )
        return self.settings("plot_training", arms=self._model_seeds(), labels=labels)

    def _model_seeds(self) -> list[list[str | int]]:
        return [[model, seed] for model in self.studies.models for seed in self.config.seeds]

    # ---- reliability, report, export and estimated costs

    def tabulate_reliability(self, wildcards: Wildcards) -> Settings:
        study, kind = self.studies.study(wildcards["study"]), self.studies.kind(wildcards["study"])
        reliability = self.config.reliability
        return self.settings(
            "tabulate_reliability",
            [kind.rated_scores],
            **self._ranking(study.name),
            variants=kind.variants,
            label=self.studies.class_label(study.name),
            baselines=self.studies.baselines(study.name),
            controls=self.studies.controls(study.name),
            resamples=reliability.resamples,
            level=reliability.level,
            metrics=study.metrics,
            printed_alpha=study.printed_alpha,
            printed_correlation=study.printed_correlation,
            families=self._families(study.name)["methods"],
        )

    def _ranking(self, name: str) -> Settings:
        """Return how the methods of a study are ranked, and by which scores."""
        study, kind, reliability = self.studies.study(name), self.studies.kind(name), self.config.reliability
        return {
            "rated_scores": kind.rated_scores,
            "data": study.data,
            "models": study.models,
            "directions": self.studies.directions(name),
            "ranges": self.descriptions.ranges(name),
            "retrained": kind.retrains_models,
            "rule": {
                "by": reliability.ranks,
                "margin": reliability.margin,
                "margin_unit": reliability.margin_unit,
            },
        }

    def _families(self, study: str) -> dict[str, list[Settings]]:
        """Return the families of a study's methods and metrics as plain data."""
        families = self.studies.families(study)
        return {section: list(map(asdict, of_section)) for section, of_section in families.items()}

    def tabulate_sweeps(self, wildcards: Wildcards) -> Settings:
        study = wildcards["study"]
        return self.settings(
            "tabulate_sweeps",
            [self.studies.kind(study).rated_scores],
            **self._ranking(study),
            families=self._families(study),
        )

    def plot_sweep(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "plot_sweep",
            family=self._family(wildcards),
            labels=self.descriptions.labels(wildcards["study"]),
        )

    def sweep_label(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the title of the figure of a family in the report."""
        return {"result": f"Sweep of {self._family(wildcards)['label']}"}

    def _family(self, wildcards: Wildcards) -> Settings:
        families = self._families(wildcards["study"])[wildcards["section"]]
        return next(family for family in families if family["name"] == wildcards["family"])

    def plot_reliability(self, wildcards: Wildcards) -> Settings:
        baselines = self.studies.baselines(wildcards["study"])
        return self.settings(
            "plot_reliability",
            baselines=baselines,
            level=self.config.reliability.level,
            labels=self.descriptions.labels(wildcards["study"]),
        )

    def compare_tasks(self, wildcards: Wildcards) -> Settings:
        fields = ("methods", "metrics", "models", "data", "scores", "entry_scores", "sub_variants")
        return self.settings(
            "compare_tasks", labels=self.descriptions.labels(*self.studies.across_tasks, only=fields)
        )

    def summarize(self, wildcards: Wildcards) -> Settings:
        study = wildcards["study"]
        return self.settings(
            "summarize",
            self._sentences(study),
            study=self.descriptions.study(study),
        )

    def document_methods(self, wildcards: Wildcards) -> Settings:
        studies = self.studies.all
        methods = dict.fromkeys(method for name in studies for method in self.studies.study(name).methods)
        metrics = {metric.name: metric for name in studies for metric in self.studies.metrics(name)}
        described = [self.descriptions.method(self.config.methods[name]) for name in methods]
        passes = [each["passes"] for method in described for each in (method, method.get("base", method))]
        return self.settings(
            "document_methods",
            [function for function in passes if isinstance(function, str)],
            methods=described,
            metrics=[self.descriptions.metric(metric) for metric in metrics.values()],
            gallery_maps=[
                {
                    **gallery_map,
                    "batch": self.config.models[str(gallery_map["model"])].batch_size,
                    "shards": len(self.inputs.shard_suffixes(str(gallery_map["data"]))),
                }
                for gallery_map in self.studies.gallery_maps
            ],
            sets=self.studies.gallery_sets,
            studies=self.studies.rated,
            labels=self.descriptions.labels(*studies),
        )

    def overview(self, wildcards: Wildcards) -> Settings:
        studies = [
            {
                **self.descriptions.study(name),
                "files": {
                    **self.inputs.summary_files({"study": name}),
                    "thumbnails": self.inputs.thumbnails(name),
                    "not_computed": self.paths.not_computed.format(study=name),
                },
                "evaluations": self.inputs.evaluations(name),
                "evidence": self.inputs.evidence_tables(name),
            }
            for name in self.studies.all
        ]
        return self.settings(
            "overview",
            self._sentences(*self.studies.all),
            studies=studies,
            sets=[] if studies else self.studies.gallery_sets,
            models=list(self.config.models),
            labels=self.descriptions.labels(*self.studies.all),
            seeds=self.config.seeds,
            benchmarks=self.paths.benchmarks,
            single_maps=sorted(
                {
                    metric.name
                    for study in self.studies.all
                    for metric in self.studies.metrics(study)
                    if metric.scores_single_maps
                }
            ),
            task_agreement=self.paths.task_agreement if self.studies.across_tasks else "",
        )

    def provenance(self, wildcards: Wildcards) -> Settings:
        configuration = yaml.safe_dump(self.configuration, sort_keys=False, allow_unicode=True)
        return self.settings(
            "provenance",
            sets=self.studies.gallery_sets,
            labels=self.descriptions.labels(*self.studies.all),
            benchmarks=self.paths.benchmarks,
            configuration=configuration,
        )

    def report(self, wildcards: Wildcards) -> Settings:
        return self.settings(
            "report",
            targets=self.inputs.pages(),
            configuration=self.configuration,
        )

    def _sentences(self, *studies: str) -> list[str]:
        """Return the references to the functions that return the sentences on studies of their kinds."""
        kinds = [self.studies.kind(name) for name in studies]
        return sorted({text for kind in kinds for text in (kind.answer, kind.cautions, kind.notes)} - {""})

    def export_scores(self, wildcards: Wildcards) -> Settings:
        study, kind = self.studies.study(wildcards["study"]), self.studies.kind(wildcards["study"])
        return self.settings(
            "export_scores",
            [kind.rated_scores],
            study=study.name,
            rated_scores=kind.rated_scores,
            data=study.data,
            models=study.models,
            label=self.studies.class_label(study.name),
        )

    def table(self, wildcards: Wildcards) -> Settings:
        kinds = {name: self.studies.kind(name) for name in self.studies.rated}
        return self.settings(
            "table",
            sorted({kind.latex for kind in kinds.values()} - {""}),
            studies={
                name: {"kind": kind.name, "printed_table": kind.printed_table, "latex": kind.latex}
                for name, kind in kinds.items()
            },
            arms=self._model_seeds(),
            labels=self.descriptions.labels(*self.studies.all),
            level=self.config.reliability.level,
        )

    def study_workloads(self) -> list[Settings]:
        """Return for each study its targets, its numbers of masks, and benchmarks that estimate its times."""
        return list(map(self._workload, self.studies.all))

    def _workload(self, name: str) -> Settings:
        study, model = self.studies.study(name), self.studies.first_model(name)
        shards = self.config.sets[model.data].shards
        trained: list[list[Any]] = [[f"train/{model.name}", 1], [f"trial/{model.name}", 1]]
        workload: Settings = {
            "name": name,
            "targets": self.inputs.figures(name),
            "mask_stores": [],
            "weights": self.paths.weights.format(model=model.name, seed=self.config.seeds[0]),
            "timed_as": {
                "train": trained,
                "trial": trained[::-1],
                "finetune": [["finetune", 1], *trained],
                "evaluate": [[f"evaluate/{model.name}", 1]],
                "attribute": [[f"attribute/{model.name}", 1 / shards]],
                "respond": [["respond", 1 / shards]],
                "score": [["score", 1 / shards]],
            },
            "models_each": {"train": 1, "trial": 1, "finetune": 1},
            "weights_by": ["train", "finetune"],
        }
        params: StudyParams = self.of_kind(study.kind)
        return params.workload(name, workload)


def rebuilding(model: Model) -> Settings:
    """Return the settings to rebuild a model from its weights file."""
    return {
        "architecture": model.architecture,
        "function": model.function,
        "parameters": model.parameters,
        **({"output": model.output} if model.output != LOGITS else {}),
        **({"multi_label": True} if model.multi_label else {}),
    }


def read_by(function: str, parameters: Mapping[str, Any]) -> Settings:
    """Return the parameters of a metric that ``function`` takes: a change of the others must not rerun its jobs."""
    return {name: value for name, value in parameters.items() if name in declared(function)}


def select(parameters: Mapping[str, Any], *names: str) -> Settings:
    """Return the parameters called ``names``, which a job reads: a change of the others must not rerun it."""
    return {name: parameters[name] for name in names}


def omit(parameters: Mapping[str, Any], *names: str) -> Settings:
    """Return all parameters except those called ``names``."""
    return {name: value for name, value in parameters.items() if name not in names}


def paths_digest(root: Path) -> str:
    """Return the digest of the relative paths of all files below a folder."""
    folders = os.walk(root, followlinks=True)
    return fingerprint(
        sorted(f"{os.path.relpath(place, root)}/{file}" for place, _, files in folders for file in files)
    )
