"""The one caller of attribution methods: batches, device, evaluation mode, precision, checks and progress."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.differentiate import describe
from saliency_assay.methods.passes import SECONDS_BETWEEN_LINES
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.runtime.shards import batches

log = logging.getLogger(__name__)


def draw(
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
) -> Iterator[dict[str, np.ndarray]]:
    """Draw the maps of all images: blocks ``{"map": float32 [batch, C or 1, H, W]}`` in the images' order.

    ``images`` is anything with a length whose slices are uint8 ``[n, C, H, W]``, or float32 in [0, 1]: a Zarr array is
    read batch by batch.
    ``targets`` is int64 ``[N]``. While the method runs, the classifier is in evaluation mode with frozen parameters,
    on the device it is on, and float32 products are exact. One generator, seeded by ``seed`` for every block of the set
    anew (``shards``), serves all batches in order, so maps do not depend on ``batch_size`` beyond rounding; and not at
    all on how the set is split into parts, of which this one has ``offset`` images before it. Values that are not
    finite are refused where ``finite`` asks for it; otherwise they stay as they are, and the number of maps that hold
    any is logged.

    Raises:
        ValueError: images, targets or offset do not fit; the method returns another shape, type or device or, with
            ``finite``, NaN or infinity, or changes the images, the targets or the classifier in place.
    """
    check_targets(targets, len(images), classifier.classes)
    generator, job = BlockGenerator(seed), (method, parameters, classifier, images, targets)
    parts = drawn(*job, generator=generator, batch_size=batch_size, finite=finite, offset=offset)
    return ({"map": maps.cpu().contiguous().numpy()} for _, maps in parts)


def drawn(
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
) -> Iterator[tuple[Tensor, Tensor]]:
    """As ``draw``, each batch on the classifier's device: its images as they are given, and their maps.

    ``targets`` are sliced batch by batch, and are classes of the classifier. The first ``done`` images, whole batches,
    are skipped; ``generator`` is then in the state in which their maps left it.
    """
    name = name_of(method)
    parts = [
        (block, part) for block, part in batches(len(images), batch_size, offset=offset) if part.start >= done
    ]

    def attributed() -> Iterator[tuple[Tensor, Tensor]]:
        progress = _Progress(name, sum(part.stop - part.start for _, part in parts))
        for number, (block, part) in enumerate(parts):
            stored = _stored(images[part], classifier.device)
            pixels = to_pixels(stored)
            wanted = torch.tensor(targets[part], device=classifier.device)
            before = _snapshot(classifier, pixels, wanted) if number == 0 else {}
            with evaluating(classifier), frozen(classifier), exact_float32():
                maps = method(classifier, pixels, wanted, generator=generator.at(block), **parameters)
            if before:
                _check_unchanged(name, before, _snapshot(classifier, pixels, wanted))
            _check_maps(name, maps, pixels)
            broken = ~maps.isfinite().flatten(1).all(1)
            if finite and broken.any():
                first = offset + part.start + int(broken.nonzero()[0])
                raise ValueError(
                    f"{name}: returned NaN or infinity for image {first}, expected finite values"
                )
            progress.add(len(maps), int(broken.sum()))
            yield stored, maps.detach()
        progress.close()

    return attributed()


def check_targets(targets: np.ndarray, images: int, classes: int) -> None:
    """Refuse targets that are not a class for each of ``images`` images, at least one.

    Raises:
        ValueError: they are not int64 ``[N]`` in 0 … ``classes`` − 1.
    """
    if images == 0 or targets.shape != (images,) or targets.dtype != np.int64:
        found = f"{targets.dtype} {list(targets.shape)} for {images} images"
        raise ValueError(f"targets: found {found}, expected int64 [N] with N >= 1 images")
    outside = targets[(targets < 0) | (targets >= classes)]
    if len(outside):  # on a GPU it would end the whole process
        raise ValueError(f"targets: found class {outside[0]}, expected 0 to {classes - 1}")


def arguments(
    parameters: Mapping[str, Any], base: Callable[..., Tensor] | None, background: Any, device: torch.device
) -> dict[str, Any]:
    """A method's keyword arguments: its parameters, and what it takes beside them.

    Args:
        parameters: those of the configuration.
        base: the method that it smooths, bound to its parameters, or None.
        background: ``[B, C, H, W]`` as ``pixels_of`` takes them; it is given none where B is 0.
        device: where those go.
    """
    given = dict(parameters)
    if base is not None:
        given["base"] = base
    if len(background):
        given["background"] = pixels_of(background, device)
    return given


def pixels_of(images: Any, device: torch.device) -> Tensor:
    """Images ``[n, C, H, W]``, uint8 as they are stored or float32 in [0, 1], as pixels in [0, 1] on ``device``.

    Raises:
        ValueError: they are of another type or shape.
    """
    return to_pixels(_stored(images, device))


def _stored(images: Any, device: torch.device) -> Tensor:
    block = images if isinstance(images, Tensor) else torch.tensor(np.asarray(images))
    if block.dtype not in (torch.uint8, torch.float32) or block.ndim != 4:
        found = f"{str(block.dtype).removeprefix('torch.')} {list(block.shape)}"
        raise ValueError(f"images: found {found}, expected uint8 or float32 [N, C, H, W]")
    return block.to(device)


@contextmanager
def frozen(classifier: Classifier) -> Iterator[None]:
    """Within the block, no gradients for parameters, which no method asks for: a third of the backward pass."""
    learning = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    classifier.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def _snapshot(classifier: Classifier, pixels: Tensor, targets: Tensor) -> dict[str, Tensor]:
    tensors = {"the images": pixels, "the targets": targets, **classifier.state_dict()}
    return {key: tensor.detach().clone() for key, tensor in tensors.items()}


def _check_unchanged(name: str, before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
    for key, old in before.items():
        if not torch.allclose(old, after[key], rtol=0, atol=0, equal_nan=True):
            raise ValueError(
                f"{name}: changed {key} in place; a method leaves images, targets and classifier alone"
            )


def _check_maps(name: str, maps: object, pixels: Tensor) -> None:
    count, channels, height, width = pixels.shape
    expected = f"expected float32 [{count}, {channels} or 1, {height}, {width}] on {pixels.device}"
    if not isinstance(maps, Tensor):
        raise ValueError(f"{name}: returned {type(maps).__name__}, {expected}")
    shapes = [(count, channels, height, width), (count, 1, height, width)]
    if maps.dtype != pixels.dtype or tuple(maps.shape) not in shapes or maps.device != pixels.device:
        raise ValueError(f"{name}: returned {describe(maps)} on {maps.device}, {expected}")


def name_of(method: Callable[..., Any]) -> str:
    """How the configuration refers to a function: ``package.module:name``."""
    name = getattr(method, "__qualname__", type(method).__name__)
    return f"{getattr(method, '__module__', '')}:{name}"


class _Progress:
    """A line in the log now and then, and one at the end that counts the maps that are not finite."""

    def __init__(self, name: str, images: int) -> None:
        self.name, self.images = name, images
        self.drawn = self.broken = 0
        self.start = self.last = time.monotonic()

    def add(self, drawn: int, broken: int) -> None:
        self.drawn += drawn
        self.broken += broken
        if time.monotonic() - self.last > SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            log.info("%s: %d of %d images", self.name, self.drawn, self.images)

    def close(self) -> None:
        seconds = time.monotonic() - self.start
        log.info("%s: %d images in %.1f s", self.name, self.drawn, seconds)
        if self.broken:
            log.warning(
                "%s: %d of %d maps hold values that are not finite", self.name, self.broken, self.images
            )
