"""Tables of a study's reliability page: comparisons with published values, then all tables."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.text import with_minus
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.figures import MOST_COLUMNS, scored_names
from saliency_assay.reliability.reliability_tables import PAIR

SUBSET_LABELS = {"with": "with baselines", "without": "without baselines", "none": "all methods"}

PAIRS = {
    "rankings": "correlations of metrics over methods, within images",
    "consistency": "correlations of metrics over images, by method",
}
"""Titles of the tables of pairs of scores."""
MOST_ROWS = 1000  # rows of the table of pairs of methods


def page_tables(
    tables: Mapping[str, pd.DataFrame], study: str, labels: Labels, *, level: float
) -> dict[str, pd.DataFrame]:
    """Return tables by title, comparisons with published values first.

    Args:
        tables: ``reliability``, ``agreement``, ``controls``, ``pairs``, ``rankings``, ``variance`` and
            ``consistency``, the content of ``tables/{study}/{name}.csv``. Tables of pairs of scores are shortened to
            the pairs in figures, that of pairs of methods to the same scores and ``MOST_ROWS``.
        study: label of the study.
        labels: labels of the study's methods, scores, models and data.
        level: confidence level of the intervals of reliability.
    """
    titled_tables = {}
    alphas, correlations = tables["reliability"], tables["consistency"]
    if alphas["printed"].notna().any():
        title = f"{study}: α of this study [{100 * level:.4g} % CI] / published"
        titled_tables[title] = compare_alphas(alphas, labels)
    if correlations["printed"].notna().any():
        title = f"{study}: Spearman's ρ between two scores, this study / published"
        titled_tables[title] = compare_correlations(correlations, labels)
    titled_tables |= {
        f"{study}: reliability ({100 * level:.4g} % CI)": displayed(
            alphas, labels, {"correlation": "mean Spearman's ρ of methods"}
        ),
        f"{study}: agreement between seeds, classes, variants and halves of the images": displayed(
            tables["agreement"], labels
        ),
        **_controls(tables["controls"], study, labels),
        f"{study}: comparisons of two methods (95 % CI; p adjusted for all pairs){_note(tables['pairs'])}": displayed(
            _main_pairs(tables["pairs"]), labels
        ),
        f"{study}: shares of the variance of scores": displayed(tables["variance"], labels),
    }
    for name, title in PAIRS.items():
        shown_pairs = shortened(tables[name])
        note = (
            f" (last variant of each score; all in tables/…/{name}.csv)"
            if len(shown_pairs) < len(tables[name])
            else ""
        )
        titled_tables[f"{study}: {title}{note}"] = displayed(shown_pairs, labels)
    return titled_tables


def _controls(table: pd.DataFrame, study: str, labels: Labels) -> dict[str, pd.DataFrame]:
    """Return the scores of the controls and the shares of their range by title; none without an upper control."""
    title = f"{study}: scores of the controls, and share of their range that each method reaches (95 % CI)"
    rows = table[table["upper"] != ""]
    return {} if rows.empty else {title: displayed(rows.drop(columns=["data", "model"]), labels)}


def _main_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the scores in figures, at most ``MOST_ROWS``."""
    kept = set(scored_names(pairs, most=MOST_COLUMNS))
    rows = zip(pairs["metric"], pairs["variant"], strict=True)
    return pairs[[row in kept for row in rows]].head(MOST_ROWS)


def _note(pairs: pd.DataFrame) -> str:
    shown = len(_main_pairs(pairs))
    return (
        f" (first {shown:,} of {len(pairs):,} rows; all in tables/…/pairs.csv)" if shown < len(pairs) else ""
    )


def compare_alphas(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return α of the scores with published values: a row for each, with columns for all methods and without baselines.

    Args:
        table: result of ``reliability_table``. For several seeds, the mean is shown with the outermost ends of their
            intervals, as dashes if a seed has too few images for an interval.
        labels: labels of the scores.
    """
    printed = table[table["printed"].notna()]
    kinds = [kind for kind in SUBSET_LABELS if (printed["baselines"] == kind).any()]
    rows = []
    for metric, variant in scored_names(printed, most=len(printed)):
        row = {"metric": labels.score(metric, variant)}
        of_score = printed[(printed["metric"] == metric) & (printed["variant"] == variant)]
        for kind in kinds:
            alphas = of_score[of_score["baselines"] == kind]
            ends = alphas["alpha_low"].min(skipna=False), alphas["alpha_high"].max(skipna=False)
            interval = f" [{_number_text(ends[0])}, {_number_text(ends[1])}]" if len(alphas) else ""
            mean, printed_mean = alphas["alpha"].mean(skipna=False), alphas["printed"].mean()
            row[SUBSET_LABELS[kind]] = f"{_number_text(mean)}{interval} / {_number_text(printed_mean)}"
        rows.append(row)
    return pd.DataFrame(rows)


def compare_correlations(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return ρ, averaged over seeds, of the pairs with published values: a row for each pair, a column for each method.

    Args:
        table: result of ``reliability.reliability_tables.consistency_table``.
        labels: labels of the scores and methods.
    """
    printed = table[table["printed"].notna()]
    methods = list(dict.fromkeys(printed["method"]))
    rows = []
    for keys, pair in printed.groupby(PAIR, sort=False):
        metric, variant, other, of_other = map(str, keys)
        row = {"metrics": f"{labels.score(metric, variant)} and {labels.score(other, of_other)}"}
        means = pair.groupby("method")[["correlation", "printed"]].mean().reindex(methods)
        pairs = means.itertuples(index=False)
        row |= {
            labels.methods.get(method, method): f"{_number_text(ours)} / {_number_text(paper)}"
            for method, (ours, paper) in zip(methods, pairs, strict=True)
        }
        rows.append(row)
    return pd.DataFrame(rows)


def shortened(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of pairs that figures show: only the last of many variants of a score."""
    kept = set(scored_names(_both_scores(table), most=MOST_COLUMNS))
    pairs = table[PAIR].itertuples(index=False, name=None)
    return table[[pair[:2] in kept and pair[2:] in kept for pair in pairs]]


def _both_scores(table: pd.DataFrame) -> pd.DataFrame:
    other = table[["other_metric", "other_variant"]].set_axis(["metric", "variant"], axis=1)
    return pd.concat([table[["metric", "variant"]], other])


def _number_text(value: float) -> str:
    return with_minus(f"{value:.2f}") if np.isfinite(value) else "–"
