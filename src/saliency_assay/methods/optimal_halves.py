"""The explanation that is optimal for the removal of the left or the right half (Yeh et al., 2019, section 5)."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, target_logits


def halves(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """The global explanation of least infidelity when the left or the right half turns black, ``[N, 1, H, W]``.

    With M ``[2, H·W]`` the pixels of each half and Δ ``[2]`` the logit's drop without it, MMᵀ is diagonal and the
    solution of least norm, M⁺Δ, spreads each drop evenly: Φ_p = Δ_j / |half j|, in logits a pixel. Its infidelity under
    these perturbations is 0. Yeh et al. (2019), "OPT" of Table 3, after proposition 2.1; three passes, no gradients.

    Raises:
        ValueError: images of fewer than two columns, or inputs that do not fit.
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    sides = each_half(height, width).to(images.device)
    logits = target_logits(model, images, targets).double()
    black = [images.detach().masked_fill(side, 0) for side in sides]
    drops = torch.stack([logits - target_logits(model, half, targets) for half in black], 1)
    spread = drops[:, :, None, None] / sides.sum((1, 2))[:, None, None]
    return (spread * sides).sum(1, keepdim=True).to(images.dtype)


def each_half(height: int, width: int) -> Tensor:
    """The pixels of the left and of the right half, bool ``[2, H, W]``; a middle column is the right one's.

    Raises:
        ValueError: fewer than two columns.
    """
    if width < 2:
        raise ValueError(f"images: found width {width}, expected at least 2 columns to halve")
    left = (torch.arange(width) < width // 2).expand(height, width)
    return torch.stack([left, ~left])
