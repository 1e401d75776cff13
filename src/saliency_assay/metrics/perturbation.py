"""The batched perturbation engine that all perturbation metrics share.

A perturbed image shows its fill at some pixels and the original elsewhere. These pixels are represented by numbers, not
by images: by a span of a pixel order (``evaluate_order``) or by a function of the pass (``evaluate_masks``). Perturbed
images are created on the images' device, one model batch at a time. ``evaluate_order`` evaluates no image twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saliency_assay.methods.differentiate import Predict as Predict
from saliency_assay.methods.differentiate import check_logits, check_several_outputs
from saliency_assay.methods.passes import reported
from saliency_assay.models.classifier import is_predicted, probabilities

OUTPUTS = ("probability", "logit", "accuracy")
LEAST_ROWS = 32  # smallest model batch of perturbed images, however few images are scored together


@dataclass(frozen=True)
class PerturbationBatch:
    """A batch of images, ready to be perturbed; ``perturbation_batch`` creates one."""

    predict: Predict
    pixels: Tensor  # the images, [N, H·W, C]
    fill: Tensor  # values of removed pixels, [N or 1, H·W or 1, C]
    targets: Tensor  # the class of each image whose output is evaluated, int64 [N]
    output: str  # probability, logit, or accuracy (1 or 0)
    height: int
    width: int

    @property
    def rows(self) -> int:
        """Return the number of perturbed images in one model batch."""
        return max(len(self.pixels), LEAST_ROWS)


@dataclass(frozen=True)
class Span:
    """Pixels to perturb, for each image and point: those with ``start`` ≤ rank < ``stop``, int64 ``[N, S]`` both."""

    start: Tensor
    stop: Tensor
    kept: bool = False  # True if these pixels are kept and all others removed, False if these are removed


def perturbation_batch(
    predict: Predict, images: Tensor, targets: Tensor, fill: Tensor, *, output: str = "probability"
) -> PerturbationBatch:
    """Prepare images ``[N, C, H, W]`` in [0, 1] to be perturbed with ``fill``, which broadcasts to them.

    Raises:
        ValueError: unknown ``output``, or targets or a fill that do not fit the images.
    """
    if images.ndim != 4 or targets.shape != (len(images),) or targets.dtype != torch.int64:
        actual = f"images {list(images.shape)}, targets {targets.dtype} {list(targets.shape)}"
        raise ValueError(f"{actual}: expected [N, C, H, W] and int64 [N]")
    if output not in OUTPUTS:
        raise ValueError(f"output: found {output!r}, valid: {', '.join(OUTPUTS)}")
    count, channels, height, width = images.shape
    fits = fill.ndim == 4 and fill.shape[1] == channels and fill.shape[0] in (1, count)
    if not fits or tuple(fill.shape[2:]) not in ((1, 1), (height, width)):
        raise ValueError(
            f"fill: found {list(fill.shape)}, expected {list(images.shape)} or a shape that broadcasts to it"
        )
    pixels, fill_pixels = (
        values.detach().permute(0, 2, 3, 1).flatten(1, 2).contiguous() for values in (images, fill)
    )
    return PerturbationBatch(predict, pixels, fill_pixels, targets, output, height, width)


def ranks_of(saliency: Tensor) -> Tensor:
    """Return the rank of each pixel of maps ``[N, H, W]``, the largest value first, int64 ``[N, H·W]`` from 0.

    Equal values stay in reading order.
    """
    order = saliency.flatten(1).argsort(dim=1, descending=True, stable=True)
    ranks = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, ranks)


def differs(batch: PerturbationBatch) -> Tensor:
    """Return True for pixels that differ from their fill in any channel, bool ``[N, H·W]``."""
    return (batch.pixels != batch.fill).any(2)


def original(batch: PerturbationBatch) -> Tensor:
    """Return the output for the unperturbed images, float64 ``[N]``."""
    zero = torch.zeros(len(batch.pixels), 1, dtype=torch.int64, device=batch.pixels.device)
    return evaluate_order(batch, zero.expand(-1, batch.pixels.shape[1]), [Span(zero, zero)])[0][:, 0]


def evaluate_order(batch: PerturbationBatch, ranks: Tensor, spans: Sequence[Span]) -> list[Tensor]:
    """Evaluate the output without, or with only, spans of pixels in an order: float64 ``[N, S]`` for each span.

    ``ranks`` is int64 ``[N, H·W]``, a permutation of 0 … H·W − 1 for each image. With p = H·W, removing the first m
    pixels is ``Span(0, m)``, the last m ``Span(p − m, p)``, and inserting the first m ``Span(0, m, kept=True)``. Points
    with the same perturbed image, within a span or between spans, are evaluated once; so are the original and the fill.

    Raises:
        ValueError: ranks of a wrong size, a span beyond the image's pixels, logits of a wrong shape, or an output that
            is not finite.
    """
    count, pixels = batch.pixels.shape[:2]
    if ranks.shape != (count, pixels):
        raise ValueError(
            f"ranks: found {list(ranks.shape)}, expected [{count}, {pixels}], one for each pixel"
        )
    keys = torch.cat([_keys(span, count, pixels).flatten() for span in spans])
    outside = torch.stack([((span.start < 0) | (span.stop > pixels)).any() for span in spans])
    if bool(outside.any()):  # once for all spans, since it waits for a GPU
        least, most = (
            min(int(span.start.min()) for span in spans),
            max(int(span.stop.max()) for span in spans),
        )
        raise ValueError(
            f"span: found {least} to {most}, expected within 0 to {pixels}, the pixels of an image"
        )
    # unique sorts the keys, so the rows of an image are adjacent.
    unique_keys, inverse = torch.unique(keys, return_inverse=True)
    outputs = unique_keys.new_empty(len(unique_keys), dtype=torch.float64)
    # Gathering [rows, H·W] ranks is bound by memory bandwidth, and int32 needs half of it.
    ranks32 = ranks.to(torch.int32)
    for first in reported(len(unique_keys), batch.rows, "perturbed images"):
        rows = slice(first, first + batch.rows)
        rest, stop = _split(unique_keys[rows], pixels + 1)
        rest, start = _split(rest, pixels + 1)
        image, outside = _split(rest, 2)
        rank = ranks32[image]
        inside = (rank >= start[:, None]) & (rank < stop[:, None])
        outputs[rows] = _outputs(batch, image, inside ^ (outside == 1)[:, None])
    _check_finite(batch, outputs)
    sizes = [span.start.numel() for span in spans]
    by_span = outputs[inverse].split(sizes)
    return [values.reshape(span.start.shape) for values, span in zip(by_span, spans, strict=True)]


def evaluate_masks(
    batch: PerturbationBatch, passes: int, cover: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return the output for ``passes`` perturbed copies of every image, float64 ``[N, passes]``.

    ``cover(image, number)`` returns the pixels that show the fill, bool ``[rows, H·W]``. Its arguments are int64
    ``[rows]``: the index of the image in the batch, and the number of the pass from 0.

    Raises:
        ValueError: logits of a wrong shape, or an output that is not finite.
    """
    count = len(batch.pixels)
    outputs = torch.empty(count * passes, dtype=torch.float64, device=batch.pixels.device)
    for first in reported(len(outputs), batch.rows, "perturbed images"):
        pairs = torch.arange(first, min(first + batch.rows, len(outputs)), device=outputs.device)
        image, number = _split(pairs, passes)
        outputs[first : first + batch.rows] = _outputs(batch, image, cover(image, number))
    _check_finite(batch, outputs)
    return outputs.reshape(count, passes)


def read(predict: Predict, logits: Tensor, targets: Tensor, output: str) -> Tensor:
    """Return the ``output`` of each row's target, float64 ``[rows]``, from logits ``[rows, K]`` of ``predict``.

    Probabilities are computed in float64: float32 has no numbers between 1 − 6e-8 and 1. ``accuracy`` is 1 if the
    target is predicted, else 0.

    Raises:
        ValueError: neither can vary, because the network has a single logit.
    """
    check_several_outputs(logits, output)
    if output == "accuracy":
        return is_predicted(predict, logits, targets).double()
    logits = logits.double()
    values = probabilities(predict, logits) if output == "probability" else logits
    return values.gather(1, targets[:, None])[:, 0]


def _keys(span: Span, count: int, pixels: int) -> Tensor:
    """Encode each image and point as one integer ``[N, S]``, equal for equal perturbed images."""
    start, stop = span.start, span.stop
    if start.shape != stop.shape or start.ndim != 2 or len(start) != count:
        raise ValueError(
            f"span: found {list(start.shape)} and {list(stop.shape)}, expected [{count}, S] both"
        )
    # 1 if the pixels outside the span show the fill, 0 if those inside do.
    outside = torch.full_like(start, int(span.kept))
    # All empty spans are the same perturbed image and get the same key.
    empty = start >= stop
    start, stop = start.masked_fill(empty, 0), stop.masked_fill(empty, 0)
    if span.kept:  # the complement of a span that reaches an end of the order is a span of removed pixels
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


def _outputs(batch: PerturbationBatch, image: Tensor, removed: Tensor) -> Tensor:
    """Return the output ``[rows]`` for copies of ``image`` with ``removed``, bool ``[rows, H·W]``, showing the fill."""
    fill = batch.fill if len(batch.fill) == 1 else batch.fill[image]
    rows = torch.where(removed[:, :, None], fill, batch.pixels[image])
    images = rows.reshape(len(rows), batch.height, batch.width, -1).permute(0, 3, 1, 2)
    with torch.no_grad():
        logits = batch.predict(images)
    check_logits(logits, images)
    return read(batch.predict, logits, batch.targets[image], batch.output)


def _check_finite(batch: PerturbationBatch, outputs: Tensor) -> None:
    non_finite = int((~outputs.isfinite()).sum())  # after all batches, since int() waits for the GPU
    if non_finite:
        raise ValueError(
            f"predict: the {batch.output} of {non_finite} of {outputs.numel()} perturbed images is NaN or infinite, "
            f"expected finite values"
        )
