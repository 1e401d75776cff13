"""Tables in LaTeX of what a study knows beside scores of single maps: premises, series, accuracy after retraining."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from saliency_assay.report.export import latex

MOST_ROWS = 40
MOST_COLUMNS = 8
METHOD_LETTERS = 20
DECIMALS = 3
LARGE = 1e5
PERCENT = ("percent", "printed", "with_object", "without", "drop", "printed_with", "printed_without")
DECIMALS_OF = {**dict.fromkeys(PERCENT, 1), "rank": 1, "k": 2}
SPOKEN = ("method", "metric")
"""Columns of names that labels show with spaces, as the figures do."""


@dataclass(frozen=True)
class Known:
    """How a table of a study is shown."""

    caption: str
    """In LaTeX, behind the study's name."""
    heads: Mapping[str, str]
    """The columns that are shown, and what stands above them, in LaTeX."""


PREMISE = {"set": "set", "percent": r"accuracy (\%)", "printed": "printed", "images": "images"}
KNOWN: dict[str, dict[str, Known]] = {
    "bam": {
        "premise": Known(
            "accuracy of both models with and without what they were told of, beside that of Yang and Kim (2019)",
            {"model": "model", "seed": "seed", **PREMISE},
        ),
        "ranking": Known(
            "every metric's methods, means over seeds; spread: standard deviation between seeds, of one seed that over "
            "draws of images",
            {"metric": "metric", "method": "method", "score": "score", "spread": "spread", "rank": "rank"},
        ),
        "commonality": Known(
            r"accuracy (\%) with and without the common object, which is in a share $k$ of the scene classes, beside "
            "that of Yang and Kim (2019)",
            {
                **{"model": "model", "seed": "seed", "k": "$k$", "with_object": "with", "without": "without"},
                **{"drop": "drop", "printed_with": "printed with", "printed_without": "printed without"},
                "images": "images",
            },
        ),
        "correlation": Known(
            "Pearson's correlation over $k$ of a method's MCS and the accuracy that is lost without the common object",
            {"method": "method", "seed": "seed", "correlation": r"$\rho$", "points": "points"},
        ),
        "concepts": Known(
            "TCAV of the common object by layer, beside that of random concepts; $p$: two-sided $t$-test",
            {
                **{"model": "model", "seed": "seed", "layer": "layer", "score": "TCAV", "random": "random"},
                **{"p_value": "$p$", "kept": "kept", "images": "images"},
            },
        ),
    },
    "caption": {
        "premise": Known(
            "accuracy of both models with both halves and with either alone, beside that of Yeh et al. (2019)",
            {"model": "model", "seed": "seed", **PREMISE},
        ),
        "table": Known(
            "INFD under the removal of a half, and the share of absolute attribution on the half that the model uses; "
            "found: share of images in which it has most",
            {
                **{
                    "method": "method",
                    "model": "model",
                    "seed": "seed",
                    "used": "used",
                    "infidelity": "INFD",
                },
                **{"share": "share", "found": "found", "images": "images"},
            },
        ),
    },
    "retrain": {
        "leakage": Known(
            "test accuracy of classifiers that see the masks alone, beside the same with permuted labels; $p$: that "
            "masks tell of the class, corrected for all rows (Holm)",
            {
                **{"protocol": "protocol", "fill": "fill", "method": "method", "iteration": "iteration"},
                **{"accuracy": "accuracy", "random": "permuted", "chance": "chance", "p_holm": "$p$"},
                "leaks": "leaks",
            },
        ),
    },
}
"""By kind of study and name of table."""


def known_floats(study: str, kind: str, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """A study's own tables in LaTeX.

    Args:
        study: its name.
        kind: its kind.
        tables: what it has under ``tables/``, by name; those without a place here are left out.
    """
    floats = retrained_floats(study, tables["summary"]) if kind == "retrain" else []
    for name, known in KNOWN.get(kind, {}).items():
        if name in tables:
            floats += _floats(study, name, known, tables[name])
    return floats


def _floats(study: str, name: str, known: Known, table: pd.DataFrame) -> list[str]:
    """The rows of ``table``, so many to a float."""
    cells = [_cells(table[column], column) for column in known.heads]
    rows = [latex.row(row) for row in zip(*cells, strict=True)]
    parts = [rows[start : start + MOST_ROWS] for start in range(0, len(rows), MOST_ROWS)]
    header, caption = list(known.heads.values()), f"Study {latex.escaped(study)}: {known.caption}."
    return [
        latex.floating(caption, _reference(study, name, place, len(parts)), header, [part])
        for place, part in enumerate(parts)
    ]


def retrained_floats(study: str, summary: pd.DataFrame) -> list[str]:
    """Test accuracy of the models that were trained again, methods × share occluded, a table for each arm.

    Args:
        study: its name.
        summary: as ``studies.retrain.tables.summary`` gives it.
    """
    floats = []
    for (protocol, fill), rows in summary.groupby(["protocol", "fill"], sort=False):
        iterations = sorted(set(rows["iteration"]))
        starts = range(0, len(iterations), MOST_COLUMNS)
        for place, start in enumerate(starts):
            part = rows[rows["iteration"].isin(iterations[start : start + MOST_COLUMNS])]
            reference = _reference(study, f"accuracy-{protocol}-{fill}", place, len(starts))
            caption = _retrained_caption(study, str(protocol), str(fill), rows)
            floats.append(_retrained_float(caption, reference, part))
    return floats


def _retrained_float(caption: str, reference: str, rows: pd.DataFrame) -> str:
    accuracy, spread = (
        100 * rows.pivot(index="method", columns="iteration", values=name)
        for name in ("accuracy_test", "accuracy_test_sd")
    )
    shares = rows.groupby("iteration")["nominal"].first()
    body: list[str] = []
    for method in dict.fromkeys(rows["method"]):
        cells = [
            (_percent(mean), rf"$\pm$ {_percent(sd)}" if np.isfinite(sd) else "")
            for mean, sd in zip(accuracy.loc[method], spread.loc[method], strict=True)
        ]
        body += latex.paired(latex.wrapped(method, METHOD_LETTERS), cells)
    header = ["method", *(rf"{100 * share:.0f}\,\%" for share in shares)]
    return latex.floating(caption, reference, header, [body])


def _retrained_caption(study: str, protocol: str, fill: str, rows: pd.DataFrame) -> str:
    seeds = rows["seeds"].max()
    spread = " Below: standard deviation between seeds." if seeds > 1 else ""
    return (
        f"Study {latex.escaped(study)}, protocol {latex.escaped(protocol)}, fill {latex.escaped(fill)}: test accuracy "
        r"(\%) after training on images of which the share above is occluded; the lower, the more the method found of "
        f"what the model needs. n = {rows['images'].max():.0f} images, {seeds:.0f} training "
        rf"seed{'s' if seeds > 1 else ''}; chance: {_percent(100 * rows['chance'].iloc[0])}\,\%.{spread}"
    )


def _percent(value: float) -> str:
    return latex.NONE if np.isnan(value) else f"{value:.1f}"


def _reference(study: str, name: str, place: int, parts: int) -> str:
    return latex.label(study, name, *([str(place + 1)] if parts > 1 else []))


def _cells(values: pd.Series, column: str) -> list[str]:
    """A column of a table as LaTeX: decimals that are the same in all rows, but very small numbers with a power."""
    if values.notna().any() and all(isinstance(value, bool | np.bool_) for value in values.dropna()):
        return [latex.NONE if pd.isna(value) else "yes" if value else "no" for value in values]
    if not pd.api.types.is_numeric_dtype(values):
        show = latex.named if column in SPOKEN else latex.escaped
        return [latex.NONE if pd.isna(value) else show(str(value)) for value in values]
    whole = column not in PERCENT and bool((values.dropna() % 1 == 0).all())
    return [
        _fixed(value, 0 if whole else DECIMALS_OF.get(column, DECIMALS)) for value in values.astype(float)
    ]


def _fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; where these would hide it, or it is very large, as ``latex.number`` has it."""
    if np.isfinite(value) and (value == 0 or 10.0**-decimals <= abs(value) < LARGE):
        return latex.signed(f"{value:.{decimals}f}")
    return latex.number(value)
