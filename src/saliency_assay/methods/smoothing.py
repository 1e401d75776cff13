"""Smoothing by noise: SmoothGrad, and the same over any other method."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import chunks, per_row
from saliency_assay.methods.sampling import draw_seeds, standard_normal

STATISTICS = ("mean", "squared", "variance")


def smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 25,
    noise: float = 0.15,
    statistic: str = "mean",
) -> Tensor:
    """SmoothGrad (Smilkov et al., 2017) of the gradient, ``[N, C, H, W]``; see ``smooth`` for the parameters."""
    explain = partial(input_gradient, model)
    return smooth(
        explain, images, targets, samples=samples, noise=noise, statistic=statistic, generator=generator
    )


def smooth(
    explain: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    targets: Tensor,
    *,
    samples: int,
    noise: float,
    statistic: str,
    generator: torch.Generator,
) -> Tensor:
    """A statistic of ``explain(x + z, targets)`` over ``samples`` draws of z ~ N(0, σ²), of ``explain``'s shape.

    σ = ``noise`` · (max x − min x) of each image. ``mean`` is SmoothGrad, ``squared`` the mean of the squares
    (SmoothGrad², Hooker et al., 2019), ``variance`` the population variance (VarGrad, Adebayo et al., 2018).

    Raises:
        ValueError: a parameter out of range, or inputs that do not fit.
    """
    check_inputs(images, targets)
    if samples < 1 or noise < 0:
        raise ValueError(f"samples, noise: found {samples}, {noise}, expected at least 1 and 0")
    if statistic not in STATISTICS:
        raise ValueError(f"statistic: found {statistic!r}, valid: {', '.join(STATISTICS)}")
    sigma = noise * (images.amax((1, 2, 3)) - images.amin((1, 2, 3)))
    seeds = draw_seeds(len(images), samples, generator)
    moments: Tensor | None = None
    for chunk in chunks(len(images), samples, images.device):
        noises = per_row(sigma[chunk.images]) * standard_normal(seeds[chunk.pairs], images)
        maps = explain(images[chunk.images] + noises, targets[chunk.images])
        if moments is None:
            moments = maps.new_zeros(2, len(images), *maps.shape[1:])
        for run in chunk.runs:
            _merge(moments[:, run.image], run.first, maps[run.rows])
    assert moments is not None
    mean, deviation = moments.unbind()
    if statistic == "mean":
        return mean
    variance = deviation / samples
    return variance if statistic == "variance" else variance + mean.square()


def _merge(moments: Tensor, seen: int, new: Tensor) -> None:
    """Bring the mean and the summed squared deviation of ``seen`` maps up to date, in place (Chan et al., 1979).

    A plain sum of squares less the square of the sum would lose float32's digits where the noise is small.
    """
    mean, deviation = moments.unbind()
    count, new_mean = len(new), new.mean(0)
    step = new_mean - mean
    mean += step * (count / (seen + count))
    deviation += (new - new_mean).square().sum(0) + step.square() * (seen * count / (seen + count))
