"""The batched perturbation engine that all perturbation metrics share.

A perturbed image shows its fill at some pixels and itself elsewhere. The pixels are given by numbers, not as images:
by a span of a pixel order (``evaluate_order``) or by a function of the pass (``evaluate_masks``). Perturbed images are
created on the images' device, as many as pass through the model together, and no image is evaluated twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saliency_assay.methods.differentiate import check_logits
from saliency_assay.methods.passes import reported

Predict = Callable[[Tensor], Tensor]
"""Images ``[B, C, H, W]`` to logits ``[B, K]``; a model, or anything that predicts."""

OUTPUTS = ("probability", "logit")
LEAST_ROWS = 32  # perturbed images that go through the model together, where a batch holds fewer images


@dataclass(frozen=True)
class PerturbationBatch:
    """A batch of images as the engine perturbs it; ``perturbation_batch`` makes one."""

    predict: Predict
    pixels: Tensor  # the images, [N, H·W, C]
    fill: Tensor  # what removed pixels show, [N or 1, H·W or 1, C]
    targets: Tensor  # the class of each image whose output counts, int64 [N]
    output: str  # probability (softmax) or logit
    height: int
    width: int

    @property
    def rows(self) -> int:
        """Number of perturbed images that go through the model together."""
        return max(len(self.pixels), LEAST_ROWS)


@dataclass(frozen=True)
class Span:
    """Sets of pixels, one for each image and point: those with ``start`` ≤ rank < ``stop``, int64 ``[N, S]`` both."""

    start: Tensor
    stop: Tensor
    kept: bool = False  # whether they are all that is left of the image, rather than what is removed from it


def perturbation_batch(
    predict: Predict, images: Tensor, targets: Tensor, fill: Tensor, *, output: str = "probability"
) -> PerturbationBatch:
    """Images ``[N, C, H, W]`` in [0, 1] made ready to be perturbed with ``fill``, which broadcasts to them.

    Raises:
        ValueError: an unknown ``output``, or targets or a fill that do not fit the images.
    """
    if images.ndim != 4 or targets.shape != (len(images),) or targets.dtype != torch.int64:
        found = f"images {list(images.shape)}, targets {targets.dtype} {list(targets.shape)}"
        raise ValueError(f"{found}: expected [N, C, H, W] and int64 [N]")
    if output not in OUTPUTS:
        raise ValueError(f"output: found {output!r}, valid: {', '.join(OUTPUTS)}")
    count, channels, height, width = images.shape
    fits = fill.ndim == 4 and fill.shape[1] == channels and fill.shape[0] in (1, count)
    if not fits or tuple(fill.shape[2:]) not in ((1, 1), (height, width)):
        raise ValueError(
            f"fill: found {list(fill.shape)}, expected {list(images.shape)} or what broadcasts to it"
        )
    pixels, shown = (part.detach().permute(0, 2, 3, 1).flatten(1, 2).contiguous() for part in (images, fill))
    return PerturbationBatch(predict, pixels, shown, targets, output, height, width)


def ranks_of(saliency: Tensor) -> Tensor:
    """Return the place of each pixel when maps ``[N, H, W]`` are sorted, greatest first, int64 ``[N, H·W]`` from 0.

    Equal values stay in reading order.
    """
    order = saliency.flatten(1).argsort(dim=1, descending=True, stable=True)
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def differs(batch: PerturbationBatch) -> Tensor:
    """Return the pixels that differ from their fill, bool ``[N, H·W]``."""
    return (batch.pixels != batch.fill).any(2)


def original(batch: PerturbationBatch) -> Tensor:
    """Return the output for the unperturbed images, float64 ``[N]``."""
    nothing = torch.zeros(len(batch.pixels), 1, dtype=torch.int64, device=batch.pixels.device)
    return evaluate_order(batch, nothing.expand(-1, batch.pixels.shape[1]), [Span(nothing, nothing)])[0][:, 0]


def evaluate_order(batch: PerturbationBatch, ranks: Tensor, spans: Sequence[Span]) -> list[Tensor]:
    """Return the output when pixels are removed, or kept alone, by their place in an order: float64 ``[N, S]`` a span.

    ``ranks`` is int64 ``[N, H·W]``, a permutation of 0 … H·W − 1 for each image. With p = H·W, removing the first m
    pixels is ``Span(0, m)``, the last m ``Span(p − m, p)``, and inserting the first m ``Span(0, m, kept=True)``. Points
    that come to the same image, within a span or between spans, are evaluated once; so are the original and the fill.

    Raises:
        ValueError: ranks of another size, a span beyond the image's pixels, logits of another shape, or an output that
            is not finite.
    """
    count, pixels = batch.pixels.shape[:2]
    if ranks.shape != (count, pixels):
        raise ValueError(
            f"ranks: found {list(ranks.shape)}, expected [{count}, {pixels}], one for each pixel"
        )
    keys = torch.cat([_keys(span, count, pixels).flatten() for span in spans])
    # Sorted, so that the rows of an image lie together.
    asked, where = torch.unique(keys, return_inverse=True)
    found = asked.new_empty(len(asked), dtype=torch.float64)
    narrow = ranks.to(torch.int32)
    for first in reported(len(asked), batch.rows, "perturbed images"):
        part = slice(first, first + batch.rows)
        rest, stop = _split(asked[part], pixels + 1)
        rest, start = _split(rest, pixels + 1)
        image, outside = _split(rest, 2)
        rank = narrow[image]
        inside = (rank >= start[:, None]) & (rank < stop[:, None])
        found[part] = _answers(batch, image, inside ^ (outside == 1)[:, None])
    _check_finite(batch, found)
    sizes = [span.start.numel() for span in spans]
    parts = found[where].split(sizes)
    return [part.reshape(span.start.shape) for part, span in zip(parts, spans, strict=True)]


def evaluate_masks(
    batch: PerturbationBatch, passes: int, cover: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return the output for ``passes`` perturbed copies of every image, float64 ``[N, passes]``.

    ``cover(image, number)`` says which pixels show the fill, bool ``[rows, H·W]``, for rows of int64 ``[rows]``: the
    index of the image in the batch, and the number of the pass from 0.

    Raises:
        ValueError: logits of another shape, or an output that is not finite.
    """
    count = len(batch.pixels)
    found = torch.empty(count * passes, dtype=torch.float64, device=batch.pixels.device)
    for first in reported(len(found), batch.rows, "perturbed images"):
        pairs = torch.arange(first, min(first + batch.rows, len(found)), device=found.device)
        image, number = _split(pairs, passes)
        found[first : first + batch.rows] = _answers(batch, image, cover(image, number))
    _check_finite(batch, found)
    return found.reshape(count, passes)


def read(logits: Tensor, targets: Tensor, output: str) -> Tensor:
    """Return the ``output`` of each row's target, float64 ``[rows]``, of logits ``[rows, K]``.

    Probabilities are computed in float64: float32 has no numbers between 1 − 6e-8 and 1.
    """
    logits = logits.double()
    values = logits.softmax(1) if output == "probability" else logits
    return values.gather(1, targets[:, None])[:, 0]


def _keys(span: Span, count: int, pixels: int) -> Tensor:
    """One number for each image and point, the same for the same perturbed image."""
    start, stop = span.start, span.stop
    if start.shape != stop.shape or start.ndim != 2 or len(start) != count:
        raise ValueError(
            f"span: found {list(start.shape)} and {list(stop.shape)}, expected [{count}, S] both"
        )
    if bool((start < 0).any()) or bool((stop > pixels).any()):
        found = f"{int(start.min())} to {int(stop.max())}"
        raise ValueError(f"span: found {found}, expected within 0 to {pixels}, the pixels of an image")
    outside = torch.full_like(start, int(span.kept))
    empty = start >= stop
    start, stop = start.masked_fill(empty, 0), stop.masked_fill(empty, 0)
    if span.kept:  # what lies outside a span that reaches an end of the order is a span
        first, last = start == 0, stop == pixels
        at_end = first | last
        begins = torch.where(first, stop, torch.zeros_like(start))
        ends = torch.where(first, torch.full_like(stop, pixels), start)
        start, stop = torch.where(at_end, begins, start), torch.where(at_end, ends, stop)
        outside = outside.masked_fill(at_end, 0)
        empty = start >= stop
        start, stop = start.masked_fill(empty, 0), stop.masked_fill(empty, 0)
    image = torch.arange(len(start), device=start.device)[:, None]
    return ((image * 2 + outside) * (pixels + 1) + start) * (pixels + 1) + stop


def _split(keys: Tensor, size: int) -> tuple[Tensor, Tensor]:
    return keys.div(size, rounding_mode="floor"), keys.remainder(size)


def _answers(batch: PerturbationBatch, image: Tensor, removed: Tensor) -> Tensor:
    """Return the output of rows in which ``removed``, bool ``[rows, H·W]``, shows the fill."""
    fill = batch.fill if len(batch.fill) == 1 else batch.fill[image]
    rows = torch.where(removed[:, :, None], fill, batch.pixels[image])
    images = rows.reshape(len(rows), batch.height, batch.width, -1).permute(0, 3, 1, 2)
    with torch.no_grad():
        logits = batch.predict(images)
    check_logits(logits, images)
    return read(logits, batch.targets[image], batch.output)


def _check_finite(batch: PerturbationBatch, found: Tensor) -> None:
    broken = int((~found.isfinite()).sum())  # the one wait for the device
    if broken:
        raise ValueError(
            f"predict: the {batch.output} of {broken} of {found.numel()} perturbed images is NaN or infinite, "
            f"expected finite values"
        )
