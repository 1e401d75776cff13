"""The mean and deviation that a classifier's first step takes out of pixels."""

from contextlib import closing

import torch
from torch import Tensor

from saliency_assay.data.batching import Images, batches
from saliency_assay.runtime.distributed import own, summed

# Of ImageNet's training images in [0, 1], as published weights expect them (torchvision's documentation).
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def channel_statistics(
    images: Images, indices: Tensor, *, block: int = 1024
) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel over the images at ``indices``, in pixel space [0, 1].

    ``images`` uint8 ``[N, C, H, W]`` are as ``feed`` has them; levels are counted, ``block`` images at a time, so the
    result is exact; several processes count a part each. A channel that never changes has deviation 1, so that it can
    be divided by.
    """
    counts = torch.zeros(images.shape[1], 256, dtype=torch.float64)
    device = images.device if isinstance(images, Tensor) else torch.device("cpu")
    with closing(batches(images, own(indices), block, device)) as parts:
        for part in parts:
            levels = part.transpose(0, 1).flatten(1)
            counts += torch.stack([torch.bincount(channel, minlength=256) for channel in levels]).cpu()
    counts = summed(counts)
    shares, pixels = counts / counts.sum(1, keepdim=True), torch.arange(256, dtype=torch.float64) / 255
    mean = shares @ pixels
    variance = (shares * (pixels - mean[:, None]).square()).sum(1)
    return mean.tolist(), torch.where(variance > 0, variance.sqrt(), 1.0).tolist()
