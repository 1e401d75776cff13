"""IG-SG: integrated gradients, smoothed."""

from functools import partial

import torch
from torch import Tensor, nn

from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.smoothing import smoothgrad


def integrated_gradients_smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: int = 25,
    rule: str = "trapezoid",
    baseline: str = "black",
    times_input: bool = True,
    samples: int = 25,
    noise: float = 0.15,
    distribution: str = "gaussian",
) -> Tensor:
    """SmoothGrad over integrated gradients, ``[N, C, H, W]``: IG of x + z, with x + z both the end and the factor.

    ``steps * samples`` passes for each image. BAM appendix E; Smilkov et al. (2017), section 3.
    """
    return smoothgrad(
        model,
        images,
        targets,
        generator=generator,
        base=partial(
            integrated_gradients, steps=steps, rule=rule, baseline=baseline, times_input=times_input
        ),
        samples=samples,
        noise=noise,
        distribution=distribution,
    )
