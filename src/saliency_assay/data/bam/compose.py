"""BAM composites: objects pasted onto scenes, so that relative feature importance is known (Yang and Kim 2019).

The three sets of one plan are aligned index by index: ``os`` is the object on the scene (X_os), ``0s`` the scene
alone (X_0s), ``og`` the object on gray (X_og). The sets of a commonality series, ``os_kNN`` (X_os^k) and ``0s_k``, are
also aligned.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import ndarray as Array

from saliency_assay.data.bam.placement import Collection, Plan
from saliency_assay.data.images import Pixels, resize_rgba
from saliency_assay.data.splits import TEST, TRAIN, Ints

logger = logging.getLogger(__name__)

Block = dict[str, Array]
Mask = npt.NDArray[np.bool_]

SETS = ("os", "0s", "og")
OPAQUE = 128  # smallest opacity, of 255, at which a pixel belongs to the object
GRAY = 128  # "gray pixels" in the paper; here mid-gray in 8 bits


def compose(plan: Plan, collection: Collection, name: str, *, block: int = 256) -> Iterator[Block]:
    """Compose the images of set ``name`` (one of ``SETS``) in blocks, in the plan's order.

    Yields:
        ``image`` uint8 ``[n, 3, size, size]``; ``mask`` bool ``[n, size, size]``, True where the object is or, in
        ``0s``, would be; ``covered`` uint8, the pixels of the scene under the mask and 0 elsewhere; and the
        plan's ``label_object``, ``label_scene``, ``split``, ``cutout``, ``scene``, ``placement``.
        All arrays except ``image`` are equal in the three sets.

    Raises:
        ValueError: an unknown ``name``, or an object without a visible pixel.
    """
    if name not in SETS:
        raise ValueError(f"set {name!r}: expected one of {', '.join(SETS)}")
    present = np.full(len(plan), name != "0s")
    columns: dict[str, Array] = {
        "label_object": plan.label_object,
        "label_scene": plan.label_scene,
        "split": plan.split,
    }
    yield from _compose_blocks(plan, collection, present, columns, gray=name == "og", block=block)


def compose_common(plan: Plan, collection: Collection, classes: int, *, block: int = 256) -> Iterator[Block]:
    """Compose the images of a commonality series with the object only in the first ``classes`` scene classes.

    Yields:
        The arrays of ``compose`` without ``label_object``, and ``present`` bool ``[n]``, True where the object is
        pasted. ``mask`` and ``covered`` are those of the pasted object in all images, including those without it.
        All arrays except ``image`` and ``present`` do not depend on ``classes``.
    """
    present = plan.label_scene < classes
    columns: dict[str, Array] = {"label_scene": plan.label_scene, "split": plan.split, "present": present}
    yield from _compose_blocks(plan, collection, present, columns, gray=False, block=block)


def _compose_blocks(
    plan: Plan, collection: Collection, present: Mask, columns: Mapping[str, Array], *, gray: bool, block: int
) -> Iterator[Block]:
    """Yield composites on scenes or on ``gray``, with objects where ``present`` ``[N]``; add ``columns``."""
    columns = {**columns, "cutout": plan.cutout, "scene": plan.scene, "placement": plan.placement}
    if not gray:
        _log_repeated(plan, present)
    for start in range(0, len(plan), block):
        rows = slice(start, min(start + block, len(plan)))
        # A block uses some cut-outs and scenes several times; only one block of them is in memory.
        cutouts = _load_unique(collection.cutouts, plan.cutout[rows])
        scenes = _load_unique(collection.scenes, plan.scene[rows])
        images, masks, covered = [], [], []
        for index in range(rows.start, rows.stop):
            cutout, scene = int(plan.cutout[index]), scenes[int(plan.scene[index])]
            height, width = int(collection.heights[cutout]), int(collection.widths[cutout])
            color, mask = paste(
                cutouts[cutout][:, :height, :width], plan.placement[index].tolist(), plan.size
            )
            background = np.full_like(scene, GRAY) if gray else scene
            images.append(np.where(mask, color, background) if present[index] else background)
            masks.append(mask)
            covered.append(np.where(mask, scene, np.uint8(0)))
        yield {
            "image": np.stack(images),
            "mask": np.stack(masks),
            "covered": np.stack(covered),
            **{name: column[rows] for name, column in columns.items()},
        }


def _log_repeated(plan: Plan, present: Mask) -> None:
    """Log how many test images without an object are identical to a training image: they show the same scene."""
    alone = [plan.scene[~present & (plan.split == split_value)] for split_value in (TRAIN, TEST)]
    repeated = np.isin(alone[1], alone[0])
    if repeated.any():
        logger.info(
            "%d of %d test images without an object are identical to a training image, because they have the same "
            "scene; leak_free prevents this",
            np.count_nonzero(repeated),
            len(repeated),
        )


def paste(cutout: Pixels, placement: Sequence[int], size: int) -> tuple[Pixels, Mask]:
    """Paste an RGBA cut-out ``[4, h, w]`` into an empty image; return color ``[3, size, size]`` and mask.

    The mask is binary, so that each pixel belongs either to the object (opacity of one half or more) or to the scene.
    An object too thin to have such a pixel keeps its most opaque ones.

    Raises:
        ValueError: the resized object has no visible pixel.
    """
    top, left, height, width = placement
    scaled = resize_rgba(np.ascontiguousarray(cutout.transpose(1, 2, 0)), height, width)
    opacity = scaled[..., 3]
    color = np.zeros((3, size, size), dtype=np.uint8)
    mask = np.zeros((size, size), dtype=bool)
    box = np.s_[top : top + height, left : left + width]  # inside the image, by construction of the plan
    color[:, *box] = scaled[..., :3].transpose(2, 0, 1)
    if not opacity.any():
        raise ValueError(
            f"a cut-out resized to {height} × {width} has no visible pixel; raise min_object_area"
        )
    # The minimum lowers the threshold only for an object without a pixel of opacity ``OPAQUE``.
    mask[box] = opacity >= min(OPAQUE, int(opacity.max()))
    return color, mask


def log_sizes(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the ``blocks`` of a set, then log the areas of the masks and their longer sides relative to the boxes."""
    areas, ratios = [], []
    for block in blocks:
        areas.append(block["mask"].mean(axis=(1, 2)))
        sides = np.array([max(tight_box(mask)[2:]) for mask in block["mask"]])
        ratios.append(sides / block["placement"][:, 2:].max(axis=1))
        yield block
    area, ratio = np.concatenate(areas), np.concatenate(ratios)
    logger.info(
        "masks cover %.1f to %.1f %% of the image, median %.1f %%; "
        "their longer side is at least %.0f %% of their box's, less than 90 %% in %d of %d images",
        *(100 * np.array([area.min(), area.max(), np.median(area), ratio.min()])),
        np.count_nonzero(ratio < 0.9),
        len(ratio),
    )


def tight_box(mask: Mask) -> tuple[int, int, int, int]:
    """Return top, left, height and width of the smallest box around a non-empty mask ``[H, W]``."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return (int(rows[0]), int(columns[0]), int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1)


def _load_unique(images: Any, indices: Ints) -> dict[int, Pixels]:
    """Return the images at ``indices`` by index; each is read once, however often it occurs."""
    unique = np.unique(indices)
    return dict(zip(unique.tolist(), images[unique], strict=True))
