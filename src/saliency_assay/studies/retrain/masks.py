"""Remask: which pixels the maps of f_i occlude (IteROAR, section 3; ROAR)."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.engine import check_targets, drawn
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


def highest(maps: Tensor, count: int, masks: int = 1) -> Tensor:
    """Return the pixels of rank l·count … (l + 1)·count − 1 for each mask l, bool ``[N, masks, H, W]``.

    ``maps`` ``[N, H, W]`` are ranked from the highest value; equal values keep the reading order, and what is not a
    number comes last, so that each mask occludes ``count`` pixels whatever the map.

    Raises:
        ValueError: more pixels asked for than an image has.
    """
    pixels = maps[0].numel()
    if count * masks > pixels:
        raise ValueError(
            f"occluded: found {count * masks} pixels in all, expected at most the image's {pixels}"
        )
    ranks = ranks_of(maps.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf))
    step = ranks.div(count, rounding_mode="floor").reshape(len(maps), 1, *maps.shape[1:])
    return step == torch.arange(masks, device=maps.device)[:, None, None]


def mean_under(images: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each channel over the pixels of ``mask``, rounded half up, uint8 ``[N, C]``; 0 for an empty
    mask.

    ``images`` uint8 ``[N, C, H, W]``, ``mask`` bool ``[N, H, W]``. In integers, so that it is the same on any device.
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
    keep_maps: bool = False,
    offset: int = 0,
    state: MaskState | None = None,
) -> Iterator[Block]:
    """Blocks of what each map occludes: ``mask`` bool ``[n, masks, H, W]`` and the colours ``mean`` there.

    ``mean`` is uint8 ``[n, masks, C]``: each mask's of the image as the masks before it leave it under fill ``mean``.

    Args:
        method: with its ``parameters``; see ``methods.engine.attribute`` for them and for ``finite``.
        classifier: f_i.
        images: D_i, uint8 ``[N, C, H, W]``, read ``batch_size`` at a time.
        targets: the class that each map explains, see ``targets_of``.
        seed: of the method's noise and of the masks' transform.
        reduction: from raw maps to one value a pixel.
        count: pixels of a mask.
        masks: 1 for IteROAR; for ROAR one an iteration, each of the next highest values.
        shape: the transform of each mask, its ``kind`` and parameters (``mask_transforms``).
        keep_maps: whether blocks hold the raw maps, too, as ``map`` float32 ``[n, C or 1, H, W]``.
        offset: images of the set before these; masks do not depend on how the set is split into parts.
        state: yields the blocks that an earlier, interrupted run has saved, and saves the others.

    Also in a block: ``ranked`` bool ``[n]``, true for maps that are finite and not constant
    (``metrics.scored.is_rankable``). Those of the others occlude the pixels that come first in reading order, and are
    counted in the log.
    """
    generator, done, unranked = BlockGenerator(seed), 0, 0
    for block in state.resume() if state else ():
        done += len(block["ranked"])
        unranked += int((~block["ranked"]).sum())
        yield block
    if state and state.noise is not None:
        generator.at((offset + done - 1) // shards.BLOCK).set_state(state.noise)
    # A stream for each mask: ROAR's first is transformed as IteROAR's.
    streams = [torch.Generator().manual_seed(seed_of(seed, "transform", str(step))) for step in range(masks)]
    for stream in streams:
        sample_seeds(offset + done, 1, stream)
    job = method, parameters, classifier, images, targets
    batches = drawn(*job, generator=generator, batch_size=batch_size, finite=finite, offset=offset, done=done)
    for stored, maps in batches:
        saliency = reduce(maps, reduction)
        ranked = is_rankable(saliency)
        unranked += int((~ranked).sum())
        chosen = highest(nan_unless(ranked, saliency), count, masks)
        chosen = _transformed(chosen, shape, [sample_seeds(len(chosen), 1, stream) for stream in streams])
        means = _means(stored, chosen)
        kept = {"map": maps} if keep_maps else {}
        tensors = {"mask": chosen, "mean": means, "ranked": ranked, **kept}
        block = {name: values.cpu().contiguous().numpy() for name, values in tensors.items()}
        yield block
        done += len(chosen)
        if state and done < len(images):
            state.add(block, generator.get_state())
    if unranked:
        log.warning("%d of %d maps are constant or not finite and rank no pixels", unranked, len(images))


class Predicted:
    """The class that the classifier predicts for each image, computed block by block when sliced, int64.

    Batches do not reach from one block into the next: with others, rounding could make another class the most
    probable one, and targets would depend on how the set is split into parts.
    """

    def __init__(self, classifier: Classifier, images: Any, batch_size: int) -> None:
        self._classifier = classifier
        self._images = images
        self._batch_size = batch_size
        self._block = slice(0, 0)
        self._classes = np.empty(0, dtype=np.int64)

    def __getitem__(self, part: slice) -> np.ndarray:
        """Return the classes of images within one block."""
        if not self._block.start <= part.start < part.stop <= self._block.stop:
            start = part.start - part.start % shards.BLOCK
            self._block = slice(start, min(start + shards.BLOCK, len(self._images)))
            found = logits(self._classifier, self._images[self._block], batch_size=self._batch_size)
            self._classes = found.argmax(1).numpy()
        start = self._block.start
        return self._classes[part.start - start : part.stop - start]


def targets_of(
    classifier: Classifier, images: Any, labels: np.ndarray, target: str, batch_size: int
) -> np.ndarray | Predicted:
    """Return the class that the map of each image explains: its label, or what the classifier predicts.

    Raises:
        ValueError: labels that are not int64 ``[N]``, or not classes of the classifier.
    """
    if target == "predicted":
        return Predicted(classifier, images, batch_size)
    check_targets(labels, len(images), classifier.classes)
    return labels


def _means(images: Tensor, masks: Tensor) -> Tensor:
    """Return the colours of ``masks`` bool ``[N, L, H, W]``, uint8 ``[N, L, C]``; under a transform masks may
    overlap."""
    colours = []
    for mask in masks.unbind(1):
        colours.append(mean_under(images, mask))
        images = occlude(images, mask, colours[-1])
    return torch.stack(colours, 1)


def _transformed(masks: Tensor, shape: Mapping[str, Any], seeds: Sequence[Sequence[int]]) -> Tensor:
    """``masks`` ``[N, L, H, W]``, each changed with its own of ``seeds`` ``[L][N]``."""
    if shape["kind"] == "none":
        return masks
    each = masks.cpu().numpy()
    changed = [transform(each[:, step], shape, seeds[step]) for step in range(masks.shape[1])]
    return torch.from_numpy(np.stack(changed, 1)).to(masks.device)
