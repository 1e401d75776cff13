"""Expected gradients and GradientSHAP: integrated gradients averaged over background images, by sampling."""

from itertools import repeat

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_background, check_inputs, input_gradient
from saliency_assay.methods.passes import passes_of, per_row
from saliency_assay.methods.sampling import each_sample, sample_seeds, standard_normal
from saliency_assay.registry.limits import NonNegativeFloat, PositiveInt
from saliency_assay.runtime.transfer import to_device


def expected_gradients(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    background: Tensor,
    samples: PositiveInt = 100,
) -> Tensor:
    """Compute E[(x − x′) ⊙ ∂f_t(x′ + α(x − x′)) / ∂x] over x′ and α, ``[N, C, H, W]``, signed.

    x′ is uniform over the ``background [B, C, H, W]``, α uniform in [0, 1). The expectation is estimated by the mean
    over ``samples`` independent pairs, one pass each. In expectation, a map sums to f_t(x) minus the mean of f_t over
    the background. Erion et al. (2021).

    Raises:
        ValueError: no sample, or a background of another shape, type or device than the images.
    """
    return gradient_shap(
        model, images, targets, generator=generator, background=background, samples=samples, noise=0
    )


def gradient_shap(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    background: Tensor,
    samples: PositiveInt = 100,
    noise: NonNegativeFloat = 0.0,
) -> Tensor:
    """Compute E[(x + z − x′) ⊙ ∂f_t(x′ + α(x + z − x′)) / ∂x] over x′, α and z, ``[N, C, H, W]``, signed.

    z is N(0, σ²) with σ = ``noise``, in units of pixels in [0, 1]; x′, α and the estimate are those of
    ``expected_gradients``, which is this method without noise. In expectation, a map sums to the mean of f_t(x + z)
    minus the mean of f_t over the background. Lundberg & Lee (2017), as captum's ``GradientShap``.

    Raises:
        ValueError: as ``expected_gradients``.
    """
    check_inputs(images, targets)
    check_background(images, background)
    images, background = images.detach(), background.detach()
    sources, positions, seeds = sample_starts(len(images), samples, len(background), generator)
    sources, distances = (
        to_device(sources, images.device),
        to_device(1 - positions, images.device, images.dtype),
    )
    noises = each_sample(standard_normal, seeds, samples, images) if noise else repeat(None, samples)
    total = torch.zeros_like(images)
    for sample, values in zip(passes_of(images, samples), noises, strict=True):
        ends = images if values is None else images.add(values, alpha=noise)
        spans = ends - background[sources[:, sample]]
        points = ends - per_row(distances[:, sample]) * spans
        total.addcmul_(spans, input_gradient(model, points, targets))
    return total / samples


def sample_starts(
    images: int, samples: int, backgrounds: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, list[int]]:
    """Sample the background image, int64, and α, float64, of each sample, ``[images, samples]``, and seeds of noise.

    The seeds are image-major, ``images * samples`` in total.
    """
    child, shape = torch.Generator(), (samples,)
    sources, positions, seeds = [], [], list[int]()
    for seed in sample_seeds(images, 1, generator):
        child.manual_seed(seed)
        sources.append(torch.randint(backgrounds, shape, generator=child))
        positions.append(torch.rand(shape, generator=child, dtype=torch.float64))
        seeds += sample_seeds(1, samples, child)
    return torch.stack(sources), torch.stack(positions), seeds
