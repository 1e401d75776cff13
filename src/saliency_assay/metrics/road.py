"""ROAD, remove and debias: removed pixels are interpolated from their neighbours (Rong et al., 2022)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import draw_seeds, standard_normal
from saliency_assay.metrics.imputation import impute
from saliency_assay.metrics.perturbation import Predict, original, ranks_of, subject, under
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, varies, where_defined


def road(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    points: int = 9,
    noise: float = 0.01,
    output: str = "probability",
) -> Scored:
    """Mean output of images ``[N, C, H, W]`` with 1, 2, … ``points`` of points + 1 equal shares of pixels imputed.

    ``road_morf`` imputes the most relevant pixels of the ``sum`` of maps ``[N, C or 1, H, W]`` first, ``road_lerf`` the
    least relevant first. The curves ``morf`` and ``lerf``, ``[N, points + 1]``, begin with the original. Imputed pixels
    get Gaussian noise of standard deviation ``noise`` in [0, 1] units: one draw an image, so that points, orders and
    methods share it. NaN where the map is NaN or constant. Rong et al. (2022), who take the accuracy over a set.

    Raises:
        ValueError: fewer than one point, or so many that a share is less than a pixel.
    """
    saliency = reduce(maps, "sum")
    pixels = saliency[0].numel()
    if not 1 <= points < pixels:
        expected = f"1 to {pixels - 1}, fewer than the pixels of an image"
        raise ValueError(f"points: found {points}, expected {expected}")
    defined, ranks = varies(saliency), ranks_of(saliency)
    speckle = noise * standard_normal(draw_seeds(len(images), 1, generator), images)
    start = original(subject(predict, images, targets, images, output=output))

    def after(removed: Tensor) -> Tensor:
        shown = impute(images, removed.reshape(saliency.shape)) + speckle
        examined = subject(predict, images, targets, shown, output=output)
        return under(examined, 1, lambda image, _: removed[image])[:, 0]

    counts = shares(points, pixels)
    morf = torch.stack([start, *(after(ranks < count) for count in counts)], dim=1)
    lerf = torch.stack([start, *(after(ranks >= pixels - count) for count in counts)], dim=1)
    curves = {"morf": where_defined(defined, morf), "lerf": where_defined(defined, lerf)}
    scores = {(f"road_{name}", ""): curve[:, 1:].mean(1) for name, curve in curves.items()}
    return Scored(scores, curves)


def shares(points: int, pixels: int) -> list[int]:
    """How many pixels i / (points + 1) of them are, rounded down, for i = 1 … points."""
    return [number * pixels // (points + 1) for number in range(1, points + 1)]
