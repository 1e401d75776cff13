"""Training curves of all models in one figure."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saliency_assay.plotting.style import CYCLE


def training_curves(curves: Mapping[tuple[str, int], pd.DataFrame]) -> Figure:
    """Accuracy of every model over its epochs: test images solid, training dashed, validation, where taken, dotted.

    A model whose weights were taken as they are has no epochs; it is named as such.

    Args:
        curves: for each model and seed the table of ``training.csv``.
    """
    untrained = [model for model in dict.fromkeys(model for model, _ in curves) if _empty(curves, model)]
    curves = {arm: curve for arm, curve in curves.items() if not curve.empty}
    models = list(dict.fromkeys(model for model, _ in curves))
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.add_subplot()
    validated = [arm for arm, curve in curves.items() if curve["validation_accuracy"].notna().any()]
    for (model, seed), curve in curves.items():
        colour = CYCLE[models.index(model) % len(CYCLE)]
        first = seed == min(of_seed for of_model, of_seed in curves if of_model == model)
        label = model if first else None
        axes.plot(
            curve["epoch"], 100 * curve["test_accuracy"], color=colour, marker="o", markersize=3, label=label
        )
        axes.plot(curve["epoch"], 100 * curve["train_accuracy"], color=colour, linestyle="--", linewidth=1)
        if (model, seed) in validated:
            found = 100 * curve["validation_accuracy"]
            axes.plot(curve["epoch"], found, color=colour, linestyle=":", marker="s", markersize=2)
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy (%)")
    axes.set_ylim(0, 102)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if untrained:
        axes.set_title(f"with weights as they were given, not trained here: {', '.join(untrained)}")
    if curves:
        title = "solid: test, dashed: training" + (", dotted: validation" if validated else "")
        axes.legend(title=title, loc="lower right")
    else:
        axes.set_xticks([])
    return figure


def _empty(curves: Mapping[tuple[str, int], pd.DataFrame], model: str) -> bool:
    return all(curve.empty for (of, _), curve in curves.items() if of == model)
