"""Results of one metric, the input of its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.labels import UNLABELED, Labels


@dataclass(frozen=True)
class MetricResults:
    """Scores of a study's methods under one entry of the configuration's metrics."""

    entry: str
    """Name of the entry. A variant is this name, alone or followed by a space and the sub-variant."""
    parameters: Mapping[str, Any]
    scores: pd.DataFrame
    """Rows of the entry in the score table ``with_clusters``; for each method and score in the order of its curves."""
    labels: Mapping[str, str]
    """Label of each score, by name."""
    directions: Mapping[str, str]
    """``higher``, ``lower`` or ``target X`` (``directions``) of each score, by name."""
    curves: Mapping[str, Mapping[str, Array]]
    """For each method its curves by name, ``[n, S]``, images of one seed after those of another; empty if the figure
    plots no curves."""
    responses: Mapping[str, Array]
    """Model responses that all methods share, ``[n, …]`` like the curves; empty if there are none or the figure plots
    none."""
    methods: Sequence[str]
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit or statistic of each score, by name; absent or empty if it has none."""
    names: Labels = UNLABELED
    """Labels of methods, data sets and sub-variants."""

    def axis(self, score: str) -> str:
        """Return the label of a score with its unit."""
        unit = self.units.get(score)
        return f"{self.labels[score]} ({unit})" if unit else self.labels[score]

    @property
    def seeds(self) -> int:
        """Number of training seeds that were scored."""
        return int(self.scores["seed"].nunique())

    @cached_property
    def images(self) -> pd.DataFrame:
        """Rows of one score, method and seed: a row per image, in the order of curves."""
        keys = ["metric", "variant", "method", "seed"]
        return next(iter(self.scores.groupby(keys, sort=False)))[1]

    def sub_variants(self, score: str) -> list[str]:
        """Return the sub-variants of ``score`` in the order of the table."""
        variants = self.scores.loc[self.scores["metric"] == score, "variant"].unique()
        return [str(variant).removeprefix(self.entry).strip() for variant in variants]

    def rows(self, score: str, sub_variant: str) -> pd.DataFrame:
        """Return the rows of one score and sub-variant."""
        variant = f"{self.entry} {sub_variant}".strip()
        return self.scores[(self.scores["metric"] == score) & (self.scores["variant"] == variant)]

    def curve(self, method: str, name: str) -> Array | None:
        """Return a method's curves ``[n, S]``; None if it has no curve of this name or all values are NaN."""
        curve = self.curves.get(method, {}).get(name)
        return None if curve is None or np.isnan(curve).all() else curve
