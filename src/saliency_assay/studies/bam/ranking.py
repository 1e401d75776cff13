"""Rankings of the methods by each BAM metric, and the agreement between these rankings."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata, spearmanr

from saliency_assay.plotting.text import with_minus
from saliency_assay.studies.bam.bam_tables import DECIMALS, DIRECTIONS, LEAST_METHODS, SHOWN, BamTables, label

COLUMNS = ["metric", "method", "score", "spread", "rank"]


def ranking(tables: BamTables) -> pd.DataFrame:
    """Rank the methods by every metric, best first.

    Returns:
        ``metric, method, score, spread, rank``: ``score`` is the mean over seeds. ``spread`` is the standard deviation
        over seeds (n − 1) if several have a score, else that over samples of images, NaN if the table has none.
        ``rank`` is 1 for the best; equal scores share the mean of their ranks; methods without a score have NaN and
        come last. Baseline methods are ranked like all others. A metric that the study does not have has no rows.
    """
    rankings = []
    for metric, direction in DIRECTIONS.items():
        grouped = tables.by_seed(metric).groupby("method", sort=False)
        means = grouped[["score", "spread"]].mean()
        means["spread"] = grouped["score"].std().fillna(means["spread"]).where(means["score"].notna())
        # ``rankdata`` ranks ascending: with the sign, rank 1 is the best for both directions.
        ordered = means["score"].round(DECIMALS) * (-1 if direction == "higher" else 1)
        means["rank"] = rankdata(ordered, nan_policy="omit") if len(means) else []
        rankings.append(means.sort_values("rank", kind="stable").reset_index().assign(metric=metric))
    return pd.concat(rankings, ignore_index=True)[COLUMNS]


def agreement(table: pd.DataFrame, tables: BamTables) -> pd.DataFrame:
    """Return the rank correlation of each pair of metrics over the methods that both score, without baselines.

    Args:
        table: from ``ranking``.
        tables: the tables that were ranked.

    Returns:
        ``one, other, methods`` (their number), ``kendall`` (τ-b) and ``spearman`` in [−1, 1], where 1 means the same
        order from best to worst; NaN for fewer than three methods, and if a metric ranks all methods equally.
    """
    table = table[[method not in tables.baselines for method in table["method"]]]
    ranks = {
        metric: metric_rows.set_index("method")["rank"].dropna()
        for metric, metric_rows in table.groupby("metric", sort=False)
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


def displayed_ranking(table: pd.DataFrame, tables: BamTables) -> pd.DataFrame:
    """Return a ``ranking`` for display: methods × metrics, ``rank (score ± spread)``, ordered by the first metric."""
    rows: dict[str, dict[str, str]] = {}
    for row in table.to_dict("records"):
        name = tables.label_of(row["method"]) + (" (baseline)" if row["method"] in tables.baselines else "")
        heading, scale = SHOWN[row["metric"]]
        rows.setdefault(name, {"method": name})[heading] = _cell_text(row, scale)
    headings = [SHOWN[metric][0] for metric in dict.fromkeys(table["metric"])]
    return pd.DataFrame(list(rows.values()), columns=["method", *headings]).fillna("–")


def _cell_text(row: Mapping[Any, Any], scale: float) -> str:
    if np.isnan(row["rank"]):
        return "no score"
    digits = 1 if scale == 100 else 3
    spread = "" if np.isnan(row["spread"]) else f" ± {scale * row['spread']:.{digits}f}"
    mean = with_minus(f"{scale * row['score']:.{digits}f}")
    return f"{row['rank']:g} ({mean}{spread})"


def displayed_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """Return an ``agreement`` for display."""
    labeled = table.assign(one=table["one"].map(label), other=table["other"].map(label))
    return labeled.rename(
        columns={"one": "metric", "other": "and", "kendall": "Kendall's τ", "spearman": "Spearman's ρ"}
    )
