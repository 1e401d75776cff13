"""BAM: objects pasted on scenes, so that the relative importance of features is known (Yang and Kim 2019).

The three sets of one plan are aligned index by index: ``os`` is the object on the scene (X_os), ``0s`` the scene
alone (X_0s), ``og`` the object on grey (X_og).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.data.images import Pixels, resize_rgba
from saliency_assay.data.plan import Collection, Images, Plan
from saliency_assay.data.splits import Ints

Block = dict[str, npt.NDArray[Any]]

SETS = ("os", "0s", "og")
GREY = 128  # the paper says "gray pixels"; this is mid-grey in 8 bits


def compose(plan: Plan, collection: Collection, name: str, *, block: int = 256) -> Iterator[Block]:
    """The images of set ``name`` (one of ``SETS``), ``block`` at a time, in the plan's order.

    Yields:
        ``image`` uint8 ``[n, 3, size, size]``; ``mask`` bool ``[n, size, size]``, True where the object is, or
        in ``0s`` would be; ``covered`` uint8, the scene's own pixels under the mask and 0 elsewhere; and the
        plan's ``label_object``, ``label_scene``, ``split``, ``cutout``, ``scene``, ``placement``.
        All but ``image`` is equal in the three sets.
    """
    if name not in SETS:
        raise ValueError(f"set {name!r}: expected one of {', '.join(SETS)}")
    for start in range(0, len(plan), block):
        part = slice(start, min(start + block, len(plan)))
        cutouts = _gather(collection.cutouts, plan.cutout[part])
        scenes = _gather(collection.scenes, plan.scene[part])
        images, masks, covered = [], [], []
        for cutout, scene, placement in zip(
            plan.cutout[part].tolist(), plan.scene[part].tolist(), plan.placement[part].tolist(), strict=True
        ):
            height, width = int(collection.heights[cutout]), int(collection.widths[cutout])
            colour, mask = paste(cutouts[cutout][:, :height, :width], placement, plan.size)
            background = np.full_like(scenes[scene], GREY) if name == "og" else scenes[scene]
            images.append(background if name == "0s" else np.where(mask, colour, background))
            masks.append(mask)
            covered.append(np.where(mask, scenes[scene], np.uint8(0)))
        yield {
            "image": np.stack(images),
            "mask": np.stack(masks),
            "covered": np.stack(covered),
            "label_object": plan.label_object[part],
            "label_scene": plan.label_scene[part],
            "split": plan.split[part],
            "cutout": plan.cutout[part],
            "scene": plan.scene[part],
            "placement": plan.placement[part],
        }


def paste(cutout: Pixels, placement: Sequence[int], size: int) -> tuple[Pixels, npt.NDArray[np.bool_]]:
    """An RGBA cut-out ``[4, h, w]`` at its place in an empty image: colour ``[3, size, size]`` and its mask.

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
    mask[box] = opacity >= min(128, int(opacity.max()))
    return colour, mask


def _gather(images: Images, indices: Ints) -> dict[int, Pixels]:
    unique = np.unique(indices)
    return dict(zip(unique.tolist(), images[unique], strict=True))
