"""The results of one metric, which figures plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array


@dataclass(frozen=True)
class MetricResults:
    """One entry of the configuration's metrics, scored for the methods of a study; a figure plots it."""

    entry: str
    """The entry's name. Variants are this name, alone or followed by a space and the sub-variant."""
    parameters: Mapping[str, Any]
    scores: pd.DataFrame
    """The entry's rows of the score table; those of a method and score in the order of its curves."""
    labels: Mapping[str, str]
    """The label of an axis, by the score's name."""
    directions: Mapping[str, str]
    """``higher``, ``lower`` or ``target X`` (``directions``), by the score's name."""
    curves: Mapping[str, Mapping[str, Array]]
    """For each method, by name: ``[n, S]``, the images of one seed after those of another; empty where a figure
    does not read them."""
    responses: Mapping[str, Array]
    """Model responses that all methods share, ``[n, …]`` like the curves; empty where there are none, or a figure does
    not read them."""
    methods: Sequence[str]

    @property
    def seeds(self) -> int:
        """The number of trained models that were scored."""
        return int(self.scores["seed"].nunique())

    def sub_variants(self, score: str) -> list[str]:
        """Return the parts of the variants of ``score`` that follow the entry's name, as first met."""
        variants = self.scores.loc[self.scores["metric"] == score, "variant"].unique()
        return [str(variant).removeprefix(self.entry).strip() for variant in variants]

    def rows(self, score: str, sub_variant: str) -> pd.DataFrame:
        """Return the rows of one score and sub-variant."""
        variant = f"{self.entry} {sub_variant}".strip()
        return self.scores[(self.scores["metric"] == score) & (self.scores["variant"] == variant)]

    def curve(self, method: str, name: str) -> Array | None:
        """Return a method's curves ``[n, S]``; None where it has none of this name or none is defined."""
        curve = self.curves.get(method, {}).get(name)
        return None if curve is None or np.isnan(curve).all() else curve
