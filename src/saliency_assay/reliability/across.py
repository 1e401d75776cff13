"""Agreement of tasks on the order of methods: which orders hold across models and data sets, and which pairs do not.

A task is one model on one data set. Each has an order of the methods under each metric, and tests of all pairs of
methods (``order_tables``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.reliability.comparison import WINS
from saliency_assay.reliability.order_tables import BETTER, UNTESTED, UNTESTED_PAIR, WORSE
from saliency_assay.reliability.orders import correlation_range
from saliency_assay.reliability.raters import paired_correlations
from saliency_assay.reliability.reliability_tables import SCORED
from saliency_assay.reliability.statistics import LEAST_IMAGES
from saliency_assay.reliability.variance import GROUPS

SCORE = ["metric", "variant"]
ALL = "all tasks"
"""Value of ``task`` in the rows of the mean over all pairs of tasks."""
AGREEMENT = [*SCORE, "task", "other", "tasks", "methods", "correlation", "low", "high"]
PAIRS = [*SCORE, "method", "other", "baselines", "tasks", "better", "worse", "neither"]
PAIRS += ["better_in", "worse_in", "result"]
LEFT_OUT = [*SCORE, "task", "reason"]
NEVER, FLIPS = "never distinguishable", "flips"
"""Values of ``result``, beside ``better`` and ``worse``."""
SEPARATOR = "; "
OPPOSITE = {BETTER: WORSE, WORSE: BETTER}


class Orders(NamedTuple):
    """Tables of one task: ``Orders(*order_tables(scores, directions, baselines, clusters=clusters))``."""

    order: pd.DataFrame
    pairs: pd.DataFrame


@dataclass(frozen=True)
class Across:
    """Results of all tasks, for every metric and variant that at least two of them have."""

    agreement: pd.DataFrame
    """Agreement of each pair of tasks on the order of the methods, see ``across_tasks``."""
    pairs: pd.DataFrame
    """Comparisons of each pair of methods over all tasks, see ``across_tasks``."""
    left_out: pd.DataFrame
    """Metrics of tasks that are left out because images or groups are too few: ``metric, variant, task, reason``."""


@dataclass(frozen=True)
class _Ranking:
    """Order of the methods of one task under one metric."""

    methods: Sequence[str]  # those with a rank, without baselines
    margins: Mapping[
        tuple[str, str], float
    ]  # wins or difference of one method against another, positive is better
    p: Mapping[tuple[str, str], float]  # adjusted p-values, by the better and the worse method
    is_tested: bool


def across_tasks(tasks: Mapping[str, Orders], *, level: float = 0.95) -> Across:
    """Return the agreement of tasks on the order of methods, and the comparisons of each pair of methods over tasks.

    Two tasks are compared on the methods that have scores in both, without baselines: by Spearman's ρ between their win
    rates among these methods or, if rank sets compare means, their mean differences from them. ρ therefore does not
    depend on methods that only one task has. The interval is the range of ρ over all orders that agree with the
    significant comparisons of either task (``orders.correlation_range``), each of T tasks tested at the family-wise
    error (1 − ``level``) / T. All intervals of a metric therefore contain the true values simultaneously with a
    probability of at least ``level``, whether or not tasks have images in common. The p-values are those of each task:
    adjusted for all of its methods and, if rank sets compare wins, of win rates against all of them.

    Args:
        tasks: tables of each task, by name, each of a single model and data set.
        level: simultaneous level of the intervals of a metric.

    Returns:
        ``agreement``: for each metric, variant and pair of tasks ``task, other``; ``tasks``, their number; ``methods``
        in both; ``correlation`` with its interval ``low, high``. ρ is NaN with fewer than three methods or if all
        methods tie; the interval is NaN if a task is not tested. A row with ``task`` ``ALL`` has the mean over the
        pairs with ρ, their number of ``tasks``, and the smallest number of ``methods``.

        ``pairs``: for each metric, variant and pair of methods, including baselines, that at least two tasks compare:
        the numbers of ``tasks`` in which ``method`` is ``better`` or ``worse`` than ``other`` (adjusted p ≤ 0.05 in
        this task, see ``order_tables``), or ``neither``; ``better_in, worse_in``: the names of these tasks, joined by
        ``SEPARATOR``; ``baselines``: those of the two that are baselines; ``result``: ``flips`` if it is better in one
        task and worse in another, ``better`` or ``worse`` if it is so in some task, else ``never distinguishable``.

        ``left_out``: metrics of tasks with fewer than ``LEAST_IMAGES`` images or groups.

    Raises:
        ValueError: ``level`` is not in (0, 1); a task has several models or data sets; or tasks have different
            directions of a score or compare methods by different rules.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}, expected a share in (0, 1)")
    for task, (order, _) in tasks.items():
        if len(found := order[["data", "model"]].drop_duplicates()) > 1:
            names = ", ".join(f"{model} on {data}" for data, model in found.itertuples(index=False))
            raise ValueError(f"tasks: {task}: found {names}, expected one model on one data set")
    by_score: dict[Any, dict[str, Orders]] = {}
    for task, (order, pairs_of_task) in tasks.items():
        pairs_by_score = dict(list(pairs_of_task.groupby(SCORE, sort=False)))
        for score, rows in order.groupby(SCORE, sort=False):
            compared = pairs_by_score.get(score, pairs_of_task.iloc[:0])
            by_score.setdefault(score, {})[task] = Orders(rows, compared)
    agreement: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    left_out: list[dict[str, Any]] = []
    for (metric, variant), scored in by_score.items():
        if len(scored) < 2:
            continue
        for column in ("direction", "ranked_by"):
            _check_equal(column, f"{metric} {variant}", scored)
        few = {task: text for task, orders in scored.items() if (text := _too_few(orders.order))}
        of_score = {"metric": metric, "variant": variant}
        left_out += [of_score | {"task": task, "reason": reason} for task, reason in few.items()]
        usable = {task: orders for task, orders in scored.items() if task not in few}
        rankings = {task: _ranking(orders) for task, orders in usable.items()}
        agreement += [of_score | row for row in _agreement_rows(rankings, level)]
        pairs += [of_score | row for row in _pair_rows(usable)]
    return Across(
        pd.DataFrame(agreement, columns=AGREEMENT),
        pd.DataFrame(pairs, columns=PAIRS),
        pd.DataFrame(left_out, columns=LEFT_OUT),
    )


def orders_by_task(studies: Sequence[Orders]) -> dict[tuple[str, str], Orders]:
    """Return the tables of several studies by data set and model.

    If several studies have scores of the same metric and variant for one model and data set, which are those of the
    same maps, the study with most methods counts; of several such studies the first.
    """
    chosen: dict[tuple[Any, ...], Orders] = {}
    for orders in studies:
        pairs = dict(list(orders.pairs.groupby(SCORED, sort=False)))
        for key, order in orders.order.groupby(SCORED, sort=False):
            if key not in chosen or len(order) > len(chosen[key].order):
                chosen[key] = Orders(order, pairs.get(key, orders.pairs.iloc[:0]))
    tasks: dict[tuple[str, str], list[Orders]] = {}
    for (_, _, data, model), orders in chosen.items():
        tasks.setdefault((data, model), []).append(orders)
    return {task: Orders(*map(pd.concat, zip(*each, strict=True))) for task, each in tasks.items()}


def _check_equal(column: str, score: str, tasks: Mapping[str, Orders]) -> None:
    values = {task: orders.order[column].iloc[0] for task, orders in tasks.items()}
    if len(set(values.values())) > 1:
        texts = ", ".join(f"{value} ({task})" for task, value in values.items())
        raise ValueError(f"tasks: {score}: found {column} {texts}, expected the same in all tasks")


def _too_few(order: pd.DataFrame) -> str:
    """Return the number of images or groups if they are too few for an interval, else an empty text."""
    unit = GROUPS if GROUPS in order and order[GROUPS].notna().any() else "images"
    count = int(order[unit].max())
    return f"{unit}: found {count}, expected at least {LEAST_IMAGES}" if count < LEAST_IMAGES else ""


def _ranking(orders: Orders) -> _Ranking:
    order, pairs = orders
    by_wins = bool((order["ranked_by"] == WINS).all())
    ranked = order[order["rank_low"].notna() & ~order["baseline"].astype(bool)]
    column = pairs["wins"] - 0.5 if by_wins else pairs["difference"]
    margins = dict(zip(zip(pairs["method"], pairs["other"], strict=True), column.astype(float), strict=True))
    margins |= {(other, method): -margin for (method, other), margin in margins.items()}
    p: dict[tuple[str, str], float] = {}
    columns = pairs[["method", "other", "wins_p" if by_wins else "difference_p", "finding"]]
    for method, other, value, finding in columns.itertuples(index=False):
        if finding in OPPOSITE:
            p[(method, other) if finding == BETTER else (other, method)] = value
    return _Ranking(list(ranked["method"]), margins, p, not (order["over"] == UNTESTED).any())


def _agreement_rows(rankings: Mapping[str, _Ranking], level: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task, other in combinations(rankings, 2):
        both = rankings[task], rankings[other]
        shared = _shared(*both)
        # Rounded, so that equal win rates tie.
        rho = float(paired_correlations(*(np.round(_values(each, shared), 12) for each in both))[0])
        rows.append({"task": task, "other": other, "tasks": 2, "methods": len(shared), "correlation": rho})
    defined = [row for row in rows if not np.isnan(row["correlation"])]
    compared = {row[name] for row in defined for name in ("task", "other")}
    for row in rows:
        row |= {"low": np.nan, "high": np.nan}
        both = rankings[row["task"]], rankings[row["other"]]
        if np.isnan(row["correlation"]) or not all(each.is_tested for each in both):
            continue
        shared = _shared(*both)
        low, high = correlation_range(*(_better(each, shared, (1 - level) / len(compared)) for each in both))
        # The comparisons are with all methods of a task, ρ only with the shared ones, so that it may be outside.
        row |= {"low": min(low, row["correlation"]), "high": max(high, row["correlation"])}
    if defined:
        means = {
            name: float(np.mean([row[name] for row in defined])) for name in ("correlation", "low", "high")
        }
        methods = min(row["methods"] for row in defined)
        rows.append({"task": ALL, "other": "", "tasks": len(compared), "methods": methods} | means)
    return rows


def _shared(one: _Ranking, other: _Ranking) -> list[str]:
    return [method for method in one.methods if method in other.methods]


def _values(ranking: _Ranking, methods: Sequence[str]) -> Array:
    """Return the mean margin ``[1, M]`` of each method over the others, higher is better; NaN if it has none."""
    margins = np.array([[ranking.margins.get((one, other), np.nan) for other in methods] for one in methods])
    margins = margins.reshape(len(methods), len(methods))
    counts = (~np.isnan(margins)).sum(axis=-1)
    return np.where(counts > 0, np.nansum(margins, axis=-1) / np.maximum(counts, 1), np.nan)[None]


def _better(ranking: _Ranking, methods: Sequence[str], error: float) -> Array:
    """Return bool ``[M, M]``: True if the row's method is better than the column's at this family-wise error."""
    return np.array(
        [[ranking.p.get((one, other), 1.0) <= error for other in methods] for one in methods], dtype=bool
    )


def _pair_rows(tasks: Mapping[str, Orders]) -> Iterator[dict[str, Any]]:
    methods = dict.fromkeys(method for order, _ in tasks.values() for method in order["method"])
    places = {method: place for place, method in enumerate(methods)}
    baselines = {
        method
        for order, _ in tasks.values()
        for method in order.loc[order["baseline"].astype(bool), "method"]
    }
    findings: dict[tuple[str, str], dict[str, str]] = {}
    for task, (_, pairs) in tasks.items():
        for one, other, finding in pairs[["method", "other", "finding"]].itertuples(index=False):
            if finding == UNTESTED_PAIR:
                continue
            if places[one] > places[other]:
                one, other, finding = other, one, OPPOSITE.get(finding, finding)
            findings.setdefault((one, other), {})[task] = finding
    for one, other in combinations(methods, 2):
        of_pair = findings.get((one, other), {})
        if len(of_pair) < 2:
            continue
        better, worse = ([task for task, each in of_pair.items() if each == kind] for kind in (BETTER, WORSE))
        result = FLIPS if better and worse else BETTER if better else WORSE if worse else NEVER
        counts = {"better": len(better), "worse": len(worse)}
        yield {
            "method": one,
            "other": other,
            "baselines": SEPARATOR.join(each for each in (one, other) if each in baselines),
            "tasks": len(of_pair),
            **counts,
            "neither": len(of_pair) - sum(counts.values()),
            "better_in": SEPARATOR.join(better),
            "worse_in": SEPARATOR.join(worse),
            "result": result,
        }
