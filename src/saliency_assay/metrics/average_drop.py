"""Change of the probability when an image is reduced to its explanation (Chattopadhay et al., 2018)."""

from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, evaluate_masks, perturbation_batch
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, Limits


def average_drop(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    normalization: Annotated[str, Limits(choices=("maximum", "min_max"))] = "maximum",
    fill: Fill = "black",
) -> Scored:
    """Compute the change from the probability y for an image x to the probability o for its explanation E.

    E = L ∘ x + (1 − L) ∘ fill, L the ``sum`` s of a map scaled to [0, 1]: max(s, 0) / max s, or by ``min_max``
    (s − min s) / (max s − min s). ``average_drop`` is max(y − o, 0) / y, lower is better; ``average_gain``
    max(o − y, 0) / (1 − y) and ``increase_in_confidence``, 1 if o > y, else 0, are better if higher. NaN where a map is
    NaN or constant or, for ``maximum``, has no positive value; the drop also for y = 0, the gain for y = 1.
    Chattopadhay et al. (2018); the gain: Zhang et al. (2024).

    Raises:
        ValueError: a fill without its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    saliency = reduce(maps, "sum")
    values = saliency.double()
    low, high = values.amin((1, 2), keepdim=True), values.amax((1, 2), keepdim=True)
    low = torch.zeros_like(low) if normalization == "maximum" else low
    defined = is_rankable(saliency) & (high > low).flatten()
    scaled = (values.maximum(low) - low) / (high - low)
    # Undefined maps must not pass NaN to the model.
    share = torch.where(defined[:, None, None], scaled, 1)[:, None].to(images.dtype)
    explanation = share * images + (1 - share) * fill_pixels
    # The first pass has no pixel of the explanation, the second one all.
    batch = perturbation_batch(predict, images, targets, explanation)
    pixels = batch.pixels.shape[1]
    y, o = evaluate_masks(batch, 2, lambda _, number: (number == 1)[:, None].expand(-1, pixels)).unbind(1)
    scores = {
        "average_drop": (y - o).clamp(min=0) / y,
        "average_gain": (o - y).clamp(min=0) / (1 - y),
        "increase_in_confidence": (o > y).double(),
    }
    return Scored({(name, ""): nan_unless(defined, score) for name, score in scores.items()})
