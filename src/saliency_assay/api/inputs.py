"""Arrays and tensors of one's own, checked and brought into the form that the project computes with."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from saliency_assay.methods.differentiate import describe

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Array | Tensor


def images_of(images: Arrays, name: str = "images") -> Tensor:
    """Images ``[N, C, H, W]`` as uint8 or float32, where they lie.

    Raises:
        ValueError: another shape or type, no image at all, or floating-point values outside [0, 1].
    """
    found = _tensor(images, name)
    expected = "uint8 [N, C, H, W], or floating point in [0, 1]"
    if found.ndim != 4 or 0 in found.shape or not (found.is_floating_point() or found.dtype == torch.uint8):
        raise ValueError(f"{name}: found {describe(found)}, expected {expected}")
    if found.shape[3] in (1, 3) and found.shape[1] not in (1, 3):
        raise ValueError(f"{name}: found {list(found.shape)}, channels last, expected {expected}")
    if found.dtype == torch.uint8:
        return found
    low, high = found.amin().item(), found.amax().item()
    if not (low >= 0 and high <= 1):  # NaN, too
        hint = "a network that takes normalised images is given its mean and std by saliency_assay.wrap"
        raise ValueError(f"{name}: found values from {low:.4g} to {high:.4g}, expected within [0, 1]; {hint}")
    return found.to(torch.float32)


def targets_of(targets: Any, images: int) -> npt.NDArray[np.int64]:
    """Return the class of each image, int64 ``[N]``.

    Raises:
        ValueError: not an integer for each of ``images`` images.
    """
    found = np.asarray(_tensor(targets, "targets").detach().cpu())
    if found.shape != (images,) or found.dtype.kind not in "iu":
        shown = f"{found.dtype} {list(found.shape)}"
        raise ValueError(f"targets: found {shown}, expected an integer class for each of {images} images")
    return found.astype(np.int64)


def maps_of(maps: Arrays, images: Tensor) -> npt.NDArray[np.float32]:
    """Return maps ``[N, C or 1, H, W]``, or ``[N, H, W]`` with one value a pixel, as float32 ``[N, C or 1, H, W]``.

    Raises:
        ValueError: another shape than the images', or values that are no numbers.
    """
    found = _tensor(maps, "maps").detach()
    count, channels, height, width = images.shape
    whole = found[:, None] if found.ndim == 3 else found
    fits = list(whole.shape) in ([count, channels, height, width], [count, 1, height, width])
    if not fits or found.dtype == torch.bool or found.is_complex():
        expected = f"numbers [{count}, {channels} or 1, {height}, {width}], or [{count}, {height}, {width}]"
        raise ValueError(f"maps: found {describe(found)}, expected {expected}")
    return np.asarray(whole.to("cpu", torch.float32))


def mask_of(mask: Arrays, images: Tensor) -> npt.NDArray[np.bool_]:
    """Return the object's pixels, bool ``[N, H, W]``.

    Raises:
        ValueError: another type or shape.
    """
    found, expected = _tensor(mask, "mask"), [len(images), *images.shape[2:]]
    if found.dtype != torch.bool or list(found.shape) != expected:
        raise ValueError(f"mask: found {describe(found)}, expected bool {expected}, True on the object")
    return np.asarray(found.cpu())


def mean_of(mean: Any, channels: int) -> Tensor:
    """Return the mean of a data set in each channel, float32 ``[C]``.

    Raises:
        ValueError: another number of values, or one outside [0, 1].
    """
    found = torch.as_tensor(mean, dtype=torch.float32).cpu()
    if found.shape != (channels,) or not bool(((found >= 0) & (found <= 1)).all()):
        raise ValueError(f"mean: found {found.tolist()}, expected {channels} values in [0, 1], one a channel")
    return found


def _tensor(values: Any, name: str) -> Tensor:
    """Values as a tensor; arrays are copied where torch cannot share them."""
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: found {type(values).__name__} of {array.dtype}, expected an array or a tensor"
        )
    return torch.tensor(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))
