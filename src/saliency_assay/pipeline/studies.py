"""The studies of a configuration by kind, and the scores, tables and figures that each kind has."""

from saliency_assay.config.records import Comparison, Config, Independence, Metric, Model, Study
from saliency_assay.studies import STUDY_KINDS
from saliency_assay.studies.bam import BAM
from saliency_assay.studies.caption import CAPTION
from saliency_assay.studies.fidelity import FIDELITY
from saliency_assay.studies.kind import StudyKind
from saliency_assay.studies.retrain import RETRAIN
from saliency_assay.studies.retrain.settings import Retraining

RATED_TABLES = ("reliability", "agreement", "order", "consistency", "rankings", "variance")
RATED_FIGURES = ("reliability.svg", "agreement.svg", "order.svg", "consistency.svg", "reliability.html")


class Studies:
    """Names of studies by kind and by what they ask for, in the order of the configuration."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.all = list(config.studies)
        self.bam = self._of_kind(BAM)
        self.caption = self._of_kind(CAPTION)
        self.fidelity = self._of_kind(FIDELITY)
        self.retrain = self._of_kind(RETRAIN)
        self.rated = [name for name in self.all if self.kind(name).is_rated]
        """Studies that score their methods."""
        self.series = [name for name in self.bam if self.comparison(name).series]
        self.delta = [name for name in self.bam if self.comparison(name).independence]
        self.concepts = [name for name in self.bam if self.comparison(name).concepts]
        self.leakage = [name for name in self.retrain if self.retraining(name).leak_iterations]
        self.scatter = [name for name in self.fidelity if self.metric_pairs(name)]
        self.delta_sets = {
            delta_set(name, seed): self.independence(name) for name in self.delta for seed in config.seeds
        }
        """Sets made for one model: images of BAM beside the same images with a change that leaves the model's output
        as it is."""

    def _of_kind(self, kind: StudyKind) -> list[str]:
        return [name for name in self.all if self.kind(name) is kind]

    # ---- records

    def kind(self, name: str) -> StudyKind:
        """Return the record of a study's kind."""
        return STUDY_KINDS[self.study(name).kind]

    def study(self, name: str) -> Study:
        """Return the configuration of a study."""
        return self.config.studies[name]

    def comparison(self, name: str) -> Comparison:
        """Return what a BAM study compares."""
        comparison = self.study(name).comparison
        assert comparison, name
        return comparison

    def independence(self, name: str) -> Independence:
        """Return the settings of the input independence of a BAM study that measures it."""
        independence = self.comparison(name).independence
        assert independence, name
        return independence

    def retraining(self, name: str) -> Retraining:
        """Return what a retrain study occludes."""
        retraining = self.study(name).retraining
        assert retraining, name
        return retraining

    def first_model(self, name: str) -> Model:
        """Return the first model of a study."""
        return self.config.models[self.study(name).models[0]]

    def gallery_set(self, name: str) -> str:
        """Return the set whose images the gallery shows: the one that the study's first model was trained on."""
        return self.first_model(name).data

    @property
    def models(self) -> list[str]:
        """All models that a study explains; without studies all that there are."""
        explained = (model for name in self.all for model in self.study(name).all_models)
        return list(dict.fromkeys(explained) if self.all else self.config.models)

    @property
    def gallery_maps(self) -> list[dict[str, str | int]]:
        """The wildcards of the maps that galleries show: each method of a study once for each of its models."""
        seed = self.config.seeds[0]
        shown = dict.fromkeys(
            (model, self.gallery_set(name), method)
            for name in self.all
            for model in self.study(name).models
            for method in self.study(name).methods
        )
        return [
            {"model": model, "data": data, "method": method, "seed": seed} for model, data, method in shown
        ]

    @property
    def gallery_sets(self) -> list[str]:
        """The sets that galleries show; without studies all sets, which are then built."""
        if not self.all:
            return list(self.config.sets)
        return list(dict.fromkeys(str(wildcards["data"]) for wildcards in self.gallery_maps))

    # ---- BAM

    def variants(self, name: str) -> list[str]:
        """Return the sets on which the metrics of a BAM study are measured beside X_os."""
        return [f"{self.study(name).data}_os_{variant}" for variant in self.comparison(name).robustness]

    def series_sets(self, name: str) -> list[str]:
        """Return the set of each model of a BAM study's series."""
        return [self.config.models[model].data for model in self.comparison(name).series]

    def compared_sets(self, name: str, model: str) -> list[str]:
        """Return the sets of a BAM study on which one of its models is evaluated."""
        study, comparison = self.study(name), self.comparison(name)
        sets = []
        if model in study.models:
            sets += [*(f"{study.data}_{member}" for member in ("os", "0s", "og")), *self.variants(name)]
        if model in comparison.series:
            sets.append(f"{study.data}_0s_k")
        if comparison.independence and model == comparison.independence.model:
            sets.append(f"{study.data}_0s")
        return sets

    def evaluated_sets(self, model: str) -> list[str]:
        """Return the sets that a model is evaluated on: its own, and all of the studies that compare it."""
        own = self.config.models[model].data
        sets = [own]
        for name in self.all:
            if name in self.bam:
                sets += self.compared_sets(name, model)
            elif name in self.caption and model in self.study(name).models:
                sets += self.config.sets[own].sets
        return list(dict.fromkeys(sets))

    # ---- scores

    def metrics(self, name: str) -> list[Metric]:
        """Return the metrics that judge the maps of a study: its kind's, or those that its entry chooses."""
        return [self.config.metrics[metric] for metric in self.kind(name).metrics or self.study(name).metrics]

    def directions(self, name: str) -> dict[str, str]:
        """Return the directions of all scores of a study that rate its methods."""
        metrics = self.metrics(name)
        own = {score.name: score.direction for score in self.kind(name).scores}
        return {
            score: direction for metric in metrics for score, direction in metric.directions.items()
        } | own

    def questions(self, name: str) -> dict[str, str]:
        """Return what each score of a study measures, as a phrase."""
        own = {score.name: score.summary for score in self.kind(name).scores}
        return {
            score: f"{metric.labels[score]}: {metric.summary}"
            if len(metric.directions) > 1
            else metric.summary
            for metric in self.metrics(name)
            for score in metric.directions
        } | own

    def study_question(self, name: str) -> str:
        """Return what a study asks."""
        return self.kind(name).question_for(metric.takes for metric in self.metrics(name))

    def class_label(self, name: str) -> str:
        """Return the label whose classes raters are grouped by: its kind's, or that of the study's model."""
        return self.kind(name).label or self.first_model(name).label

    def baselines(self, name: str) -> list[str]:
        """Return the methods of a study that do not use the model."""
        return [method for method in self.study(name).methods if not self.config.methods[method].uses_model]

    def metric_pairs(self, name: str) -> list[list[str]]:
        """Return the pairs of each of a study's metrics of infidelity with each of its metrics of sensitivity."""
        of_score: dict[str, list[str]] = {"infidelity": [], "sensitivity_max": []}
        for metric in self.study(name).metrics:
            for score in of_score.keys() & self.config.metrics[metric].directions.keys():
                of_score[score].append(metric)
        return [[one, two] for one in of_score["infidelity"] for two in of_score["sensitivity_max"]]

    def metric_figures(self, name: str) -> list[tuple[str, str]]:
        """Return each metric of a fidelity study with each of its figures."""
        metrics = self.study(name).metrics
        return [(metric, figure) for metric in metrics for figure in self.config.metrics[metric].figures]

    # ---- what there is of a study in the report and in the export

    def options(self, name: str) -> list[str]:
        """Return what a study asks for beside what all of its kind have."""
        asking = {
            "series": self.series,
            "concepts": self.concepts,
            "independence": self.delta,
            "leakage": self.leakage,
            "scatter": self.scatter,
        }
        return [option for option, studies in asking.items() if name in studies]

    def summary_tables(self, name: str) -> list[str]:
        """Return the names of the tables that a study's summary reads."""
        rated = ["order", "reliability", "rankings", "agreement"] if name in self.rated else []
        return [*rated, *(table for table in self.kind(name).caution_tables if table in self.tables(name))]

    def claims_tables(self, name: str) -> list[str]:
        """Return the names of the tables of a BAM study by which the paper's claims are checked."""
        return [table for table in BAM.tables(self.options(name)) if table not in ("ranking", "claims")]

    def tables(self, name: str) -> list[str]:
        """Return the names of all tables that are exported of a study."""
        rated = RATED_TABLES if name in self.rated else ()
        return [*self.kind(name).tables(self.options(name)), *rated]

    def figures(self, name: str) -> list[str]:
        """Return the files of a study's figures in the order of the report, relative to the study's folder."""
        patterns = self.kind(name).figures(self.options(name))
        own = dict.fromkeys(
            pattern.format(**values) for pattern in patterns for values in self._figure_wildcards(name)
        )
        return ["study.html", "gallery.html", *own, *(RATED_FIGURES if name in self.rated else ())]

    def _figure_wildcards(self, name: str) -> list[dict[str, str]]:
        """Return what the names of a study's figures vary over: its metrics' figures, or its arms; at least one."""
        if retraining := self.study(name).retraining:
            return [
                {"protocol": protocol, "fill": fill}
                for protocol in retraining.protocols
                for fill in retraining.fills
            ]
        return [{"metric": metric, "figure": figure} for metric, figure in self.metric_figures(name)] or [{}]


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a BAM study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"
