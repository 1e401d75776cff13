"""The input files of rules, where wildcards or the configuration decide them.

A method that is called as a rule takes the wildcards of its job and returns its inputs by name, to be unpacked.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from saliency_assay.config.records import Config, DataEntry, Model
from saliency_assay.pipeline.paths import Paths, expand, flatten
from saliency_assay.pipeline.studies import Studies, delta_set
from saliency_assay.runtime.shards import part_names

Wildcards: TypeAlias = Mapping[str, str]
Files: TypeAlias = dict[str, str | list[str]]

SHARED = "shared"
"""The fill of the masks of f_0, which serve every fill."""


class Inputs:
    """Input files by rule.

    ``ancient`` marks a file whose date is no reason to run a job again, because its digest is among the settings.
    """

    def __init__(
        self, config: Config, paths: Paths, studies: Studies, ancient: Callable[[str], str] = str
    ) -> None:
        self.config = config
        self.paths = paths
        self.studies = studies
        self._ancient = ancient

    # ---- data

    def collect_bam(self, wildcards: Wildcards) -> Files:
        """Return the written sources of synthetic data, or the lists of a user's images."""
        entry = self.config.data[wildcards["collection"]]
        if entry.kind == "embedded":
            return {"sources": self.paths.sources.format(collection=entry.name)}
        return {"lists": [self._ancient(path) for path in image_lists(entry)]}

    def compose_bam(self, wildcards: Wildcards) -> Files:
        """Return the cut-outs and scenes that a set is composed of."""
        collection = self.config.sets[wildcards["data"]].name
        paths = {"cutouts": self.paths.cutouts, "scenes": self.paths.scenes}
        return {name: path.format(collection=collection) for name, path in paths.items()}

    def compose_caption(self, wildcards: Wildcards) -> str:
        """Return the set that captions are written on."""
        return self._data(self.config.sets[wildcards["data"]].source)

    # ---- models

    def trial(self, wildcards: Wildcards) -> Files:
        """Return what a model of a search is trained on and starts from."""
        model = self.config.models[wildcards["model"]]
        return {"data": self._data(model.data), **self._initial_weights(model)}

    def choose(self, wildcards: Wildcards) -> list[str]:
        """Return the results of all trials of a search."""
        trials = range(len(self.config.models[wildcards["model"]].trials))
        return expand(self.paths.trial, model=wildcards["model"], trial=trials)

    def train(self, wildcards: Wildcards) -> Files:
        """Return what a model is trained on, starts from and is trained with."""
        return {**self.trial(wildcards), **self._chosen(self.config.models[wildcards["model"]])}

    def evaluate(self, wildcards: Wildcards) -> list[str]:
        """Return the sets that a model is evaluated on."""
        return expand(self.paths.data, data=self.studies.evaluated_sets(wildcards["model"]))

    def is_result(self, path: str) -> bool:
        """Return whether a job of this run may make the file: then Snakemake knows when it changes."""
        return Path(path).resolve().is_relative_to(Path(self.paths.results).resolve())

    def _initial_weights(self, model: Model) -> Files:
        """Return the file that a training starts from, if not from scratch."""
        if not model.weights:
            return {}
        return {"weights": model.weights if self.is_result(model.weights) else self._ancient(model.weights)}

    def _chosen(self, model: Model) -> Files:
        """Return the file of the chosen settings of a model that is searched for."""
        return {"chosen": self.paths.chosen.format(model=model.name)} if model.trials else {}

    # ---- maps and scores

    def score(self, wildcards: Wildcards) -> Files:
        """Return the model's responses where the metric takes them."""
        takes = self.config.metrics[wildcards["metric"]].takes
        return {"probe": self.paths.probes.format(**wildcards)} if "probed" in takes else {}

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all metrics of a fidelity or caption study."""
        study = self.studies.study(wildcards["study"])
        return self._of_study(self.paths.scores, study.name, study.metrics)

    def study_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of a study's models."""
        models = self.studies.study(wildcards["study"]).models
        return expand(self.paths.predictions, model=models, seed=self.config.seeds)

    def study_data(self, wildcards: Wildcards) -> str:
        """Return the set of a study."""
        return self._data(self.studies.study(wildcards["study"]).data)

    def gallery_data(self, wildcards: Wildcards) -> str:
        """Return the set that a study's gallery shows."""
        return self._data(self.studies.gallery_set(wildcards["study"]))

    def plot_metric(self, wildcards: Wildcards) -> Files:
        """Return the scores of a metric, and the curves and responses of the model where the figure reads them."""
        metric, study = self.config.metrics[wildcards["metric"]], self.studies.study(wildcards["study"])
        reads = metric.figures[wildcards["figure"]].reads
        files: Files = {"scores": self._of_study(self.paths.scores, study.name, [metric.name])}
        if "curves" in reads:
            files["curves"] = self._of_study(self.paths.curves, study.name, [metric.name])
        if "probed" in reads:
            files["probes"] = self.all_parts(
                self.paths.probes,
                study.data,
                metric=metric.name,
                model=study.models[0],
                seed=self.config.seeds,
            )
        return files

    def plot_gallery(self, wildcards: Wildcards) -> Files:
        """Return the images of a study's gallery and the maps of all methods, with the first seed."""
        study = self.studies.study(wildcards["study"])
        data = self.studies.gallery_set(study.name)
        maps = self.all_parts(
            self.paths.maps, data, model=study.models, seed=self.config.seeds[0], method=study.methods
        )
        return {"data": self._data(data), "maps": maps}

    # ---- BAM

    def score_bam(self, wildcards: Wildcards) -> Files:
        """Return maps and predictions of both models on X_os and its variants, and the scene model's maps on X_0s."""
        study = self.studies.study(wildcards["study"])
        f_o, f_s = study.models
        at = {"seed": wildcards["seed"], "method": wildcards["method"]}
        variants = self.studies.variants(study.name)
        maps = self.paths.maps
        return {
            "maps_o_os": self.all_parts(maps, f"{study.data}_os", model=f_o, **at),
            "maps_s_os": self.all_parts(maps, f"{study.data}_os", model=f_s, **at),
            "maps_s_0s": self.all_parts(maps, f"{study.data}_0s", model=f_s, **at),
            "predictions_o": self.paths.predictions.format(model=f_o, seed=wildcards["seed"]),
            "predictions_s": self.paths.predictions.format(model=f_s, seed=wildcards["seed"]),
            "data": self._data(f"{study.data}_os"),
            "data_without": self._data(f"{study.data}_0s"),
            "variant_data": expand(self.paths.data, data=variants),
            "variant_maps_o": flatten(self.all_parts(maps, name, model=f_o, **at) for name in variants),
            "variant_maps_s": flatten(self.all_parts(maps, name, model=f_s, **at) for name in variants),
        }

    def tabulate_bam(self, wildcards: Wildcards) -> Files:
        """Return the scores of all methods of a BAM study, and the predictions of its models."""
        return {
            "scores": self._of_methods(self.paths.bam_scores, wildcards["study"]),
            "predictions": self.study_predictions(wildcards),
        }

    def score_series(self, wildcards: Wildcards) -> Files:
        """Return maps and predictions of each model of the series, and the set whose object is in all scenes."""
        study, seed = wildcards["study"], wildcards["seed"]
        return {
            "maps": self._series_maps(study, seed, wildcards["method"]),
            "predictions": self._series_predictions(study, seed),
            "data": self._data(self.studies.series_sets(study)[-1]),
        }

    def plot_series(self, wildcards: Wildcards) -> Files:
        """Return scores, predictions and sets of a series, and the maps of every method with the first seed."""
        study, seeds = self.studies.study(wildcards["study"]), self.config.seeds
        in_study = study.name in self.studies.concepts
        return {
            "scores": self._of_methods(self.paths.series_scores, study.name),
            "predictions": self._series_predictions(study.name, seeds),
            "concepts": f"{self.paths.tables}/concepts.csv".format(study=study.name) if in_study else [],
            "data": expand(self.paths.data, data=self.studies.series_sets(study.name)),
            "maps": flatten(self._series_maps(study.name, seeds[0], method) for method in study.methods),
        }

    def find_delta(self, wildcards: Wildcards) -> Files:
        """Return the model that is to give the same answer with and without a patch, and the images."""
        model = self.studies.independence(wildcards["study"]).model
        return {
            "weights": self.paths.weights.format(model=model, seed=wildcards["seed"]),
            **self._with_and_without(wildcards["study"], "data", "data_without"),
        }

    def score_independence(self, wildcards: Wildcards) -> Files:
        """Return a method's maps of images with and without the invariant patch, and the model's predictions."""
        model = self.studies.independence(wildcards["study"]).model
        data = delta_set(wildcards["study"], wildcards["seed"])
        at = {"model": model, "seed": wildcards["seed"]}
        return {
            "maps": self.all_parts(self.paths.maps, data, **at, method=wildcards["method"]),
            "data": self._data(data),
            "predictions": self.paths.predictions.format(**at),
        }

    def plot_independence(self, wildcards: Wildcards) -> Files:
        """Return the scores of all methods, the sets with the patches of every seed, and the images without."""
        study = self.studies.study(wildcards["study"])
        return {
            "scores": self._of_methods(self.paths.delta_scores, study.name),
            "deltas": [self._data(delta_set(study.name, seed)) for seed in self.config.seeds],
            "data": self._data(f"{study.data}_os"),
        }

    def plot_pairs(self, wildcards: Wildcards) -> Files:
        """Return the images with and without the invariant patch of the first seed, and all methods' maps of them."""
        study, seed = self.studies.study(wildcards["study"]), self.config.seeds[0]
        data, model = delta_set(study.name, seed), self.studies.independence(study.name).model
        maps = self.all_parts(self.paths.maps, data, model=model, seed=seed, method=study.methods)
        return {"data": self._data(data), "maps": maps}

    def score_concepts(self, wildcards: Wildcards) -> Files:
        """Return images with and without the concept, and those of the model's own set, which are tested."""
        return {
            **self._with_and_without(wildcards["study"], "with_concept", "without"),
            "data": self._data(self.config.models[wildcards["model"]].data),
        }

    def plot_concepts(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of all models whose dependence on the concept is measured."""
        study = self.studies.study(wildcards["study"])
        models = [*study.models, *self.studies.comparison(study.name).series]
        return expand(self.paths.concept_scores, study=study.name, seed=self.config.seeds, model=models)

    def judge_bam(self, wildcards: Wildcards) -> Files:
        """Return the tables by which the paper's claims are checked."""
        tables = self.paths.tables.format(study=wildcards["study"])
        return {name: f"{tables}/{name}.csv" for name in self.studies.claims_tables(wildcards["study"])}

    def _with_and_without(self, study: str, with_object: str, without: str) -> Files:
        """Return a BAM study's set of objects in scenes and its set of the scenes alone, by these names."""
        data = self.studies.study(study).data
        return {with_object: self._data(f"{data}_os"), without: self._data(f"{data}_0s")}

    def _series_maps(self, study: str, seed: int | str, method: str) -> list[str]:
        """Return a method's maps by each model of the series, whose sets are never split."""
        models = zip(self.studies.comparison(study).series, self.studies.series_sets(study), strict=True)
        return flatten(
            self.all_parts(self.paths.maps, data, model=model, seed=seed, method=method)
            for model, data in models
        )

    def _series_predictions(self, study: str, seeds: Iterable[int] | str) -> list[str]:
        return expand(self.paths.predictions, model=self.studies.comparison(study).series, seed=seeds)

    def _of_methods(self, path: str, study: str) -> list[str]:
        """Return a file of each seed and method of a study."""
        methods = self.studies.study(study).methods
        return expand(path, study=study, seed=self.config.seeds, method=methods)

    # ---- retraining

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
            **self._initial_weights(model),
            **self._chosen(model),
            "data": self._data(model.data),
            "first": self.paths.weights.format(model=model.name, seed=wildcards["seed"]),
            "masks": self._masks_before(wildcards, int(wildcards["iteration"])),
        }

    def leak(self, wildcards: Wildcards) -> Files:
        """Return the inputs of ``retrain`` but for initial weights: those have not learned masks."""
        inputs = self.retrain(wildcards)
        return {name: inputs[name] for name in ("data", "masks", "chosen") if name in inputs}

    def score_retrain(self, wildcards: Wildcards) -> Files:
        """Return all of an arm: the masks behind D_I, the predictions of each f_i, and the leakage where measured."""
        retraining = self.studies.retraining(wildcards["study"])
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
        last, seed = self.studies.retraining(study.name).iterations, str(self.config.seeds[0])
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
        return expand(
            self.paths.masks, **{**at, "part": part_names(self.studies.retraining(arm["study"]).shards)}
        )

    def _retrained(self, name: str, arm: Wildcards, iteration: int) -> str:
        """Return a file of f_i; of f_0 that of the study's ordinary model."""
        if iteration:
            return f"{self.paths.retrained}/{name}".format(**{**arm, "iteration": iteration})
        model = self.studies.first_model(arm["study"]).name
        return f"{self.paths.model}/{name}".format(model=model, seed=arm["seed"])

    def _of_arms(self, study: str, path: str, **at: Any) -> list[str]:
        """Return a file of every arm of a retrain study: methods in their order, their seeds together."""
        retraining = self.studies.retraining(study)
        return expand(
            path,
            study=study,
            protocol=retraining.protocols,
            fill=retraining.fills,
            method=self.studies.study(study).methods,
            **at,
            seed=self.config.seeds,
        )

    # ---- reliability, report and export

    def tabulate_reliability(self, wildcards: Wildcards) -> Files:
        """Return the scores that rate a study's methods, and its images' classes."""
        study = self.studies.study(wildcards["study"])
        scores, data = [f"{self.paths.tables}/scores.parquet".format(study=study.name)], study.data
        if study.name in self.studies.bam:
            scores, data = self._of_methods(self.paths.bam_scores, study.name), f"{study.data}_os"
            if study.name in self.studies.delta:
                scores += self._of_methods(self.paths.delta_scores, study.name)
        elif study.name in self.studies.caption:
            scores = self._of_study(self.paths.scores, study.name, ["infidelity_halves"])
        return {"scores": scores, "data": self._data(data)}

    def summarise(self, wildcards: Wildcards) -> Files:
        """Return all that a study's summary reads."""
        evaluations = flatten(self.evaluations(wildcards["study"]).values())
        return {**self.summary_files(wildcards["study"]), "evaluations": evaluations}

    def summary_files(self, study: str) -> Files:
        """Return the data, maps and tables that a study's summary reads, by name."""
        entry, data = self.studies.study(study), self.studies.gallery_set(study)
        first = {"model": entry.models[0], "method": entry.methods[0], "seed": self.config.seeds[0]}
        tables = self.paths.tables.format(study=study)
        return {
            "data": self._data(data),
            "maps": self.all_parts(self.paths.maps, data, **first),
            **{name: f"{tables}/{name}.csv" for name in self.studies.summary_tables(study)},
        }

    def evaluations(self, study: str) -> dict[str, list[str]]:
        """Return the evaluations of each model of a study, by seed."""
        return {
            model: expand(self.paths.evaluation, model=model, seed=self.config.seeds)
            for model in self.studies.study(study).models
        }

    def describe(self) -> Files:
        """Return what maps cost, their sets, and the reliability of metrics."""
        return {
            "costs": self._of_gallery(self.paths.costs),
            "data": expand(self.paths.data, data=self.studies.gallery_sets),
            "reliability": expand(f"{self.paths.tables}/reliability.csv", study=self.studies.rated),
        }

    def plot_training(self) -> Files:
        """Return training curves and evaluations of all models."""
        at = {"model": self.studies.models, "seed": self.config.seeds}
        return {
            "curves": expand(self.paths.training, **at),
            "evaluations": expand(self.paths.evaluation, **at),
        }

    def overview(self) -> Files:
        """Return the files of all summaries, all other figures, and, without studies, all data sets."""
        studies, sets = self.studies.all, [] if self.studies.all else self.studies.gallery_sets
        return {
            "summaries": flatten(file for name in studies for file in self.summary_files(name).values()),
            "evaluations": flatten(paths for name in studies for paths in self.evaluations(name).values()),
            "figures": self.all_figures(),
            "maps": self._of_gallery(self.paths.maps),
            "data": expand(self.paths.data, data=sets),
        }

    def provenance(self) -> Files:
        """Return all figures, and the files that record with which packages, data and settings they were made."""
        return {
            "figures": self.all_figures(),
            "maps": self._of_gallery(self.paths.maps),
            "data": expand(self.paths.data, data=self.studies.gallery_sets),
            "predictions": flatten(map(self._all_predictions, self.studies.all)),
            "scores": flatten(map(self._all_scores, self.studies.all)),
        }

    def report(self) -> list[str]:
        """Return the pages of the report in its order."""
        return [
            f"{self.paths.figures}/overview.html",
            *self.all_figures(),
            f"{self.paths.figures}/provenance.html",
        ]

    def figures(self, study: str) -> list[str]:
        """Return the figures that a study has in the report."""
        return [f"{self.paths.figures}/{study}/{name}" for name in self.studies.figures(study)]

    def all_figures(self) -> list[str]:
        """Return all figures in the order of the report, without the overview and the provenance around them."""
        pages = ["methods.html", "metrics.html"] if self.studies.all else []
        pages += ["training.svg", "accuracy.html"] if self.studies.models else []
        return [
            *flatten(map(self.figures, self.studies.all)),
            *(f"{self.paths.figures}/{name}" for name in pages),
        ]

    def table(self) -> Files:
        """Return the tables of all studies that are exported, and the evaluations of all models."""
        evaluations = self.plot_training()["evaluations"]
        return {"tables": self._tables(self.paths.tables), "evaluations": evaluations}

    def exported_tables(self) -> list[str]:
        """Return the copies of the tables in the export."""
        return self._tables(f"{self.paths.export}/{{study}}")

    def _tables(self, folder: str) -> list[str]:
        return [
            f"{folder.format(study=study)}/{name}.csv"
            for study in self.studies.rated
            for name in self.studies.tables(study)
        ]

    def _all_predictions(self, study: str) -> list[str]:
        """Return the predictions of all models of a study, which record the packages that made the weights."""
        ordinary = self.study_predictions({"study": study})
        if study not in self.studies.retrain:
            return ordinary
        path = f"{self.paths.retrained}/predictions.parquet"
        steps = range(1, self.studies.retraining(study).iterations + 1)
        return [*ordinary, *flatten(self._of_arms(study, path, iteration=step) for step in steps)]

    def _all_scores(self, study: str) -> list[str]:
        """Return the score tables of a study."""
        entry = self.studies.study(study)
        if study in self.studies.bam:
            paths = [self.paths.bam_scores]
            paths += [self.paths.series_scores] if study in self.studies.series else []
            paths += [self.paths.delta_scores] if study in self.studies.delta else []
            return flatten(self._of_methods(path, study) for path in paths)
        if study in self.studies.retrain:
            return self._of_arms(study, self.paths.retrain_scores)
        return self._of_study(self.paths.scores, study, entry.metrics)

    # ---- files in parts

    def all_parts(self, path: str, data: str, **at: Any) -> list[str]:
        """Return the files of a set's parts in their order; where ``at`` has several values, those of each together."""
        return expand(path, data=data, **at, part=self.parts(data))

    def parts(self, data: str) -> list[str]:
        """Return what the files of each part of a set end in; sets made for one model are whole."""
        sets = self.config.sets
        return part_names(sets[data].shards_of(data) if data in sets else 1)

    def _data(self, name: str) -> str:
        return self.paths.data.format(data=name)

    def _of_study(self, path: str, study: str, metrics: Iterable[str]) -> list[str]:
        """Return a file of each metric and model with all methods in their order, the seeds of each together."""
        entry = self.studies.study(study)
        at = {"metric": metrics, "method": entry.methods, "seed": self.config.seeds, "model": entry.models}
        return self.all_parts(path, entry.data, **at)

    def _of_gallery(self, path: str) -> list[str]:
        """Return a file of each method that a gallery shows."""
        return flatten(
            self.all_parts(path, str(at["data"]), **{name: at[name] for name in ("model", "method", "seed")})
            for at in self.studies.gallery_maps
        )


def image_lists(entry: DataEntry) -> list[str]:
    """Return the files that list objects and scenes; the images themselves are too many to be watched one by one."""
    names = ("categories.txt", "train.txt", "val.txt", "object_categories.txt")
    lists = [Path(entry.miniplaces) / name for name in names]
    return [*(annotations for annotations, _ in entry.coco), *(str(path) for path in lists if path.is_file())]
