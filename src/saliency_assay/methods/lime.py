"""LIME: a linear model of the segments of an image, fitted by ridge regression."""

from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.methods.segments import BLOCK, coalition_values, paint, pixel_counts, segment
from saliency_assay.registry.limits import Baseline, Features, Limits, Output, PositiveInt
from saliency_assay.runtime.transfer import to_device


def lime(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    features: Features = "superpixels",
    segments: PositiveInt = 49,
    samples: PositiveInt = 1000,
    kernel_width: Annotated[float, Limits(minimum=0.001)] = 0.25,
    ridge: Annotated[float, Limits(minimum=1e-12)] = 1.0,
    baseline: Baseline = "black",
    output: Output = "probability",
) -> Tensor:
    """Compute the coefficients of a linear model of the segments, ``[N, 1, H, W]``, each at all pixels of its segment.

    The coefficients minimize Σ_z π(z) (f_t(z) − b − Σ_j φ_j z_j)² + ``ridge`` · Σ_j φ_j², where z_j is 1 if segment j
    is present and 0 if it has the ``baseline`` color, f_t is the target's ``output``, its probability or its logit, and
    the intercept b is not penalized. π(z) = exp(−D² / (2 σ²)), with D the cosine distance of z to the full image and σ
    the ``kernel_width``. Ribeiro et al. (2016), section 3.4; one pass for each of ``samples`` z.

    The samples, the kernel and the ridge regression are those of the authors' code, ``lime_image``. In the paper, the
    kernel is exp(−D² / σ²), D is the Euclidean distance for images, and a few segments are selected. The code has
    superpixels of quickshift and hides each in its mean color by default; for the segments here see ``segment``.
    A coefficient is the change of the output with the whole segment. It is not divided among the segment's pixels, as
    the value in Kernel SHAP is, because the sum of the coefficients has no meaning.

    Raises:
        ValueError: a number of segments that does not fit the images.
    """
    check_inputs(images, targets)
    labels = segment(images, features, segments)
    color = baseline_color(model, images, baseline)
    exists = pixel_counts(labels) > 0
    present = sample_present(exists, samples, sample_seeds(len(images), 1, generator))
    values = coalition_values(model, images, targets, labels, present, color, output)
    weights = proximity(present, exists, kernel_width)
    fits = zip(present, weights, values, strict=True)
    coefficients = torch.stack([ridge_coefficients(*fit, ridge) for fit in fits])
    return paint(coefficients, labels).to(images.dtype)


def sample_present(exists: Tensor, samples: int, seeds: list[int]) -> Tensor:
    """Sample the presence of each segment that ``exists [N, M]``, with probability 1/2, bool ``[N, samples, M]``.

    The first sample of each image is the full image; segments that do not exist are never present.
    """
    present = torch.zeros(len(exists), samples, exists.shape[1], dtype=torch.bool)
    for rows, count, seed in zip(present, exists.sum(1).tolist(), seeds, strict=True):
        child = torch.Generator().manual_seed(seed)
        rows[:, :count] = torch.rand(samples, count, generator=child, dtype=torch.float32) < 0.5
        rows[0, :count] = True
    return to_device(present, exists.device)


def proximity(present: Tensor, exists: Tensor, kernel_width: float) -> Tensor:
    """Return exp(−D² / (2 σ²)) with D = 1 − √(|z| / M), the cosine distance to the full image, float64 ``[N, R]``."""
    shares = present.sum(2).double() / exists.sum(1, keepdim=True)
    distances = 1 - shares.sqrt()
    return torch.exp(-(distances.square()) / (2 * kernel_width**2))


def ridge_coefficients(present: Tensor, weights: Tensor, values: Tensor, ridge: float) -> Tensor:
    """Return φ that minimizes Σ_z π(z) (v(z) − b − φᵀz)² + ``ridge`` · |φ|², without a penalty of b, float64 ``[M]``.

    Of one image: ``present [R, M]``, ``weights [R]`` (π) and ``values [R]`` (v). φ is 0 for segments that are never
    present, and everywhere if all values are equal.
    """
    values = (
        values - values[:1]
    )  # which only changes b; equal values would otherwise leave a φ of rounding errors
    penalties = present.new_full((present.shape[1] + 1,), ridge, dtype=torch.float64)
    penalties[0] = 0  # the intercept
    normal, sums = torch.diag(penalties), torch.zeros_like(penalties)
    # In blocks, since the samples of many segments are large in float64.
    for start in range(0, len(present), BLOCK):
        rows = slice(start, start + BLOCK)
        design = torch.cat([torch.ones_like(values[rows, None]), present[rows].double()], 1)
        weighted = design.mT * weights[rows]
        normal += weighted @ design
        sums += weighted @ values[rows]
    solution: Tensor = torch.linalg.solve(normal, sums)
    return solution[1:]
