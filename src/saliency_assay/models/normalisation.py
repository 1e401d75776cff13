"""The mean and deviation that a classifier's first step takes out of pixels."""

import torch
from torch import Tensor

# Of ImageNet's training images in [0, 1], as published weights expect them (torchvision's documentation).
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def channel_statistics(
    images: Tensor, indices: Tensor, *, block: int = 1024
) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel over the images at ``indices``, in pixel space [0, 1].

    ``images`` is uint8 ``[N, C, H, W]``; ``block`` of them are decoded at a time, in float64. A channel that never
    changes has deviation 1, so that it can be divided by.
    """
    channels = images.shape[1]
    total, squares = torch.zeros(channels, dtype=torch.float64), torch.zeros(channels, dtype=torch.float64)
    for start in range(0, len(indices), block):
        pixels = images[indices[start : start + block]].to(torch.float64).div_(255)
        total += pixels.sum(dim=(0, 2, 3)).cpu()
        squares += pixels.square().sum(dim=(0, 2, 3)).cpu()
    count = len(indices) * images.shape[2] * images.shape[3]
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=0).sqrt()
    return mean.tolist(), torch.where(deviation > 1e-6, deviation, 1.0).tolist()
