"""ROAD, remove and debias: removed pixels are interpolated from their neighbors (Rong et al., 2022)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.interpolation import impute
from saliency_assay.metrics.perturbation import (
    Predict,
    evaluate_masks,
    original,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import NonNegativeFloat, PositiveInt, ScoredOutput


def road(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    points: PositiveInt = 9,
    noise: NonNegativeFloat = 0.01,
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute the mean output for images ``[N, C, H, W]`` with 1 … ``points`` of points + 1 equal shares imputed.

    ``road_morf`` imputes the most relevant pixels of the ``sum`` of maps ``[N, C or 1, H, W]`` first, ``road_lerf`` the
    least relevant first. The curves ``morf`` and ``lerf``, ``[N, points + 1]``, begin with the original image. Imputed
    pixels get Gaussian noise of standard deviation ``noise``, for pixels in [0, 1], sampled once per image, so that
    points, orders and methods share it. NaN where the map is NaN or constant. Rong et al. (2022), whose score is the
    mean over images with ``output`` ``accuracy``.

    Raises:
        ValueError: fewer than one point, or so many that a share is less than a pixel.
    """
    saliency = reduce(maps, "sum")
    pixels = saliency[0].numel()
    if points >= pixels:
        expected = f"at most {pixels - 1}, fewer than the pixels of an image"
        raise ValueError(f"points: found {points}, expected {expected}")
    defined, ranks = is_rankable(saliency), ranks_of(saliency)
    pixel_noise = noise * standard_normal(sample_seeds(len(images), 1, generator), images)
    start = original(perturbation_batch(predict, images, targets, images, output=output))

    def output_without(removed: Tensor) -> Tensor:
        imputed = impute(images, removed.reshape(saliency.shape)) + pixel_noise
        batch = perturbation_batch(predict, images, targets, imputed, output=output)
        return evaluate_masks(batch, 1, lambda image, _: removed[image])[:, 0]

    counts = shares(points, pixels)
    morf = torch.stack([start, *(output_without(ranks < count) for count in counts)], dim=1)
    lerf = torch.stack([start, *(output_without(ranks >= pixels - count) for count in counts)], dim=1)
    curves = {"morf": nan_unless(defined, morf), "lerf": nan_unless(defined, lerf)}
    scores = {(f"road_{name}", ""): curve[:, 1:].mean(1) for name, curve in curves.items()}
    return Scored(scores, curves)


def shares(points: int, pixels: int) -> list[int]:
    """Return the pixel counts i · pixels / (points + 1), rounded down, for i = 1 … points."""
    return [number * pixels // (points + 1) for number in range(1, points + 1)]
