"""The input files of rules, where wildcards or the configuration decide them.

A method that is called as a rule takes the wildcards of its job and returns its inputs by name, to be unpacked.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from saliency_assay.config.records import Config, DataEntry, Model
from saliency_assay.pipeline.paths import Paths, expand, flatten
from saliency_assay.pipeline.studies import Studies
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.shards import part_names

Wildcards: TypeAlias = Mapping[str, str]
Files: TypeAlias = dict[str, str | list[str]]


class Results:
    """Files of data sets, models and studies.

    ``ancient`` marks a file whose date is no reason to run a job again, because its digest is among the settings.
    """

    def __init__(
        self, config: Config, paths: Paths, studies: Studies, ancient: Callable[[str], str] = str
    ) -> None:
        self.config = config
        self.paths = paths
        self.studies = studies
        self.ancient = ancient

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all metrics of a study."""
        study = self.studies.study(wildcards["study"])
        return self.of_study(self.paths.scores, study.name, study.metrics)

    def study_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of a study's models."""
        models = self.studies.study(wildcards["study"]).models
        return expand(self.paths.predictions, model=models, seed=self.config.seeds)

    def study_data(self, wildcards: Wildcards) -> str:
        """Return the set of a study."""
        return self.data(self.studies.study(wildcards["study"]).data)

    def gallery_data(self, wildcards: Wildcards) -> str:
        """Return the set that a study's gallery shows."""
        return self.data(self.studies.gallery_set(wildcards["study"]))

    def all_parts(self, path: str, data: str, **at: Any) -> list[str]:
        """Return the files of a set's parts in their order; where ``at`` has several values, those of each together."""
        return expand(path, data=data, **at, part=self.parts(data))

    def parts(self, data: str) -> list[str]:
        """Return what the files of each part of a set end in; sets made for one model are whole."""
        sets = self.config.sets
        return part_names(sets[data].shards_of(data) if data in sets else 1)

    def data(self, name: str) -> str:
        """Return the store of a set."""
        return self.paths.data.format(data=name)

    def of_study(self, path: str, study: str, metrics: Iterable[str]) -> list[str]:
        """Return a file of each metric and model with all methods in their order, the seeds of each together."""
        entry = self.studies.study(study)
        at = {"metric": metrics, "method": entry.methods, "seed": self.config.seeds, "model": entry.models}
        return self.all_parts(path, entry.data, **at)

    def of_methods(self, path: str, study: str) -> list[str]:
        """Return a file of each seed and method of a study."""
        methods = self.studies.study(study).methods
        return expand(path, study=study, seed=self.config.seeds, method=methods)

    def initial_weights(self, model: Model) -> Files:
        """Return the file that a training starts from, if not from scratch."""
        if not model.weights:
            return {}
        return {"weights": model.weights if self.is_result(model.weights) else self.ancient(model.weights)}

    def chosen(self, model: Model) -> Files:
        """Return the file of the chosen settings of a model that is searched for."""
        return {"chosen": self.paths.chosen.format(model=model.name)} if model.trials else {}

    def is_result(self, path: str) -> bool:
        """Return whether a job of this run may make the file: then Snakemake knows when it changes."""
        return Path(path).resolve().is_relative_to(Path(self.paths.results).resolve())


class StudyInputs(Results):
    """Inputs of the rules of a kind of study, and the files of its studies that other rules read."""

    def rating(self, study: str) -> Files:
        """Return the scores that rate a study's methods, and the images that they are of."""
        entry = self.studies.study(study)
        scores = f"{self.paths.tables}/scores.parquet".format(study=study)
        return {"scores": [scores], "data": self.data(entry.data)}

    def scores(self, study: str) -> list[str]:
        """Return the score tables of all jobs of a study."""
        return self.of_study(self.paths.scores, study, self.studies.study(study).metrics)

    def predictions(self, study: str) -> list[str]:
        """Return the predictions of all models of a study, which record the packages that made the weights."""
        return self.study_predictions({"study": study})


class Inputs(Results):
    """Input files by rule, of rules that all kinds of study share."""

    def of_kind(self, kind: str) -> Any:
        """Return the inputs of the rules of a kind of study."""
        inputs = resolve(self.studies.kinds[kind].inputs)
        return inputs(self.config, self.paths, self.studies, self.ancient)

    def _of(self, study: str) -> StudyInputs:
        of: StudyInputs = self.of_kind(self.studies.study(study).kind)
        return of

    # ---- data

    def collect_bam(self, wildcards: Wildcards) -> Files:
        """Return the written sources of synthetic data, or the lists of a user's images."""
        entry = self.config.data[wildcards["collection"]]
        if entry.kind == "embedded":
            return {"sources": self.paths.sources.format(collection=entry.name)}
        return {"lists": [self.ancient(path) for path in image_lists(entry)]}

    def compose_bam(self, wildcards: Wildcards) -> Files:
        """Return the cut-outs and scenes that a set is composed of."""
        collection = self.config.sets[wildcards["data"]].name
        paths = {"cutouts": self.paths.cutouts, "scenes": self.paths.scenes}
        return {name: path.format(collection=collection) for name, path in paths.items()}

    def compose_caption(self, wildcards: Wildcards) -> str:
        """Return the set that captions are written on."""
        return self.data(self.config.sets[wildcards["data"]].source)

    # ---- models

    def trial(self, wildcards: Wildcards) -> Files:
        """Return what a model of a search is trained on and starts from."""
        model = self.config.models[wildcards["model"]]
        return {"data": self.data(model.data), **self.initial_weights(model)}

    def choose(self, wildcards: Wildcards) -> list[str]:
        """Return the results of all trials of a search."""
        trials = range(len(self.config.models[wildcards["model"]].trials))
        return expand(self.paths.trial, model=wildcards["model"], trial=trials)

    def train(self, wildcards: Wildcards) -> Files:
        """Return what a model is trained on, starts from and is trained with."""
        return {**self.trial(wildcards), **self.chosen(self.config.models[wildcards["model"]])}

    def evaluate(self, wildcards: Wildcards) -> list[str]:
        """Return the sets that a model is evaluated on."""
        return expand(self.paths.data, data=self.studies.evaluated_sets(wildcards["model"]))

    # ---- maps and scores

    def score(self, wildcards: Wildcards) -> Files:
        """Return the model's responses where the metric takes them."""
        takes = self.config.metrics[wildcards["metric"]].takes
        return {"probe": self.paths.probes.format(**wildcards)} if "probed" in takes else {}

    def plot_gallery(self, wildcards: Wildcards) -> Files:
        """Return the images of a study's gallery and the maps of all methods, with the first seed."""
        study = self.studies.study(wildcards["study"])
        data = self.studies.gallery_set(study.name)
        maps = self.all_parts(
            self.paths.maps, data, model=study.models, seed=self.config.seeds[0], method=study.methods
        )
        return {"data": self.data(data), "maps": maps}

    # ---- reliability, report and export

    def tabulate_reliability(self, wildcards: Wildcards) -> Files:
        """Return the scores that rate a study's methods, and its images' classes."""
        return self._of(wildcards["study"]).rating(wildcards["study"])

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
            "data": self.data(data),
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
            "predictions": flatten(self._of(study).predictions(study) for study in self.studies.all),
            "scores": flatten(self._of(study).scores(study) for study in self.studies.all),
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
