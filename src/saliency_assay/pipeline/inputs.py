"""Input files of rules that depend on wildcards or on the configuration.

A method that takes the wildcards of a job has the name of the input that it returns, a path or a list of paths. Methods
that return a mapping of input names to paths are for rules whose input names vary; rules unpack them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from saliency_assay.config.configuration import Configuration
from saliency_assay.config.data import BamData
from saliency_assay.config.models import Model
from saliency_assay.pipeline.paths import Paths, expand, flatten
from saliency_assay.pipeline.studies import Studies
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.shards import shard_suffixes

Wildcards: TypeAlias = Mapping[str, str]
Files: TypeAlias = dict[str, str | list[str]]


class Results:
    """Files of data sets, models and studies.

    The user's files are no inputs: their digests are part of the settings of jobs (``runtime.user_files``).
    """

    def __init__(self, config: Configuration, paths: Paths, studies: Studies) -> None:
        self.config = config
        self.paths = paths
        self.studies = studies

    # ---- inputs of rules

    def study_data(self, wildcards: Wildcards) -> str:
        """Return the set of a study."""
        return self.data(self.studies.study(wildcards["study"]).data)

    def gallery_data(self, wildcards: Wildcards) -> str:
        """Return the set that a study's gallery shows."""
        return self.data(self.studies.gallery_set(wildcards["study"]))

    def model_data(self, wildcards: Wildcards) -> str:
        """Return the training set of a job's model."""
        return self.data(self.model(wildcards).data)

    def initial_weights(self, wildcards: Wildcards) -> Files:
        """Return the file of initial weights of a job's model if another job makes it; others are settings."""
        model = self.model(wildcards)
        if model.finetuned_from:
            return {"weights": self.paths.weights.format(model=model.finetuned_from, seed=wildcards["seed"])}
        weights = model.weights
        return {"weights": weights} if weights and self.is_result(weights) else {}

    def hyperparameters(self, wildcards: Wildcards) -> Files:
        """Return the file of the hyperparameters selected for a job's model; empty if there is no search."""
        model = self.model(wildcards)
        return (
            {"hyperparameters": self.paths.hyperparameters.format(model=model.name)} if model.trials else {}
        )

    def finetuned(self, wildcards: Wildcards) -> str | list[str]:
        """Return the weights of the fine-tuned model if the metric takes one, else nothing."""
        takes = self.config.metrics[wildcards["metric"]].takes
        return self.paths.finetuned.format(**wildcards) if "finetuned_model" in takes else []

    # ---- files by the names of sets, studies and models

    def model(self, wildcards: Wildcards) -> Model:
        """Return the model of a job."""
        return self.config.models[wildcards["model"]]

    def data(self, name: str) -> str:
        """Return the Zarr store of a set."""
        return self.paths.data.format(data=name)

    def shard_suffixes(self, data: str) -> list[str]:
        """Return the file name suffix of each shard of a set; sets made for one model are not split."""
        sets = self.config.sets
        return shard_suffixes(sets[data].shards_of(data) if data in sets else 1)

    def all_shards(self, path: str, data: str, **wildcards: Any) -> list[str]:
        """Return the files of all shards of a set, in order.

        If a wildcard has several values, the shards of each combination are next to each other.
        """
        return expand(path, data=data, **wildcards, shard=self.shard_suffixes(data))

    def of_study(self, path: str, study: str, metrics: Iterable[str]) -> list[str]:
        """Return the files of a study for all ``metrics``, methods, seeds and models, ordered by these in turn."""
        entry = self.studies.study(study)
        wildcards = {
            "metric": metrics,
            "method": entry.methods,
            "seed": self.config.seeds,
            "model": entry.models,
        }
        return self.all_shards(path, entry.data, **wildcards)

    def is_result(self, path: str) -> bool:
        """Return True if the file is in the folder of results, where jobs make it and Snakemake tracks its changes."""
        return Path(path).resolve().is_relative_to(Path(self.paths.results).resolve())


class StudyInputs(Results):
    """Inputs of the rules of one kind of study, and files of its studies that other rules read."""

    def study_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score tables of all jobs of a study."""
        study = self.studies.study(wildcards["study"])
        return self.of_study(self.paths.scores, study.name, study.metrics)

    def method_files(self, wildcards: Wildcards) -> list[str]:
        """Return the files of all jobs of a study that score methods."""
        return self.study_scores(wildcards)

    def study_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of all models of a study, which record the package versions of the training."""
        models = self.studies.study(wildcards["study"]).models
        return expand(self.paths.predictions, model=models, seed=self.config.seeds)

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that rate a study's methods."""
        return [f"{self.paths.tables}/scores.parquet".format(**wildcards)]

    def rated_data(self, wildcards: Wildcards) -> str:
        """Return the data set on which methods are rated."""
        return self.study_data(wildcards)


class Inputs(Results):
    """Inputs of rules that all kinds of study share; methods called ``all_…`` return files of all studies."""

    def of_kind(self, kind: str) -> Any:
        """Return the inputs of the rules of a kind of study."""
        inputs = resolve(self.studies.kinds[kind].inputs)
        return inputs(self.config, self.paths, self.studies)

    def _study_inputs(self, study: str) -> StudyInputs:
        """Return the inputs of the rules of a study's kind."""
        inputs: StudyInputs = self.of_kind(self.studies.study(study).kind)
        return inputs

    # ---- data and models

    def collect_bam(self, wildcards: Wildcards) -> Files:
        """Return the generated sources of synthetic data; the folders of real images are settings."""
        entry = self.config.data[wildcards["collection"]]
        return (
            {}
            if isinstance(entry, BamData)
            else {"sources": self.paths.sources.format(collection=entry.name)}
        )

    def cutouts(self, wildcards: Wildcards) -> str:
        """Return the cut-out objects of a composed set."""
        return self.paths.cutouts.format(collection=self.config.sets[wildcards["data"]].name)

    def scenes(self, wildcards: Wildcards) -> str:
        """Return the scenes of a composed set."""
        return self.paths.scenes.format(collection=self.config.sets[wildcards["data"]].name)

    def without_captions(self, wildcards: Wildcards) -> str:
        """Return the set of the images without captions."""
        return self.data(self.config.sets[wildcards["data"]].source)

    def trials(self, wildcards: Wildcards) -> list[str]:
        """Return the results of all trials of a search."""
        trials = range(len(self.model(wildcards).trials))
        return expand(self.paths.trial, model=wildcards["model"], trial=trials)

    def evaluated_data(self, wildcards: Wildcards) -> list[str]:
        """Return the sets on which a model is evaluated."""
        return expand(self.paths.data, data=self.studies.evaluated_sets(wildcards["model"]))

    # ---- maps and scores

    def responses(self, wildcards: Wildcards) -> str | list[str]:
        """Return the model responses if the metric takes them, else nothing."""
        takes = self.config.metrics[wildcards["metric"]].takes
        return self.paths.responses.format(**wildcards) if "responses" in takes else []

    def gallery_maps(self, wildcards: Wildcards) -> list[str]:
        """Return the maps in a study's gallery: those of all methods, with the first seed."""
        study, seed = self.studies.study(wildcards["study"]), self.config.seeds[0]
        data = self.studies.gallery_set(study.name)
        return self.all_shards(self.paths.maps, data, model=study.models, seed=seed, method=study.methods)

    def gallery_predictions(self, wildcards: Wildcards) -> list[str]:
        """Return the predictions of a study's models with the first seed, whose maps its gallery shows."""
        models = self.studies.study(wildcards["study"]).models
        return expand(self.paths.predictions, model=models, seed=self.config.seeds[0])

    def gallery_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that rate a study's methods, if they are scores of the images in its gallery."""
        is_rated = wildcards["study"] in self.studies.rated
        if not is_rated or self.rated_data(wildcards) != self.gallery_data(wildcards):
            return []
        return self.rated_scores(wildcards)

    def gallery_tables(self, wildcards: Wildcards) -> Files:
        """Return the tables from which the verdicts on these scores follow."""
        tables = self.paths.tables.format(study=wildcards["study"])
        names = ("order", "pairs", "reliability") if self.gallery_scores(wildcards) else ()
        return {name: f"{tables}/{name}.csv" for name in names}

    # ---- reliability and summaries

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that rate a study's methods."""
        return self._study_inputs(wildcards["study"]).rated_scores(wildcards)

    def rated_data(self, wildcards: Wildcards) -> str:
        """Return the data set on which methods are rated."""
        return self._study_inputs(wildcards["study"]).rated_data(wildcards)

    def summary_files(self, wildcards: Wildcards) -> Files:
        """Return the data, maps and tables that a study's summary reads, by input name."""
        name = wildcards["study"]
        study, data = self.studies.study(name), self.studies.gallery_set(name)
        first = {"model": study.models[0], "method": study.methods[0], "seed": self.config.seeds[0]}
        tables = self.paths.tables.format(study=name)
        return {
            "data": self.data(data),
            "maps": self.all_shards(self.paths.maps, data, **first),
            **{table: f"{tables}/{table}.csv" for table in self.studies.summary_tables(name)},
        }

    def method_files(self, wildcards: Wildcards) -> list[str]:
        """Return the maps in a study's gallery and the files of all jobs that score its methods."""
        files = self._study_inputs(wildcards["study"]).method_files(wildcards)
        return [*self.gallery_maps(wildcards), *files]

    def all_not_computed(self) -> list[str]:
        """Return the tables of what the studies lack because their methods or metrics failed."""
        return expand(self.paths.not_computed, study=self.studies.all)

    def study_evaluations(self, wildcards: Wildcards) -> list[str]:
        """Return the evaluations of all models of a study, the seeds of each together."""
        return flatten(self.evaluations(wildcards["study"]).values())

    def evaluations(self, study: str) -> dict[str, list[str]]:
        """Return for each model of a study its evaluations, one for each seed."""
        return {
            model: expand(self.paths.evaluation, model=model, seed=self.config.seeds)
            for model in self.studies.study(study).all_models
        }

    def across_tasks(self, table: str) -> list[str]:
        """Return a table of each study whose order of methods is compared with that of another model or data set."""
        return expand(f"{self.paths.tables}/{table}.csv", study=self.studies.across_tasks)

    def all_trust(self) -> list[str]:
        """Return the table of the evidence on metrics; nothing if no study has any."""
        return [self.paths.trust] if self.studies.evidenced else []

    def exported_trust(self) -> list[str]:
        """Return the copy of this table in the export."""
        return [f"{self.paths.export}/trust.csv"] if self.studies.evidenced else []

    def evidence_tables(self, study: str) -> dict[str, str]:
        """Return the tables of a study that contain evidence on its metrics, by name."""
        folder = self.paths.tables.format(study=study)
        return {name: f"{folder}/{name}.csv" for name in self.studies.evidence(study)}

    def all_evidence(self) -> list[str]:
        """Return the tables of all studies that contain evidence on metrics, and that of the agreement of tasks."""
        tables = [path for study in self.studies.all for path in self.evidence_tables(study).values()]
        return [*tables, *([self.paths.task_agreement] if self.studies.across_tasks else [])]

    # ---- report and export

    def all_summary_files(self) -> list[str]:
        """Return the files that the summaries of all studies read."""
        files = (self.summary_files({"study": name}) for name in self.studies.all)
        return flatten(file for study_files in files for file in study_files.values())

    def all_evaluations(self) -> list[str]:
        """Return the evaluations of the models of all studies."""
        return flatten(self.study_evaluations({"study": name}) for name in self.studies.all)

    def all_predictions(self) -> list[str]:
        """Return the predictions of the models of all studies."""
        return flatten(
            self._study_inputs(name).study_predictions({"study": name}) for name in self.studies.all
        )

    def all_scores(self) -> list[str]:
        """Return the score tables of all studies."""
        return flatten(self._study_inputs(name).study_scores({"study": name}) for name in self.studies.all)

    def all_maps(self) -> list[str]:
        """Return the maps in all galleries."""
        return self._gallery_files(self.paths.maps)

    def all_costs(self) -> list[str]:
        """Return the cost files of the maps in all galleries."""
        return self._gallery_files(self.paths.costs)

    def _gallery_files(self, path: str) -> list[str]:
        return flatten(
            self.all_shards(
                path,
                str(wildcards["data"]),
                **{name: wildcards[name] for name in ("model", "method", "seed")},
            )
            for wildcards in self.studies.gallery_maps
        )

    def figures(self, study: str) -> list[str]:
        """Return the figures of a study in the report."""
        return [f"{self.paths.figures}/{study}/{name}" for name in self.studies.figures(study)]

    def thumbnails(self, study: str) -> str:
        """Return the images and maps of a study's gallery for pages of the report."""
        return f"{self.paths.figures}/{study}/gallery.json"

    def all_thumbnails(self) -> list[str]:
        """Return the images and maps of the galleries of all studies."""
        return list(map(self.thumbnails, self.studies.all))

    def all_figures(self) -> list[str]:
        """Return all figures in the order of the report, without overview, trust, tasks and provenance."""
        pages = ["methods.html", "metrics.html"] if self.studies.all else []
        epochs = [self.config.models[name].training["epochs"] for name in self.studies.models]
        pages += ["training.svg"] if any(epochs) else []
        pages += ["accuracy.html"] if epochs else []
        return [
            *flatten(map(self.figures, self.studies.all)),
            *(f"{self.paths.figures}/{name}" for name in pages),
        ]

    def pages(self) -> list[str]:
        """Return the pages of the report in its order."""
        names = ["overview.html", *(["trust.html"] if self.studies.evidenced else [])]
        names += ["across.html"] if self.studies.across_tasks else []
        return [
            *(f"{self.paths.figures}/{name}" for name in names),
            *self.all_figures(),
            f"{self.paths.figures}/provenance.html",
        ]

    def all_tables(self) -> list[str]:
        """Return the tables of all studies that are exported."""
        return self._table_files(self.paths.tables)

    def exported_tables(self) -> list[str]:
        """Return the copies of the tables in the export."""
        return self._table_files(f"{self.paths.export}/{{study}}")

    def vector_figures(self) -> list[str]:
        """Return all figures that are SVG files."""
        return [path for path in self.all_figures() if path.endswith(".svg")]

    def exported_figures(self) -> list[str]:
        """Return the PDF files of the figures in the export."""
        return [
            f"{self.paths.export}/figures{path.removeprefix(self.paths.figures).removesuffix('.svg')}.pdf"
            for path in self.vector_figures()
        ]

    def vector_galleries(self) -> list[str]:
        """Return the PDF files of all galleries."""
        return [f"{self.paths.figures}/{study}/gallery.pdf" for study in self.studies.all]

    def exported_galleries(self) -> list[str]:
        """Return the copies of the galleries in the export."""
        return [f"{self.paths.export}/figures/{study}/gallery.pdf" for study in self.studies.all]

    def exported_scores(self) -> list[str]:
        """Return the scores of single images of all studies but those that retrain models, which are too many."""
        return [
            f"{self.paths.export}/{study}/scores.csv"
            for study in self.studies.rated
            if not self.studies.kind(study).retrains_models
        ]

    def _table_files(self, folder: str) -> list[str]:
        return [
            f"{folder.format(study=study)}/{name}.csv"
            for study in self.studies.all
            for name in self.studies.tables(study)
        ]
