"""What the tables of a BAM study say of each method, in one place for its ranking and its claims."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

TCAV = "tcav"  # what explains by concepts is called in the tables; it has no map
SERIES = "series"
"""Pearson's ρ between a method's MCS over the commonality series and the drop of accuracy (Yang & Kim 2019, Fig. 6)."""
DIRECTIONS = {"mcs": "higher", "idr": "higher", "iir": "higher", "iir_difference": "lower", SERIES: "higher"}
"""The metrics in the order of the paper, and which end is better."""
SHOWN = {
    "mcs": ("MCS", 1.0),
    "idr": ("IDR (%)", 100.0),
    "iir": ("IIR (%)", 100.0),
    "iir_difference": ("relative change", 1.0),
    SERIES: ("ρ over the series", 1.0),
}
"""What metrics are called, and what their scores are multiplied by to be read."""
PAPER = (
    "gradcam",
    "guided_gradcam",
    "gradient",
    "smoothgrad",
    "smoothgrad_squared",  # the released code's SmoothGrad
    "integrated_gradients",
    "integrated_gradients_smoothgrad",
    "smoothgrad of integrated_gradients",
    "smoothgrad_squared of integrated_gradients",
    "gradient_x_input",
    "guided_backprop",
)
"""Registered methods that the paper compares, and what stands for them."""
INDEPENDENCE = ("iir", "iir_difference")
LEAST_SIMILAR = 0.5  # the least share of changed images whose output stayed as it was, for IIR to be reported
LEAST_METHODS = 3  # fewer have no rank correlation that says anything
DECIMALS = 12  # scores that differ by less are equal: sums in another order differ by rounding
COLUMNS = ["method", "seed", "score", "spread"]
Scores: TypeAlias = "pd.Series[float]"


class UntestedError(ValueError):
    """Why something cannot be told from the tables."""


@dataclass(frozen=True)
class BamTables:
    """The tables of one study as its other rules write them; None is what the study does not do."""

    data: str
    """The collection; its sets are ``{data}_os``, …"""
    object_model: str
    scene_model: str
    methods: Mapping[str, str]
    """For each entry of the configuration the registered method; one that smooths another than the gradient is called
    ``METHOD of BASE``."""
    controls: Collection[str]
    """Entries that use no model."""
    classes: Mapping[str, int]
    """How many classes ``object`` and ``scene`` have."""
    premise: pd.DataFrame
    metrics: pd.DataFrame
    independence: pd.DataFrame | None = None
    deltas: pd.DataFrame | None = None
    """How many of the changed images have nearly the outputs of the original, ``similar``, by seed."""
    commonality: pd.DataFrame | None = None
    series: pd.DataFrame | None = None
    correlation: pd.DataFrame | None = None
    concepts: pd.DataFrame | None = None

    def entry(self, registered: str) -> str:
        """The entry of a registered method: of several the one that bears its name, else the first.

        Raises:
            UntestedError: there is none.
        """
        found = [name for name, method in self.methods.items() if method == registered]
        if not found:
            raise UntestedError(f"{registered} is not in the study")
        return registered if registered in found else found[0]

    def by_seed(self, metric: str, member: str = "os") -> pd.DataFrame:
        """A metric's ``method, seed, score, spread``, controls too; empty where it was not studied.

        ``member`` is the set of MCS and IDR: ``os`` or a variant of it. TCAV is in MCS over X_os, as the difference of
        its G_c between f_o and f_s, and in the series where that has it. A score that is not finite is NaN.
        """
        table = self._table(metric, member)
        found = pd.DataFrame({name: [] for name in COLUMNS}) if table is None else table[COLUMNS]
        if metric == "mcs" and member == "os" and self.concepts is not None:
            found = pd.concat([found, self._concept_contrast(self.concepts)], ignore_index=True)
        return found.assign(score=found["score"].where(np.isfinite(found["score"])))

    def _table(self, metric: str, member: str) -> pd.DataFrame | None:
        if metric == SERIES:
            table = self.correlation
            return None if table is None else table.assign(score=table["correlation"], spread=np.nan)
        if metric in ("mcs", "idr"):
            table = self.metrics[self.metrics["data"] == f"{self.data}_{member}"]
        else:
            table = self.independence
        return None if table is None else table[table["metric"] == metric]

    def _concept_contrast(self, concepts: pd.DataFrame) -> pd.DataFrame:
        """TCAV's MCS of every seed: the difference of the means over layers."""
        means = concepts[concepts["layer"] == "mean"].pivot(index="seed", columns="model", values="score")
        means = means.reindex(columns=[self.object_model, self.scene_model])
        contrast = means[self.object_model] - means[self.scene_model]
        return contrast.rename("score").reset_index().assign(method=TCAV, spread=np.nan)[COLUMNS]

    def scores(self, metric: str, member: str = "os") -> Scores:
        """Means over seeds by method, without controls and without those that have no score.

        Raises:
            UntestedError: there is none, or it is of changes that are not without effect.
        """
        if (
            metric in INDEPENDENCE
            and self.deltas is not None
            and self.deltas["similar"].min() < LEAST_SIMILAR
        ):
            share = f"{100 * self.deltas['similar'].min():.0f} % of the changed images"
            raise UntestedError(f"{share} have nearly the same output: IIR then says nothing about methods")
        found = self.by_seed(metric, member).groupby("method", sort=False)["score"].mean().dropna()
        found = found[[method not in self.controls for method in found.index]]
        if found.empty:
            where = "" if member == "os" else f" on {self.data}_{member}"
            raise UntestedError(f"no method has a score of {label(metric)}{where}")
        return found

    def score(self, scores: Scores, metric: str, registered: str) -> float:
        """The score of one registered method, or of TCAV, among ``scores``.

        Raises:
            UntestedError: it is not in the study, or has no score.
        """
        if registered == TCAV and self.concepts is None:
            raise UntestedError("TCAV is not in the study")
        entry = TCAV if registered == TCAV else self.entry(registered)
        if entry not in scores:
            raise UntestedError(f"{entry} has no score of {label(metric)}")
        return float(scores[entry])

    def of_paper(self, scores: Scores) -> Scores:
        """Those that the paper compares; without TCAV, which has no map."""
        return scores[[self.methods.get(str(method)) in PAPER for method in scores.index]]

    def without(self, scores: Scores, registered: Iterable[str]) -> Scores:
        """Those of no entry of these registered methods, nor of TCAV."""
        left_out = {*registered, TCAV}
        return scores[[self.methods.get(str(method), method) not in left_out for method in scores.index]]


def label(metric: str) -> str:
    """A metric's name in a sentence."""
    return SHOWN[metric][0].removesuffix(" (%)")


def value(score: float, metric: str) -> str:
    """A score in a sentence."""
    return f"{100 * score:.1f} %" if SHOWN[metric][1] == 100 else f"{score:.3f}"


def named(scores: Scores, metric: str) -> str:
    """Methods with their scores in a sentence."""
    return ", ".join(f"{name} {value(float(score), metric)}" for name, score in scores.items())
