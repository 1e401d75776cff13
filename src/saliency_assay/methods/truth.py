"""Exact importance of the pixels of designed networks."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.models.designed import truth_of


def truth(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Return the Shapley value of each pixel for the target's logit, ``[N, 1, H, W]``, from the network's formula.

    A removed pixel is black. The values of an image sum to f_t(image) − f_t(black). See ``models.designed``.

    Raises:
        ValueError: the model is not a designed network, or as ``truth_of``.
    """
    check_inputs(images, targets)
    return truth_of(model, images, targets)
