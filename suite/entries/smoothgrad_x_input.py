"""SmoothGrad × Input: SmoothGrad (Smilkov et al., 2017) multiplied by the image's deviation from its mean color."""

import torch
from torch import Tensor, nn


def smoothgrad_x_input(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 8,
    noise: float = 0.15,
) -> Tensor:
    """Return maps ``[N, C, H, W]``; ``noise`` is the standard deviation relative to the range of each image."""
    spread = noise * (images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True))
    total = torch.zeros_like(images)
    for _ in range(samples):
        normal = torch.randn(images.shape, generator=generator, device=generator.device).to(images.device)
        noisy = (images + spread * normal).requires_grad_(True)
        logits = model(noisy).gather(1, targets[:, None]).sum()
        total += torch.autograd.grad(logits, noisy)[0]
    return total / samples * (images - images.mean((2, 3), keepdim=True))
