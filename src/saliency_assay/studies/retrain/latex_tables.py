"""Tables of a retrain study in LaTeX: accuracy after retraining, and mask leakage."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from saliency_assay.plotting import latex
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.latex_tables import METHOD_LETTERS, StudyTableSpec, floats_of, reference_of
from saliency_assay.studies.retrain.parameters import LEAST_FIRST
from saliency_assay.studies.retrain.retrain_tables import protocol_label

MOST_COLUMNS = 8
TABLES = {
    "leakage": StudyTableSpec(
        "test accuracy of classifiers trained on masks alone, with true and with permuted labels; $p$: one-sided test "
        "of a higher accuracy with true labels, corrected for all rows (Holm)",
        {
            **{"protocol": "protocol", "fill": "fill", "method": "method", "iteration": "iteration"},
            **{"accuracy": "accuracy", "random": "permuted", "chance": "chance", "p_holm": "$p$"},
            "leaks": "leaks",
        },
    )
}


def latex_tables(study: str, tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[str]:
    """Return accuracies from its ``summary``, and the tables of ``TABLES`` that the study has, as LaTeX floats."""
    labeled_tables = {
        name: table.assign(protocol=table["protocol"].map(protocol_label))
        for name, table in tables.items()
        if name in TABLES
    }
    return [
        *_accuracy_tables(study, tables["summary"], labels),
        *floats_of(study, TABLES, labeled_tables, labels),
    ]


def _accuracy_tables(study: str, summary: pd.DataFrame, labels: Labels) -> list[str]:
    """Return the test accuracy of the retrained models, methods × occluded share, one table per arm.

    Args:
        study: name of the study.
        summary: from ``studies.retrain.retrain_tables.summary``.
        labels: labels of the study and of methods.
    """
    floats = []
    for (protocol, fill), rows in summary.groupby(["protocol", "fill"], sort=False):
        iterations = sorted(set(rows["iteration"]))
        starts = range(0, len(iterations), MOST_COLUMNS)
        for number, start in enumerate(starts):
            columns = rows[rows["iteration"].isin(iterations[start : start + MOST_COLUMNS])]
            reference = reference_of(study, f"accuracy-{protocol}-{fill}", number, len(starts))
            caption = _accuracy_caption(labels.study(study), str(protocol), str(fill), rows)
            floats.append(_accuracy_float(caption, reference, columns, labels))
    return floats


def _accuracy_float(caption: str, reference: str, rows: pd.DataFrame, labels: Labels) -> str:
    accuracy, spread = (
        100 * rows.pivot(index="method", columns="iteration", values=name)
        for name in ("accuracy_test", "accuracy_test_sd")
    )
    shares = rows.groupby("iteration")["nominal"].first()
    lines: list[str] = []
    for method in dict.fromkeys(rows["method"]):
        cells = [
            (_percent(mean), rf"$\pm$ {_percent(sd)}" if np.isfinite(sd) else "")
            for mean, sd in zip(accuracy.loc[method], spread.loc[method], strict=True)
        ]
        lines += latex.paired(latex.wrapped(labels.method(method), METHOD_LETTERS), cells)
    header = ["method", *(rf"{100 * share:.0f}\,\%" for share in shares)]
    return latex.floating(caption, reference, header, [lines])


def _accuracy_caption(study: str, protocol: str, fill: str, rows: pd.DataFrame) -> str:
    seeds, chance = rows["seeds"].max(), _percent(100 * rows["chance"].iloc[0])
    better = "higher" if protocol == LEAST_FIRST else "lower"
    spread = " Below: standard deviation between seeds." if seeds > 1 else ""
    return (
        f"Study {latex.escaped(study)}, {latex.escaped(protocol_label(protocol))}, {latex.escaped(fill)} fill: test "
        r"accuracy (\%) after retraining on images with the share of occluded pixels in the header; "
        f"{better} accuracy means that the method ranks pixels better. n = {rows['images'].max():.0f} images, "
        rf"{seeds:.0f} training seed{'s' if seeds > 1 else ''}; chance: {chance}\,\%.{spread}"
    )


def _percent(value: float) -> str:
    return latex.NONE if np.isnan(value) else f"{value:.1f}"
