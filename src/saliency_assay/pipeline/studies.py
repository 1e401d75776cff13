"""Studies of a configuration, with their scores, tables and figures."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from saliency_assay.config.configuration import Configuration
from saliency_assay.config.metrics import Metric
from saliency_assay.config.models import Model
from saliency_assay.config.studies import Study
from saliency_assay.config.sweeps import families
from saliency_assay.registry.controls import LOWER_CONTROL, UPPER_CONTROL
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.registry.sweeps import Family

RATED_TABLES = (
    *("reliability", "agreement", "order", "pairs", "consistency", "rankings", "variance"),
    "controls",
)
EVIDENCE_TABLES = ("known_order", "meta_consistency", "metric_truth")
"""Tables of some kinds of study that contain evidence on metrics, see ``reliability.evidence``."""
RATED_FIGURES = (
    *("order.svg", "score_pairs.svg", "reliability.svg", "agreement.svg", "consistency.svg"),
    "reliability.html",
)
LEAST_METHODS = 3
"""Fewest methods whose orders under two tasks are compared, as in ``reliability.raters``."""
SWEEP_TABLES = ("sweeps", "metric_sweeps")
"""Additional tables of rated studies with families of methods or metrics."""
SWEEP_FIGURE = "{section}_sweep_{family}.svg"
"""Their figures; ``section`` is ``methods`` or ``metrics``."""


class Studies:
    """Studies by name, in the order of the configuration."""

    def __init__(self, config: Configuration, kinds: Mapping[str, StudyKind]) -> None:
        self.config = config
        self.kinds = kinds
        self.all = list(config.studies)
        self.rated = [name for name in self.all if self.kind(name).is_rated]
        """Studies whose methods are rated by scores."""
        self.pair_sets = {
            name: pairs for study in config.studies.values() for name, pairs in study.pair_sets.items()
        }
        """For each set of image pairs (original and modified copy) that a study creates, the number of pairs."""
        self.swept = [name for name in self.rated if any(self.families(name).values())]
        """Rated studies with families of methods or metrics."""

    def of_kind(self, kind: str, option: str = "") -> list[str]:
        """Return the studies of a kind; with ``option``, only those that have it."""
        return [
            name
            for name, study in self.config.studies.items()
            if study.kind == kind and (not option or option in study.options)
        ]

    def kind(self, name: str) -> StudyKind:
        """Return the record of a study's kind."""
        return self.kinds[self.study(name).kind]

    def study(self, name: str) -> Study:
        """Return the configuration of a study."""
        return self.config.studies[name]

    def first_model(self, name: str) -> Model:
        """Return the first model of a study."""
        return self.config.models[self.study(name).models[0]]

    def gallery_set(self, name: str) -> str:
        """Return the set of the images in a study's gallery: the training set of its first model."""
        return self.first_model(name).data

    @property
    def models(self) -> list[str]:
        """All models that studies explain; without studies all models."""
        explained = (model for name in self.all for model in self.study(name).all_models)
        return list(dict.fromkeys(explained) if self.all else self.config.models)

    @property
    def gallery_maps(self) -> list[dict[str, str | int]]:
        """The wildcards of the maps in galleries: one map for each model and method of a study, without duplicates."""
        seed = self.config.seeds[0]
        maps = dict.fromkeys(
            (model, self.gallery_set(name), method)
            for name in self.all
            for model in self.study(name).models
            for method in self.study(name).methods
        )
        return [
            {"model": model, "data": data, "method": method, "seed": seed} for model, data, method in maps
        ]

    @property
    def gallery_sets(self) -> list[str]:
        """The sets of the images in galleries; without studies all sets, which are then built."""
        if not self.all:
            return list(self.config.sets)
        return list(dict.fromkeys(str(wildcards["data"]) for wildcards in self.gallery_maps))

    def evaluated_sets(self, model: str) -> list[str]:
        """Return the sets on which a model is evaluated: its training set, and those of all studies that compare it."""
        compared = (study.evaluated.get(model, ()) for study in self.config.studies.values())
        training_set = self.config.models[model].data
        return list(dict.fromkeys([training_set, *(name for sets in compared for name in sets)]))

    # ---- pages of the report

    def report_page(self, wildcards: Mapping[str, str]) -> str:
        """Return the page of the report that contains the figures of the study ``wildcards["study"]``."""
        # Snakemake writes the name of a page as a reStructuredText target, which ends at a colon.
        return f"Study {self.study(wildcards['study']).label}".replace(":", " –")

    # ---- scores

    def metrics(self, name: str) -> list[Metric]:
        """Return the metrics of a study."""
        return [self.config.metrics[metric] for metric in self.study(name).metrics]

    def directions(self, name: str) -> dict[str, Direction]:
        """Return the directions of all scores that rate the methods of a study."""
        metrics = self.metrics(name)
        kind_scores = {score.name: score.direction for score in self.kind(name).scores}
        return {
            score: direction for metric in metrics for score, direction in metric.directions.items()
        } | kind_scores

    def questions(self, name: str) -> dict[str, str]:
        """Return for each score of a study a phrase that describes it."""
        kind_scores = {score.name: score.summary for score in self.kind(name).scores}
        metric_scores = [metric.score_summaries for metric in self.metrics(name)]
        return {score: text for summaries in metric_scores for score, text in summaries.items()} | kind_scores

    def measured(self, name: str) -> dict[str, str]:
        """Return for each score of a study the property that it measures (``registry.properties``)."""
        kind_scores = {score.name: score.measures for score in self.kind(name).scores}
        return {
            score: metric.measures for metric in self.metrics(name) for score in metric.directions
        } | kind_scores

    def study_question(self, name: str) -> str:
        """Return the research question of a study."""
        return self.kind(name).question_for(metric.takes for metric in self.metrics(name))

    def class_label(self, name: str) -> str:
        """Return the label whose classes are raters: that of the study's kind, or else of its first model."""
        return self.kind(name).class_label or self.first_model(name).trained_on

    def baselines(self, name: str) -> list[str]:
        """Return the baselines of a study: methods that do not use the model, without upper controls."""
        return [method for method in self.study(name).methods if self.config.methods[method].is_baseline]

    def controls(self, name: str) -> dict[str, Any]:
        """Return the fields of ``reliability.controls.Controls`` of a study, as plain data."""
        records = self.config.catalog.methods
        methods = [self.config.methods[method] for method in self.study(name).methods]
        uppers = [method for method in methods if method.control == UPPER_CONTROL]
        upper: dict[str, dict[str, list[str]]] = {}
        for metric in self.metrics(name):
            best = [
                method
                for method in uppers
                if records[method.method].is_best(
                    method.parameters, metric.metric, metric.measures, metric.parameters
                )
            ]
            # One that is best for this metric alone comes before one that is best for all of a property.
            best.sort(key=lambda method: metric.metric not in records[method.method].best_for)
            for score in metric.directions if best else ():
                upper.setdefault(score, {})[metric.name] = [method.name for method in best]
        return {
            "lower": next((method.name for method in methods if method.control == LOWER_CONTROL), ""),
            "upper": upper,
            "unranked": [method.name for method in uppers if not method.uses_model],
            "of_models": self.kind(name).variants == "models",
        }

    @property
    def across_tasks(self) -> list[str]:
        """The studies whose orders of methods are compared with that of a study of another model or data set.

        The two studies have a score and at least three methods in common, without baselines.
        """
        compared = {
            name
            for pair in combinations(self.rated, 2)
            if self._task(pair[0]) != self._task(pair[1]) and self._have_common_order(*pair)
            for name in pair
        }
        return [name for name in self.rated if name in compared]

    def _task(self, name: str) -> tuple[str, ...]:
        return self.study(name).data, *self.study(name).models

    def _have_common_order(self, name: str, other: str) -> bool:
        methods = set(self.study(name).methods) - set(self.baselines(name))
        methods &= set(self.study(other).methods) - set(self.baselines(other))
        return len(methods) >= LEAST_METHODS and bool(self._score_sources(name) & self._score_sources(other))

    def _score_sources(self, name: str) -> set[str]:
        """Return what computes the scores of a study: entries of metrics, and a kind of study with its own scores."""
        kind = self.kind(name)
        if kind.variants == "models":  # variants are models, and no other study has the same
            return set()
        return {*self.study(name).metrics, *([f"kind {kind.name}"] if kind.scores else [])}

    def families(self, name: str) -> dict[str, list[Family]]:
        """Return the families of a study's ``methods`` and ``metrics``."""
        return {
            section: families(getattr(self.study(name), section), getattr(self.config, section))
            for section in ("methods", "metrics")
        }

    # ---- outputs of a study in the report and in the export

    def summary_tables(self, name: str) -> list[str]:
        """Return the names of the tables that a study's summary reads."""
        rated = (
            ["order", "pairs", "reliability", "rankings", "agreement", "controls"]
            if name in self.rated
            else []
        )
        return [*rated, *(table for table in self.kind(name).summary_tables if table in self.tables(name))]

    def tables(self, name: str) -> list[str]:
        """Return the names of all exported tables of a study."""
        rated = RATED_TABLES if name in self.rated else ()
        swept = SWEEP_TABLES if name in self.swept else ()
        return [*self.kind(name).tables(self.study(name).options), *rated, *swept]

    def evidence(self, name: str) -> list[str]:
        """Return the names of a study's tables that contain evidence on its metrics."""
        rated = ["reliability", "controls"] if name in self.rated else []
        return [*rated, *(table for table in self.tables(name) if table in EVIDENCE_TABLES)]

    @property
    def evidenced(self) -> list[str]:
        """Studies that contain evidence on metrics."""
        return [name for name in self.all if self.evidence(name)]

    def figures(self, name: str) -> list[str]:
        """Return the files of a study's figures in the order of the report, relative to the study's folder."""
        patterns = self.kind(name).figures(self.study(name).options)
        kind_figures = dict.fromkeys(
            pattern.format(**values) for pattern in patterns for values in self.study(name).figure_values
        )
        sweeps = [
            SWEEP_FIGURE.format(section=section, family=family.name)
            for section, of_section in self.families(name).items()
            for family in of_section
            if name in self.swept
        ]
        rated = RATED_FIGURES if name in self.rated else ()
        return ["study.html", *kind_figures, "gallery.html", *sweeps, *rated]
