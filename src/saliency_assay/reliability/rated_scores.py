"""Scores of single images that rate a study's methods, the input of all reliability tables.

Each kind of study has a reader that returns them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
import pandas as pd

from saliency_assay.reliability.clusters import CLUSTERS
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.storage import GROUP, score_tables, text


def clusters_of(data: Any) -> dict[str, np.ndarray]:
    """Return for each kind of cluster of a data set the cluster of each image, ``[N]``; empty if independent."""
    clusters = {name: data[array][:] for name, array in CLUSTERS.items() if array in data}
    groups = groups_of(data)
    return clusters if groups is None else clusters | {GROUPS: groups}


def ranges_of(settings: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, float]]:
    """Return the smallest and largest possible value of each score from the settings of a job, None for no limit."""
    return {
        score: (-inf if low is None else low, inf if high is None else high)
        for score, (low, high) in settings.items()
    }


def groups_of(data: Any) -> np.ndarray | None:
    """Return the number of each image's group, int64 ``[N]``; None if the images of a data set have no groups."""
    return text.numbers(data[GROUP][:]) if GROUP in data else None


class RatedScores(Protocol):
    """Score table of one set and one model with categorical text, in chunks that fit into memory."""

    def chunks(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield tables that together are the whole table, in order; rows with equal ``keys`` are in the same table."""
        ...


@dataclass(frozen=True)
class RatedTable:
    """Rated scores that fit into memory, in one chunk."""

    table: pd.DataFrame

    def chunks(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield the whole table for any ``keys``."""
        yield self.table


def rated_table(table: pd.DataFrame) -> RatedTable:
    """Check a score table and return it as rated scores.

    Raises:
        score_tables.ScoreError: see ``storage.score_tables.check``.
    """
    return RatedTable(score_tables.check(table, "rated scores", compact=True))
