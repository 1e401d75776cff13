"""Mean and standard deviation by which pixels are normalized."""

from contextlib import closing

import torch
from torch import Tensor

from saliency_assay.data.batching import Images, batches, dtype_of
from saliency_assay.runtime.distributed import own, summed

# Mean and std of ImageNet's training images in [0, 1], which published weights expect (torchvision's documentation).
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def channel_statistics(
    images: Images, indices: Tensor, *, block: int = 1024
) -> tuple[list[float], list[float]]:
    """Return the mean and standard deviation of each channel over the images at ``indices``, for pixels in [0, 1].

    ``images`` ``[N, C, H, W]`` are as in ``data.batching``. Pixel levels are counted, ``block`` images at a time, so
    that the result is independent of their order; several processes divide the images among them. It is exact for the
    256 levels of uint8 images; float32 pixels are rounded to 16 bits.
    The standard deviation of a constant channel is set to 1, because it is a divisor.
    """
    largest = 255 if dtype_of(images) == torch.uint8 else 65_535
    counts = torch.zeros(images.shape[1], largest + 1, dtype=torch.float64)
    device = images.device if isinstance(images, Tensor) else torch.device("cpu")
    with closing(batches(images, own(indices), block, device)) as image_batches:
        for batch in image_batches:
            levels = batch.transpose(0, 1).flatten(1)
            if levels.is_floating_point():
                levels = (levels.double() * largest).round().long()
            counts += torch.stack(
                [torch.bincount(channel, minlength=largest + 1) for channel in levels]
            ).cpu()
    counts = summed(counts)
    frequencies = counts / counts.sum(1, keepdim=True)
    pixels = torch.arange(largest + 1, dtype=torch.float64) / largest
    mean = frequencies @ pixels
    variance = (frequencies * (pixels - mean[:, None]).square()).sum(1)
    return mean.tolist(), torch.where(variance > 0, variance.sqrt(), 1.0).tolist()
