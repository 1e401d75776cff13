"""Reliability tables of every metric of a study, from its score table (Tomsett et al., 2020, Tables 1 and 2)."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability import statistics
from saliency_assay.reliability.printed import printed_alphas, printed_correlations
from saliency_assay.reliability.raters import paired_correlations
from saliency_assay.reliability.variance import GROUPS, Factors
from saliency_assay.storage import WHOLE_SET

Scores: TypeAlias = pd.DataFrame | Iterable[pd.DataFrame]
"""A score table, or chunks of one; rows with equal values of a function's grouping keys are in the same chunk."""

SCORED = ["metric", "variant", "data", "model"]
"""Keys of the scores of one metric, of all training seeds."""
OF_METHOD = ["data", "model", "seed", "method"]
PAIR = ["metric", "variant", "other_metric", "other_variant"]
RELIABLE = [*SCORED, "seed", "baselines", "methods", "images", "alpha", "alpha_low", "alpha_high"]
RELIABLE += ["correlation_images", "correlation", "correlation_low", "correlation_high"]
RELIABLE += ["two_valued", "concordance", "concordance_low", "concordance_high"]
RANKINGS = ["data", "model", *PAIR, "images", "methods", "correlation"]
NO_CLUSTERS: Factors = MappingProxyType({})
"""Default of ``clusters``: for each name, such as ``cut-outs``, the cluster of each image, indexed by image number."""


def reliability_table(
    scores: Scores,
    directions: Mapping[str, str],
    baselines: Collection[str],
    *,
    resamples: int,
    level: float,
    clusters: Factors = NO_CLUSTERS,
    printed: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    failed: Collection[str] = (),
) -> pd.DataFrame:
    """Return inter-rater and inter-method reliability of every metric, variant, set, model and seed.

    Args:
        scores: a score table, or its chunks by variant and seed; set-level scores are left out.
        directions: for each metric the direction of its scores, see ``directions``.
        baselines: baselines, which do not use the model; if the table has some, there are rows with and without them.
        resamples: number of resamples for the intervals of α.
        level: confidence level of the intervals.
        clusters: see ``NO_CLUSTERS``.
        printed: α printed in a paper, in the form that ``printed_alphas`` takes.
        failed: see ``printed_alphas``.

    Returns:
        ``metric, variant, data, model, seed``; ``baselines``: ``with`` or ``without`` baselines, ``none`` if the table
        has none; ``methods``: their number; ``images`` that α compares, and ``groups`` of these (``with_groups``);
        ``alpha, alpha_low, alpha_high``: Krippendorff's α; ``correlation, correlation_low, correlation_high``:
        Spearman's ρ over images, averaged over pairs of methods; ``correlation_images``: the smallest number of images
        of one of these ρ; ``two_valued``: True if all scores have one of two values, such as 0 and 1; ``concordance,
        concordance_low, concordance_high``: see ``statistics.concordance``; and ``printed``: the paper's α, NaN if it
        prints none.

    Raises:
        ValueError: see ``printed_alphas``.
    """
    rows = []
    for names, of_metric in groups(scores, [*SCORED, "seed"]):
        wide = by_method(of_metric, directions[str(names["metric"])])
        factors = clusters_of_images(clusters, wide.index.to_numpy())
        model_methods = [name for name in wide if name not in baselines]
        kinds = (
            {"with": wide, "without": wide[model_methods]}
            if len(model_methods) < wide.shape[1]
            else {"none": wide}
        )
        kinds = {kind: subset for kind, subset in kinds.items() if subset.shape[1]}
        for kind, subset in kinds.items():
            values = subset.to_numpy()
            row = {**names, "baselines": kind, "methods": subset.shape[1]}
            alpha = statistics.alpha(values, clusters=factors, resamples=resamples, level=level)
            correlation = statistics.mean_correlation(values, clusters=factors, level=level)
            agreeing = statistics.concordance(values, clusters=factors, level=level)
            row |= {"images": alpha.images, "correlation_images": correlation.images, GROUPS: alpha.units}
            row |= {"two_valued": len(np.unique(values[~np.isnan(values)])) <= 2}
            for name, estimate in (("alpha", alpha), ("correlation", correlation), ("concordance", agreeing)):
                row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
            rows.append(row)
    table = pd.DataFrame(rows, columns=with_groups(RELIABLE, clusters))
    paper_values = printed_alphas(_scored_pairs(table), printed, failed)
    named = table[["metric", "variant", "baselines"]].itertuples(index=False, name=None)
    return table.assign(
        printed=np.array([paper_values.get(name, np.nan) for name in named], dtype=np.float64)
    )


def consistency_table(
    scores: Scores,
    directions: Mapping[str, str],
    printed: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType({}),
    failed: Collection[str] = (),
    clusters: Factors = NO_CLUSTERS,
) -> pd.DataFrame:
    """Return internal consistency: Spearman's ρ over images between each pair of metrics or variants, for each method.

    Args:
        scores: a score table, or its chunks by method and seed; set-level scores are left out.
        directions: for each metric the direction of its scores, see ``directions``.
        printed: ρ printed in a paper, in the form that ``printed_correlations`` takes.
        failed: see ``printed_correlations``.
        clusters: see ``NO_CLUSTERS``; only groups are counted, because the correlations have no intervals.

    Returns:
        ``data, model, seed, method, metric, variant, other_metric, other_variant, images`` (with both scores) and their
        ``groups`` (``with_groups``), ``correlation``: ρ of the raw scores, as in the paper; ``agreement``: ρ of the
        oriented scores, so that 1 means that both rate the same maps as good; and ``printed``: the paper's ρ, NaN if it
        prints none.

    Raises:
        ValueError: see ``printed_correlations``.
    """
    rows: list[dict[str, Any]] = []
    all_scored: dict[tuple[str, str], None] = {}
    for names, of_method in groups(scores, OF_METHOD):
        scored = _scored_pairs(of_method)
        all_scored |= dict.fromkeys(scored)
        wide = of_method.pivot(index="image", columns=["metric", "variant"], values="score")[scored]
        values = wide.to_numpy()
        defined = ~np.isnan(values)
        factors = clusters_of_images(clusters, wide.index.to_numpy())
        raw = statistics.correlations(values)
        columns = [
            Direction(directions[metric]).oriented(column)
            for column, (metric, _) in zip(values.T, scored, strict=True)
        ]
        agreement = statistics.correlations(np.stack(columns, axis=1))
        for a, b in combinations(range(len(scored)), 2):
            (metric, variant), (other, of_other) = scored[a], scored[b]
            rows.append(
                {
                    **names,
                    **dict(zip(PAIR, (metric, variant, other, of_other), strict=True)),
                    "images": int((both := defined[:, a] & defined[:, b]).sum()),
                    **count_groups(factors, both),
                    "correlation": raw[a, b],
                    "agreement": agreement[a, b],
                }
            )
    paper_values = printed_correlations(list(all_scored), printed, failed) if printed else {}
    for row in rows:
        pair = frozenset(((row["metric"], row["variant"]), (row["other_metric"], row["other_variant"])))
        row["printed"] = paper_values.get((str(row["method"]), pair), np.nan)
    columns_of_table = [*OF_METHOD, *PAIR, "images", "correlation", "agreement", "printed"]
    return pd.DataFrame(rows, columns=with_groups(columns_of_table, clusters))


def rankings_table(
    scores: Scores,
    directions: Mapping[str, str],
    baselines: Collection[str] = (),
    clusters: Factors = NO_CLUSTERS,
) -> pd.DataFrame:
    """Return the agreement of each pair of metrics or variants on the order of methods within single images.

    Unlike a correlation over images, it is not raised by images that are easy for all methods under all metrics.

    Args:
        scores: a score table, or its chunks by variant; set-level scores are left out. An image's scores are first
            averaged over seeds.
        directions: for each metric the direction of its scores, see ``directions``.
        baselines: methods to leave out.
        clusters: see ``consistency_table``.

    Returns:
        ``data, model, metric, variant, other_metric, other_variant``; ``images`` on which both rank at least three
        methods, and their ``groups`` (``with_groups``); ``methods`` with a score under both; and ``correlation``:
        Spearman's ρ over methods, averaged over these images.
    """
    tables: dict[tuple[object, object], dict[tuple[object, object], pd.DataFrame]] = {}
    for names, of_metric in groups(scores, SCORED):
        wide = by_method(of_metric, directions[str(names["metric"])])
        wide = wide[[method for method in wide if method not in baselines]]
        tables.setdefault((names["data"], names["model"]), {})[names["metric"], names["variant"]] = wide
    rows = []
    for keys, of_metrics in tables.items():
        for (one, first), (other, second) in combinations(of_metrics.items(), 2):
            first, second = first.align(second, join="inner")
            rho = paired_correlations(first.to_numpy(), second.to_numpy())
            defined = rho[~np.isnan(rho)]
            factors = clusters_of_images(clusters, first.index.to_numpy())
            counts = len(defined), *count_groups(factors, ~np.isnan(rho)).values()
            methods = np.count_nonzero((first.notna() & second.notna()).any())
            mean = defined.mean() if len(defined) else np.nan
            rows.append((*keys, *one, *other, *counts, methods, mean))
    return pd.DataFrame(rows, columns=with_groups(RANKINGS, clusters))


def variance_table(scores: Scores, clusters: Factors = NO_CLUSTERS) -> pd.DataFrame:
    """Return the shares of variance of every metric's scores: see ``statistics.variance_shares``.

    Args:
        scores: a score table, or its chunks by variant; scores of whole sets are left out.
        clusters: see ``consistency_table``. The shares describe these images; ``image`` includes the differences
            between groups.

    Returns:
        ``metric, variant, data, model``, ``images`` with a score of every seed and every method that has scores
        under all seeds, their ``groups`` (``with_groups``), and a column for each effect; NaN where a factor has a
        single level.
    """
    rows = []
    for names, of_metric in groups(scores, SCORED):
        seeds = [by_method(of_seed) for _, of_seed in of_metric.groupby("seed", sort=False)]
        images, methods = seeds[0].index, seeds[0].columns
        for wide in seeds[1:]:
            images, methods = images.union(wide.index), methods.union(wide.columns, sort=False)
        cube = np.stack([wide.reindex(images, columns=methods).to_numpy() for wide in seeds], axis=-1)
        # A method without any score under one seed, such as a constant baseline, would leave no image.
        cube = cube[:, (~np.isnan(cube)).any(0).all(1)]
        complete = ~np.isnan(cube).any((1, 2))
        row: dict[str, object] = {**names, "images": int(complete.sum())}
        row |= count_groups(clusters_of_images(clusters, images.to_numpy()), complete)
        rows.append(row | statistics.variance_shares(cube))
    return pd.DataFrame(rows, columns=None if rows else [*SCORED, "images"])


def _scored_pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(dict.fromkeys(zip(table["metric"], table["variant"], strict=True)))


def groups(scores: Scores, keys: list[str]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield the scores of single images with equal ``keys``, in the order of the table; infinite scores become NaN."""
    for table in [scores] if isinstance(scores, pd.DataFrame) else scores:
        of_images = table[table["image"] != WHOLE_SET]
        of_images = of_images.assign(score=of_images["score"].where(np.isfinite(of_images["score"])))
        for names, group in of_images.groupby(keys, sort=False, observed=True):
            yield dict(zip(keys, names, strict=True)), group


def by_method(scores: pd.DataFrame, direction: str = "higher") -> pd.DataFrame:
    """Return scores of images × methods, higher is better, averaged over seeds; methods in the order of the table."""
    better = scores.assign(score=Direction(direction).oriented(scores["score"].to_numpy()))
    wide = better.groupby(["image", "method"], observed=True)["score"].mean().unstack("method")
    return wide[list(dict.fromkeys(scores["method"]))]


def rank_text(low: float, high: float) -> str:
    """Return a rank set as text, such as ``1`` or ``1–2``; empty for NaN."""
    if np.isnan(low):
        return ""
    return f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"


def with_groups(columns: Sequence[str], known: Container[str]) -> list[str]:
    """Return the columns of a table, with ``groups`` after ``images`` if images have groups (``variance.GROUPS``).

    ``known`` are the clusters, or another table, that contain ``groups`` in this case.
    """
    after = list(columns).index("images") + 1
    return [*columns[:after], *([GROUPS] if GROUPS in known else []), *columns[after:]]


def count_groups(factors: Factors, chosen: Array) -> dict[str, int]:
    """Return the number of groups of the chosen images, bool ``[n]``, as a column; none if images have no groups."""
    return {GROUPS: len(np.unique(factors[GROUPS][chosen]))} if GROUPS in factors else {}


def clusters_of_images(clusters: Factors, images: Array) -> Factors:
    """Return the clusters of images by number, see ``NO_CLUSTERS``.

    Groups are numbered by their first image, as in ``api.agreement``, so that resamples do not depend on their names.
    """
    factors = {name: of_set[images] for name, of_set in clusters.items()}
    return factors | {name: pd.factorize(factors[name])[0] for name in (GROUPS,) if name in factors}
