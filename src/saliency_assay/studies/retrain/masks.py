"""Masks of the pixels that are occluded according to maps of f_i (IteROAR, section 3; ROAR)."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.engine import attribute_batches, check_targets
from saliency_assay.methods.sampling import BlockGenerator, sample_seeds
from saliency_assay.metrics.perturbation import ranks_of
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import is_rankable, nan_unless
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logits
from saliency_assay.runtime import shards
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.studies.retrain.mask_transforms import transform
from saliency_assay.studies.retrain.occluded import occlude
from saliency_assay.studies.retrain.state import Block, MaskState

log = logging.getLogger(__name__)


def highest(maps: Tensor, count: int, masks: int = 1, *, least_first: bool = False) -> Tensor:
    """Return the pixels of rank l·count … (l + 1)·count − 1 for each mask l, bool ``[N, masks, H, W]``.

    ``maps`` ``[N, H, W]`` are ranked from the highest value; equal values are ranked in reading order, NaN and
    infinite values last, so that each mask has exactly ``count`` pixels for any map. ``least_first`` reverses the
    ranks of all maps that are not NaN throughout.

    Raises:
        ValueError: the masks need more pixels than an image has.
    """
    pixels = maps[0].numel()
    if count * masks > pixels:
        raise ValueError(
            f"occluded: found {count * masks} pixels in total, expected at most {pixels}, those of an image"
        )
    ranks = ranks_of(maps.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf))
    if least_first:
        is_ranked = ~maps.isnan().flatten(1).all(1)
        ranks = torch.where(is_ranked[:, None], pixels - 1 - ranks.flatten(1), ranks.flatten(1))
    # Mask l contains the ranks whose quotient by ``count`` is l.
    step = ranks.div(count, rounding_mode="floor").reshape(len(maps), 1, *maps.shape[1:])
    return step == torch.arange(masks, device=maps.device)[:, None, None]


def mean_under(images: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each channel over ``mask``, rounded half up, uint8 ``[N, C]``; 0 for an empty mask.

    ``images`` is uint8 ``[N, C, H, W]``, ``mask`` bool ``[N, H, W]``. Integer arithmetic gives the same result on every
    device.
    """
    total = (images * mask[:, None]).sum((2, 3), dtype=torch.int64)
    pixels = mask.sum((1, 2), dtype=torch.int64).clamp(min=1)[:, None]
    return ((2 * total + pixels) // (2 * pixels)).to(torch.uint8)


def remasked(
    method: Callable[..., Tensor],
    parameters: Mapping[str, Any],
    classifier: Classifier,
    images: Any,
    targets: Any,
    *,
    seed: int,
    batch_size: int,
    finite: bool,
    reduction: str,
    count: int,
    masks: int,
    shape: Mapping[str, Any],
    least_first: bool = False,
    keep_maps: bool = False,
    offset: int = 0,
    state: MaskState | None = None,
) -> Iterator[Block]:
    """Yield blocks of masks, ``mask`` bool ``[n, masks, H, W]``, and their mean colors, ``mean``.

    ``mean`` is uint8 ``[n, masks, C]``: each mask's mean color in the image in which the preceding masks are filled
    with their mean colors. A block also has ``ranked`` bool ``[n]``, True for maps that are finite and not constant
    (``metrics.scored.is_rankable``). Other maps occlude the first pixels in reading order; their number is logged.

    Args:
        method: called with ``parameters``; see ``methods.engine.attribute`` for both and for ``finite``.
        classifier: f_i.
        images: D_i, uint8 ``[N, C, H, W]``, read ``batch_size`` at a time.
        targets: the class that each map explains; see ``targets_of``.
        seed: seed of the method's noise and of the mask transforms.
        reduction: reduces raw maps to one value per pixel.
        count: pixels of a mask.
        masks: 1 for IteROAR; for ROAR one per iteration, each of the next highest ranks.
        shape: the transform of each mask, its ``kind`` and parameters (``mask_transforms``).
        least_first: True to occlude the pixels of lowest values first.
        keep_maps: True to include the raw maps in blocks, as ``map`` float32 ``[n, C or 1, H, W]``.
        offset: number of images of the set before these; masks do not depend on how the set is divided into shards.
        state: contains the blocks that an interrupted attempt has saved, and saves new ones.
    """
    generator, done, unranked = BlockGenerator(seed, "method"), 0, 0
    for block in state.resume() if state else ():
        done += len(block["ranked"])
        unranked += int((~block["ranked"]).sum())
        yield block
    if state and state.noise is not None:
        generator.at((offset + done - 1) // shards.BLOCK).set_state(state.noise)
    # One generator per mask, so that the first mask of ROAR is transformed like that of IteROAR.
    transform_generators = [
        torch.Generator().manual_seed(seed_of(seed, "transform", str(step))) for step in range(masks)
    ]
    # Skip the seeds of the images before these.
    for transform_generator in transform_generators:
        sample_seeds(offset + done, 1, transform_generator)
    explanation = method, parameters, classifier, images, targets
    batches = attribute_batches(
        *explanation, generator=generator, batch_size=batch_size, finite=finite, offset=offset, done=done
    )
    for originals, maps in batches:
        saliency = reduce(maps, reduction)
        ranked = is_rankable(saliency)
        unranked += int((~ranked).sum())
        occluded = highest(nan_unless(ranked, saliency), count, masks, least_first=least_first)
        occluded = _apply_transform(
            occluded,
            shape,
            [
                sample_seeds(len(occluded), 1, transform_generator)
                for transform_generator in transform_generators
            ],
        )
        means = _mean_colors(originals, occluded)
        stored_maps = {"map": maps} if keep_maps else {}
        tensors = {"mask": occluded, "mean": means, "ranked": ranked, **stored_maps}
        block = {name: values.cpu().contiguous().numpy() for name, values in tensors.items()}
        yield block
        done += len(occluded)
        if state and done < len(images):
            state.add(block, generator.get_state())
    if unranked:
        log.warning(
            "%d of %d maps are constant or not finite, so they do not rank pixels", unranked, len(images)
        )


class Predicted:
    """Predicted classes of the images, int64, computed block by block when they are indexed by slices.

    Batches do not cross block boundaries. Otherwise they would depend on how the set is divided into shards, and with
    them the rounding of logits and possibly the most probable class.
    """

    def __init__(self, classifier: Classifier, images: Any, batch_size: int) -> None:
        self._classifier = classifier
        self._images = images
        self._batch_size = batch_size
        self._block = slice(0, 0)
        self._classes = np.empty(0, dtype=np.int64)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return the classes of images within one block."""
        if not self._block.start <= rows.start < rows.stop <= self._block.stop:
            start = rows.start - rows.start % shards.BLOCK
            self._block = slice(start, min(start + shards.BLOCK, len(self._images)))
            outputs = logits(self._classifier, self._images[self._block], batch_size=self._batch_size)
            self._classes = outputs.argmax(1).numpy()
        start = self._block.start
        return self._classes[rows.start - start : rows.stop - start]


def targets_of(
    classifier: Classifier, images: Any, labels: np.ndarray, target: str, batch_size: int
) -> np.ndarray | Predicted:
    """Return the class that the map of each image explains: its label or the predicted class.

    Raises:
        ValueError: labels are not int64 ``[N]``, or are not classes of the classifier.
    """
    if target == "predicted":
        return Predicted(classifier, images, batch_size)
    check_targets(labels, len(images), classifier.classes)
    return labels


def _mean_colors(images: Tensor, masks: Tensor) -> Tensor:
    """Return the mean color of each of ``masks`` bool ``[N, L, H, W]``, uint8 ``[N, L, C]``, masks filled in order."""
    # Transformed masks may overlap, so each mean is that of the image in which the preceding masks are filled.
    colors = []
    for mask in masks.unbind(1):
        colors.append(mean_under(images, mask))
        images = occlude(images, mask, colors[-1])
    return torch.stack(colors, 1)


def _apply_transform(masks: Tensor, shape: Mapping[str, Any], seeds: Sequence[Sequence[int]]) -> Tensor:
    """Transform each of ``masks`` ``[N, L, H, W]`` with its seed in ``seeds`` ``[L][N]``."""
    if shape["kind"] == "none":
        return masks
    arrays = masks.cpu().numpy()
    transformed = [transform(arrays[:, step], shape, seeds[step]) for step in range(masks.shape[1])]
    return torch.from_numpy(np.stack(transformed, 1)).to(masks.device)
