"""The reliability of every metric of a study in tables, from its score table (Tomsett et al., 2020, Tables 1 and 2)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import oriented
from saliency_assay.reliability import comparison, statistics
from saliency_assay.reliability.printed import printed_alphas, printed_correlations
from saliency_assay.reliability.raters import paired_correlations
from saliency_assay.storage.score_tables import WHOLE_SET

Scores: TypeAlias = pd.DataFrame | Iterable[pd.DataFrame]
"""A score table, or parts of one that each hold all rows of what a function tells apart."""

SCORED = ["metric", "variant", "data", "model"]
"""What scores of one metric have in common, training seeds aside."""
OF_METHOD = ["data", "model", "seed", "method"]
PAIR = ["metric", "variant", "other_metric", "other_variant"]
RELIABLE = [*SCORED, "seed", "controls", "methods", "images", "alpha", "alpha_low", "alpha_high"]
RELIABLE += ["correlation_images", "correlation", "correlation_low", "correlation_high"]
ORDERED = ["metric", "variant", "direction", "data", "model", "method", "control", "seeds", "over", "images"]
ORDERED += ["undefined", "mean", "low", "high", "rank_low", "rank_high", "above_controls", "wins"]
RANKINGS = ["data", "model", *PAIR, "images", "methods", "correlation"]
NO_CLUSTERS: comparison.Factors = MappingProxyType({})
"""Clusters of images: by name, such as ``cut-outs``, the cluster of each image of the set, by its number."""


def reliability_table(
    scores: Scores,
    directions: Mapping[str, str],
    controls: Collection[str],
    *,
    resamples: int,
    level: float,
    clusters: comparison.Factors = NO_CLUSTERS,
    printed: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Inter-rater and inter-method reliability of every metric, variant, set, model and seed.

    Args:
        scores: a score table, or its parts by variant and seed; scores of whole sets are left out.
        directions: of each metric's scores, see ``directions``.
        controls: methods that do not use the model; where the table has some, each row comes twice, with and without.
        resamples: for the intervals of α.
        level: of the confidence intervals.
        clusters: see ``NO_CLUSTERS``.
        printed: the α that a paper prints, as ``printed_alphas`` reads it.

    Returns:
        ``metric, variant, data, model, seed, controls`` (``with``, ``without``, or ``none`` where there are none),
        ``methods``; ``images`` that α compares; ``alpha, alpha_low, alpha_high``: Krippendorff's α;
        ``correlation_images``, the fewest behind one of the ρ of ``correlation, correlation_low, correlation_high``:
        the mean of Spearman's ρ between two methods over images; and ``printed``, the paper's α, NaN for none.

    Raises:
        ValueError: see ``printed_alphas``.
    """
    rows = []
    for names, of_metric in groups(scores, [*SCORED, "seed"]):
        wide = by_method(of_metric, directions[str(names["metric"])])
        factors = _at(clusters, wide.index.to_numpy())
        known = [name for name in wide if name not in controls]
        kinds = {"with": wide, "without": wide[known]} if len(known) < wide.shape[1] else {"none": wide}
        kinds = {kind: chosen for kind, chosen in kinds.items() if chosen.shape[1]}
        for kind, chosen in kinds.items():
            values = chosen.to_numpy()
            row = {**names, "controls": kind, "methods": chosen.shape[1]}
            alpha = statistics.alpha(values, clusters=factors, resamples=resamples, level=level)
            correlation = statistics.mean_correlation(values, clusters=factors, level=level)
            row |= {"images": alpha.images, "correlation_images": correlation.images}
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
        directions: of each metric's scores, see ``directions``.
        printed: what a paper prints of ρ, as ``printed_correlations`` reads it.

    Returns:
        ``data, model, seed, method, metric, variant, other_metric, other_variant, images`` (that have both),
        ``correlation``: ρ of the scores as they are, as the paper prints it; ``agreement``: of the scores with their
        directions, so that 1 means that the maps of the same images are good under both; and ``printed``, the paper's
        ρ, NaN for none.

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
        found = statistics.correlations(values)
        columns = [
            oriented(column, directions[metric]) for column, (metric, _) in zip(values.T, scored, strict=True)
        ]
        agreement = statistics.correlations(np.stack(columns, axis=1))
        for a, b in combinations(range(len(scored)), 2):
            (metric, variant), (other, of_other) = scored[a], scored[b]
            rows.append(
                {
                    **names,
                    **dict(zip(PAIR, (metric, variant, other, of_other), strict=True)),
                    "images": int((there[:, a] & there[:, b]).sum()),
                    "correlation": found[a, b],
                    "agreement": agreement[a, b],
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
    clusters: comparison.Factors = NO_CLUSTERS,
    level: float = 0.95,
) -> pd.DataFrame:
    """Means and confidence sets of the ranks of every metric's methods.

    Args:
        scores: a score table, or its parts by variant; scores of whole sets are left out.
        directions: of each metric's scores, see ``directions``.
        controls: methods that do not use the model.
        clusters: see ``NO_CLUSTERS``.
        level: of the intervals of the means, and of all rank sets of a metric together.

    Returns:
        ``metric, variant, direction, data, model, method, control`` (bool); ``seeds``, how many; ``over``, the sources
        of variation in the intervals, such as ``images × seeds``; ``images`` with a score, and ``undefined``, the share
        of scores that are NaN; ``mean, low, high``: see ``comparison.mean_of``; ``rank_low, rank_high``: see
        ``comparison.rank_sets``; ``above_controls``: 1 where the method is better than every control, else 0, NaN for
        these and where none has a score; ``wins``: share of the images with scores of this and another method on which
        none has a better one. In the order of the score table.
    """
    rows = []
    for names, of_metric in groups(scores, SCORED):
        direction = directions[str(names["metric"])]
        wide = of_metric.pivot(index=["seed", "image"], columns="method", values="score")
        wide = wide[list(dict.fromkeys(of_metric["method"]))]
        values = oriented(wide.to_numpy(), direction)
        seed, image = (wide.index.get_level_values(name).to_numpy() for name in ("seed", "image"))
        factors, seeds = dict(_at(clusters, image)), len(np.unique(seed))
        over = [*(factors or ["images"]), *([comparison.SEEDS] if seeds > 1 else [])]
        if seeds > 1:
            factors |= {"images": image, comparison.SEEDS: seed}
        ranks = comparison.rank_sets(values, factors, level=level)
        known = np.array([method in controls for method in wide], dtype=bool)
        above = _above(ranks, known)
        wins, undefined = _wins(values), of_metric["score"].isna().groupby(of_metric["method"]).mean()
        for place, method in enumerate(wide):
            score = wide[method].to_numpy()
            mean = comparison.mean_of(score, factors)
            low, high = mean.interval(level)
            row = {**names, "direction": direction, "method": method, "control": method in controls}
            row |= {
                "seeds": seeds,
                "over": " × ".join(over),
                "images": len(np.unique(image[~np.isnan(score)])),
            }
            row |= {"undefined": undefined[str(method)], "mean": mean.value, "low": low, "high": high}
            row |= {"rank_low": ranks.low[place], "rank_high": ranks.high[place]}
            rows.append({**row, "above_controls": above[place], "wins": wins[place]})
    return pd.DataFrame(rows, columns=ORDERED)


def _above(ranks: comparison.Ranks, controls: Array) -> Array:
    """Return ``[M]``: 1 for a method that is better than every one of ``controls`` with a score, 0, or NaN."""
    scored = ~np.isnan(ranks.low)
    if not (controls & scored).any():
        return np.full(len(controls), np.nan)
    better = ranks.better[:, controls & scored].all(1).astype(np.float64)
    return np.where(scored & ~controls, better, np.nan)


def _wins(scores: Array) -> Array:
    """Return the share ``[M]`` of the rows of ``[n, M]`` with this and another score on which none is higher."""
    there = ~np.isnan(scores)
    there &= there.sum(1, keepdims=True) >= 2
    best = np.where(there, scores, -np.inf).max(1, keepdims=True, initial=-np.inf)
    count = there.sum(0)
    won: Array = np.where(count > 0, (there & (scores == best)).sum(0) / np.maximum(count, 1), np.nan)
    return won


def rankings_table(
    scores: Scores, directions: Mapping[str, str], controls: Collection[str] = ()
) -> pd.DataFrame:
    """Agreement of every two metrics or variants on the order of methods within single images.

    An image that is easy for all methods raises all their scores under all metrics; it does not raise this agreement.

    Args:
        scores: a score table, or its parts by variant; scores of whole sets are left out. An image's scores are
            averaged over seeds first.
        directions: of each metric's scores, see ``directions``.
        controls: methods to leave out.

    Returns:
        ``data, model, metric, variant, other_metric, other_variant``; ``images`` on which both rank at least three
        methods, ``methods``, and ``correlation``, the mean over these images of Spearman's ρ over methods.
    """
    found: dict[tuple[object, object], dict[tuple[object, object], pd.DataFrame]] = {}
    for names, of_metric in groups(scores, SCORED):
        wide = by_method(of_metric, directions[str(names["metric"])])
        wide = wide[[method for method in wide if method not in controls]]
        found.setdefault((names["data"], names["model"]), {})[names["metric"], names["variant"]] = wide
    rows = []
    for at, of_metrics in found.items():
        for (one, first), (other, second) in combinations(of_metrics.items(), 2):
            first, second = first.align(second, join="inner")
            rho = paired_correlations(first.to_numpy(), second.to_numpy())
            defined = rho[~np.isnan(rho)]
            counted = len(defined), np.count_nonzero((first.notna() & second.notna()).any())
            rows.append((*at, *one, *other, *counted, defined.mean() if len(defined) else np.nan))
    return pd.DataFrame(rows, columns=RANKINGS)


def variance_table(scores: Scores) -> pd.DataFrame:
    """What the variance of every metric's scores is made of: see ``statistics.variance_shares``.

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
        rows.append(row | statistics.variance_shares(cube))
    return pd.DataFrame(rows, columns=None if rows else [*SCORED, "images"])


def _scored(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(dict.fromkeys(zip(table["metric"], table["variant"], strict=True)))


def groups(scores: Scores, keys: list[str]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield scores of single images that share ``keys``, in the order of the table; infinite ones are missing."""
    for table in [scores] if isinstance(scores, pd.DataFrame) else scores:
        of_images = table[table["image"] != WHOLE_SET]
        of_images = of_images.assign(score=of_images["score"].where(np.isfinite(of_images["score"])))
        for names, part in of_images.groupby(keys, sort=False, observed=True):
            yield dict(zip(keys, names, strict=True)), part


def by_method(scores: pd.DataFrame, direction: str = "higher") -> pd.DataFrame:
    """Images × methods, higher is better, in the order of the table; means over seeds where there are several."""
    better = scores.assign(score=oriented(scores["score"].to_numpy(), direction))
    wide = better.groupby(["image", "method"], observed=True)["score"].mean().unstack("method")
    return wide[list(dict.fromkeys(scores["method"]))]


def rank_text(low: float, high: float) -> str:
    """Return a rank set as text: ``1``, or ``1–2``; empty for NaN."""
    if np.isnan(low):
        return ""
    return f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"


def _at(clusters: comparison.Factors, images: Array) -> comparison.Factors:
    return {name: of_set[images] for name, of_set in clusters.items()}
