"""Page of the explained models: accuracy and training curves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.charts import LineChart, Panel, line_rows
from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.palette import look
from saliency_assay.plotting.text import readable
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.chance import balanced_accuracy_interval, chance_level, is_above_chance
from saliency_assay.reliability.variance import GROUPS

SPLITS = ("test", "train", "validation")
SPLIT_LABELS = {"train": "augmented training"}


def accuracy_table(evaluations: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Return the accuracy in percent of every model, seed, set and split, compared with chance, and its worst class.

    ``CI low`` and ``CI high`` are the ends of the 95 % confidence interval of the balanced accuracy.

    Args:
        evaluations: content of ``evaluation.json`` for each model and seed.
    """
    rows = []
    for (model, seed), sets in evaluations.items():
        for name, splits in sets.items():
            for split, evaluation in splits.items():
                worst = min(evaluation["per_class"], key=evaluation["per_class"].get)
                row = {"model": model, "seed": str(seed), "set": name, "split": split}
                row |= {name: evaluation[name] for name in ("images", GROUPS) if name in evaluation}
                row |= {"accuracy (%)": 100 * evaluation["accuracy"]}
                low, high = balanced_accuracy_interval(evaluation)
                row |= {"balanced accuracy (%)": 100 * evaluation["balanced_accuracy"]}
                row |= {"CI low (%)": 100 * low, "CI high (%)": 100 * high}
                row |= {"chance (%)": 100 * chance_level(evaluation)}
                row |= {"better than chance": "yes" if is_above_chance(evaluation) else "not shown"}
                rows.append(
                    {**row, "worst class": worst, "its accuracy (%)": 100 * evaluation["per_class"][worst]}
                )
    return pd.DataFrame(rows)


def displayed_accuracies(table: pd.DataFrame, labels: Labels) -> dict[str, pd.DataFrame]:
    """Return an ``accuracy_table`` for display, one for each data set, by title."""
    ends = ["CI low (%)", "CI high (%)"]
    balanced, worst = "balanced accuracy (%)", "worst class"
    texts = {
        balanced: [
            f"{value:.1f} [{low:.1f}, {high:.1f}]"
            for value, low, high in table[[balanced, *ends]].itertuples(index=False)
        ],
        worst: [
            f"{readable(name)} ({accuracy:.1f})"
            for name, accuracy in zip(table[worst], table["its accuracy (%)"], strict=True)
        ],
    }
    shown = displayed(
        table.assign(**texts).drop(columns=[*ends, "its accuracy (%)"]),
        labels,
        {balanced: "balanced accuracy with 95 % CI (%)", worst: "worst class (accuracy in %)"},
    )
    return {
        f"Accuracy on {name}": rows.drop(columns="data set")
        for name, rows in shown.groupby("data set", sort=False)
    }


def training_curves(curves: Mapping[tuple[str, int], pd.DataFrame], labels: Labels) -> LineChart:
    """Plot the accuracy of every model over its epochs, on test, training and, if there are any, validation images.

    Lines are means over seeds, bands their range. Pretrained models have no epochs and are named in the legend's title.

    Args:
        curves: table of ``training.csv`` for each model and seed.
        labels: labels of the models.
    """
    models = list(dict.fromkeys(model for model, _ in curves))
    tables = {
        model: pd.concat([curve for (name, _), curve in curves.items() if name == model]) for model in models
    }
    trained = [model for model in models if len(tables[model])]
    untrained = [labels.model(model) for model in models if model not in trained]
    panels = []
    for split in SPLITS:
        rows = [
            _accuracy_rows(tables[model], f"{split}_accuracy", labels.model(model), index / len(trained))
            for index, model in enumerate(trained)
        ]
        rows = [lines for lines in rows if len(lines)]
        if rows or split == SPLITS[0]:
            table = pd.concat(rows) if rows else line_rows("", np.empty(0), np.empty(0))
            panels.append(
                Panel(
                    f"{SPLIT_LABELS.get(split, split)} images",
                    "epoch",
                    "accuracy (%)",
                    table,
                    y_limits=(0, 102),
                    integers=True,
                )
            )
    title = f"pretrained weights, not trained in this run: {', '.join(untrained)}" if untrained else ""
    model_looks = {labels.model(model): look(index) for index, model in enumerate(trained)}
    return LineChart(panels, model_looks, "Accuracy by epoch, one line per model.", legend_title=title)


def _accuracy_rows(table: pd.DataFrame, column: str, label: str, offset: float) -> pd.DataFrame:
    """Return the accuracy of a model in percent by epoch, as the mean and range of its seeds."""
    by_epoch = 100 * table.dropna(subset=[column]).groupby("epoch")[column].agg(["mean", "min", "max"])
    has_band = table["epoch"].duplicated().any()
    epochs, (mean, low, high) = by_epoch.index.to_numpy(dtype=float), by_epoch.to_numpy().T
    return line_rows(
        label, epochs, mean, low if has_band else None, high if has_band else None, offset=offset
    )
