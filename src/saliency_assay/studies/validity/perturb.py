"""Models and images with random changes, small or large (Hedström et al., 2023)."""

import torch
from torch import Tensor

from saliency_assay.models.classifier import Classifier
from saliency_assay.models.state import copy_of


def perturbed_model(classifier: Classifier, noise: float, generator: torch.Generator) -> Classifier:
    """Return a copy whose weights and biases are multiplied by independent samples of N(1, ``noise``²)."""
    model = copy_of(classifier)
    assert isinstance(model, Classifier)
    with torch.no_grad():
        for weights in model.parameters():
            factors = 1 + noise * torch.randn(weights.shape, generator=generator, dtype=torch.float32)
            weights.mul_(factors.to(weights))
    return model


def perturbed_images(pixels: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Return images ``[N, C, H, W]`` in [0, 1] plus uniform noise in [−``noise``, ``noise``], clipped to [0, 1]."""
    added = noise * (2 * torch.rand(pixels.shape, generator=generator, dtype=torch.float32) - 1)
    return (pixels + added.to(pixels)).clamp(0, 1)
