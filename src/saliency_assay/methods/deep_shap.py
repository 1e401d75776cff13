"""DeepSHAP: DeepLIFT by the Rescale rule, averaged over baselines that are images themselves."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.canonical import normalised
from saliency_assay.methods.deeplift import contributions, fit_network
from saliency_assay.methods.differentiate import check_inputs, describe
from saliency_assay.methods.passes import chunks


def deep_shap(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, background: Tensor
) -> Tensor:
    """Mean of DeepLIFT's maps over ``background [B, C, H, W]`` as baselines, ``[N, C, H, W]``, signed.

    A map sums to f_t(x) less the mean of f_t over the background. Lundberg & Lee (2017), section 4.2, with the
    multipliers of DeepLIFT's Rescale rule.

    Raises:
        ValueError: a background of another shape, type or device than the images, or as ``deeplift``.
    """
    check_inputs(images, targets)
    shape, kind = list(images.shape[1:]), str(images.dtype).removeprefix("torch.")
    fits = background.dtype == images.dtype and background.device == images.device
    if not fits or background.ndim != 4 or list(background.shape[1:]) != shape or len(background) == 0:
        raise ValueError(
            f"background: found {describe(background)} on {background.device}, expected {kind} "
            f"[B, {', '.join(map(str, shape))}] on {images.device} with B >= 1"
        )
    network = fit_network("deep_shap", model)
    seen, baselines = normalised(model, images), normalised(model, background)
    total = torch.zeros_like(images)
    for chunk in chunks(len(images), len(background), images.device):
        maps = contributions(
            network, seen[chunk.images], baselines[chunk.passes], targets[chunk.images], "rescale"
        )
        for run in chunk.runs:
            total[run.image] += maps[run.rows].sum(0)
    return total / len(background)
