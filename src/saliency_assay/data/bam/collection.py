"""The material BAM is composed of, brought to one size: cut-outs on a common canvas, and scenes."""

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from saliency_assay.data.bam.coco import Instance, cut_out
from saliency_assay.data.bam.compose import OPAQUE, tight_box
from saliency_assay.data.bam.miniplaces import Scene, read_scene
from saliency_assay.data.bam.placement import box_sides
from saliency_assay.data.images import KnownFiles, Pixels, resize_rgba

logger = logging.getLogger(__name__)

Block = dict[str, npt.NDArray[np.uint8] | npt.NDArray[np.int64]]


def collect_cutouts(
    instances: Sequence[Instance], objects: Sequence[str], *, canvas: int, least: int, block: int = 64
) -> Iterator[Block]:
    """Cut-outs, each cropped to its ``visible_part``, shrunk to fit ``canvas`` and never enlarged.

    Args:
        instances: what is cut out.
        objects: names of the classes.
        canvas: side of the images (``placement.canvas_side``).
        least: the least longer side at which a cut-out is pasted (``placement.side_range``).
        block: cut-outs at a time.

    Yields, in the order of ``instances``:
        ``image`` uint8 ``[n, 4, canvas, canvas]``, RGBA, the cut-out in the top left corner; ``height`` and
        ``width`` of it; ``label_object``, index in ``objects``; ``photo``, equal for cut-outs from files of equal
        content; ``source``, index of the annotation file; ``annotation``, COCO's id.

    Raises:
        FileNotFoundError, ValueError: a photograph cannot be read (``coco.cut_out``).
    """
    known = KnownFiles()
    photos = [known.first(instance.photo) for instance in instances]
    numbers = {photo: number for number, photo in enumerate(dict.fromkeys(photos))}
    cropped = 0
    labels = {name: label for label, name in enumerate(objects)}
    for start in range(0, len(instances), block):
        part = instances[start : start + block]
        images = np.zeros((len(part), 4, canvas, canvas), dtype=np.uint8)
        sizes = np.empty((len(part), 2), dtype=np.int64)
        for position, instance in enumerate(part):
            whole = cut_out(instance)
            visible = visible_part(whole, canvas, least)
            cropped += visible.shape != whole.shape
            fitted = _fitted(visible, canvas)
            height, width = sizes[position] = fitted.shape[:2]
            images[position, :, :height, :width] = fitted.transpose(2, 0, 1)
        yield {
            "image": images,
            "height": sizes[:, 0].copy(),
            "width": sizes[:, 1].copy(),
            "label_object": np.array([labels[i.category] for i in part], dtype=np.int64),
            "photo": np.array([numbers[p] for p in photos[start : start + block]], dtype=np.int64),
            "source": np.array([i.source for i in part], dtype=np.int64),
            "annotation": np.array([i.annotation for i in part], dtype=np.int64),
        }
    logger.info("%d cut-outs were cropped to what is visible of them at %d pixels", cropped, least)


def collect_scenes(
    scenes: Sequence[Scene], categories: Sequence[str], *, size: int, block: int = 256
) -> Iterator[Block]:
    """Scenes: ``image`` uint8 ``[n, 3, size, size]`` and ``label_scene``, index in ``categories``.

    Raises:
        FileNotFoundError, ValueError: an image file cannot be read (``miniplaces.read_scene``).
    """
    labels = {name: label for label, name in enumerate(categories)}
    for start in range(0, len(scenes), block):
        part = scenes[start : start + block]
        yield {
            "image": np.stack([read_scene(scene, size) for scene in part]),
            "label_scene": np.array([labels[scene.category] for scene in part], dtype=np.int64),
        }


def visible_part(rgba: Pixels, canvas: int, longer: int) -> Pixels:
    """Crop a cut-out ``[H, W, 4]`` until, pasted with that ``longer`` side, its mask spans its box.

    Parts thinner than half a pixel vanish when a cut-out is pasted. Were they to count for its size, what is left of it
    would be smaller than it should be. A mask may be one pixel short at either end: that is rounding. A cut-out that is
    thin nearly everywhere, so that less than half of it would be left, is kept whole.
    """
    whole = rgba
    while True:
        fitted = _fitted(rgba, canvas)
        sides = box_sides(np.array([fitted.shape[0]]), np.array([fitted.shape[1]]), np.array([longer]))
        height, width = (int(side[0]) for side in sides)
        opaque = resize_rgba(fitted, height, width)[..., 3] >= OPAQUE
        # So thin that ``paste`` keeps its most opaque pixels, which say nothing of its extent.
        if not opaque.any():
            return whole
        top, left, rows, columns = tight_box(opaque)
        if max(rows, columns) >= longer - 2:
            return rgba
        # Outwards to whole pixels of the original: a pixel that is visible is never cut.
        tall, wide = rgba.shape[:2]
        visible = rgba[
            top * tall // height : -(-(top + rows) * tall // height),
            left * wide // width : -(-(left + columns) * wide // width),
        ]
        if 2 * np.count_nonzero(visible[..., 3]) < np.count_nonzero(whole[..., 3]):
            return whole
        if visible.shape == rgba.shape:  # enlarged: what is missing is less than a pixel of the original
            return rgba
        rgba = visible


def _fitted(rgba: Pixels, canvas: int) -> Pixels:
    height, width = rgba.shape[:2]
    scale = canvas / max(height, width)
    if scale >= 1:
        return rgba
    return resize_rgba(rgba, max(1, round(height * scale)), max(1, round(width * scale)))
