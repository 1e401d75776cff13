"""Rows of ``order.csv``, ``reliability.csv`` and ``rankings.csv`` as their writers give them, with chosen values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

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
                **{"seeds": 1, "over": "images", "images": 60, "undefined": 0.0},
                **{"mean": 9.0 - place, "low": 8.5 - place, "high": 9.5 - place},
                **{"rank_low": low, "rank_high": high},
                **{
                    "lead": 1.0 if place == 0 else -float(place),
                    "lead_over": [*methods, ""][place == 0],
                    "lead_p": 0.01 if high == 1 else 0.5,
                },
                "above_baselines": NAN if method in baselines or not baselines else 1.0,
                "wins": 1.0 if place == 0 else 0.0,
            }
            for place, (method, (low, high)) in enumerate(methods.items())
        ]
    )
    for column, value in changed.items():
        each = value if isinstance(value, dict) else dict.fromkeys(methods, value)
        table[column] = [each.get(method, kept) for method, kept in zip(methods, table[column], strict=True)]
    missing = table["rank_low"].isna()
    table.loc[missing, ["mean", "low", "high", "lead", "lead_p", "above_baselines", "wins"]] = NAN
    table.loc[missing, ["images", "undefined"]] = [0, 1.0]
    return table


def reliability_rows(
    *alphas: tuple[float, float, float], baselines: tuple[str, ...] = ("none",), **changed: Any
) -> pd.DataFrame:
    """Rows of one metric, a seed for each of ``alphas``: value and ends of its interval."""
    rows = [
        {
            **{**SCORED, "seed": seed, "baselines": kind, "methods": 3, "images": 60},
            **{"alpha": value, "alpha_low": low, "alpha_high": high, "correlation_images": 60},
            **{"correlation": 0.5, "correlation_low": 0.4, "correlation_high": 0.6, "printed": NAN},
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
