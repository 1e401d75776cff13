"""Page of the explained models: accuracy and training curves."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.palette import CYCLE
from saliency_assay.plotting.text import readable
from saliency_assay.registry.labels import Labels


def accuracy_table(evaluations: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Return the accuracy in percent of every model, seed, set and split, and its worst class.

    Args:
        evaluations: content of ``evaluation.json`` for each model and seed.
    """
    rows = []
    for (model, seed), sets in evaluations.items():
        for name, splits in sets.items():
            for split, evaluation in splits.items():
                worst = min(evaluation["per_class"], key=evaluation["per_class"].get)
                row = {"model": model, "seed": str(seed), "set": name, "split": split}
                row |= {"images": evaluation["images"], "accuracy (%)": 100 * evaluation["accuracy"]}
                rows.append(
                    {**row, "worst class": worst, "its accuracy (%)": 100 * evaluation["per_class"][worst]}
                )
    return pd.DataFrame(rows)


def displayed_accuracy(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return an ``accuracy_table`` for display."""
    classes = table.assign(**{"worst class": table["worst class"].map(readable)})
    return displayed(classes, labels, {"its accuracy (%)": "accuracy of worst class (%)"})


def training_curves(curves: Mapping[tuple[str, int], pd.DataFrame], labels: Labels) -> Figure:
    """Plot the accuracy of every model over its epochs.

    Lines are solid for test images, dashed for training images and dotted for validation images, if there are any.
    Pretrained models have no epochs and are listed in the title.

    Args:
        curves: table of ``training.csv`` for each model and seed.
        labels: labels of the models.
    """
    all_models = list(dict.fromkeys(model for model, _ in curves))
    curves = {run: curve for run, curve in curves.items() if not curve.empty}
    models = list(dict.fromkeys(model for model, _ in curves))
    untrained = [labels.models.get(model, model) for model in all_models if model not in models]
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.add_subplot()
    validated = [run for run, curve in curves.items() if curve["validation_accuracy"].notna().any()]
    for (model, seed), curve in curves.items():
        color = CYCLE[models.index(model) % len(CYCLE)]
        first = seed == min(of_seed for of_model, of_seed in curves if of_model == model)
        label = labels.models.get(model, model) if first else None
        axes.plot(
            curve["epoch"], 100 * curve["test_accuracy"], color=color, marker="o", markersize=3, label=label
        )
        axes.plot(curve["epoch"], 100 * curve["train_accuracy"], color=color, linestyle="--", linewidth=1)
        if (model, seed) in validated:
            validation = 100 * curve["validation_accuracy"]
            axes.plot(curve["epoch"], validation, color=color, linestyle=":", marker="s", markersize=2)
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy (%)")
    axes.set_ylim(0, 102)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if untrained:
        axes.set_title(f"pretrained weights, not trained in this run: {', '.join(untrained)}")
    if curves:
        title = "solid: test, dashed: training" + (", dotted: validation" if validated else "")
        axes.legend(title=title, loc="lower right")
    else:
        axes.set_xticks([])
    return figure
