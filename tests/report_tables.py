"""Rows of ``order.csv``, ``pairs.csv``, ``reliability.csv`` and ``rankings.csv`` as their writers give them, with
chosen values."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.report.pages.summary import Finding

NAN = float("nan")
SCORED = {"metric": "good", "variant": "good", "data": "d", "model": "m"}


def order_rows(methods: Mapping[str, tuple[object, object]], **changed: Any) -> pd.DataFrame:
    """Rows of one metric: rank sets by method, (NAN, NAN) of one without a score.

    Args:
        methods: ``rank_low, rank_high`` of each; the means are 9, 8, … in this order.
        changed: a column, one value for all methods or a value by method.
    """
    baselines = {"random", "edge"} & methods.keys()
    table = pd.DataFrame(
        [
            {
                **SCORED,
                **{"direction": "higher", "method": method, "baseline": method in baselines},
                **{"seeds": 1, "over": "images", "images": 60, "all_images": 60, "undefined": 0.0},
                **{"mean": 9.0 - place, "low": 8.5 - place, "high": 9.5 - place},
                **{"mean_worst": 9.0 - place, "mean_best": 9.0 - place, "win_rate": 0.9 - 0.1 * place},
                **{"rank_low": low, "rank_high": high},
                **{
                    "lead": 1.0 if place == 0 else -float(place),
                    "lead_low": 0.5 if place == 0 else -place - 0.5,
                    "lead_high": 1.5 if place == 0 else 0.5 - place,
                    "lead_over": [*methods, ""][place == 0],
                    "lead_p": 0.01 if high == 1 else 0.5,
                },
                "above_baselines": NAN if method in baselines or not baselines else 1.0,
                "best_share": 1.0 if place == 0 else 0.0,
                "ranked_by": "wins",
            }
            for place, (method, (low, high)) in enumerate(methods.items())
        ]
    )
    for column, value in changed.items():
        each = value if isinstance(value, dict) else dict.fromkeys(methods, value)
        table[column] = [each.get(method, kept) for method, kept in zip(methods, table[column], strict=True)]
    missing = table["rank_low"].isna()
    values = [
        "mean",
        "low",
        "high",
        "mean_worst",
        "mean_best",
        "win_rate",
        "lead",
        "lead_low",
        "lead_high",
        "lead_p",
    ]
    table.loc[missing, [*values, "above_baselines", "best_share"]] = NAN
    table.loc[missing, ["images", "undefined"]] = [0, 1.0]
    return table


def pair_rows(
    order: pd.DataFrame,
    changed: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    **all_changed: Any,
) -> pd.DataFrame:
    """Rows of the pairs of ranked methods, such that each method's comparisons give its rank set as far as possible.

    A method is better than another one if its rank set is below that of the other one; else both are not
    distinguishable, with a win rate of 0.6.

    Args:
        order: rows of one or several metrics.
        changed: columns of single pairs, by their methods in the order of ``order``.
        all_changed: columns of all pairs.
    """
    rows = []
    for (metric, variant), of_metric in order.groupby(["metric", "variant"], sort=False):
        ranked = of_metric[of_metric["rank_low"].notna()]
        for one, other in combinations(ranked.to_dict("records"), 2):
            sign = int(one["rank_high"] < other["rank_low"]) - int(other["rank_high"] < one["rank_low"])
            wins = {1: 0.97, 0: 0.6, -1: 0.03}[sign]
            row = {
                **{**SCORED, "metric": metric, "variant": variant},
                **{
                    "method": one["method"],
                    "other": other["method"],
                    "images": min(one["images"], other["images"]),
                },
                **_comparison(wins, one["mean"] - other["mean"], decided=bool(sign)),
                "finding": {1: "better", 0: "not distinguishable", -1: "worse"}[sign],
            }
            row |= (changed or {}).get((one["method"], other["method"]), {})
            rows.append({**row, **all_changed})
    return pd.DataFrame(rows, columns=PAIRS)


PAIRS = [
    *SCORED,
    "method",
    "other",
    "images",
    "difference",
    "difference_low",
    "difference_high",
    "difference_p",
]
PAIRS += ["skew_images", "wins", "wins_low", "wins_high", "wins_p", "wins_worst", "wins_best", "detectable"]
PAIRS += ["images_needed", "equivalent_p", "finding"]


def _comparison(wins: float, difference: float, *, decided: bool) -> dict[str, float]:
    half = 0.03 if decided else 0.15
    return {
        **{"difference": difference, "difference_low": difference - 0.5, "difference_high": difference + 0.5},
        **{"difference_p": 0.001 if decided else 0.5, "skew_images": NAN},
        **{
            "wins": wins,
            "wins_low": wins - half,
            "wins_high": wins + half,
            "wins_p": 0.001 if decided else 0.5,
        },
        **{"wins_worst": wins, "wins_best": wins, "detectable": 0.3},
        **{"images_needed": 20.0 if decided else 331.0, "equivalent_p": NAN},
    }


def reliability_rows(
    *alphas: tuple[float, float, float], baselines: tuple[str, ...] = ("none",), **changed: Any
) -> pd.DataFrame:
    """Rows of one metric, a seed for each of ``alphas``: value and ends of its interval."""
    rows = [
        {
            **{**SCORED, "seed": seed, "baselines": kind, "methods": 3, "images": 60},
            **{"alpha": value, "alpha_low": low, "alpha_high": high, "correlation_images": 60},
            **{"correlation": 0.5, "correlation_low": 0.4, "correlation_high": 0.6, "printed": NAN},
            **{"two_valued": False, "concordance": 0.9, "concordance_low": 0.85, "concordance_high": 0.95},
        }
        for seed, (value, low, high) in enumerate(alphas)
        for kind in baselines
    ]
    return pd.DataFrame(rows).assign(**changed)


def ranking_rows(
    correlations: Mapping[tuple[str, str], float], methods: int = 3, images: int = 60
) -> pd.DataFrame:
    """Correlations within images of each pair of metrics, by their names."""
    columns = ["data", "model", "metric", "variant", "other_metric", "other_variant", "images", "methods"]
    rows = [
        ("d", "m", one, one, other, other, images, methods, correlation)
        for (one, other), correlation in correlations.items()
    ]
    return pd.DataFrame(rows, columns=[*columns, "correlation"]).astype({"correlation": np.float64})


def finding(
    name: str, rows: pd.DataFrame, alpha: Mapping[str, Any] | None, pairs: pd.DataFrame | None = None
) -> Finding:
    """Results of a metric; by default its pairs are those of ``pair_rows``."""
    return Finding(name, rows, alpha, pair_rows(rows) if pairs is None else pairs)
