"""Do raters that are not images order methods alike, for every metric of a study (``reliability.raters``)?"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.reliability.raters import SPLITS, agreement, halves
from saliency_assay.reliability.statistics import paired_means
from saliency_assay.reliability.tables import SCORED, Scores, by_method, groups

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
) -> pd.DataFrame:
    """Agreement of raters on the order of all methods, for every metric and variant.

    Args:
        scores: a score table, or its parts by variant; scores of whole sets are left out. A rater scores a method by
            its mean over images, on common images of the methods (``statistics.paired_means``).
        directions: of each metric's scores, see ``directions``.
        labels: the class of each image of the set, by its number in the table.
        variants: what the variants of a score are called as raters.
        splits: of the images into halves.

    Returns:
        ``metric, variant, data, model, between, raters, methods`` (with a score), ``alpha, correlation, low, high`` as
        in ``reliability.raters.Agreement``. ``between`` is ``seeds`` or ``classes`` (those of the images) where there
        are several; ``halves`` of the images, with 95 % of the ``splits`` between ``low`` and ``high``; and, in a last
        row of each metric with several variants, without a variant, ``variants``. But for ``seeds`` an image's scores
        are averaged over seeds first.
    """
    rows: list[Row] = []
    metrics: dict[tuple[object, ...], list[Means]] = {}
    for names, of_variant in groups(scores, SCORED):
        direction = directions[str(names["metric"])]
        wide = by_method(of_variant, direction)
        metrics.setdefault((names["metric"], names["data"], names["model"]), []).append(_means(wide))
        seeds = [
            _means(by_method(of_seed, direction)) for _, of_seed in of_variant.groupby("seed", sort=False)
        ]
        rows += _rows(names, "seeds", pd.DataFrame(seeds))
        classes = wide.groupby(labels[wide.index.to_numpy()])
        rows += _rows(names, "classes", pd.DataFrame([_means(of_class) for _, of_class in classes]))
        found = halves(wide.to_numpy(), splits=splits)
        rows.append({**names, "between": "halves", "raters": 2, "methods": _scored(wide), **vars(found)})
    for (metric, data, model), means in metrics.items():
        names = {"metric": metric, "variant": "", "data": data, "model": model}
        rows += _rows(names, variants, pd.DataFrame(means))
    return pd.DataFrame(rows, columns=COLUMNS)


def _means(wide: pd.DataFrame) -> Means:
    return pd.Series(paired_means(wide.to_numpy()), index=wide.columns)


def _rows(names: Row, between: str, rated: pd.DataFrame) -> list[Row]:
    rated = rated[rated.notna().any(axis=1)]
    if len(rated) < 2:
        return []
    counted = {"between": between, "raters": len(rated), "methods": _scored(rated)}
    return [{**names, **counted, **vars(agreement(rated.to_numpy()))}]


def _scored(rated: pd.DataFrame) -> int:
    return int(np.count_nonzero(rated.notna().any()))
