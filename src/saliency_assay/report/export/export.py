"""Export of a study's results for a paper: a tidy table of scores, ranks and reliability, and LaTeX tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from saliency_assay.plotting import latex
from saliency_assay.plotting.text import groups_text, joined, span_text
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.figures import scored_names
from saliency_assay.reliability.order_tables import ORDERED, UNTESTED
from saliency_assay.reliability.reliability_tables import SCORED, rank_text, with_groups
from saliency_assay.reliability.sweeps import SELECTED, SELECTION_IMAGES

WITHOUT = {
    f"{name}{end}": f"{name}_without_baselines{end}"
    for name in ("alpha", "correlation")
    for end in ("", "_low", "_high")
}
STATISTICS = [*WITHOUT]
TIDY = [
    "study",
    "kind",
    "data",
    "model",
    "metric",
    "variant",
    "direction",
    *ORDERED[ORDERED.index("method") :],
]
TIDY += ["printed", *STATISTICS, *WITHOUT.values()]
COLUMN = ["data", "model", "metric", "variant"]
MOST_COLUMNS = 5  # with intervals, these fill a page at \footnotesize
LETTERS, METHOD_LETTERS = 15, 20
ARROWS = {"higher": r"$\uparrow$", "lower": r"$\downarrow$"}
RANKED = {
    "wins": "by win rate (probability of a better score than another method on an image)",
    "means": "by mean",
}
HEAD = "% Tables of study {study}. To be read with \\input; all they need is \\usepackage{{booktabs}}."


def tidy_table(
    study: str, kind: str, order: pd.DataFrame, reliability: pd.DataFrame, printed: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row for each metric, variant, set, model and method of a study, in the order of ``order``.

    Args:
        study: name of the study.
        kind: kind of the study.
        order: result of ``reliability.order_tables.order_tables``.
        reliability: result of ``reliability.reliability_tables.reliability_table``.
        printed: result of ``studies.fidelity.fidelity_tables.summary``, if the study has one.

    Returns:
        The columns ``TIDY``, ``groups`` after ``images``, and ``selected`` and ``selection_images``, if ``order`` has
        them. ``seeds`` to ``ranked_by``: see
        ``order_tables``; ``printed``: a paper's value of this method and score, or NaN. Equal for all methods of a
        metric: ``alpha`` and ``correlation`` with all methods, averaged over seeds, with the smallest ``low`` and the
        largest ``high`` of the seeds, NaN if a seed has no interval; ``…_without_baselines``: the same without
        baselines, NaN in a study that has none.
    """
    table = order.assign(study=study, kind=kind)
    for baselines, names in ((["with", "none"], {}), (["without"], WITHOUT)):
        subset = reliability[reliability["baselines"].isin(baselines)]
        table = table.merge(_mean_over_seeds(subset).rename(columns=names), how="left", on=SCORED)
    columns = [*with_groups(TIDY, order), *(name for name in (SELECTED, SELECTION_IMAGES) if name in order)]
    if printed is None:
        return table.assign(printed=np.nan)[columns]
    keys = ["metric", "variant", "method"]
    values = printed.groupby(keys, sort=False)["printed"].first()
    return table.merge(values.reset_index(), how="left", on=keys)[columns]


def _mean_over_seeds(reliability: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds of the statistics, with the outermost ends of their intervals, by metric and model.

    A statistic or an end is NaN if it is missing for a seed.
    """
    by_score = reliability.groupby(SCORED, sort=False, dropna=False)[STATISTICS]
    kinds = {"low": by_score.min(), "high": by_score.max()}
    table = by_score.mean()
    for name in STATISTICS:
        if (end := name.rpartition("_")[2]) in kinds:
            table[name] = kinds[end][name]
    complete = by_score.count().eq(by_score.size(), axis=0)
    return table.where(complete).reset_index()


def study_tex(
    study: str,
    scores: pd.DataFrame,
    own: Sequence[str],
    *,
    level: float,
    labels: Labels = UNLABELED,
    reference: str | None = None,
    caption: str | None = None,
    note: str = "",
) -> str:
    """Return a study's tables as LaTeX for ``\\input``; the only required package is booktabs.

    Args:
        study: name of the study.
        scores: rows of the study in the tidy table; empty if its methods are not scored.
        own: LaTeX floats that its kind of study adds.
        level: confidence level of the intervals of α.
        labels: labels of the keys in the tables.
        reference, caption, note: of the tables of scores, see ``score_floats``.
    """
    of_scores = score_floats(
        scores, study, level=level, labels=labels, reference=reference, caption=caption, note=note
    )
    floats = [*of_scores, *own]
    return "\n\n".join([HEAD.format(study=latex.escaped(labels.study(study))), *floats]) + "\n"


def score_floats(
    scores: pd.DataFrame,
    study: str,
    *,
    level: float,
    labels: Labels = UNLABELED,
    reference: str | None = None,
    caption: str | None = None,
    note: str = "",
) -> list[str]:
    """Return tables of methods × scores with means, intervals and rank sets, and α in the last rows.

    Many scores are split into several tables. If there are more variants than columns, only the last of each score is
    shown, as in the figures of reliability.

    Args:
        scores: rows of a study in the tidy table.
        study: name of the study.
        level: confidence level of the intervals of α.
        labels: labels of the keys in the tables.
        reference: label for ``\\ref``, by default that of the study; it is numbered if there are several tables.
        caption: LaTeX, by default a description of the columns.
        note: text before this description.
    """
    names: dict[tuple[str, ...], str] = {}
    for set_and_model, rows in scores.groupby(["data", "model"], sort=False, dropna=False):
        named = scored_names(rows, labels, most=MOST_COLUMNS)
        names |= {(*map(str, set_and_model), *pair): label for pair, label in named.items()}
    varying = [name for name in ("data", "model") if scores[name].nunique() > 1]
    columns = list(names)
    column_groups = [columns[start : start + MOST_COLUMNS] for start in range(0, len(columns), MOST_COLUMNS)]
    return [
        _score_float(
            {column: scores[(scores[COLUMN] == list(column)).all(axis=1)] for column in set_and_model},
            {
                column: [
                    names[column],
                    *(_label(column[COLUMN.index(name)], name, labels) for name in varying),
                ]
                for column in set_and_model
            },
            study,
            (reference or latex.label(study, "scores")) + (f"-{place + 1}" if len(column_groups) > 1 else ""),
            level=level,
            labels=labels,
            caption=caption,
            note=note,
        )
        for place, set_and_model in enumerate(column_groups)
    ]


def _score_float(
    columns: Mapping[tuple[str, ...], pd.DataFrame],
    titles: Mapping[tuple[str, ...], Sequence[str]],
    study: str,
    reference: str,
    *,
    level: float,
    labels: Labels,
    caption: str | None,
    note: str,
) -> str:
    """Return one table with a column for each of ``columns``, which are the tidy rows of one score."""
    all_rows = pd.concat(columns.values())
    header = ["method"]
    for column, rows in columns.items():
        lines = [line for title in titles[column] for line in latex.wrapped(title, LETTERS)]
        header.append(latex.stacked([*lines, _arrow(rows["direction"].iloc[0])]))
    groups: list[list[str]] = [[], []]
    for method, baseline in dict(zip(all_rows["method"], all_rows["baseline"], strict=True)).items():
        cells = [
            _score_cell(rows[rows["method"] == method], len(rows), baseline=baseline)
            for rows in columns.values()
        ]
        groups[bool(baseline)] += latex.paired(latex.wrapped(labels.method(method), METHOD_LETTERS), cells)
    baselines = bool(all_rows["baseline"].any())
    alpha_rows = {"all methods": "", "without baselines": "_without_baselines"} if baselines else {"": ""}
    alpha_lines: list[str] = []
    for kind, ending in alpha_rows.items():
        alpha = [f"alpha{ending}{end}" for end in ("", "_low", "_high")]
        cells = [latex.with_interval(*rows[alpha].iloc[0]) for rows in columns.values()]
        alpha_lines += latex.paired([r"$\alpha$", *([kind] if kind else [])], cells)
    if caption is None:
        caption = _score_caption(all_rows, study, baselines, level, labels)
        caption = f"{latex.escaped(note)} {caption}" if note else caption
    return latex.floating(caption, reference, header, [*groups, alpha_lines])


def _score_cell(row: pd.DataFrame, methods: int, *, baseline: bool) -> tuple[str, str]:
    """Return the mean with its rank set and the interval.

    The mean is bold if it is first and not last among the ``methods``, unless it is that of a baseline method.
    """
    if row.empty:
        return latex.NONE, ""
    mean, low, high, *ranks = row[["mean", "low", "high", "rank_low", "rank_high"]].iloc[0]
    mean_text, interval = latex.with_interval(mean, low, high)
    if not (text := rank_text(*ranks)):
        return mean_text, interval
    if ranks[0] == 1 and ranks[1] < methods and not baseline:
        mean_text = rf"\textbf{{{mean_text}}}"
    return f"{mean_text} ({latex.escaped(text)})", interval


def _arrow(direction: str) -> str:
    target = Direction(direction).target
    return ARROWS[direction] if target is None else rf"$\rightarrow {target:g}$"


def _label(key: str, column: str, labels: Labels) -> str:
    return labels.model(key) if column == "model" else labels.data_set(key)


def _score_caption(rows: pd.DataFrame, study: str, baselines: bool, level: float, labels: Labels) -> str:
    counts = rows.loc[rows["mean"].notna(), "images"]
    images = " to ".join(map(str, dict.fromkeys((counts.min(), counts.max())))) if len(counts) else "0"
    groups = groups_text(rows.loc[rows["mean"].notna(), "groups"].dropna() if "groups" in rows else ())
    seed_count = rows["seeds"].max()
    seeds = f", {seed_count} training seed{'s' if seed_count > 1 else ''}" if seed_count else ""
    over = latex.escaped(joined(name for name in dict.fromkeys(rows["over"]) if name != UNTESTED))
    interval = (
        rf"the 95\,\% confidence interval over {over}"
        if over
        else "no interval, because there is one training seed"
    )
    if over and (rows["mean"].notna() & rows["low"].isna()).any():
        interval += " (none if scores are constant, too skewed or too few)"
    legend = r"$\uparrow$ higher, $\downarrow$ lower is better"
    if any(Direction(direction).target is not None for direction in rows["direction"]):
        legend += (
            r", $\rightarrow$ closer to the value is better (methods are ranked by the mean distance of each image's"
            " score from it, not by the distance of the mean)"
        )
    fixed = []
    for name in ("model", "data"):
        if rows[name].nunique() == 1:
            text = latex.escaped(_label(str(rows[name].iloc[0]), name, labels))
            fixed.append(f"{'data set' if name == 'data' else name}: {text}")
    described = f" ({'; '.join(fixed)})" if fixed else ""
    return (
        f"Study {latex.escaped(labels.study(study))}{described}: mean score of each method "
        f"(n = {images} images{groups}{seeds}), below it {interval}; {legend}. "
        rf"In parentheses the rank set {RANKED[rows['ranked_by'].iloc[0]]}, with simultaneous 95\,\% confidence over "
        "the methods of a score, not over scores; bold: no method is significantly better, and some are worse. "
        f"{_selection_text(rows, labels)}{'Baseline methods are below and never bold. ' if baselines else ''}"
        rf"$\alpha$: inter-rater reliability of the ranking (Krippendorff), with its {100 * level:.4g}\,\% "
        "confidence interval."
    )


def _selection_text(rows: pd.DataFrame, labels: Labels) -> str:
    """Return a sentence on the methods whose parameters were selected on other images; empty if there are none."""
    swept = rows[rows[SELECTED].fillna("") != ""] if SELECTED in rows else rows[:0]
    if swept.empty:
        return ""
    methods = latex.escaped(joined(dict.fromkeys(map(labels.method, swept["method"]))))
    images = span_text(swept[SELECTION_IMAGES].astype(int))
    return f"Parameters of {methods} were selected for each score on other images (n = {latex.escaped(images)}). "
