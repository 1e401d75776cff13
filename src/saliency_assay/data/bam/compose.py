"""BAM: objects pasted on scenes, so that the relative importance of features is known (Yang and Kim 2019).

The three sets of one plan are aligned index by index: ``os`` is the object on the scene (X_os), ``0s`` the scene
alone (X_0s), ``og`` the object on grey (X_og). So are those of a series: ``os_kNN`` (X_os^k) and ``0s_k``.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import ndarray as Array

from saliency_assay.data.bam.placement import Collection, Plan
from saliency_assay.data.images import Pixels, resize_rgba
from saliency_assay.data.splits import Ints

logger = logging.getLogger(__name__)

Block = dict[str, Array]
Mask = npt.NDArray[np.bool_]

SETS = ("os", "0s", "og")
OPAQUE = 128  # opacity from which a pixel is the object's
GREY = 128  # the paper says "gray pixels"; this is mid-grey in 8 bits


def compose(plan: Plan, collection: Collection, name: str, *, block: int = 256) -> Iterator[Block]:
    """Return the images of set ``name`` (one of ``SETS``), ``block`` at a time, in the plan's order.

    Yields:
        ``image`` uint8 ``[n, 3, size, size]``; ``mask`` bool ``[n, size, size]``, True where the object is, or
        in ``0s`` would be; ``covered`` uint8, the scene's own pixels under the mask and 0 elsewhere; and the
        plan's ``label_object``, ``label_scene``, ``split``, ``cutout``, ``scene``, ``placement``.
        All but ``image`` is equal in the three sets.
    """
    if name not in SETS:
        raise ValueError(f"set {name!r}: expected one of {', '.join(SETS)}")
    present = np.full(len(plan), name != "0s")
    columns: dict[str, Array] = {
        "label_object": plan.label_object,
        "label_scene": plan.label_scene,
        "split": plan.split,
    }
    yield from _composed(plan, collection, present, columns, grey=name == "og", block=block)


def compose_common(plan: Plan, collection: Collection, classes: int, *, block: int = 256) -> Iterator[Block]:
    """Return the images of a series' plan with the object in the first ``classes`` scene classes only, in none for 0.

    Yields:
        What ``compose`` does, except ``label_object``: ``mask`` and ``covered`` are where the object is or would
        be, in all images; and ``present`` bool ``[n]``, whether it is. All but ``image`` and ``present`` is equal
        for any ``classes``.
    """
    present = plan.label_scene < classes
    columns: dict[str, Array] = {"label_scene": plan.label_scene, "split": plan.split, "present": present}
    yield from _composed(plan, collection, present, columns, grey=False, block=block)


def _composed(
    plan: Plan, collection: Collection, present: Mask, columns: Mapping[str, Array], *, grey: bool, block: int
) -> Iterator[Block]:
    """Composites with their ``columns``: on scenes or on ``grey``, with the object where ``present`` ``[N]`` has it."""
    columns = {**columns, "cutout": plan.cutout, "scene": plan.scene, "placement": plan.placement}
    for start in range(0, len(plan), block):
        part = slice(start, min(start + block, len(plan)))
        cutouts = _gather(collection.cutouts, plan.cutout[part])
        scenes = _gather(collection.scenes, plan.scene[part])
        images, masks, covered = [], [], []
        for index in range(part.start, part.stop):
            cutout, scene = int(plan.cutout[index]), scenes[int(plan.scene[index])]
            height, width = int(collection.heights[cutout]), int(collection.widths[cutout])
            colour, mask = paste(
                cutouts[cutout][:, :height, :width], plan.placement[index].tolist(), plan.size
            )
            background = np.full_like(scene, GREY) if grey else scene
            images.append(np.where(mask, colour, background) if present[index] else background)
            masks.append(mask)
            covered.append(np.where(mask, scene, np.uint8(0)))
        yield {
            "image": np.stack(images),
            "mask": np.stack(masks),
            "covered": np.stack(covered),
            **{name: column[part] for name, column in columns.items()},
        }


def paste(cutout: Pixels, placement: Sequence[int], size: int) -> tuple[Pixels, Mask]:
    """Return an RGBA cut-out ``[4, h, w]`` at its place in an empty image: colour ``[3, size, size]`` and its mask.

    The mask is hard, so that each pixel is either the object's or the scene's: opaque by half or more. An object
    too thin for that anywhere keeps its most opaque pixels.

    Raises:
        ValueError: an object so scattered that nothing of it is left.
    """
    top, left, height, width = placement
    scaled = resize_rgba(np.ascontiguousarray(cutout.transpose(1, 2, 0)), height, width)
    opacity = scaled[..., 3]
    colour = np.zeros((3, size, size), dtype=np.uint8)
    mask = np.zeros((size, size), dtype=bool)
    box = np.s_[top : top + height, left : left + width]
    colour[:, *box] = scaled[..., :3].transpose(2, 0, 1)
    if not opacity.any():
        raise ValueError(f"a cut-out has no visible pixel left at {height} × {width}; raise min_object_area")
    mask[box] = opacity >= min(OPAQUE, int(opacity.max()))
    return colour, mask


def log_sizes(blocks: Iterable[Block]) -> Iterator[Block]:
    """Pass on the ``blocks`` of a set, then log the masks' areas, and their longer sides relative to their boxes'."""
    areas, shares = [], []
    for block in blocks:
        areas.append(block["mask"].mean(axis=(1, 2)))
        sides = np.array([max(tight_box(mask)[2:]) for mask in block["mask"]])
        shares.append(sides / block["placement"][:, 2:].max(axis=1))
        yield block
    area, share = np.concatenate(areas), np.concatenate(shares)
    logger.info(
        "masks cover %.1f to %.1f %% of the image, median %.1f %%; "
        "their longer side is at least %.0f %% of their box's, less than 90 %% in %d of %d images",
        *(100 * np.array([area.min(), area.max(), np.median(area), share.min()])),
        np.count_nonzero(share < 0.9),
        len(share),
    )


def tight_box(mask: Mask) -> tuple[int, int, int, int]:
    """Return top, left, height and width of the smallest box around a mask ``[H, W]`` that is not empty."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return (int(rows[0]), int(columns[0]), int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1)


def _gather(images: Any, indices: Ints) -> dict[int, Pixels]:
    unique = np.unique(indices)
    return dict(zip(unique.tolist(), images[unique], strict=True))
