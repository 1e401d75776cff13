"""Images, targets, masks and groups of a benchmark, in blocks that fit into memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from saliency_assay.api.inputs import images_of, integer_of, mask_of
from saliency_assay.methods.differentiate import describe_tensor
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logits
from saliency_assay.registry.labels import counted
from saliency_assay.runtime.shards import BLOCK

LABEL, PREDICTED = "label", "predicted"
EXPECTED = (
    "an array or tensor [N, C, H, W], a tuple (images, targets[, masks]) of such, a Dataset, a DataLoader, or an "
    "iterable of batches (images[, targets[, masks]])"
)

Ints = npt.NDArray[np.int64]
Batch = tuple[Any, Any, Any]
"""Images, targets and masks; the last two None where missing."""


@dataclass(frozen=True)
class ImageBlock:
    """At most ``BLOCK`` explained images; one that is explained for several targets is repeated."""

    start: int
    """Number of explained images in earlier blocks."""
    pixels: Tensor
    """``[n, C, H, W]``, uint8 or float32 in [0, 1]."""
    targets: Ints
    """Explained classes ``[n]``."""
    source: Ints
    """Positions ``[n]`` of the images in the data."""
    mask: npt.NDArray[np.bool_] | None
    """Object pixels ``[n, H, W]``."""
    groups: npt.NDArray[np.str_] | None
    """Names of the groups ``[n]`` of images that are not independent."""

    @property
    def number(self) -> int:
        """Position of the block, from 0."""
        return self.start // BLOCK

    def digest(self) -> str:
        """Return the SHA-256 of all of its contents."""
        total = sha256()
        for values in (self.pixels.cpu().numpy(), self.targets, self.mask, self.groups):
            if values is not None:
                total.update(f"{values.dtype} {values.shape}".encode())
                total.update(np.ascontiguousarray(values).tobytes())
        return total.hexdigest()


def image_count(data: Any, targets: Any) -> int | None:
    """Return the number of explained images; None if ``data`` is an iterable of unknown length.

    Raises:
        ValueError: rows of ``targets`` have different lengths.
    """
    if isinstance(data, DataLoader):
        data = data.dataset
    elif isinstance(data, tuple | list) and data and _is_array(data[0]):
        targets = data[1] if targets is None and len(data) > 1 else targets
        data = data[0]
    if not isinstance(data, Sized) or not (_is_array(data) or isinstance(data, Dataset)):
        return None
    targets = _target_array(targets)
    return len(data) * (np.shape(targets)[1] if np.ndim(targets) == 2 else 1)


def read_batches(data: Any, batch_size: int) -> Iterator[Batch]:
    """Yield ``(images, targets, masks)`` of each batch of the ``data`` of a benchmark, None where missing.

    Raises:
        ValueError: ``data`` is none of the accepted types or has no image.
    """
    if isinstance(data, tuple | list) and data and _is_array(data[0]):
        arrays = _parts(data)
        for name, values in zip(("targets", "masks"), arrays[1:], strict=True):
            if values is not None and len(values) != len(data[0]):
                raise ValueError(
                    f"data: found {len(values)} {name} for {counted(len(data[0]), 'image')}, expected one each"
                )
    elif _is_array(data):
        arrays = (data, None, None)
    elif isinstance(data, Tensor | np.ndarray):
        raise ValueError(f"data: found {type(data).__name__} {list(data.shape)}, expected {EXPECTED}")
    else:
        if isinstance(data, Dataset):
            data = DataLoader(data, batch_size=batch_size)
        if not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping):
            raise ValueError(f"data: found {type(data).__name__}, expected {EXPECTED}")
        number = -1
        for number, batch in enumerate(data):
            parts = _parts(batch if isinstance(batch, tuple | list) else (batch,))
            if not _is_array(parts[0]):
                described = (
                    describe_tensor(parts[0]) if isinstance(parts[0], Tensor) else type(parts[0]).__name__
                )
                expected = "a tensor or an array [B, C, H, W] of images"
                raise ValueError(f"data: found {described} in batch {number}, expected {expected}")
            yield parts
        if number < 0:
            raise ValueError("data: found no image, expected at least one")
        return
    if len(arrays[0]) == 0:
        raise ValueError("data: found no image, expected at least one")
    for first in range(0, len(arrays[0]), batch_size):
        images, targets, masks = (
            None if values is None else values[first : first + batch_size] for values in arrays
        )
        yield images, targets, masks


def image_blocks(
    batches: Iterable[Batch],
    classifier: Classifier,
    *,
    targets: Any = None,
    masks: Any = None,
    groups: Any = None,
    batch_size: int,
) -> Iterator[ImageBlock]:
    """Yield the images of ``read_batches`` in blocks of at most ``BLOCK``, each with a target.

    The other arguments are those of ``saliency_assay.benchmark``.

    Raises:
        ValueError: images differ in shape or are not pixels in [0, 1], or targets, masks or groups do not fit.
    """
    rows: list[_Rows] = []
    targets = _target_array(targets)
    start = count = seen = 0
    for batch in batches:
        part = _rows_of(batch, seen, classifier, targets, masks, groups, batch_size)
        if rows and (problem := rows[0].differs_from(part)):
            raise ValueError(f"data: {problem}")
        seen += len(batch[0])
        rows.append(part)
        count += len(part.source)
        while count >= BLOCK:
            joined = _Rows.join(rows)
            yield joined[:BLOCK].block(start)
            rows, start, count = [joined[BLOCK:]], start + BLOCK, count - BLOCK
    for name, values in (("targets", targets), ("masks", masks), ("groups", groups)):
        if values is not None and np.ndim(values) and not isinstance(values, str) and len(values) != seen:
            raise ValueError(
                f"{name}: found {len(values)}, expected one for each of {counted(seen, 'image')}"
            )
    if count:
        yield _Rows.join(rows).block(start)


@dataclass(frozen=True)
class _Rows:
    """Explained images of one or several batches."""

    pixels: Tensor
    targets: Ints
    source: Ints
    mask: npt.NDArray[np.bool_] | None
    groups: npt.NDArray[np.str_] | None

    def __getitem__(self, rows: slice) -> "_Rows":
        mask = None if self.mask is None else self.mask[rows]
        groups = None if self.groups is None else self.groups[rows]
        return _Rows(self.pixels[rows], self.targets[rows], self.source[rows], mask, groups)

    @classmethod
    def join(cls, parts: Sequence["_Rows"]) -> "_Rows":
        """Return all parts in one."""
        if len(parts) == 1:
            return parts[0]
        joined = {
            name: None
            if getattr(parts[0], name) is None
            else np.concatenate([getattr(part, name) for part in parts])
            for name in ("targets", "source", "mask", "groups")
        }
        return cls(torch.cat([part.pixels for part in parts]), **joined)  # type: ignore[arg-type]

    def differs_from(self, other: "_Rows") -> str:
        """Return why two parts cannot be joined, empty if they can."""
        one, two = (f"images {each.pixels.dtype} {list(each.pixels.shape[1:])}" for each in (self, other))
        if one != two:
            return f"found {one} and {two}, expected equal types and shapes"
        for name in ("mask", "groups"):
            if (getattr(self, name) is None) != (getattr(other, name) is None):
                return f"found batches with and without {name}, expected all with or all without"
        return ""

    def block(self, start: int) -> ImageBlock:
        """Return these rows as a block."""
        return ImageBlock(start, self.pixels, self.targets, self.source, self.mask, self.groups)


def _is_array(values: Any) -> bool:
    return isinstance(values, Tensor | np.ndarray) and np.ndim(values) == 4


def _parts(batch: Sequence[Any]) -> Batch:
    if not 1 <= len(batch) <= 3:
        raise ValueError(
            f"data: found batches of {counted(len(batch), 'part')}, expected (images[, targets[, masks]])"
        )
    images, targets, masks = (*batch, None, None)[:3]
    targets = _target_array(targets)
    if targets is not None and np.ndim(targets) == 0 and _is_array(images):  # one class for all images
        targets = np.full(len(images), integer_of(targets, "targets"))
    return images, targets, masks


def _rows_of(
    batch: Batch,
    seen: int,
    classifier: Classifier,
    targets: Any,
    masks: Any,
    groups: Any,
    batch_size: int,
) -> _Rows:
    """Return the images of a batch, of which ``seen`` precede it in the data, with their targets."""
    pixels = images_of(batch[0], "data")
    selection = slice(seen, seen + len(pixels))
    mask = batch[2] if masks is None else masks[selection]
    classes = _classes(pixels, batch[1], targets, selection, classifier, batch_size)
    each = classes.shape[1]
    source = np.repeat(np.arange(selection.start, selection.start + len(pixels)), each)
    named = None if groups is None else np.asarray([str(name) for name in groups[selection]], dtype=np.str_)
    if each > 1 and named is None:  # maps of one image for several targets are not independent
        named = np.asarray([str(number) for number in range(selection.start, selection.start + len(pixels))])
    elif named is not None and len(named) != len(pixels):
        raise ValueError(f"groups: found {len(groups)}, expected one for each image")
    checked = None if mask is None else np.repeat(mask_of(mask, pixels), each, axis=0)
    return _Rows(
        pixels.repeat_interleave(each, dim=0) if each > 1 else pixels,
        classes.flatten(),
        source,
        checked,
        None if named is None else np.repeat(named, each),
    )


def _classes(
    pixels: Tensor, labels: Any, targets: Any, selection: slice, classifier: Classifier, batch_size: int
) -> Ints:
    """Return the explained classes of images, ``[n, T]``."""
    if isinstance(targets, str) and targets not in (LABEL, PREDICTED):
        raise ValueError(
            f"targets: found {targets!r}, valid: {LABEL}, {PREDICTED}, a class, or classes [N] or [N, T]"
        )
    if isinstance(targets, str) and targets == LABEL and labels is None:
        raise ValueError("targets: found 'label', but data has no labels; expected (images, targets)")
    if (targets is None and labels is None) or (isinstance(targets, str) and targets == PREDICTED):
        return logits(classifier, pixels, batch_size=batch_size).argmax(1).numpy()[:, None]
    values = labels if targets is None or isinstance(targets, str) else targets
    if values is targets and np.ndim(values) == 0:
        values = np.full(len(pixels), integer_of(values, "targets"))
    elif values is targets:
        values = values[selection]
    classes: npt.NDArray[Any] = _target_array(values)
    is_hot = (
        classes.ndim == 2 and classes.shape[1] == classifier.classes > 2 and bool((classes.sum(1) == 1).all())
    )
    if classes.dtype.kind not in "iu" or classes.ndim not in (1, 2) or len(classes) != len(pixels) or is_hot:
        hint = ": targets.argmax(1) of one-hot labels, logits or probabilities" if classes.ndim == 2 else ""
        hint = ": np.asarray(targets, int)" if classes.ndim == 1 and classes.dtype.kind == "f" else hint
        found = f"{classes.dtype} {list(classes.shape)} for {counted(len(pixels), 'image')}"
        expected = f"integer classes [N], or [N, T] for several of each image{hint}"
        raise ValueError(f"targets: found {found}, expected {expected}")
    chosen: Ints = classes.astype(np.int64).reshape(len(pixels), -1)
    outside = chosen[(chosen < 0) | (chosen >= classifier.classes)]
    if len(outside):
        raise ValueError(f"targets: found class {outside[0]}, expected 0 to {classifier.classes - 1}")
    return chosen


def _target_array(targets: Any) -> Any:
    """Return classes as an array; return None and names of classes in ``data`` unchanged.

    Raises:
        ValueError: rows have different lengths.
    """
    if targets is None or isinstance(targets, str):
        return targets
    try:
        return np.asarray(targets.detach().cpu() if isinstance(targets, Tensor) else targets)
    except ValueError:  # of NumPy, without the name
        expected = "integer classes [N], or [N, T] with as many for each image"
        raise ValueError(f"targets: found rows of different lengths, expected {expected}") from None
