"""IG-SG: integrated gradients, smoothed."""

from functools import partial

import torch
from torch import Tensor, nn

from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.smoothing import smooth


def integrated_gradients_smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: int = 25,
    rule: str = "trapezoid",
    samples: int = 25,
    noise: float = 0.15,
    statistic: str = "mean",
) -> Tensor:
    """SmoothGrad over integrated gradients, ``[N, C, H, W]``: IG of x + z, with x + z both the end and the factor.

    ``steps * samples`` passes for each image. BAM appendix E; Smilkov et al. (2017), section 3.
    """
    explain = partial(integrated_gradients, model, generator=generator, steps=steps, rule=rule)
    return smooth(
        explain, images, targets, samples=samples, noise=noise, statistic=statistic, generator=generator
    )
