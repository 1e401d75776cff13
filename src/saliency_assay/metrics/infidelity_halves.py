"""Infidelity under the removal of the left or the right half (Yeh et al., 2019, section 5)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from saliency_assay.methods.optimal_halves import each_half
from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.infidelity import contributions, score
from saliency_assay.metrics.perturbation import Predict, original, subject, under
from saliency_assay.metrics.probed import drop_of
from saliency_assay.metrics.scored import Scored


def removed_halves(
    predict: Predict, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with the left, with the right half black), in logits, float64 ``[N, 2]``.

    Raises:
        ValueError: images of fewer than two columns, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    sides = _sides(images)
    after = under(examined, len(sides), lambda image, number: sides[number])
    return {"drop": original(examined)[:, None] - after}


def infidelity_halves(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the left or the right half of the image, each with probability ½: a picture and its caption.

    Yeh et al. (2019), equation 1 and section 5, "Human Evaluation" (Table 3); the left half has the columns below
    W // 2, ``explanation`` is as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: images of fewer than two columns; maps or ``probed`` that do not fit the images.
    """
    values = contributions(maps, images, explanation)
    predicted = values @ _sides(images).T.double()
    return score(maps, predicted, drop_of(probed, maps, 2), rescale)


def _sides(images: Tensor) -> Tensor:
    """The pixels of each half, bool ``[2, H·W]``, on the images' device."""
    height, width = images.shape[2:]
    return each_half(height, width).flatten(1).to(images.device)
