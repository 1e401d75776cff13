"""Tables of a study's reliability page: comparisons with values printed in papers, then all tables."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import readable
from saliency_assay.reliability.figures import MOST_COLUMNS, scored_names
from saliency_assay.reliability.tables import PAIR

SUBSET_LABELS = {"with": "with baselines", "without": "without baselines", "none": "all methods"}

PAIRS = {
    "rankings": "correlations of metrics over methods, within images",
    "consistency": "correlations of metrics over images, method by method",
}
"""Titles of the tables of pairs of scores."""


def page_tables(tables: Mapping[str, pd.DataFrame], study: str, *, level: float) -> dict[str, pd.DataFrame]:
    """Return tables by title, comparisons with a paper first.

    Args:
        tables: ``reliability``, ``agreement``, ``order``, ``rankings``, ``variance`` and ``consistency``, the content
            of ``tables/{study}/{name}.csv``. Tables of pairs of scores are shortened to the pairs in figures.
        study: name of the study.
        level: confidence level of the intervals of reliability.
    """
    titled_tables = {}
    alphas, correlations = tables["reliability"], tables["consistency"]
    if alphas["printed"].notna().any():
        titled_tables[f"{study}: α, ours [{100 * level:.4g} % interval] / printed"] = compare_alphas(alphas)
    if correlations["printed"].notna().any():
        title = f"{study}: Spearman's ρ between two scores, ours / printed"
        titled_tables[title] = compare_correlations(correlations)
    titled_tables |= {
        f"{study}: reliability ({100 * level:.4g} % confidence intervals)": alphas,
        f"{study}: agreement of seeds, classes, variants and halves of the images": tables["agreement"],
        f"{study}: means and rank sets (95 % confidence)": tables["order"],
        f"{study}: shares of the variance of scores": tables["variance"],
    }
    for name, title in PAIRS.items():
        shown_pairs = shortened(tables[name])
        note = (
            f" (of many variants the last; tables/…/{name}.csv has all)"
            if len(shown_pairs) < len(tables[name])
            else ""
        )
        titled_tables[f"{study}: {title}{note}"] = shown_pairs
    return titled_tables


def compare_alphas(table: pd.DataFrame) -> pd.DataFrame:
    """Return α of the scores with printed values: a row for each, with columns for all methods and without baselines.

    Args:
        table: result of ``reliability.tables.reliability_table``. For several seeds, the mean is shown with the
            outermost ends of their intervals, as dashes if a seed has too few images for an interval.
    """
    printed = table[table["printed"].notna()]
    kinds = [kind for kind in SUBSET_LABELS if (printed["baselines"] == kind).any()]
    rows = []
    for (metric, variant), name in scored_names(printed, most=len(printed)).items():
        row = {"score": name}
        of_score = printed[(printed["metric"] == metric) & (printed["variant"] == variant)]
        for kind in kinds:
            alphas = of_score[of_score["baselines"] == kind]
            ends = alphas["alpha_low"].min(skipna=False), alphas["alpha_high"].max(skipna=False)
            interval = f" [{_number_text(ends[0])}, {_number_text(ends[1])}]" if len(alphas) else ""
            row[SUBSET_LABELS[kind]] = (
                f"{_number_text(alphas['alpha'].mean())}{interval} / {_number_text(alphas['printed'].mean())}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def compare_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Return ρ, averaged over seeds, of the pairs with printed values: a row for each pair, a column for each method.

    Args:
        table: result of ``reliability.tables.consistency_table``.
    """
    printed = table[table["printed"].notna()]
    methods = list(dict.fromkeys(printed["method"]))
    names = scored_names(_both_scores(printed), most=2 * len(printed))
    rows = []
    for keys, pair in printed.groupby(PAIR, sort=False):
        metric, variant, other, of_other = map(str, keys)
        row = {"scores": f"{names[metric, variant]} and {names[other, of_other]}"}
        means = pair.groupby("method")[["correlation", "printed"]].mean().reindex(methods)
        pairs = means.itertuples(index=False)
        row |= {
            readable(method): f"{_number_text(ours)} / {_number_text(paper)}"
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
    return f"{value:.2f}".replace("-0.00", "0.00") if np.isfinite(value) else "–"
