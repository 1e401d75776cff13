"""Table of the agreement of raters other than single images (``reliability.raters``), for every metric of a study."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.reliability.raters import SPLITS, agreement, halves
from saliency_assay.reliability.reliability_tables import NO_CLUSTERS, SCORED, Scores, by_method, groups
from saliency_assay.reliability.statistics import paired_means
from saliency_assay.reliability.variance import GROUPS, Factors

Means: TypeAlias = "pd.Series[float]"
Row = dict[str, object]

COLUMNS = [*SCORED, "between", "raters", "methods", "alpha", "correlation", "low", "high"]


def agreement_table(
    scores: Scores,
    directions: Mapping[str, str],
    labels: Array,
    *,
    variants: str = "variants",
    splits: int = SPLITS,
    clusters: Factors = NO_CLUSTERS,
) -> pd.DataFrame:
    """Return the agreement of raters on the order of all methods, for every metric and variant.

    Args:
        scores: a score table, or its chunks by variant; set-level scores are left out. A rater scores a method by its
            mean over images, corrected for images that some methods lack (``statistics.paired_means``).
        directions: for each metric the direction of its scores, see ``directions``.
        labels: the class of each image of the set, indexed by the image numbers of the table.
        variants: name of the variants of a score as raters.
        splits: number of splits of the images into halves.
        clusters: see ``NO_CLUSTERS``; halves have no group of images in common. Cut-outs and scenes, which are
            crossed, cannot be separated.

    Returns:
        ``metric, variant, data, model, between, raters, methods`` (with a score), ``alpha, correlation, low, high`` as
        in ``reliability.raters.Agreement``. ``between`` is ``seeds`` or ``classes`` (of the images) if there are
        several; ``halves`` (of the images), with 95 % of the ``splits`` between ``low`` and ``high``; and, for metrics
        with several variants, ``variants`` in a last row, whose ``variant`` is empty. Except for ``seeds``, an image's
        scores are first averaged over seeds.
    """
    rows: list[Row] = []
    metrics: dict[tuple[object, ...], list[Means]] = {}
    for names, of_variant in groups(scores, SCORED):
        direction = directions[str(names["metric"])]
        wide = by_method(of_variant, direction)
        metrics.setdefault((names["metric"], names["data"], names["model"]), []).append(_method_means(wide))
        seeds = [
            _method_means(by_method(of_seed, direction))
            for _, of_seed in of_variant.groupby("seed", sort=False)
        ]
        rows += _agreement_rows(names, "seeds", pd.DataFrame(seeds))
        classes = wide.groupby(labels[wide.index.to_numpy()])
        rows += _agreement_rows(
            names, "classes", pd.DataFrame([_method_means(of_class) for _, of_class in classes])
        )
        group = clusters[GROUPS][wide.index.to_numpy()] if GROUPS in clusters else None
        split_halves = halves(wide.to_numpy(), groups=group, splits=splits)
        rows.append(
            {**names, "between": "halves", "raters": 2, "methods": _count_scored(wide), **vars(split_halves)}
        )
    for (metric, data, model), means in metrics.items():
        names = {"metric": metric, "variant": "", "data": data, "model": model}
        rows += _agreement_rows(names, variants, pd.DataFrame(means))
    return pd.DataFrame(rows, columns=COLUMNS)


def _method_means(wide: pd.DataFrame) -> Means:
    return pd.Series(paired_means(wide.to_numpy()), index=wide.columns)


def _agreement_rows(names: Row, between: str, rated: pd.DataFrame) -> list[Row]:
    rated = rated[rated.notna().any(axis=1)]
    if len(rated) < 2:
        return []
    counts = {"between": between, "raters": len(rated), "methods": _count_scored(rated)}
    return [{**names, **counts, **vars(agreement(rated.to_numpy()))}]


def _count_scored(rated: pd.DataFrame) -> int:
    return int(np.count_nonzero(rated.notna().any()))
