"""Changes of an image that leave a model's output as it is: BAM's δ (Yang & Kim, 2019, section 4.4, appendix A)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saliency_assay.data.selection import explained_images
from saliency_assay.data.splits import TEST, Ints, Split
from saliency_assay.methods.engine import frozen
from saliency_assay.methods.passes import per_row, reported
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32

log = logging.getLogger(__name__)

PROTOCOLS = ("printed", "released")
STEP_RULES = ("constant", "polyak")
WHITE = 255


@dataclass(frozen=True)
class Descent:
    """How δ is sought, in levels of 0–255.

    Each image's loss is L = ‖f(x + δ) − f(x)‖₂ − η₁ ‖δ‖₂ + η₂ Σ[(x + δ − 255)⁺ + (−x − δ)⁺] on logits, with δ zero
    outside the mask; the paper's η₃ only discourages that.

    Raises:
        ValueError: a value out of range, or an unknown name.
    """

    steps: int = 300
    step_size: float = 500.0
    """λ."""
    norm_weight: float = 0.01
    """η₁."""
    range_weight: float = 0.01
    """η₂."""
    protocol: str = "printed"
    """``printed``: x + δ starts as the composite; ``released``: the object's pixels are added to x and clipped."""
    step_rule: str = "polyak"
    """``constant``: the paper's, δ ← δ − λ ∂L/∂δ, the last one clipped and rounded at the end. ``polyak``: the first
    term's step is ‖f(x + δ) − f(x)‖ / ‖its gradient‖² (Polyak, 1969, for a minimum known to be 0), λ is that of the
    others; every step starts from the clipped and rounded image, and of those the one with the least change of the
    output is kept."""
    tolerance: float = 0.01
    """Under ``polyak`` an image rests once ‖f(x + δ) − f(x)‖ is at most this share of ‖f(x)‖."""

    def __post_init__(self) -> None:
        for name, valid in (("protocol", PROTOCOLS), ("step_rule", STEP_RULES)):
            if getattr(self, name) not in valid:
                raise ValueError(f"{name}: found {getattr(self, name)!r}, valid: {', '.join(valid)}")
        for name in ("steps", "step_size", "norm_weight", "range_weight", "tolerance"):
            least = 1 if name == "steps" else 0
            if not getattr(self, name) >= least:
                raise ValueError(f"{name}: found {getattr(self, name)}, expected at least {least}")


class Changed(NamedTuple):
    """What was found for each of B images; norms are float32 and measured on the 8-bit image."""

    image: Tensor
    """x + δ, uint8 ``[B, C, H, W]``."""
    output_norm: Tensor
    """‖f(x)‖₂ in logits ``[B]``."""
    output_change: Tensor
    """‖f(x + δ) − f(x)‖₂ in logits ``[B]``."""
    delta_norm: Tensor
    """‖δ‖₂ in levels of 0–255 ``[B]``."""
    start_distance: Tensor
    """‖δ − δ₀‖₂ in levels of 0–255 ``[B]``."""
    convergence: Tensor
    """‖f(x + δ_t) − f(x)‖₂ for t = 0 … steps ``[B, steps + 1]``: of δ_t itself under ``constant``, of the 8-bit
    image under ``polyak``, where an image that rests keeps its value."""


def change_images(
    classifier: Classifier, images: Tensor, composites: Tensor, masks: Tensor, descent: Descent
) -> Changed:
    """Change each image where its mask is, from the object's pixels on, so that the logits stay as they are.

    One forward and backward pass a step, of the images of the batch that do not rest yet. No image's path depends on
    the others of its batch, beyond the rounding of sums. The classifier's mode, parameters and their gradients are as
    before.

    Args:
        classifier: f, on the images' device.
        images: x, uint8 ``[B, C, H, W]``.
        composites: x with the object pasted, uint8 ``[B, C, H, W]``.
        masks: where the object is, bool ``[B, H, W]``.
        descent: its parameters.

    Raises:
        ValueError: types or shapes that do not fit, or logits that are not finite.
    """
    _check(images, composites, masks)
    levels = images.to(classifier.mean.dtype, memory_format=torch.channels_last)
    with evaluating(classifier), frozen(classifier), exact_float32():
        with torch.no_grad():
            wanted = classifier(levels / WHITE)
        start = _start(levels, composites, masks[:, None], descent.protocol)
        found, convergence = _descend(classifier, levels, start, masks[:, None], wanted, descent)
        with torch.no_grad():
            change = torch.linalg.vector_norm(classifier(found / WHITE) - wanted, dim=1)
    broken = int((~convergence.isfinite()).any(1).sum())
    if broken:
        raise ValueError(f"logits of {broken} of {len(images)} images, or of changes of them, are not finite")
    return Changed(
        image=found.to(torch.uint8),
        output_norm=torch.linalg.vector_norm(wanted, dim=1).float(),
        output_change=change.float(),
        delta_norm=_norm(found - levels).float(),
        start_distance=_norm(found - levels - start).float(),
        convergence=convergence.float(),
    )


def change_all(
    classifier: Classifier, images: Any, composites: Any, masks: Any, descent: Descent, *, batch_size: int
) -> dict[str, np.ndarray]:
    """The fields of ``Changed`` of all images, ``batch_size`` at a time, as arrays ``[N, …]``.

    ``images``, ``composites`` and ``masks`` are as ``change_images`` takes them, or what is sliced to such arrays: a
    selection of a store.

    Raises:
        ValueError: no image, a batch size below 1, or see ``change_images``.
    """
    if not len(images) or batch_size < 1:
        raise ValueError(
            f"images, batch_size: found {len(images)}, {batch_size}, expected at least 1 of each"
        )
    parts = []
    for first in range(0, len(images), batch_size):
        here = slice(first, first + batch_size)
        given = (torch.tensor(np.asarray(of[here])) for of in (images, composites, masks))
        x, pasted, mask = (each.to(classifier.device) for each in given)
        parts.append(change_images(classifier, x, pasted, mask, descent))
        log.info("%d of %d images changed", min(here.stop, len(images)), len(images))
    return {
        name: torch.cat([getattr(part, name) for part in parts]).cpu().numpy() for name in Changed._fields
    }


def _start(levels: Tensor, composites: Tensor, mask: Tensor, protocol: str) -> Tensor:
    """δ₀ ``[B, C, H, W]``, with x + δ₀ in 0–255."""
    pasted = composites.to(levels.dtype)
    begun = pasted if protocol == "printed" else (levels + pasted).clamp(max=WHITE)
    return torch.where(mask, begun - levels, 0.0)


def _descend(
    classifier: Classifier, levels: Tensor, start: Tensor, mask: Tensor, wanted: Tensor, descent: Descent
) -> tuple[Tensor, Tensor]:
    """The image that is kept, in whole levels of 0–255, and the convergence ``[B, steps + 1]``."""
    bounded = descent.step_rule == "polyak"
    norm = torch.linalg.vector_norm(wanted, dim=1)
    rest = descent.tolerance * norm if bounded else torch.full_like(norm, -1)
    delta, kept, least = start.clone(), levels.clone(), torch.full_like(rest, torch.inf)
    changes = levels.new_empty(len(levels), descent.steps + 1)
    at = torch.arange(len(levels), device=levels.device)  # those that move
    for step in reported(descent.steps + 1, 1, f"steps of {len(levels)} images"):
        values = levels[at] + delta[at]
        seen = _whole(values) if bounded else values
        with torch.enable_grad():
            pixels = (seen / WHITE).requires_grad_()
            change = torch.linalg.vector_norm(classifier(pixels) - wanted[at], dim=1)
        found = change.detach()
        changes[at, step:] = found[:, None]
        better = found < least[at]
        kept[at[better]], least[at[better]] = seen[better], found[better]
        moves = found > rest[at]
        if step == descent.steps or not moves.any():
            break
        slope = torch.autograd.grad(change.sum(), pixels)[0] / WHITE
        slope = torch.where(mask[at], slope, 0.0)
        others = descent.step_size * torch.where(
            mask[at], _penalty_slope(levels[at], delta[at], descent), 0.0
        )
        if bounded:
            following = delta[at] - _polyak(found, slope) - others
            delta[at] = (levels[at] + following).clamp(0, WHITE) - levels[at]
        else:
            delta[at] = delta[at] - descent.step_size * slope - others
        at = at[moves]
    return (kept if bounded else _whole(levels + delta)), changes


def _polyak(change: Tensor, slope: Tensor) -> Tensor:
    """(‖Δf‖ / ‖g‖²) g, by way of the unit vector: ‖g‖² is often too small for float32; 0 where g is."""
    length = per_row(_norm(slope))
    return torch.where(length > 0, per_row(change) / length * (slope / length), 0.0)


def _penalty_slope(levels: Tensor, delta: Tensor, descent: Descent) -> Tensor:
    """The derivative of −η₁ ‖δ‖₂ + η₂ Σ[(x + δ − 255)⁺ + (−x − δ)⁺] with respect to δ; 0 where it has none."""
    length = per_row(_norm(delta))
    outward = torch.where(length > 0, delta / length, 0.0)
    values = levels + delta
    outside = (values > WHITE).to(delta.dtype) - (values < 0).to(delta.dtype)
    return descent.range_weight * outside - descent.norm_weight * outward


def _whole(values: Tensor) -> Tensor:
    return values.clamp(0, WHITE).round()


def _norm(values: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(values, dim=(1, 2, 3))
    return found


def _check(images: Tensor, composites: Tensor, masks: Tensor) -> None:
    for name, given in (("images", images), ("composites", composites)):
        if given.dtype != torch.uint8 or given.ndim != 4 or given.shape != images.shape:
            found = f"{str(given.dtype).removeprefix('torch.')} {list(given.shape)}"
            raise ValueError(f"{name}: found {found}, expected uint8 [B, C, H, W], the same for both")
    expected = [len(images), *images.shape[2:]]
    if masks.dtype != torch.bool or list(masks.shape) != expected:
        found = f"{str(masks.dtype).removeprefix('torch.')} {list(masks.shape)}"
        raise ValueError(f"masks: found {found}, expected bool {expected}")


def chosen_images(
    split: Split, labels: Mapping[str, Ints], objects: Sequence[str], wanted: str, limit: int
) -> Ints:
    """Indices of at most ``limit`` test images with the object ``wanted``, balanced over scenes, in order of choice.

    Fewer than ``limit`` are logged.

    Args:
        split: ``[N]``.
        labels: ``label_object`` and ``label_scene``, ``[N]`` each.
        objects: names of the objects.
        wanted: one of them.
        limit: at least 1.

    Raises:
        ValueError: another object, or one that no test image has.
    """
    if wanted not in objects:
        raise ValueError(f"common_object: found {wanted!r}, valid: {', '.join(objects)}")
    order = explained_images(split, list(labels.values()))
    found: Ints = order[labels["label_object"][order] == objects.index(wanted)][:limit]
    if not len(found):
        raise ValueError(f"images: found no test image of {wanted!r}, expected up to {limit}")
    if len(found) < limit:
        log.warning("images: %d test images of %r, fewer than %d: all are taken", len(found), wanted, limit)
    return found


def paired(
    images: np.ndarray, columns: Mapping[str, np.ndarray], source: Ints, found: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The arrays ``[2n, …]`` of the data store: first the n originals, then the n changed images in the same order.

    ``image``; ``changed``, False and then True; ``source``, indices into the set of the originals; ``columns`` twice;
    ``split``, all of them test images; and the norms and the convergence of ``found``, 0 for originals.

    Args:
        images: the originals, uint8 ``[n, C, H, W]``.
        columns: mask and labels of each, ``[n, …]``.
        source: ``[n]``.
        found: as ``change_all`` gives it.
    """
    count = len(images)
    measured = {name: values for name, values in found.items() if name != "image"}
    return {
        "image": np.concatenate([images, found["image"]]),
        **{name: np.concatenate([values, values]) for name, values in columns.items()},
        "split": np.full(2 * count, TEST, dtype=np.uint8),
        "source": np.concatenate([source, source]),
        "changed": np.arange(2 * count) >= count,
        **{name: np.concatenate([np.zeros_like(values), values]) for name, values in measured.items()},
    }
