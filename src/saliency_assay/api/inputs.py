"""Checks of arrays and tensors from callers, and their conversion to the internal types."""

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from saliency_assay.methods.differentiate import describe_tensor
from saliency_assay.registry.labels import counted

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Array | Tensor


def images_of(images: Arrays, name: str = "images") -> Tensor:
    """Return images ``[N, C, H, W]`` as uint8 or float32, on their device.

    Raises:
        ValueError: another shape or type, no image, or floating-point values outside [0, 1].
    """
    tensor = _to_tensor(images, name).detach()
    expected = "uint8 [N, C, H, W], or floating point in [0, 1]"
    channels_last = tensor.ndim in (3, 4) and tensor.shape[-1] in (1, 3) and tensor.shape[-3] not in (1, 3)
    if channels_last:
        axes = (0, 3, 1, 2) if tensor.ndim == 4 else (2, 0, 1)
        call = f"{name}.permute{axes}" if isinstance(images, Tensor) else f"np.transpose({name}, {axes})"
        one = "" if tensor.ndim == 4 else ", of one image with [None] after it"
        raise ValueError(
            f"{name}: found {list(tensor.shape)}, channels last, expected {expected}: {call}{one}"
        )
    is_integer = not (tensor.is_floating_point() or tensor.dtype == torch.uint8)
    if tensor.ndim != 4 or 0 in tensor.shape or is_integer:
        hint = ""
        if tensor.ndim == 3:
            hint = (
                f": {name}[None] of one image"
                if tensor.shape[0] in (1, 3)
                else f": {name}[:, None] of gray images"
            )
        hint = "; convert pixel levels from 0 to 255 to uint8" if is_integer and tensor.ndim == 4 else hint
        raise ValueError(f"{name}: found {describe_tensor(tensor)}, expected {expected}{hint}")
    if tensor.dtype == torch.uint8:
        return tensor
    low, high = tensor.amin().item(), tensor.amax().item()
    if not (low >= 0 and high <= 1):  # also True for NaN
        hint = "undo a normalization, images * std + mean, and pass mean and std to saliency_assay.wrap"
        hint = "divide pixel levels from 0 to 255 by 255" if low >= 0 and 1 < high <= 255 else hint
        hint = "replace NaN" if low != low else hint
        raise ValueError(f"{name}: found values from {low:.4g} to {high:.4g}, expected within [0, 1]; {hint}")
    return tensor.to(torch.float32)


def targets_of(targets: Any, images: int) -> npt.NDArray[np.int64]:
    """Return the class of each image, int64 ``[N]``; a single class is that of all images.

    Raises:
        ValueError: there is neither one integer nor one for each of ``images`` images.
    """
    expected = f"an integer class for each of {counted(images, 'image')}, or one for all"
    classes = np.asarray(_to_tensor(targets, "targets", expected).detach().cpu())
    if classes.shape not in ((), (images,)) or classes.dtype.kind not in "iu":
        hint = ": targets.argmax(1) of logits or probabilities" if classes.ndim == 2 else ""
        hint = ": targets[:, 0]" if classes.shape == (images, 1) else hint
        is_float = classes.shape == (images,) and classes.dtype.kind == "f"
        hint = ": targets.long()" if is_float and isinstance(targets, Tensor) else hint
        hint = ": np.asarray(targets, int)" if is_float and not isinstance(targets, Tensor) else hint
        raise ValueError(f"targets: found {classes.dtype} {list(classes.shape)}, expected {expected}{hint}")
    if classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"targets: found class {classes.max()}, expected a class of the model")
    return np.full(images, classes, dtype=np.int64)


def numbers_of(values: Any, name: str) -> list[float]:
    """Return the values of each channel as numbers.

    Raises:
        ValueError: they are no sequence of numbers.
    """
    array = np.asarray(values.tolist() if isinstance(values, Tensor) else values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name}: found {repr(values)[:60]}, expected a number for each channel, such as [0.5] * 3"
        )
    return [float(value) for value in array]


def integer_of(value: object, name: str) -> int:
    """Return an integer of Python, NumPy or PyTorch.

    Raises:
        ValueError: it is none.
    """
    try:
        return int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name}: found {value!r}, expected an integer") from None


def maps_of(maps: Arrays, images: Tensor) -> npt.NDArray[np.float32]:
    """Return maps ``[N, C or 1, H, W]``, or ``[N, H, W]`` with one value per pixel, as float32 ``[N, C or 1, H, W]``.

    Raises:
        ValueError: the shape does not fit the images, or the values are boolean or complex.
    """
    tensor = _to_tensor(maps, "maps").detach()
    count, channels, height, width = images.shape
    with_channels = tensor[:, None] if tensor.ndim == 3 else tensor
    fits = list(with_channels.shape) in ([count, channels, height, width], [count, 1, height, width])
    if not fits or tensor.dtype == torch.bool or tensor.is_complex():
        expected = f"numbers [{count}, {channels} or 1, {height}, {width}], or [{count}, {height}, {width}]"
        raise ValueError(f"maps: found {describe_tensor(tensor)}, expected {expected}")
    return np.asarray(with_channels.to("cpu", torch.float32))


def mask_of(mask: Arrays, images: Tensor) -> npt.NDArray[np.bool_]:
    """Return the object's pixels, bool ``[N, H, W]``.

    Raises:
        ValueError: another type or shape.
    """
    tensor, expected = _to_tensor(mask, "mask"), [len(images), *images.shape[2:]]
    if tensor.dtype != torch.bool or list(tensor.shape) != expected:
        hint = ": mask[:, 0]" if tensor.ndim == 4 else ": mask > 0" if list(tensor.shape) == expected else ""
        raise ValueError(
            f"mask: found {describe_tensor(tensor)}, expected bool {expected}, True on the object{hint}"
        )
    return np.asarray(tensor.cpu())


def mean_of(mean: Any, channels: int) -> Tensor:
    """Return the mean of a data set in each channel, float32 ``[C]``.

    Raises:
        ValueError: the number of values is not ``channels``, or a value is outside [0, 1].
    """
    tensor = torch.tensor(numbers_of(mean, "mean"), device="cpu")
    if tensor.shape != (channels,) or not bool(((tensor >= 0) & (tensor <= 1)).all()):
        raise ValueError(
            f"mean: found {tensor.tolist()}, expected {counted(channels, 'value')} in [0, 1], one per channel"
        )
    return tensor


def _to_tensor(values: Any, name: str, expected: str = "an array or a tensor") -> Tensor:
    """Return a tensor unchanged, and an array as a copy in a tensor."""
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_meta or values.is_nested:
            raise ValueError(
                f"{name}: found a tensor of {values.layout} on {values.device}, expected a dense one"
            )
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # of NumPy, without the name
        raise ValueError(f"{name}: found arrays of different shapes, expected all of one shape") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: found {type(values).__name__} of {array.dtype}, expected {expected}")
    # torch supports only the machine's byte order, and no negative strides, as of ``images[:, ::-1]``.
    return torch.tensor(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"), device="cpu")
