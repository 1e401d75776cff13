"""The studies of a configuration by kind, and the scores, tables and figures that each kind has."""

from collections.abc import Sequence

from saliency_assay.config.records import Comparison, Config, Independence, Metric, Model, Study
from saliency_assay.studies.retrain.settings import Retraining

RETRAINED_ACCURACY = (
    "accuracy on test images when the model is trained again without the pixels that a method marks"
)


class Studies:
    """Names of studies by kind and by what they ask for, in the order of the configuration."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.all = list(config.studies)
        self.bam = self._of_kind("bam")
        self.caption = self._of_kind("caption")
        self.fidelity = self._of_kind("fidelity")
        self.retrain = self._of_kind("retrain")
        gallery = self._of_kind("gallery")
        self.rated = [name for name in self.all if name not in gallery]
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

    def _of_kind(self, kind: str) -> list[str]:
        return [name for name, study in self.config.studies.items() if study.kind == kind]

    # ---- records

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
        """Return the metrics that judge the maps of a study; those of BAM have no entry of their own."""
        names = ("mcs", "idr", "iir") if name in self.bam else self.study(name).metrics
        return [self.config.metrics[metric] for metric in names]

    def directions(self, name: str) -> dict[str, str]:
        """Return the directions of all scores of a study that rate its methods."""
        if name in self.retrain:
            return {"accuracy": "lower"}  # what mattered is gone
        return {
            score: direction
            for metric in self.metrics(name)
            for score, direction in metric.directions.items()
        }

    def questions(self, name: str) -> dict[str, str]:
        """Return what each score of a study measures, as a phrase."""
        if name in self.retrain:
            return {"accuracy": RETRAINED_ACCURACY}
        return {
            score: f"{metric.labels[score]}: {metric.summary}"
            if len(metric.directions) > 1
            else metric.summary
            for metric in self.metrics(name)
            for score in metric.directions
        }

    def class_label(self, name: str) -> str:
        """Return the label whose classes raters are grouped by: that of the study's model.

        Of BAM that of scenes, on which the model of MCS, IDR and IIR alike was trained.
        """
        return "scene" if name in self.bam else self.first_model(name).label

    def is_localization(self, name: str) -> bool:
        """Return whether all that judges a study's maps is where the object is."""
        return name in self.fidelity and all("mask" in metric.takes for metric in self.metrics(name))

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

    def summary_tables(self, name: str) -> list[str]:
        """Return the names of the tables that a study's summary reads."""
        tables = ["order", "reliability", "rankings", "agreement"] if name in self.rated else []
        tables += ["claims"] if name in self.bam else []
        return [*tables, *(["leakage"] if name in self.leakage else [])]

    def claims_tables(self, name: str) -> list[str]:
        """Return the names of the tables of a BAM study by which the paper's claims are checked."""
        return _present(
            name,
            (("premise", "metrics"), self.bam),
            (("commonality", "series", "correlation"), self.series),
            (("concepts",), self.concepts),
            (("independence", "deltas"), self.delta),
        )

    def tables(self, name: str) -> list[str]:
        """Return the names of all tables that are exported of a study, in their order."""
        return _present(
            name,
            (("premise", "metrics", "ranking", "claims"), self.bam),
            (("premise", "table"), self.caption),
            (("summary",), [*self.fidelity, *self.retrain]),
            (("reliability", "agreement", "order", "consistency", "rankings", "variance"), self.rated),
            (("commonality", "series", "correlation"), self.series),
            (("concepts",), self.concepts),
            (("independence", "deltas"), self.delta),
            (("leakage",), self.leakage),
        )

    def figures(self, name: str) -> list[str]:
        """Return the files of a study's figures in the order of the report, relative to the study's folder."""
        figures = [f"{metric}_{figure}.svg" for metric, figure in self.metric_figures(name)]
        return _present(
            name,
            (("study.html", "gallery.html"), self.all),
            (("premise.html", "mcs.svg", "idr.svg", "metrics.html", "ranking.html", "claims.html"), self.bam),
            (("commonality.html", "series.svg", "series_maps.html"), self.series),
            (("concepts.svg", "concepts.html"), self.concepts),
            (("iir.svg", "iir_difference.svg", "delta.html", "convergence.svg"), self.delta),
            (("independence.html", "pairs.html"), self.delta),
            (("caption.html", "infidelity.svg", "attribution.svg"), self.caption),
            (figures, self.fidelity),
            (("infidelity_sensitivity.svg",), self.scatter),
            (("scores.html",), self.fidelity),
            (("accuracy.svg", "overlap.svg", "summary.html"), self.retrain),
            (self._mask_figures(name), self.retrain),
            (("leakage.svg", "leakage.html"), self.leakage),
            (("reliability.svg", "agreement.svg", "order.svg", "consistency.svg"), self.rated),
            (("reliability.html",), self.rated),
        )

    def _mask_figures(self, name: str) -> list[str]:
        if name not in self.retrain:
            return []
        retraining = self.retraining(name)
        return [
            f"{protocol}_{fill}/{figure}"
            for figure in ("matrices.svg", "images.html")
            for protocol in retraining.protocols
            for fill in retraining.fills
        ]


def _present(name: str, *groups: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """Return the names of those groups whose studies include the study ``name``."""
    return [each for names, studies in groups if name in studies for each in names]


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a BAM study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"
