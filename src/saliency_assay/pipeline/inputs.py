"""The input files of rules, where wildcards or the configuration decide them.

A method that takes the wildcards of a job is named by what it returns: one input, a path or a list of paths. Only where
the names of a rule's inputs vary, it returns them by name, to be unpacked.
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

    # ---- inputs of rules

    def study_data(self, wildcards: Wildcards) -> str:
        """Return the set of a study."""
        return self.data(self.studies.study(wildcards["study"]).data)

    def gallery_data(self, wildcards: Wildcards) -> str:
        """Return the set that a study's gallery shows."""
        return self.data(self.studies.gallery_set(wildcards["study"]))

    def model_data(self, wildcards: Wildcards) -> str:
        """Return the set that a job's model is trained on."""
        return self.data(self.model(wildcards).data)

    def initial_weights(self, wildcards: Wildcards) -> Files:
        """Return the file that a training starts from, if not from scratch."""
        weights = self.model(wildcards).weights
        if not weights:
            return {}
        return {"weights": weights if self.is_result(weights) else self.ancient(weights)}

    def chosen(self, wildcards: Wildcards) -> Files:
        """Return the file of the chosen settings of a model that is searched for."""
        model = self.model(wildcards)
        return {"chosen": self.paths.chosen.format(model=model.name)} if model.trials else {}

    # ---- files by the names of sets, studies and models

    def model(self, wildcards: Wildcards) -> Model:
        """Return the model of a job."""
        return self.config.models[wildcards["model"]]

    def data(self, name: str) -> str:
        """Return the store of a set."""
        return self.paths.data.format(data=name)

    def parts(self, data: str) -> list[str]:
        """Return what the files of each part of a set end in; sets made for one model are whole."""
        sets = self.config.sets
        return part_names(sets[data].shards_of(data) if data in sets else 1)

    def all_parts(self, path: str, data: str, **at: Any) -> list[str]:
        """Return the files of a set's parts in their order; where ``at`` has several values, those of each together."""
        return expand(path, data=data, **at, part=self.parts(data))

    def of_study(self, path: str, study: str, metrics: Iterable[str]) -> list[str]:
        """Return a file of each metric and model with all methods in their order, the seeds of each together."""
        entry = self.studies.study(study)
        at = {"metric": metrics, "method": entry.methods, "seed": self.config.seeds, "model": entry.models}
        return self.all_parts(path, entry.data, **at)

    def is_result(self, path: str) -> bool:
        """Return whether a job of this run may make the file: then Snakemake knows when it changes."""
        return Path(path).resolve().is_relative_to(Path(self.paths.results).resolve())


class StudyInputs(Results):
    """Inputs of the rules of a kind of study, and the files of its studies that other rules read."""

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all jobs of a study."""
        study = self.studies.study(wildcards["study"])
        return self.of_study(self.paths.scores, study.name, study.metrics)

    def study_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of all models of a study, which record the packages that made the weights."""
        models = self.studies.study(wildcards["study"]).models
        return expand(self.paths.predictions, model=models, seed=self.config.seeds)

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that rate a study's methods."""
        return [f"{self.paths.tables}/scores.parquet".format(**wildcards)]

    def rated_data(self, wildcards: Wildcards) -> str:
        """Return the images that methods are rated on."""
        return self.study_data(wildcards)


class Inputs(Results):
    """Inputs of rules that all kinds of study share; ``all_`` are those of all studies."""

    def of_kind(self, kind: str) -> Any:
        """Return the inputs of the rules of a kind of study."""
        inputs = resolve(self.studies.kinds[kind].inputs)
        return inputs(self.config, self.paths, self.studies, self.ancient)

    def _of(self, study: str) -> StudyInputs:
        of: StudyInputs = self.of_kind(self.studies.study(study).kind)
        return of

    # ---- data and models

    def collect_bam(self, wildcards: Wildcards) -> Files:
        """Return the written sources of synthetic data, or the lists of a user's images."""
        entry = self.config.data[wildcards["collection"]]
        if entry.kind == "synthetic":
            return {"sources": self.paths.sources.format(collection=entry.name)}
        return {"lists": [self.ancient(path) for path in image_lists(entry)]}

    def cutouts(self, wildcards: Wildcards) -> str:
        """Return the cut-outs that a set is composed of."""
        return self.paths.cutouts.format(collection=self.config.sets[wildcards["data"]].name)

    def scenes(self, wildcards: Wildcards) -> str:
        """Return the scenes that a set is composed of."""
        return self.paths.scenes.format(collection=self.config.sets[wildcards["data"]].name)

    def without_captions(self, wildcards: Wildcards) -> str:
        """Return the set that captions are written on."""
        return self.data(self.config.sets[wildcards["data"]].source)

    def trials(self, wildcards: Wildcards) -> list[str]:
        """Return the results of all trials of a search."""
        trials = range(len(self.model(wildcards).trials))
        return expand(self.paths.trial, model=wildcards["model"], trial=trials)

    def evaluated_data(self, wildcards: Wildcards) -> list[str]:
        """Return the sets that a model is evaluated on."""
        return expand(self.paths.data, data=self.studies.evaluated_sets(wildcards["model"]))

    # ---- maps and scores

    def responses(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model's responses where the metric takes them."""
        takes = self.config.metrics[wildcards["metric"]].takes
        return self.paths.responses.format(**wildcards) if "responses" in takes else []

    def gallery_maps(self, wildcards: Wildcards) -> list[str]:
        """Return the maps of all methods that a study's gallery shows, with the first seed."""
        study, seed = self.studies.study(wildcards["study"]), self.config.seeds[0]
        data = self.studies.gallery_set(study.name)
        return self.all_parts(self.paths.maps, data, model=study.models, seed=seed, method=study.methods)

    # ---- reliability and summaries

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that rate a study's methods."""
        return self._of(wildcards["study"]).rated_scores(wildcards)

    def rated_data(self, wildcards: Wildcards) -> str:
        """Return the images that methods are rated on."""
        return self._of(wildcards["study"]).rated_data(wildcards)

    def summary_files(self, wildcards: Wildcards) -> Files:
        """Return the data, maps and tables that a study's summary reads, by name."""
        name = wildcards["study"]
        study, data = self.studies.study(name), self.studies.gallery_set(name)
        first = {"model": study.models[0], "method": study.methods[0], "seed": self.config.seeds[0]}
        tables = self.paths.tables.format(study=name)
        return {
            "data": self.data(data),
            "maps": self.all_parts(self.paths.maps, data, **first),
            **{table: f"{tables}/{table}.csv" for table in self.studies.summary_tables(name)},
        }

    def study_evaluations(self, wildcards: Wildcards) -> list[str]:
        """Return the evaluations of each model of a study, by seed."""
        return flatten(self.evaluations(wildcards["study"]).values())

    def evaluations(self, study: str) -> dict[str, list[str]]:
        """Return the evaluations of each model of a study, by seed."""
        return {
            model: expand(self.paths.evaluation, model=model, seed=self.config.seeds)
            for model in self.studies.study(study).models
        }

    # ---- report and export

    def all_summary_files(self) -> list[str]:
        """Return the files that the summaries of all studies read."""
        files = (self.summary_files({"study": name}) for name in self.studies.all)
        return flatten(file for each in files for file in each.values())

    def all_evaluations(self) -> list[str]:
        """Return the evaluations of the models of all studies."""
        return flatten(self.study_evaluations({"study": name}) for name in self.studies.all)

    def all_predictions(self) -> list[str]:
        """Return the predictions of the models of all studies."""
        return flatten(self._of(name).study_predictions({"study": name}) for name in self.studies.all)

    def all_scores(self) -> list[str]:
        """Return the score tables of all studies."""
        return flatten(self._of(name).study_scores({"study": name}) for name in self.studies.all)

    def all_maps(self) -> list[str]:
        """Return the maps that galleries show."""
        return self._of_galleries(self.paths.maps)

    def all_costs(self) -> list[str]:
        """Return what the maps that galleries show cost."""
        return self._of_galleries(self.paths.costs)

    def _of_galleries(self, path: str) -> list[str]:
        return flatten(
            self.all_parts(path, str(at["data"]), **{name: at[name] for name in ("model", "method", "seed")})
            for at in self.studies.gallery_maps
        )

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

    def pages(self) -> list[str]:
        """Return the pages of the report in its order."""
        return [
            f"{self.paths.figures}/overview.html",
            *self.all_figures(),
            f"{self.paths.figures}/provenance.html",
        ]

    def all_tables(self) -> list[str]:
        """Return the tables of all studies that are exported."""
        return self._tables(self.paths.tables)

    def exported_tables(self) -> list[str]:
        """Return the copies of the tables in the export."""
        return self._tables(f"{self.paths.export}/{{study}}")

    def _tables(self, folder: str) -> list[str]:
        return [
            f"{folder.format(study=study)}/{name}.csv"
            for study in self.studies.rated
            for name in self.studies.tables(study)
        ]


def image_lists(entry: DataEntry) -> list[str]:
    """Return the files that list objects and scenes; the images themselves are too many to be watched one by one."""
    names = ("categories.txt", "train.txt", "val.txt", "object_categories.txt")
    lists = [Path(entry.miniplaces) / name for name in names]
    return [*(annotations for annotations, _ in entry.coco), *(str(path) for path in lists if path.is_file())]
