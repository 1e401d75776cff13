"""The material BAM is composed of, brought to one size: cut-outs on a common canvas, and scenes."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from saliency_assay.data.coco import Instance, cut_out
from saliency_assay.data.images import Pixels, resize_rgba
from saliency_assay.data.miniplaces import Scene, read_scene

Block = dict[str, npt.NDArray[np.uint8] | npt.NDArray[np.int64]]


def collect_cutouts(
    instances: Sequence[Instance], objects: Sequence[str], *, canvas: int, block: int = 64
) -> Iterator[Block]:
    """Cut-outs, each shrunk to fit ``canvas`` (``bam.canvas_side``) and never enlarged.

    Yields, in the order of ``instances``:
        ``image`` uint8 ``[n, 4, canvas, canvas]``, RGBA, the cut-out in the top left corner; ``height`` and
        ``width`` of it; ``label_object``, index in ``objects``; ``photo``, equal for cut-outs of one photograph;
        ``annotation``, COCO's id.

    Raises:
        FileNotFoundError, ValueError: a photograph cannot be read (``coco.cut_out``).
    """
    numbers = {photo: number for number, photo in enumerate(dict.fromkeys(i.photo for i in instances))}
    labels = {name: label for label, name in enumerate(objects)}
    for start in range(0, len(instances), block):
        part = instances[start : start + block]
        images = np.zeros((len(part), 4, canvas, canvas), dtype=np.uint8)
        sizes = np.empty((len(part), 2), dtype=np.int64)
        for position, instance in enumerate(part):
            fitted = _fitted(cut_out(instance), canvas)
            height, width = sizes[position] = fitted.shape[:2]
            images[position, :, :height, :width] = fitted.transpose(2, 0, 1)
        yield {
            "image": images,
            "height": sizes[:, 0].copy(),
            "width": sizes[:, 1].copy(),
            "label_object": np.array([labels[i.category] for i in part], dtype=np.int64),
            "photo": np.array([numbers[i.photo] for i in part], dtype=np.int64),
            "annotation": np.array([i.annotation for i in part], dtype=np.int64),
        }


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


def _fitted(rgba: Pixels, canvas: int) -> Pixels:
    height, width = rgba.shape[:2]
    scale = canvas / max(height, width)
    if scale >= 1:
        return rgba
    return resize_rgba(rgba, max(1, round(height * scale)), max(1, round(width * scale)))
