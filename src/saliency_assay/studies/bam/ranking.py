"""Methods ranked by every metric of BAM, and how far the rankings agree."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata, spearmanr

from saliency_assay.studies.bam.tables import DECIMALS, DIRECTIONS, LEAST_METHODS, SHOWN, BamTables, label

COLUMNS = ["metric", "method", "score", "spread", "rank"]


def ranking(tables: BamTables) -> pd.DataFrame:
    """Every metric's methods, best first.

    Returns:
        ``metric, method, score, spread, rank``: ``score`` is the mean over seeds; ``spread`` the standard deviation
        between seeds (n − 1) where several have a score, else that over draws of images, NaN where the table has none;
        ``rank`` is 1 for the best, equal scores share the mean of their ranks, NaN without a score (those come last).
        Controls are ranked like all others. A metric that was not studied has no row.
    """
    parts = []
    for metric, direction in DIRECTIONS.items():
        grouped = tables.by_seed(metric).groupby("method", sort=False)
        found = grouped[["score", "spread"]].mean()
        found["spread"] = grouped["score"].std().fillna(found["spread"]).where(found["score"].notna())
        ordered = found["score"].round(DECIMALS) * (-1 if direction == "higher" else 1)
        found["rank"] = rankdata(ordered, nan_policy="omit") if len(found) else []
        parts.append(found.sort_values("rank", kind="stable").reset_index().assign(metric=metric))
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def agreement(found: pd.DataFrame, tables: BamTables) -> pd.DataFrame:
    """Return how alike each two metrics rank the methods that both score, controls aside.

    Args:
        found: as ``ranking`` gives it.
        tables: what it was made of.

    Returns:
        ``one, other, methods`` (how many), ``kendall`` (τ-b) and ``spearman``, in [−1, 1], 1 where both order the
        methods alike from best to worst; NaN for fewer than three methods and where one metric ranks all alike.
    """
    found = found[[method not in tables.controls for method in found["method"]]]
    ranks = {
        metric: of.set_index("method")["rank"].dropna() for metric, of in found.groupby("metric", sort=False)
    }
    rows = []
    for one, other in combinations(ranks, 2):
        both = pd.concat([ranks[one], ranks[other]], axis=1, join="inner").to_numpy()
        defined = len(both) >= LEAST_METHODS and (np.ptp(both, axis=0) > 0).all()
        kendall, spearman = (
            float(statistic(*both.T).statistic) if defined else np.nan
            for statistic in (kendalltau, spearmanr)
        )
        rows.append((one, other, len(both), kendall, spearman))
    return pd.DataFrame(rows, columns=["one", "other", "methods", "kendall", "spearman"])


def ranking_shown(found: pd.DataFrame, tables: BamTables) -> pd.DataFrame:
    """Return a ``ranking`` to read: methods × metrics, ``rank (score ± spread)``, in the order of the first metric."""
    rows: dict[str, dict[str, str]] = {}
    for row in found.to_dict("records"):
        name = f"{row['method']} (control)" if row["method"] in tables.controls else row["method"]
        heading, scale = SHOWN[row["metric"]]
        rows.setdefault(name, {"method": name})[heading] = _cell(row, scale)
    headings = [SHOWN[metric][0] for metric in dict.fromkeys(found["metric"])]
    return pd.DataFrame(list(rows.values()), columns=["method", *headings]).fillna("–")


def _cell(row: Mapping[Any, Any], scale: float) -> str:
    if np.isnan(row["rank"]):
        return "no score"
    digits = 1 if scale == 100 else 3
    spread = "" if np.isnan(row["spread"]) else f" ± {scale * row['spread']:.{digits}f}"
    return f"{row['rank']:g} ({scale * row['score']:.{digits}f}{spread})"


def agreement_shown(found: pd.DataFrame) -> pd.DataFrame:
    """Return an ``agreement`` to read."""
    shown = found.assign(one=found["one"].map(label), other=found["other"].map(label))
    return shown.rename(
        columns={"one": "metric", "other": "and", "kendall": "Kendall's τ", "spearman": "Spearman's ρ"}
    )
