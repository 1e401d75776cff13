"""Scores of single images that rate a study's methods, the input of all reliability tables.

Each kind of study has a reader that returns them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from saliency_assay.storage import score_tables

CLUSTERS = {"cut-outs": "cutout", "scenes": "scene"}
"""Clusters of images that are not independent, and the arrays of composed data sets that contain their numbers."""


def clusters_of(data: Any) -> dict[str, np.ndarray]:
    """Return for each kind of cluster of a data set the cluster of each image, ``[N]``; empty if independent."""
    return {name: data[array][:] for name, array in CLUSTERS.items() if array in data}


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
