"""Optimization of patches that do not change a model's output: BAM's δ (Yang & Kim, 2019, 4.4, appendix A)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saliency_assay.data.selection import explained_images
from saliency_assay.data.splits import TEST, Ints, Split
from saliency_assay.methods.differentiate import gradient_of
from saliency_assay.methods.engine import frozen
from saliency_assay.methods.passes import per_row, reported
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.registry.limits import Limits, NonNegativeFloat, PositiveInt

log = logging.getLogger(__name__)

WHITE = 255


@dataclass(frozen=True)
class Descent:
    """Settings of the optimization of δ, in levels of 0–255.

    The loss of each image is L = ‖f(x + δ) − f(x)‖₂ − η₁ ‖δ‖₂ + η₂ Σ[(x + δ − 255)⁺ + (−x − δ)⁺], where f are logits
    and δ is zero outside the mask. The paper's η₃ penalizes values outside the mask instead of excluding them.

    Raises:
        ValueError: a value out of range, or an unknown name.
    """

    steps: PositiveInt = 300
    step_size: NonNegativeFloat = 500.0
    """λ."""
    norm_weight: NonNegativeFloat = 0.01
    """η₁."""
    range_weight: NonNegativeFloat = 0.01
    """η₂."""
    protocol: Annotated[str, Limits(choices=("printed", "released"))] = "printed"
    """Initial x + δ. ``printed``, as in the paper: the composite; ``released``, as in its code: x plus the object's
    pixels, clipped."""
    step_rule: Annotated[str, Limits(choices=("constant", "polyak"))] = "polyak"
    """``constant``: the paper's rule, δ ← δ − λ ∂L/∂δ; only the last image is clipped and rounded. ``polyak``: for the
    first term, the step size is ‖f(x + δ) − f(x)‖ / ‖its gradient‖² (Polyak, 1969, for a minimum known to be 0); for
    the other terms, it is λ. Every step is evaluated on the clipped and rounded image, and the result is the image with
    the smallest change of the output."""
    tolerance: NonNegativeFloat = 0.01
    """With ``polyak``, the optimization of an image stops once ‖f(x + δ) − f(x)‖ is at most this share of ‖f(x)‖."""


class Changed(NamedTuple):
    """Optimized patches of B images; norms are float32 and computed for the 8-bit images."""

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
    """‖f(x + δ_t) − f(x)‖₂ for t = 0 … steps ``[B, steps + 1]``: of δ_t itself with ``constant``, of the 8-bit image
    with ``polyak``. The value stays constant after the optimization of an image has stopped."""


def change_images(
    classifier: Classifier, images: Tensor, composites: Tensor, masks: Tensor, descent: Descent
) -> Changed:
    """Optimize δ within each image's mask, starting from the object's pixels, so that the logits hardly change.

    Each step is one forward and one backward pass of the images of the batch that have not converged. The result of an
    image does not depend on the rest of its batch, up to the rounding of sums. The classifier's mode, parameters and
    gradients are restored.

    Args:
        classifier: f, on the images' device.
        images: x, uint8 ``[B, C, H, W]``.
        composites: x with the object pasted, uint8 ``[B, C, H, W]``.
        masks: the object's pixels, bool ``[B, H, W]``.
        descent: settings of the optimization.

    Raises:
        ValueError: types or shapes do not match, or logits are not finite.
    """
    _check_shapes(images, composites, masks)
    levels = images.to(classifier.mean.dtype, memory_format=torch.channels_last)
    with evaluating(classifier), frozen(classifier), exact_float32():
        with torch.no_grad():
            logits = classifier(levels / WHITE)
        start = _initial_delta(levels, composites, masks[:, None], descent.protocol)
        changed_levels, convergence = _descend(classifier, levels, start, masks[:, None], logits, descent)
        with torch.no_grad():
            change = torch.linalg.vector_norm(classifier(changed_levels / WHITE) - logits, dim=1)
    nonfinite = int((~convergence.isfinite()).any(1).sum())
    if nonfinite:
        raise ValueError(
            f"logits of {nonfinite} of {len(images)} images, original or changed, are not finite"
        )
    return Changed(
        image=changed_levels.to(torch.uint8),
        output_norm=torch.linalg.vector_norm(logits, dim=1).float(),
        output_change=change.float(),
        delta_norm=_image_norms(changed_levels - levels).float(),
        start_distance=_image_norms(changed_levels - levels - start).float(),
        convergence=convergence.float(),
    )


def change_all(
    classifier: Classifier, images: Any, composites: Any, masks: Any, descent: Descent, *, batch_size: int
) -> dict[str, np.ndarray]:
    """Return the fields of ``Changed`` of all images, ``batch_size`` at a time, as arrays ``[N, …]``.

    ``images``, ``composites`` and ``masks`` are as in ``change_images``, or objects whose slices are such arrays, such
    as a selection of a store.

    Raises:
        ValueError: no image, a batch size below 1, or as in ``change_images``.
    """
    if not len(images) or batch_size < 1:
        raise ValueError(
            f"images, batch_size: found {len(images)}, {batch_size}, expected at least 1 of each"
        )
    batch_results = []
    for first in range(0, len(images), batch_size):
        batch = slice(first, first + batch_size)
        arrays = (torch.tensor(np.asarray(array[batch])) for array in (images, composites, masks))
        x, composite, mask = (tensor.to(classifier.device) for tensor in arrays)
        batch_results.append(change_images(classifier, x, composite, mask, descent))
        log.info("%d of %d images changed", min(batch.stop, len(images)), len(images))
    return {
        name: torch.cat([getattr(result, name) for result in batch_results]).cpu().numpy()
        for name in Changed._fields
    }


def _initial_delta(levels: Tensor, composites: Tensor, mask: Tensor, protocol: str) -> Tensor:
    """Return δ₀ ``[B, C, H, W]``, with x + δ₀ in 0–255."""
    pasted = composites.to(levels.dtype)
    start_levels = pasted if protocol == "printed" else (levels + pasted).clamp(max=WHITE)
    return torch.where(mask, start_levels - levels, 0.0)


def _descend(
    classifier: Classifier, levels: Tensor, start: Tensor, mask: Tensor, logits: Tensor, descent: Descent
) -> tuple[Tensor, Tensor]:
    """Return the changed image in integer levels of 0–255, and the convergence ``[B, steps + 1]``."""
    polyak = descent.step_rule == "polyak"
    norm = torch.linalg.vector_norm(logits, dim=1)
    # With ``constant`` no image stops early: a distance is never below −1.
    rest_threshold = descent.tolerance * norm if polyak else torch.full_like(norm, -1)
    delta, best_levels, best_change = (
        start.clone(),
        levels.clone(),
        torch.full_like(rest_threshold, torch.inf),
    )
    changes = levels.new_empty(len(levels), descent.steps + 1)
    active = torch.arange(len(levels), device=levels.device)  # images that have not converged
    for step in reported(descent.steps + 1, 1, f"steps of {len(levels)} images"):
        values = levels[active] + delta[active]
        evaluated = _to_8bit_levels(values) if polyak else values
        with torch.enable_grad():
            pixels = (evaluated / WHITE).requires_grad_()
            change = torch.linalg.vector_norm(classifier(pixels) - logits[active], dim=1)
        distance = change.detach()
        changes[active, step:] = distance[:, None]  # also for later steps, in case the image stops here
        better = distance < best_change[active]
        best_levels[active[better]], best_change[active[better]] = evaluated[better], distance[better]
        unconverged = distance > rest_threshold[active]
        if step == descent.steps or not unconverged.any():
            break
        # The sum gives each image's own gradient, because images do not affect each other's logits. The division
        # converts it from pixels in [0, 1] to levels.
        gradient = gradient_of(change.sum(), pixels) / WHITE
        gradient = torch.where(mask[active], gradient, 0.0)
        penalty_step = descent.step_size * torch.where(
            mask[active], _penalty_gradient(levels[active], delta[active], descent), 0.0
        )
        if polyak:
            next_delta = delta[active] - _polyak_step(distance, gradient) - penalty_step
            delta[active] = (levels[active] + next_delta).clamp(0, WHITE) - levels[active]
        else:
            delta[active] = delta[active] - descent.step_size * gradient - penalty_step
        active = active[unconverged]
    return (best_levels if polyak else _to_8bit_levels(levels + delta)), changes


def _polyak_step(change: Tensor, gradient: Tensor) -> Tensor:
    """Compute (‖Δf‖ / ‖g‖²) g as (‖Δf‖ / ‖g‖) (g / ‖g‖), because ‖g‖² often underflows float32; 0 where g is 0."""
    length = per_row(_image_norms(gradient))
    return torch.where(length > 0, per_row(change) / length * (gradient / length), 0.0)


def _penalty_gradient(levels: Tensor, delta: Tensor, descent: Descent) -> Tensor:
    """Return the derivative of −η₁ ‖δ‖₂ + η₂ Σ[(x + δ − 255)⁺ + (−x − δ)⁺] with respect to δ; 0 where undefined."""
    length = per_row(_image_norms(delta))
    unit_delta = torch.where(length > 0, delta / length, 0.0)
    values = levels + delta
    outside = (values > WHITE).to(delta.dtype) - (values < 0).to(delta.dtype)
    return descent.range_weight * outside - descent.norm_weight * unit_delta


def _to_8bit_levels(values: Tensor) -> Tensor:
    """Clip and round to integer levels of 0–255."""
    return values.clamp(0, WHITE).round()


def _image_norms(values: Tensor) -> Tensor:
    """Return the Euclidean norm of each image, ``[B]``."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=(1, 2, 3))
    return norms


def _check_shapes(images: Tensor, composites: Tensor, masks: Tensor) -> None:
    for name, tensor in (("images", images), ("composites", composites)):
        if tensor.dtype != torch.uint8 or tensor.ndim != 4 or tensor.shape != images.shape:
            actual = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
            raise ValueError(f"{name}: found {actual}, expected uint8 [B, C, H, W], the same for both")
    expected = [len(images), *images.shape[2:]]
    if masks.dtype != torch.bool or list(masks.shape) != expected:
        actual = f"{str(masks.dtype).removeprefix('torch.')} {list(masks.shape)}"
        raise ValueError(f"masks: found {actual}, expected bool {expected}")


def select_images(
    split: Split, labels: Mapping[str, Ints], objects: Sequence[str], common_object: str, limit: int
) -> Ints:
    """Return indices of at most ``limit`` test images of the common object, balanced over scenes.

    They are in the order of selection. If there are fewer than ``limit``, a warning is logged.

    Args:
        split: codes of ``data.splits``, ``[N]``.
        labels: ``label_object`` and ``label_scene``, ``[N]`` each.
        objects: names of the object classes.
        common_object: one of ``objects``.
        limit: largest number of images, at least 1.

    Raises:
        ValueError: the object is unknown, or no test image contains it.
    """
    if common_object not in objects:
        raise ValueError(f"common_object: found {common_object!r}, valid: {', '.join(objects)}")
    order = explained_images(split, list(labels.values()))
    indices: Ints = order[labels["label_object"][order] == objects.index(common_object)][:limit]
    if not len(indices):
        raise ValueError(f"images: found no test image of {common_object!r}, expected up to {limit}")
    if len(indices) < limit:
        log.warning(
            "images: found %d test images of %r, fewer than the requested %d; all are used",
            len(indices),
            common_object,
            limit,
        )
    return indices


def paired(
    images: np.ndarray, columns: Mapping[str, np.ndarray], source: Ints, changes: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the arrays ``[2n, …]`` of a data store of n original images, followed by the n changed ones.

    The arrays are ``image``; ``changed``, False and then True; ``source``, indices into the set of the originals;
    ``columns``, repeated; ``split``, test for all images; and norms and convergence of ``changes``, 0 for originals.

    Args:
        images: the originals, uint8 ``[n, C, H, W]``.
        columns: mask and labels of each image, ``[n, …]``.
        source: ``[n]``.
        changes: from ``change_all``.
    """
    count = len(images)
    measured = {name: values for name, values in changes.items() if name != "image"}
    return {
        "image": np.concatenate([images, changes["image"]]),
        **{name: np.concatenate([values, values]) for name, values in columns.items()},
        "split": np.full(2 * count, TEST, dtype=np.uint8),
        "source": np.concatenate([source, source]),
        "changed": np.arange(2 * count) >= count,
        **{name: np.concatenate([np.zeros_like(values), values]) for name, values in measured.items()},
    }
