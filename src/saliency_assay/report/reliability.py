"""The reliability of every metric of a study in tables, from its score table (Tomsett et al., 2020, Tables 1 and 2)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from saliency_assay import reliability
from saliency_assay.report.printed import printed_alphas, printed_correlations
from saliency_assay.scores import WHOLE_SET

Array = npt.NDArray[Any]
Scores: TypeAlias = pd.DataFrame | Iterable[pd.DataFrame]
"""A score table, or parts of one that each hold all rows of what a function tells apart."""

SCORED = ["metric", "variant", "data", "model"]
"""What scores of one metric have in common, training seeds aside."""
OF_METHOD = ["data", "model", "seed", "method"]
PAIR = ["metric", "variant", "other_metric", "other_variant"]
RELIABLE = [*SCORED, "seed", "controls", "methods", "images"]
RELIABLE += [f"{name}{end}" for name in ("alpha", "correlation") for end in ("", "_low", "_high")]
ORDERED = ["metric", "variant", "direction", "data", "model", "method", "control", "images"]
ORDERED += ["mean", "low", "high", "rank", "best", "above_controls", "wins"]


def reliability_table(
    scores: Scores,
    controls: Collection[str],
    *,
    resamples: int,
    level: float,
    printed: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Inter-rater and inter-method reliability of every metric, variant, set, model and seed.

    Args:
        scores: a score table, or its parts by variant and seed; scores of whole sets are left out.
        controls: methods that know no model; where the table has some, each row comes twice, with and without them.
        resamples: of images, for the intervals.
        level: share of the resamples that an interval holds.
        printed: what a paper prints of α, as ``printed_alphas`` reads it.

    Returns:
        ``metric, variant, data, model, seed, controls`` (``with``, ``without``, or ``none`` where there are none),
        ``methods, images`` (with scores of at least two methods); ``alpha, alpha_low, alpha_high``: Krippendorff's α;
        ``correlation, correlation_low, correlation_high``: mean of Spearman's ρ between two methods over images; and
        ``printed``, the paper's α, NaN for none.

    Raises:
        ValueError: see ``printed_alphas``.
    """
    rows = []
    for names, of_metric in groups(scores, [*SCORED, "seed"]):
        wide = by_method(of_metric)
        known = [name for name in wide if name not in controls]
        kinds = {"with": wide, "without": wide[known]} if len(known) < wide.shape[1] else {"none": wide}
        kinds = {kind: chosen for kind, chosen in kinds.items() if chosen.shape[1]}
        for kind, chosen in kinds.items():
            values = chosen.to_numpy()
            row = {**names, "controls": kind, "methods": chosen.shape[1]}
            row["images"] = int(((~np.isnan(values)).sum(1) >= 2).sum())
            alpha = reliability.alpha(values, resamples=resamples, level=level)
            correlation = reliability.mean_correlation(values, resamples=resamples, level=level)
            for name, found in (("alpha", alpha), ("correlation", correlation)):
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
    table = pd.DataFrame(rows, columns=RELIABLE)
    papers = printed_alphas(_scored(table), printed)
    named = table[["metric", "variant", "controls"]].itertuples(index=False, name=None)
    return table.assign(printed=np.array([papers.get(name, np.nan) for name in named], dtype=np.float64))


def consistency_table(
    scores: Scores,
    directions: Mapping[str, str],
    printed: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Internal consistency: Spearman's ρ over images between every two metrics or variants of a method's scores.

    Args:
        scores: a score table, or its parts by method and seed; scores of whole sets are left out.
        directions: ``higher`` or ``lower``, which is better, by metric.
        printed: what a paper prints of ρ, as ``printed_correlations`` reads it.

    Returns:
        ``data, model, seed, method, metric, variant, other_metric, other_variant, images`` (that have both),
        ``correlation``: ρ of the scores as they are, as the paper prints it; ``agreement``: with the sign that makes 1
        mean that both find the maps of the same images good; and ``printed``, the paper's ρ, NaN for none.

    Raises:
        ValueError: see ``printed_correlations``.
    """
    rows: list[dict[str, Any]] = []
    known: dict[tuple[str, str], None] = {}
    for names, of_method in groups(scores, OF_METHOD):
        scored = _scored(of_method)
        known |= dict.fromkeys(scored)
        wide = of_method.pivot(index="image", columns=["metric", "variant"], values="score")[scored]
        values = wide.to_numpy()
        there = ~np.isnan(values)
        found = reliability.correlations(values)
        for a, b in combinations(range(len(scored)), 2):
            (metric, variant), (other, of_other) = scored[a], scored[b]
            sign = 1 if directions[metric] == directions[other] else -1
            rows.append(
                {
                    **names,
                    **dict(zip(PAIR, (metric, variant, other, of_other), strict=True)),
                    "images": int((there[:, a] & there[:, b]).sum()),
                    "correlation": found[a, b],
                    "agreement": sign * found[a, b],
                }
            )
    papers = printed_correlations(list(known), printed) if printed else {}
    for row in rows:
        pair = frozenset(((row["metric"], row["variant"]), (row["other_metric"], row["other_variant"])))
        row["printed"] = papers.get((str(row["method"]), pair), np.nan)
    return pd.DataFrame(rows, columns=[*OF_METHOD, *PAIR, "images", "correlation", "agreement", "printed"])


def order_table(
    scores: Scores,
    directions: Mapping[str, str],
    controls: Collection[str] = (),
    *,
    resamples: int,
    level: float = 0.95,
) -> pd.DataFrame:
    """Every metric's methods, ranked where resamples of images tell them apart.

    Args:
        scores: a score table, or its parts by variant; scores of whole sets are left out. An image's scores are
            averaged over seeds first.
        directions: ``higher`` or ``lower``, which is better, by metric.
        controls: methods that know no model.
        resamples: of images.
        level: of the intervals, and of being sure.

    Returns:
        ``metric, variant, direction, data, model, method, control`` (whether it is one), ``images, mean, low, high``
        (interval of the mean), ``rank``: 1 and the number of methods that are better in at least ``level`` of the
        resamples; ``best``: share of the resamples in which it is first; ``above_controls``: in which it is better than
        every control, NaN for these and where there are none; ``wins``: share of the images with a score on which no
        other method has a better one. In the order of the score table.
    """
    rows = []
    for names, of_metric in groups(scores, SCORED):
        wide = by_method(of_metric)
        higher = directions[str(names["metric"])] == "higher"
        found = reliability.order(wide.to_numpy(), resamples=resamples)
        low, high = found.interval(level)
        ranks, best = found.ranks(higher_is_better=higher, level=level), found.best(higher_is_better=higher)
        known = np.array([method in controls for method in wide], dtype=bool)
        above = found.above_all(known, higher_is_better=higher)
        wins = _wins(wide.to_numpy(), higher_is_better=higher)
        for place, method in enumerate(wide):
            row = {**names, "direction": directions[str(names["metric"])]}
            row |= {"method": method, "control": method in controls}
            row |= {"images": int(wide[method].notna().sum())}
            row |= {"mean": found.mean[place], "low": low[place], "high": high[place]}
            row |= {"rank": ranks[place], "best": best[place]}
            rows.append({**row, "above_controls": above[place], "wins": wins[place]})
    return pd.DataFrame(rows, columns=ORDERED)


def _wins(scores: Array, *, higher_is_better: bool) -> Array:
    """Share ``[M]`` of the images of ``[N, M]`` that have a score on which none is better; NaN without a score."""
    oriented = scores if higher_is_better else -scores
    there = ~np.isnan(oriented)
    best = np.where(there, oriented, -np.inf).max(1, keepdims=True, initial=-np.inf)
    count = there.sum(0)
    won: Array = np.where(count > 0, (there & (oriented == best)).sum(0) / np.maximum(count, 1), np.nan)
    return won


def variance_table(scores: Scores) -> pd.DataFrame:
    """What the variance of every metric's scores is made of: see ``reliability.variance_shares``.

    Args:
        scores: a score table, or its parts by variant; scores of whole sets are left out.

    Returns:
        ``metric, variant, data, model``, ``images`` that all methods and seeds have a score of, and a column for each
        effect; NaN where a factor has a single level.
    """
    rows = []
    for names, of_metric in groups(scores, SCORED):
        seeds = [by_method(of_seed) for _, of_seed in of_metric.groupby("seed", sort=False)]
        images, methods = seeds[0].index, seeds[0].columns
        for wide in seeds[1:]:
            images, methods = images.union(wide.index), methods.union(wide.columns, sort=False)
        cube = np.stack([wide.reindex(images, columns=methods).to_numpy() for wide in seeds], axis=-1)
        row: dict[str, object] = {**names, "images": int((~np.isnan(cube).any((1, 2))).sum())}
        rows.append(row | reliability.variance_shares(cube))
    return pd.DataFrame(rows, columns=None if rows else [*SCORED, "images"])


def _scored(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Metric and variant of everything in a table, in its order."""
    return list(dict.fromkeys(zip(table["metric"], table["variant"], strict=True)))


def groups(scores: Scores, keys: list[str]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Scores of single images that share ``keys``, with these, in the order of the table."""
    for table in [scores] if isinstance(scores, pd.DataFrame) else scores:
        of_images = table[table["image"] != WHOLE_SET]
        for names, part in of_images.groupby(keys, sort=False, observed=True):
            yield dict(zip(keys, names, strict=True)), part


def by_method(scores: pd.DataFrame) -> pd.DataFrame:
    """Images × methods, in the order of the table; means over seeds where there are several."""
    wide = scores.groupby(["image", "method"], observed=True)["score"].mean().unstack("method")
    return wide[list(dict.fromkeys(scores["method"]))]
