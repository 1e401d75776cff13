"""What may be claimed of BAM's metrics: whether they are robust, rank alike, and are near what chance gives.

Each returns whether it holds and what was measured, in words; it raises ``UntestedError`` where its input is not
there. Scores are means over training seeds. All methods count but the controls.
"""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from saliency_assay.studies.bam.tables import (
    DECIMALS,
    DIRECTIONS,
    LEAST_METHODS,
    BamTables,
    Scores,
    UntestedError,
    label,
    named,
)

AGREE = 0.8  # Spearman's ρ of two rankings that are called alike
ERRORS = 2  # standard errors
ZERO, HALF = 0.05, 10.0  # how far a baseline is from 0 (saliency) and from 50 % (points)


def robust(tables: BamTables, metric: str, variant: str) -> tuple[bool, str]:
    """Spearman's ρ between the methods' scores on X_os and on a variant is at least ``AGREE``."""
    name = f"{tables.data}_os_{variant}"
    if name not in set(tables.metrics["data"]):
        raise UntestedError(f"no variant {name} in the study")
    rho, count = _spearman(tables.scores(metric), tables.scores(metric, f"os_{variant}"))
    return rho >= AGREE, f"ρ = {rho:.2f} over {count} methods"


def agrees(tables: BamTables, one: str, other: str) -> tuple[bool, str]:
    """Spearman's ρ between the rankings of two metrics, best first in both, is at least ``AGREE``."""
    rho, count = _between(tables, one, other)
    return rho >= AGREE, f"ρ = {rho:.2f} over {count} methods"


def rankings_differ(tables: BamTables, metrics: Iterable[str]) -> tuple[bool, str]:
    """Spearman's ρ between at least two of the metrics is below ``AGREE``."""
    found, reasons = {}, []
    for one, other in combinations(metrics, 2):
        try:
            found[f"{label(one)} and {label(other)}"] = _between(tables, one, other)[0]
        except UntestedError as reason:
            reasons.append(str(reason))
    if not found:
        raise UntestedError("; ".join(dict.fromkeys(reasons)))
    return min(found.values()) < AGREE, ", ".join(f"{pair} ρ = {rho:.2f}" for pair, rho in found.items())


def baseline_near_zero(tables: BamTables) -> tuple[bool, str]:
    """MCS of random pixels lies within ``ZERO`` of 0 for every method."""
    found = _baselines(tables, "mcs")["baseline"]
    return bool((found.abs().round(DECIMALS) <= ZERO).all()), _span(found, "mcs")


def baseline_near_half(tables: BamTables) -> tuple[bool, str]:
    """IDR of random pixels lies within ``HALF`` points, or two standard errors, of 50 % for every method."""
    found = _baselines(tables, "idr")
    away = (100 * found["baseline"] - 50).abs().round(DECIMALS)
    bar = np.maximum(HALF, ERRORS * 50 / np.sqrt(found["images"]))
    return bool((away <= bar).all()), _span(found["baseline"], "idr")


def _between(tables: BamTables, one: str, other: str) -> tuple[float, int]:
    signs = [1 if DIRECTIONS[metric] == "higher" else -1 for metric in (one, other)]
    return _spearman(signs[0] * tables.scores(one), signs[1] * tables.scores(other))


def _spearman(one: Scores, other: Scores) -> tuple[float, int]:
    """Spearman's ρ over the methods that have both scores, and how many they are."""
    both = pd.concat([one, other], axis=1, join="inner").round(DECIMALS).to_numpy()
    if len(both) < LEAST_METHODS:
        raise UntestedError(f"{len(both)} methods have both scores, expected at least {LEAST_METHODS}")
    if (np.ptp(both, axis=0) == 0).any():
        raise UntestedError(f"all {len(both)} methods score alike")
    return round(float(spearmanr(*both.T).statistic), DECIMALS), len(both)


def _baselines(tables: BamTables, metric: str) -> pd.DataFrame:
    """The mean baseline over X_os of every method, and its fewest images."""
    of_metric = tables.metrics["metric"] == metric
    table = tables.metrics[of_metric & (tables.metrics["data"] == f"{tables.data}_os")]
    table = table[[not tables.is_control(method) for method in table["method"]]]
    found = table.groupby("method", sort=False).agg({"baseline": "mean", "images": "min"}).dropna()
    if found.empty:
        raise UntestedError(f"no method has a baseline of {label(metric)}")
    return found


def _span(found: Scores, metric: str) -> str:
    least, most = named(found.nsmallest(1), metric), named(found.nlargest(1), metric)
    return f"over {len(found)} methods from {least} to {most}"
