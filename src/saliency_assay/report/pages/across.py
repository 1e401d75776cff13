"""Page Across tasks: agreement of models and data sets on the order of methods, and pairs of methods over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.plotting.palette import correlation_colors, css
from saliency_assay.plotting.text import joined
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.across import ALL, FLIPS, NEVER, SEPARATOR, Across
from saliency_assay.report.pages.heat_map import MANY_METHODS, is_upright
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.study import main_scores
from saliency_assay.report.pages.words import MOST_PAIRS, two

MEAN = "mean of all pairs"


@dataclass(frozen=True)
class Cell:
    """Agreement of two tasks, or the mean of all pairs, under one metric."""

    text: str
    """ρ, or a dash if it is undefined."""
    note: str
    """Interval and number of methods."""
    background: str = "inherit"
    color: str = "inherit"
    is_open: bool = False
    """True if the interval contains 0, or if there is none."""
    value: float | None = None
    saved: str = ""
    """Content of the cell in a CSV file."""
    dark: tuple[str, str] = ("transparent", "inherit")
    """Background and text color on dark pages."""

    @property
    def style(self) -> str:
        """Colors as a style attribute."""
        return css((self.background, self.color), self.dark)


@dataclass(frozen=True)
class AgreementMap:
    """Heat map of metrics × pairs of tasks."""

    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell | None]]
    """Cells by the label of the metric; None if a task has no scores."""

    @property
    def upright(self) -> bool:
        """True if the names of tasks are rotated, so that many columns fit."""
        return is_upright(self.columns)

    @property
    def tall(self) -> bool:
        """True if the heat map scrolls in a separate area."""
        return len(self.rows) > MANY_METHODS

    @property
    def legend(self) -> dict[str, str]:
        """Example colors as style attributes, by description."""
        texts = {"same order (ρ = 1)": 1, "unrelated (0)": 0, "opposite order (−1)": -1}
        return {
            text: css(correlation_colors(value), correlation_colors(value, dark=True))
            for text, value in texts.items()
        }


def across_page(result: Across, labels: Labels, tasks: Mapping[str, str]) -> str:
    """Return the page on the agreement of tasks.

    Args:
        result: result of ``reliability.across.across_tasks``.
        labels: labels of methods and scores.
        tasks: labels of the tasks, by their names.
    """
    pairs = pair_table(result, labels, tasks)
    return render(
        "across",
        answer=answer(result),
        pair_sentences=pair_sentences(result, labels),
        tasks=list(tasks.values()),
        heat=agreement_map(result, labels, tasks),
        pairs=table_of(pairs, "Pairs of methods that flip or are never distinguishable", 2)
        if len(pairs)
        else None,
        left_out=[
            f"{tasks[row['task']]}: {labels.score(row['metric'], row['variant'])}: {row['reason']}"
            for row in result.left_out.to_dict("records")
        ],
    )


def task_labels(tasks: Sequence[tuple[str, str]], labels: Labels) -> list[str]:
    """Return the labels of tasks, data set and model, without what all tasks have in common.

    Labels that are not unique are followed by the keys.
    """
    models, sets = {model for _, model in tasks}, {data for data, _ in tasks}
    texts = []
    for data, model in tasks:
        names = [
            *([labels.model(model)] if len(models) > 1 else []),
            *([labels.data_set(data)] if len(sets) > 1 else []),
        ]
        texts.append(" on ".join(names) or f"{labels.model(model)} on {labels.data_set(data)}")
    return [
        f"{text} ({model} on {data})" if texts.count(text) > 1 else text
        for text, (data, model) in zip(texts, tasks, strict=True)
    ]


def answer(result: Across) -> str:
    """Return the sentence on the metrics under which the order of methods holds from task to task.

    Tasks agree if the interval of the mean ρ is above 0, and disagree if it is below. Of several variants of a score,
    the main one counts.
    """
    means = _main(result.agreement)
    means = means[means["task"] == ALL]
    if means.empty:
        return "No metric ranks three methods in two tasks."
    agree, disagree = int((means["low"] > 0).sum()), int((means["high"] < 0).sum())
    of_all = f"{agree} of {len(means)} metric{'s' if len(means) > 1 else ''}"
    text = (
        f"Tasks agree on the order of the methods under {of_all} (95 % CI of the mean Spearman's ρ above 0)"
    )
    text += f" and disagree under {disagree} (below 0)" if disagree else ""
    is_open = len(means) - agree - disagree
    return f"{text}; under {is_open}, it is open." if is_open else f"{text}."


def pair_sentences(result: Across, labels: Labels) -> list[str]:
    """Return sentences on the pairs of methods that flip, and those that are never distinguishable."""
    pairs = _main(result.pairs)
    if pairs.empty:
        return []
    metrics = len(pairs[["metric", "variant"]].drop_duplicates())
    total = f"{len(pairs)} comparisons (pairs of methods under {metrics} metric{'s' if metrics > 1 else ''})"
    flips, open_in_all = (int((pairs["result"] == kind).sum()) for kind in (FLIPS, NEVER))
    sentences = [
        f"Of {total}, {_count(flips, 'flips', 'flip')} (better in one task, worse in another) and "
        f"{_count(open_in_all, 'is', 'are')} never distinguishable."
    ]
    never: dict[tuple[str, str], bool] = {}
    for one, other, each in pairs[["method", "other", "result"]].itertuples(index=False):
        never[one, other] = never.get((one, other), True) and each == NEVER
    names = [
        f"{labels.method(one)} and {labels.method(other)}"
        for (one, other), is_open in never.items()
        if is_open
    ]
    if names:
        more = f" and {len(names) - MOST_PAIRS} more" if len(names) > MOST_PAIRS else ""
        listed = "; ".join(names[:MOST_PAIRS])
        sentences.append(f"Never distinguishable under any metric: {listed}{more}.")
    return sentences


def agreement_map(result: Across, labels: Labels, tasks: Mapping[str, str]) -> AgreementMap:
    """Return the heat map of metrics × pairs of tasks, with the mean first if there are several pairs."""
    table = _main(result.agreement)
    found = dict.fromkeys(zip(table["task"], table["other"], strict=True))
    order = [name for name in tasks if any(name in pair for pair in found)]
    columns = sorted(
        (pair for pair in found if pair[0] != ALL), key=lambda pair: tuple(map(order.index, pair))
    )
    heads = {pair: f"{tasks[pair[0]]} – {tasks[pair[1]]}" for pair in columns}
    if len(columns) > 1:
        heads = {(ALL, ""): MEAN, **heads}
    rows: dict[str, list[Cell | None]] = {}
    for (metric, variant), of_score in table.groupby(["metric", "variant"], sort=False):
        cells = {(row["task"], row["other"]): _cell(row) for row in of_score.to_dict("records")}
        rows[labels.score(str(metric), str(variant))] = [cells.get(pair) for pair in heads]
    return AgreementMap(list(heads.values()), rows)


def pair_table(result: Across, labels: Labels, tasks: Mapping[str, str]) -> pd.DataFrame:
    """Return the pairs of methods that flip, then those that are never distinguishable, for display."""
    pairs = _main(result.pairs)
    rows = [
        {
            "result": result_name,
            "metric": labels.score(row["metric"], row["variant"]),
            "method": _method(row["method"], row["baselines"], labels),
            "other method": _method(row["other"], row["baselines"], labels),
            "better in": _tasks(row["better_in"], tasks),
            "worse in": _tasks(row["worse_in"], tasks),
            "tasks": row["tasks"],
        }
        for result_name in (FLIPS, NEVER)
        for row in pairs[pairs["result"] == result_name].to_dict("records")
    ]
    return pd.DataFrame(rows)


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number or 'none'} {singular if number < 2 else plural}"


def _main(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the main variant of each score."""
    if table.empty:
        return table
    kept = pd.MultiIndex.from_tuples(main_scores(table))
    return table[pd.MultiIndex.from_frame(table[["metric", "variant"]]).isin(kept)]


def _cell(row: Mapping[Any, Any]) -> Cell:
    rho, low, high = (row[name] for name in ("correlation", "low", "high"))
    methods = f"{row['methods']} methods"
    if np.isnan(rho):
        return Cell("–", methods, saved=methods)
    interval = "no CI" if np.isnan(low) else f"[{two(low)}, {two(high)}]"
    saved = f"{rho:.6g}" if np.isnan(low) else f"{rho:.6g} [{low:.6g}, {high:.6g}]"
    is_open = not (low > 0 or high < 0)
    return Cell(
        two(rho),
        f"{interval}, {methods}",
        *correlation_colors(rho),
        is_open,
        round(rho, 4),
        saved,
        dark=correlation_colors(rho, dark=True),
    )


def _method(name: str, baselines: str, labels: Labels) -> str:
    return f"{labels.method(name)}{' (baseline)' if name in baselines.split(SEPARATOR) else ''}"


def _tasks(names: str, tasks: Mapping[str, str]) -> str:
    return joined(tasks.get(name, name) for name in names.split(SEPARATOR)) if names else "–"
