"""Methods that do not use the model: baselines, which other methods should outperform, and the object's mask."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.methods.sampling import BELOW_ONE, ROW_BY_ROW, hashed, sample_seeds
from saliency_assay.runtime.transfer import to_device


def random(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Sample independent uniform values in [0, 1), one for each pixel, ``[N, 1, H, W]``.

    With one nonnegative channel, the order of the pixels is that of every reduction, but for the ties of ``visual``.
    """
    check_inputs(images, targets)
    seeds, plane = sample_seeds(len(images), 1, generator), images[:, :1]
    if images.device.type not in ROW_BY_ROW:
        return ((hashed(seeds, plane) + 1) / 2).clamp_(max=BELOW_ONE)
    maps, child = torch.empty_like(plane), torch.Generator()
    for row, seed in zip(maps, seeds, strict=True):
        row.uniform_(generator=child.manual_seed(seed))
    return maps


def constant(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Return 1 for every pixel, ``[N, 1, H, W]``: a map without information, which no metric should reward.

    Its sensitivity is 0, the minimum (Yeh et al., 2019, section 3). Reductions that rescale maps make it NaN.
    """
    check_inputs(images, targets)
    return images.new_ones((len(images), 1, *images.shape[2:]))


def object_mask(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mask: Tensor | None = None,
) -> Tensor:
    """Return 1 on the object and 0 elsewhere, ``[N, 1, H, W]``: the best possible map of a localization metric.

    ``mask`` is bool ``[N, H, W]``, True on the object.

    Raises:
        ValueError: there is no mask, as of images without one, or of images that a metric has changed; or it does not
            fit the images.
    """
    check_inputs(images, targets)
    size = (len(images), *images.shape[2:])
    if mask is None or mask.dtype != torch.bool or tuple(mask.shape) != size:
        actual = (
            f"{mask.dtype} {list(mask.shape)}"
            if mask is not None
            else "none, as of images changed by a metric"
        )
        raise ValueError(f"mask: found {actual}, expected torch.bool {list(size)}, the object's pixels")
    return to_device(mask[:, None], images.device, images.dtype)


def edge(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Compute the Sobel magnitude √(G_x² + G_y²) of each channel, ``[N, C, H, W]``, ≥ 0.

    Border pixels are repeated beyond the border (``mode="reflect"`` of ``scipy.ndimage.sobel``).
    """
    check_inputs(images, targets)
    smoothing, slope = torch.tensor([1, 2, 1]), torch.tensor([-1, 0, 1])
    both = torch.stack([torch.outer(smoothing, slope), torch.outer(slope, smoothing)])
    kernels = to_device(both, images.device, images.dtype)[:, None]
    # Channels as images of one channel, so that one convolution filters each of them separately.
    planes = images.detach().flatten(0, 1)[:, None]
    horizontal, vertical = conv2d(pad(planes, (1, 1, 1, 1), mode="replicate"), kernels).unbind(1)
    return torch.hypot(horizontal, vertical).reshape(images.shape)
