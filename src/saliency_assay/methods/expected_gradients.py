"""Expected gradients: integrated gradients averaged over background images as baselines, by sampling."""

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_background, check_inputs, input_gradient
from saliency_assay.methods.passes import passes_of, per_row
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.registry.limits import PositiveInt
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
    the background. Erion et al. (2021); GradientSHAP, without its noise on x.

    Raises:
        ValueError: no sample, or a background of another shape, type or device than the images.
    """
    check_inputs(images, targets)
    check_background(images, background)
    images, background = images.detach(), background.detach()
    sources, positions = sample_starts(len(images), samples, len(background), generator)
    sources, distances = (
        to_device(sources, images.device),
        to_device(1 - positions, images.device, images.dtype),
    )
    total = torch.zeros_like(images)
    for sample in passes_of(images, samples):
        spans = images - background[sources[:, sample]]
        points = images - per_row(distances[:, sample]) * spans
        total.addcmul_(spans, input_gradient(model, points, targets))
    return total / samples


def sample_starts(
    images: int, samples: int, backgrounds: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Sample the background image, int64, and α, float64, of each sample, ``[images, samples]``."""
    child, shape = torch.Generator(), (samples,)
    sources, positions = [], []
    for seed in sample_seeds(images, 1, generator):
        child.manual_seed(seed)
        sources.append(torch.randint(backgrounds, shape, generator=child))
        positions.append(torch.rand(shape, generator=child, dtype=torch.float64))
    return torch.stack(sources), torch.stack(positions)
