"""Registry of metrics: one line each, read by the Snakefile, so nothing heavy is imported here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from saliency_assay.registry import Parameter


@dataclass(frozen=True)
class Metric:
    """A metric, as the workflow, the score table and the report must know it."""

    name: str
    function: str
    """``package.module:name`` of the callable."""
    reference: str
    summary: str
    direction: str
    """``higher`` or ``lower``: which is better."""
    range: tuple[float, float]
    """Least and greatest possible score, inclusive."""
    reduction: str
    """The reduction of raw maps that is part of the metric's definition."""
    per_image: bool
    """Whether each image has a score (False: one number for a whole set)."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


_SPREAD = {"draws": Parameter(10, minimum=2), "draw_size": Parameter(100, minimum=1)}

METRICS: tuple[Metric, ...] = (
    Metric(
        "mcs",
        "saliency_assay.metrics.bam:model_contrast",
        "Yang & Kim, 2019",
        "model contrast: how much more a region gets in the model that needs it",
        direction="higher",
        range=(-1, 1),
        reduction="visual",
        per_image=True,
        parameters=_SPREAD,
    ),
    Metric(
        "idr",
        "saliency_assay.metrics.bam:input_dependence",
        "Yang & Kim, 2019",
        "input dependence: share of images where an unimportant object gets less than what it covers",
        direction="higher",
        range=(0, 1),
        reduction="visual",
        per_image=True,
        parameters=_SPREAD,
    ),
)
