"""Access to the tables of a BAM study by metric and method, for its ranking and its claims."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from saliency_assay.registry.labels import UNLABELED, Labels

TCAV = "tcav"  # TCAV's name in the tables; it produces no map
SERIES = "series"
"""Pearson's ρ between a method's MCS over the commonality series and the drop of accuracy (Yang & Kim 2019, Fig. 6)."""
DIRECTIONS = {"mcs": "higher", "idr": "higher", "iir": "higher", "iir_difference": "lower", SERIES: "higher"}
"""The metrics in the order of the paper, with the direction that is better."""
SHOWN = {
    "mcs": ("MCS", 1.0),
    "idr": ("IDR (%)", 100.0),
    "iir": ("IIR (%)", 100.0),
    "iir_difference": ("relative change", 1.0),
    SERIES: ("ρ over the series", 1.0),
}
"""Label of each metric, and the factor by which displayed tables multiply its scores."""
PAPER = {
    "gradcam": "Grad-CAM",
    "guided_gradcam": "Guided Grad-CAM",
    "gradient": "Gradient",
    "smoothgrad": "SmoothGrad",
    "smoothgrad_squared": "SmoothGrad²",  # called SmoothGrad in the released code
    "integrated_gradients": "Integrated Gradients",
    "integrated_gradients_smoothgrad": "Integrated Gradients (SmoothGrad)",
    "smoothgrad of integrated_gradients": "SmoothGrad of Integrated Gradients",
    "smoothgrad_squared of integrated_gradients": "SmoothGrad² of Integrated Gradients",
    "gradient_x_input": "Gradient × Input",
    "guided_backprop": "Guided Backpropagation",
}
"""Labels of the registered methods that the paper compares, or of their equivalents in this project."""
INDEPENDENCE = ("iir", "iir_difference")
# IIR is evaluated only if at least this share of the changed images has nearly the original output.
LEAST_SIMILAR = 0.5
LEAST_METHODS = 3  # a rank correlation over fewer methods is not informative
# Scores are rounded before they are compared, because sums in another order differ by rounding errors.
DECIMALS = 12
COLUMNS = ["method", "seed", "score", "spread"]
Scores: TypeAlias = "pd.Series[float]"


class UntestedError(ValueError):
    """Error for a claim that cannot be tested with the tables; the message is the reason."""


@dataclass(frozen=True)
class BamTables:
    """The tables of one study, as its rules write them; None for a table that the study does not have."""

    data: str
    """Name of the data collection; its sets are ``{data}_os`` and so on."""
    object_model: str
    scene_model: str
    methods: Mapping[str, str]
    """Registered method of each configuration entry; ``METHOD of BASE`` for a method that smooths another base than the
    gradient."""
    baselines: Collection[str]
    """Entries of baseline methods that do not use the model."""
    classes: Mapping[str, int]
    """Number of classes of ``object`` and ``scene``."""
    premise: pd.DataFrame
    metrics: pd.DataFrame
    independence: pd.DataFrame | None = None
    deltas: pd.DataFrame | None = None
    """By seed, ``similar``: the share of changed images whose outputs are nearly those of the original."""
    commonality: pd.DataFrame | None = None
    series: pd.DataFrame | None = None
    correlation: pd.DataFrame | None = None
    concepts: pd.DataFrame | None = None
    labels: Labels = UNLABELED
    """Labels of methods and models, for texts."""
    setting: str = ""
    """Words for a setting that differs from the paper's, see ``paper_setting.compare_setting``."""

    def entry(self, registered: str) -> str:
        """Return the entry of a registered method; if there are several, the one of the same name, else the first.

        Raises:
            UntestedError: the study does not have the method.
        """
        entries = [name for name, method in self.methods.items() if method == registered]
        if not entries:
            raise UntestedError(f"{PAPER.get(registered, registered)} is not in the study")
        return registered if registered in entries else entries[0]

    def by_seed(self, metric: str, member: str = "os") -> pd.DataFrame:
        """Return the columns ``method, seed, score, spread`` of a metric; empty if the study does not have the metric.

        Baseline methods are included. ``member`` is the set for MCS and IDR: ``os`` or a variant of it. The MCS of TCAV
        on X_os is the difference of its G_c between f_o and f_s. Scores that are not finite are replaced by NaN.
        """
        table = self._table(metric, member)
        rows = pd.DataFrame({name: [] for name in COLUMNS}) if table is None else table[COLUMNS]
        if metric == "mcs" and member == "os" and self.concepts is not None:
            rows = pd.concat([rows, self._concept_contrast(self.concepts)], ignore_index=True)
        return rows.assign(score=rows["score"].where(np.isfinite(rows["score"])))

    def _table(self, metric: str, member: str) -> pd.DataFrame | None:
        """Return the rows of a metric, or None if the study does not have its table."""
        if metric == SERIES:
            table = self.correlation
            return None if table is None else table.assign(score=table["correlation"], spread=np.nan)
        if metric in ("mcs", "idr"):
            table = self.metrics[self.metrics["data"] == f"{self.data}_{member}"]
        else:
            table = self.independence
        return None if table is None else table[table["metric"] == metric]

    def _concept_contrast(self, concepts: pd.DataFrame) -> pd.DataFrame:
        """Return the MCS of TCAV by seed: G_c of f_o minus G_c of f_s."""
        means = concepts[concepts["layer"] == "mean"].pivot(index="seed", columns="model", values="score")
        means = means.reindex(columns=[self.object_model, self.scene_model])
        contrast = means[self.object_model] - means[self.scene_model]
        return contrast.rename("score").reset_index().assign(method=TCAV, spread=np.nan)[COLUMNS]

    def scores(self, metric: str, member: str = "os") -> Scores:
        """Return means over seeds by method, without baseline methods and methods that have no score.

        Raises:
            UntestedError: no method has a score, or too few changed images have nearly the original output (IIR).
        """
        if (
            metric in INDEPENDENCE
            and self.deltas is not None
            and self.deltas["similar"].min() < LEAST_SIMILAR
        ):
            share = f"{100 * self.deltas['similar'].min():.0f} % of the changed images"
            raise UntestedError(
                f"only {share} have nearly the same output, so IIR is not evidence about methods"
            )
        means = self.by_seed(metric, member).groupby("method", sort=False)["score"].mean().dropna()
        means = means[[method not in self.baselines for method in means.index]]
        if means.empty:
            set_text = "" if member == "os" else f" on {self.labels.data_set(f'{self.data}_{member}')}"
            raise UntestedError(f"no method has a score for {label(metric)}{set_text}")
        return means

    def score(self, scores: Scores, metric: str, registered: str) -> float:
        """Return the score of one registered method, or of TCAV, among ``scores``.

        Raises:
            UntestedError: the method is not in the study, or has no score.
        """
        if registered == TCAV and self.concepts is None:
            raise UntestedError("TCAV is not in the study")
        entry = TCAV if registered == TCAV else self.entry(registered)
        if entry not in scores:
            raise UntestedError(f"{self.labels.method(entry)} has no score for {label(metric)}")
        return float(scores[entry])

    def is_share(self, metric: str) -> bool:
        """Return True if a score is a share of images."""
        return metric in ("idr", "iir")

    def images(self, metric: str) -> int:
        """Return the smallest number of images of a share that is not NaN, over the paper's methods and seeds."""
        table = self._table(metric, "os")
        assert table is not None, metric
        of_paper = np.array([self.methods.get(method) in PAPER for method in table["method"]])
        return int(table.loc[of_paper & np.isfinite(table["score"]), "images"].min())

    def of_paper(self, scores: Scores) -> Scores:
        """Return the scores of the methods that the paper compares, without TCAV."""
        return scores[[self.methods.get(str(method)) in PAPER for method in scores.index]]

    def without(self, scores: Scores, registered: Iterable[str]) -> Scores:
        """Return the scores without those of the methods ``registered`` and of TCAV."""
        excluded = {*registered, TCAV}
        return scores[[self.methods.get(str(method), method) not in excluded for method in scores.index]]

    def label_of(self, method: str) -> str:
        """Return the label of an entry, of the entry of a registered method, or of TCAV."""
        return self.labels.method(method if method in self.methods or method == TCAV else self.entry(method))

    def named(self, scores: Scores, metric: str) -> str:
        """Format methods and their scores for use in a sentence."""
        return ", ".join(
            f"{self.label_of(str(name))} {value(float(score), metric)}" for name, score in scores.items()
        )


def label(metric: str) -> str:
    """Return a metric's label for use in a sentence."""
    return SHOWN[metric][0].removesuffix(" (%)")


def value(score: float, metric: str) -> str:
    """Format a score for use in a sentence."""
    return f"{100 * score:.1f} %" if SHOWN[metric][1] == 100 else f"{score:.3f}"
