"""Cut-outs and scenes for BAM in common sizes: cut-outs on a square canvas, scenes as squares."""

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
    """Cut out instances, crop each to its ``visible_part`` and, if it is larger than ``canvas``, shrink it.

    Args:
        instances: instances to cut out.
        objects: names of the classes.
        canvas: side of the images (``placement.canvas_side``).
        least: minimum of the longer side of a pasted cut-out in pixels (``placement.side_range``).
        block: number of cut-outs per block.

    Yields, in the order of ``instances``:
        ``image`` uint8 ``[n, 4, canvas, canvas]``, RGBA, the cut-out in the top left corner; its ``height`` and
        ``width``; ``label_object``, index in ``objects``; ``coco_image``, equal for cut-outs from files with equal
        content; ``source``, index of the annotation file; ``annotation``, COCO's id.

    Raises:
        FileNotFoundError, ValueError: an image file cannot be read (``coco.cut_out``).
    """
    registered_files = KnownFiles()
    coco_images = [registered_files.first(instance.coco_image) for instance in instances]
    # Numbers in order of appearance; ``dict.fromkeys`` removes duplicates and keeps the order.
    image_numbers = {coco_image: number for number, coco_image in enumerate(dict.fromkeys(coco_images))}
    cropped = 0
    labels = {name: label for label, name in enumerate(objects)}
    for start in range(0, len(instances), block):
        block_instances = instances[start : start + block]
        images = np.zeros((len(block_instances), 4, canvas, canvas), dtype=np.uint8)
        sizes = np.empty((len(block_instances), 2), dtype=np.int64)
        for position, instance in enumerate(block_instances):
            cutout = cut_out(instance)
            visible = visible_part(cutout, canvas, least)
            cropped += visible.shape != cutout.shape
            shrunk = _shrink_to_fit(visible, canvas)
            height, width = sizes[position] = shrunk.shape[:2]
            images[position, :, :height, :width] = shrunk.transpose(2, 0, 1)
        yield {
            "image": images,
            "height": sizes[:, 0].copy(),
            "width": sizes[:, 1].copy(),
            "label_object": np.array([labels[i.category] for i in block_instances], dtype=np.int64),
            "coco_image": np.array(
                [image_numbers[p] for p in coco_images[start : start + block]], dtype=np.int64
            ),
            "source": np.array([i.source for i in block_instances], dtype=np.int64),
            "annotation": np.array([i.annotation for i in block_instances], dtype=np.int64),
        }
    logger.info("%d cut-outs were cropped to their visible part at %d pixels", cropped, least)


def collect_scenes(
    scenes: Sequence[Scene], categories: Sequence[str], *, size: int, block: int = 256
) -> Iterator[Block]:
    """Yield scenes in blocks: ``image`` uint8 ``[n, 3, size, size]`` and ``label_scene``, index in ``categories``.

    Raises:
        FileNotFoundError, ValueError: an image file cannot be read (``miniplaces.read_scene``).
    """
    labels = {name: label for label, name in enumerate(categories)}
    for start in range(0, len(scenes), block):
        block_scenes = scenes[start : start + block]
        yield {
            "image": np.stack([read_scene(scene, size) for scene in block_scenes]),
            "label_scene": np.array([labels[scene.category] for scene in block_scenes], dtype=np.int64),
        }


def visible_part(rgba: Pixels, canvas: int, longer: int) -> Pixels:
    """Crop a cut-out ``[H, W, 4]`` until its mask spans its box when pasted with a longer side of ``longer`` pixels.

    Parts thinner than half a pixel vanish when a cut-out is pasted. If they counted towards its size, the visible part
    would be smaller than planned. Because of rounding, a mask may be one pixel shorter at either end. A cut-out that is
    thin nearly everywhere, so that less than half of it would remain, is returned unchanged.
    """
    original = rgba
    while True:
        shrunk = _shrink_to_fit(rgba, canvas)
        sides = box_sides(np.array([shrunk.shape[0]]), np.array([shrunk.shape[1]]), np.array([longer]))
        height, width = (int(side[0]) for side in sides)
        opaque = resize_rgba(shrunk, height, width)[..., 3] >= OPAQUE
        # So thin that ``paste`` would keep only the most opaque pixels, which do not show the extent of the object.
        if not opaque.any():
            return original
        top, left, rows, columns = tight_box(opaque)
        if max(rows, columns) >= longer - 2:
            return rgba
        # Rounded outwards to whole pixels of the original, so that no visible pixel is cropped.
        full_height, full_width = rgba.shape[:2]
        visible = rgba[
            top * full_height // height : -(-(top + rows) * full_height // height),
            left * full_width // width : -(-(left + columns) * full_width // width),
        ]
        if 2 * np.count_nonzero(visible[..., 3]) < np.count_nonzero(original[..., 3]):
            return original
        # No progress: the invisible margin is less than a pixel of the original.
        if visible.shape == rgba.shape:
            return rgba
        rgba = visible


def _shrink_to_fit(rgba: Pixels, canvas: int) -> Pixels:
    height, width = rgba.shape[:2]
    scale = canvas / max(height, width)
    if scale >= 1:
        return rgba
    return resize_rgba(rgba, max(1, round(height * scale)), max(1, round(width * scale)))
