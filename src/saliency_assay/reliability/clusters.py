"""Clusters of images that are not independent."""

from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.reliability.variance import GROUPS
from saliency_assay.storage import GROUP

CLUSTERS = {"cut-outs": "cutout", "scenes": "scene"}
"""Kinds of clusters of composed data sets, and the arrays that contain the clusters' numbers."""


def with_clusters(scores: pd.DataFrame, data: Any) -> pd.DataFrame:
    """Return a score table with a column for each of ``CLUSTERS`` that the data set has."""
    numbers = {array: data[array][:][scores["image"]] for array in CLUSTERS.values() if array in data}
    return scores.assign(**numbers)


def factors_of(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return for each kind of cluster, and for groups, the cluster of each row of a table ``with_clusters``."""
    columns = {**CLUSTERS, GROUPS: GROUP}
    return {name: pd.factorize(rows[column])[0] for name, column in columns.items() if column in rows}
