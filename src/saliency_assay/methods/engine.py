"""Runner of all attribution methods: batches, device, evaluation mode, precision, checks and progress.

In the workflow, an exception of a method is recorded as its result (``runtime.failure``).
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from inspect import isfunction
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import describe_tensor
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.independence import check_independence, harmless_calls
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.models.state import changed, tensors_of
from saliency_assay.runtime.shards import batches
from saliency_assay.runtime.transfer import on_cpu, to_device

log = logging.getLogger(__name__)


def attribute(
    method: Callable[..., Tensor],
    parameters: Mapping[str, Any],
    classifier: Classifier,
    images: Any,
    targets: np.ndarray,
    *,
    seed: int,
    batch_size: int,
    finite: bool = False,
    offset: int = 0,
    mask: Any = None,
) -> Iterator[dict[str, np.ndarray]]:
    """Compute the maps of all images in blocks ``{"map": float32 [batch, C or 1, H, W]}``, in the images' order.

    ``images`` is any object with a length whose slices are uint8 ``[n, C, H, W]``, or float32 in [0, 1]; a Zarr array
    is read batch by batch. ``targets`` is int64 ``[N]``. While the method runs, the classifier is in evaluation mode
    with frozen parameters, on its current device, and float32 products are exact. One generator, reseeded from ``seed``
    for every block of the set (``shards``), serves all batches in order. Maps therefore depend on ``batch_size`` only
    by rounding, and not at all on how the set is split into shards; ``offset`` is the number of images before this
    shard. With ``finite``, values that are not finite raise an error; otherwise they are kept, and the number of maps
    with such values is logged. ``mask``, for methods that take it, is the object's pixels, with slices bool ``[n, H,
    W]``.

    Raises:
        ValueError: images, targets or offset do not fit; the method returns another shape, type or device or, with
            ``finite``, NaN or infinity, or changes the images, the targets or the classifier in place.
    """
    check_targets(targets, len(images), classifier.classes)
    generator, job = BlockGenerator(seed, "method"), (method, parameters, classifier, images, targets)
    batch_maps = attribute_batches(
        *job, generator=generator, batch_size=batch_size, finite=finite, offset=offset, mask=mask
    )
    return ({"map": maps.contiguous().numpy()} for maps in on_cpu(maps for _, maps in batch_maps))


def attribute_batches(
    method: Callable[..., Tensor],
    parameters: Mapping[str, Any],
    classifier: Classifier,
    images: Any,
    targets: Any,
    *,
    generator: BlockGenerator,
    batch_size: int,
    finite: bool,
    offset: int = 0,
    done: int = 0,
    mask: Any = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the images of each batch, in their stored type, and their maps, both on the classifier's device.

    The arguments are those of ``attribute``. ``targets`` are sliced batch by batch and must be classes of the
    classifier. The first ``done`` images, which are complete batches, are skipped; ``generator`` must then be in the
    state after their maps.
    """
    name, call = name_of(method), _call_of(method, parameters)
    batch_slices = [
        (block, batch)
        for block, batch in batches(len(images), batch_size, offset=offset)
        if batch.start >= done
    ]

    # A nested generator, so that a wrong offset raises at the call and not when the first batch is requested.
    def attributed() -> Iterator[tuple[Tensor, Tensor]]:
        progress = _Progress(name, sum(batch.stop - batch.start for _, batch in batch_slices))
        for number, (block, batch) in enumerate(batch_slices):
            stored = _stored_images(images[batch], classifier.device)
            pixels = to_pixels(stored)
            batch_targets = to_device(torch.tensor(targets[batch], device="cpu"), classifier.device)
            masks = {} if mask is None else {"mask": torch.tensor(np.asarray(mask[batch]), device="cpu")}
            written = check_independence(classifier, pixels) if number == 0 else frozenset()
            # Once, since this copies all weights; a method that writes in place does so for every batch.
            is_watched = number == 0 and (call is None or call not in harmless_calls(classifier))
            watched = _unchangeable(classifier, pixels, batch_targets, written) if is_watched else {}
            before = {key: tensor.clone() for key, tensor in watched.items()}
            with evaluating(classifier), frozen(classifier), exact_float32(), torch.enable_grad():
                maps = method(
                    classifier, pixels, batch_targets, generator=generator.at(block), **masks, **parameters
                )
            if before:
                _check_unchanged(name, before, _unchangeable(classifier, pixels, batch_targets, written))
                if call is not None:
                    harmless_calls(classifier).add(call)
            _check_maps(name, maps, pixels)
            non_finite = ~maps.isfinite().flatten(1).all(1)
            if finite and non_finite.any():
                first = offset + batch.start + int(non_finite.nonzero()[0])
                raise ValueError(
                    f"{name}: returned NaN or infinity for image {first}, expected finite values"
                )
            progress.add(len(maps), non_finite.sum())
            yield stored, maps.detach()
        progress.close()

    return attributed()


def check_targets(targets: np.ndarray, images: int, classes: int) -> None:
    """Check that targets are one class for each of ``images`` images, at least one image.

    Raises:
        ValueError: they are not int64 ``[N]`` in 0 … ``classes`` − 1.
    """
    if images == 0 or targets.shape != (images,) or targets.dtype != np.int64:
        actual = f"{targets.dtype} {list(targets.shape)} for {images} images"
        raise ValueError(f"targets: found {actual}, expected int64 [N] with N >= 1 images")
    outside = targets[(targets < 0) | (targets >= classes)]
    if len(outside):  # on a GPU, an index out of range would make every later CUDA call of the process fail
        raise ValueError(f"targets: found class {outside[0]}, expected 0 to {classes - 1}")


def arguments(
    parameters: Mapping[str, Any], base: Callable[..., Tensor] | None, background: Any, device: torch.device
) -> dict[str, Any]:
    """Return a method's keyword arguments: its parameters, and its base method and background if it takes them.

    Args:
        parameters: the method's parameters in the configuration.
        base: the method that it smooths, bound to its parameters, or None.
        background: images ``[B, C, H, W]`` as in ``pixels_of``; not passed to the method if B is 0.
        device: device of the background.
    """
    keywords = dict(parameters)
    if base is not None:
        keywords["base"] = base
    if len(background):
        keywords["background"] = pixels_of(background, device)
    return keywords


def pixels_of(images: Any, device: torch.device) -> Tensor:
    """Convert images ``[n, C, H, W]``, uint8 or float32 in [0, 1], to float32 pixels in [0, 1] on ``device``.

    Raises:
        ValueError: the images are of another type or shape.
    """
    return to_pixels(_stored_images(images, device))


def _stored_images(images: Any, device: torch.device) -> Tensor:
    """Check images, and return them in their type on ``device``."""
    block = images if isinstance(images, Tensor) else torch.tensor(np.asarray(images), device="cpu")
    if block.dtype not in (torch.uint8, torch.float32) or block.ndim != 4:
        actual = f"{str(block.dtype).removeprefix('torch.')} {list(block.shape)}"
        raise ValueError(f"images: found {actual}, expected uint8 or float32 [N, C, H, W]")
    return to_device(block, device)


@contextmanager
def frozen(classifier: nn.Module) -> Iterator[None]:
    """Disable gradients of the parameters, and hooks that would change gradients of the function.

    No method needs gradients of parameters, which take a third of the backward pass. Backward hooks of modules, such as
    those that another package left behind, change gradients but not the logits.
    """
    # Nothing can be set of weights that were made in inference mode; autograd does not follow them either.
    trainable = [each for each in classifier.parameters() if each.requires_grad and not each.is_inference()]
    hooked = [
        (module, kind, getattr(module, kind))
        for module in classifier.modules()
        for kind in ("_backward_hooks", "_backward_pre_hooks")
        if getattr(module, kind, None)
    ]
    try:
        for parameter in trainable:
            parameter.requires_grad_(False)
        for module, kind, _ in hooked:
            setattr(module, kind, OrderedDict())
        yield
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)
        for module, kind, hooks in hooked:
            setattr(module, kind, hooks)


def _unchangeable(
    classifier: Classifier, pixels: Tensor, targets: Tensor, written: frozenset[str]
) -> dict[str, Tensor]:
    """Return all tensors that a method must not change; the forward pass changes those in ``written`` by itself."""
    state = {name: tensor for name, tensor in tensors_of(classifier).items() if name not in written}
    return {"the images": pixels.detach(), "the targets": targets, **state}


def _call_of(method: Callable[..., Tensor], parameters: Mapping[str, Any]) -> Hashable | None:
    """Return what identifies a call of a method besides its inputs; None if its parameters are not plain values."""
    # By a weak reference, since a custom method may keep the network alive with which it is stored.
    is_plain = all(isinstance(value, bool | int | float | str) for value in parameters.values())
    return (ref(method), *sorted(parameters.items())) if isfunction(method) and is_plain else None


def _check_unchanged(name: str, before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
    for key in changed(before, after):
        raise ValueError(
            f"{name}: changed {key} in place; a method must not modify images, targets or classifier"
        )


def _check_maps(name: str, maps: object, pixels: Tensor) -> None:
    count, channels, height, width = pixels.shape
    channels_text = f"{channels} or 1" if channels > 1 else "1"
    expected = f"expected float32 [{count}, {channels_text}, {height}, {width}] on {pixels.device}"
    if not isinstance(maps, Tensor):
        raise ValueError(f"{name}: returned {type(maps).__name__}, {expected}")
    shapes = [(count, channels, height, width), (count, 1, height, width)]
    if maps.dtype != pixels.dtype or tuple(maps.shape) not in shapes or maps.device != pixels.device:
        raise ValueError(f"{name}: returned {describe_tensor(maps)} on {maps.device}, {expected}")


def name_of(method: Callable[..., Any]) -> str:
    """Return the name of a function as in the configuration: ``package.module:name``."""
    name = getattr(method, "__qualname__", type(method).__name__)
    return f"{getattr(method, '__module__', '')}:{name}"


class _Progress:
    """At most 100 messages of progress in the log, and a final one with the number of maps that are not finite."""

    def __init__(self, name: str, images: int) -> None:
        self.name, self.images = name, images
        self.done = self.reported = 0
        self.non_finite: int | Tensor = (
            0  # stays on the device until the end: reading it would wait for the maps
        )
        self.start = self.last = time.monotonic()

    def add(self, done: int, non_finite: Tensor) -> None:
        self.done += done
        self.non_finite = self.non_finite + non_finite
        if time.monotonic() - self.last > 1 and self.done - self.reported >= self.images / 100:
            self.last, self.reported = time.monotonic(), self.done
            log.info("%s: maps %d/%d", self.name, self.done, self.images)

    def close(self) -> None:
        seconds = time.monotonic() - self.start
        log.info("%s: %d images in %.1f s", self.name, self.done, seconds)
        if non_finite := int(self.non_finite):
            log.warning("%s: %d of %d maps contain NaN or infinity", self.name, non_finite, self.images)
