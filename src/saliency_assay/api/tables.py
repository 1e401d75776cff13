"""Tables of the registered methods and metrics, which ``saliency_assay.methods()`` and ``metrics()`` return."""

from collections.abc import Iterable
from math import nan
from typing import Any

import pandas as pd

from saliency_assay.api.scores import SINGLE
from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.cost import Map, passes
from saliency_assay.metrics import Metric
from saliency_assay.registry.aliases import METHOD_ALIASES, METRIC_ALIASES, aliases_of

SIDE = 224
"""Height and width of the images, in pixels, for which the tables state passes."""
BATCH = 64
"""Number of images, by default, that ``attribute`` and ``score`` process together."""
NEEDS = {
    "gradients": "gradients",
    "relu": "ReLUs",
    "layers": "traceable layers",
    "attention": "attention",
    "cam_layer": "CAM layer",
    "pool_linear_head": "linear layer after pooling",
    "exact_importance": "designed network",
    "base": "base",
    "background": "background",
    "mask": "mask",
    "explain": "method",
    "randomized_model": "randomized model",
    "finetuned_model": "fine-tuned model",
    "mean": "mean",
}
"""Words for what methods and metrics need of the model or of the caller."""


def methods() -> pd.DataFrame:
    """Return a table of the registered methods, with their names as the index.

    Columns:
        label: name in figures.
        needs: requirements on the model, and arguments of ``attribute``, separated by commas: gradients, ReLUs,
            traceable layers, attention, CAM layer, linear layer after pooling, base (by default the gradient),
            background.
        passes: passes through the model per image of 224 × 224 pixels, with default parameters in batches of 64. A pass
            is forward and backward, or forward only if no gradients are needed. NaN if it depends on the model or on
            the number of background images.
        stochastic: True if maps depend on the seed.
        uses_model: False for baseline methods that do not use the model.
        reference: paper.
        summary: definition in one line.
        aliases: other names that ``attribute`` accepts, separated by commas. Case, spaces, hyphens and underscores do
            not matter, so that ``GradCAM`` and ``Grad-CAM`` are names of ``gradcam``.

    >>> import saliency_assay
    >>> table = saliency_assay.methods()
    >>> float(table.loc["integrated_gradients", "passes"])
    25.0
    >>> table.index[table["needs"].str.contains("background")].tolist()
    ['expected_gradients', 'gradient_shap', 'deep_shap']
    """
    columns = {
        record.name: {
            "label": record.label,
            "needs": _words((*record.needs, *record.takes)),
            "passes": _passes(record),
            "stochastic": record.stochastic,
            "uses_model": record.uses_model,
            "reference": record.reference,
            "summary": record.summary,
            "aliases": ", ".join(aliases_of(record.name, METHOD_ALIASES)),
        }
        for record in METHODS
    }
    return _table(columns, "method")


def metrics() -> pd.DataFrame:
    """Return a table of the metrics that ``score`` computes, with their names as the index.

    Columns:
        label: name in figures.
        measures: property of maps that the metric measures, such as faithfulness.
        needs: arguments of ``score``, separated by commas: mask, method, randomized model, fine-tuned model, mean.
        scores: names of the scores and which values are better.
        passes: images per scored image of 224 × 224 pixels that go through the model, with default parameters in
            batches of 64. For metrics that compute further maps, this is for a method of one pass; with other methods,
            each map counts as the passes of the method. NaN if it depends on the map, on the superpixels of the image,
            or on the number of layers.
        reference: paper.
        summary: definition in one line.
        aliases: other names that ``score`` accepts, as for ``methods``.

    >>> import saliency_assay
    >>> saliency_assay.metrics().loc["road", ["measures", "scores"]].tolist()
    ['faithfulness', 'road_morf (lower), road_lerf (higher)']
    """
    columns = {
        record.name: {
            "label": record.label,
            "measures": record.measures,
            "needs": _words(key for key in record.takes if key != "mean" or _fills_with_mean(record)),
            "scores": ", ".join(f"{score.name} ({score.direction})" for score in record.scores),
            "passes": _passes(record),
            "reference": record.reference,
            "summary": record.summary,
            "aliases": ", ".join(aliases_of(record.name, METRIC_ALIASES)),
        }
        for record in SINGLE
    }
    return _table(columns, "metric")


def _table(rows: dict[str, dict[str, Any]], index: str) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index)


def _words(keys: Iterable[str]) -> str:
    return ", ".join(NEEDS[key] for key in keys if key in NEEDS)


def _fills_with_mean(record: Metric) -> bool:
    return "fill" in record.parameters and record.parameters["fill"].default == "mean"


def _passes(record: Method | Metric) -> float:
    """Return the passes of a record with its default parameters; NaN if they are not known."""
    if record.passes is None:
        return nan
    defaults = {name: parameter.default for name, parameter in record.parameters.items()}
    return passes(record.passes, Map(defaults, (SIDE, SIDE), BATCH, background=nan))
