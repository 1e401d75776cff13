"""Reader of COCO images with the masks of one class of objects in each, for localization with trained networks."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from saliency_assay.data.bam.coco import AnnotatedImage, Source, find_annotated_images, read_annotated
from saliency_assay.data.geometry import Geometry
from saliency_assay.data.images import Block, sample
from saliency_assay.data.splits import TEST
from saliency_assay.registry.limits import Limits, NonNegativeInt
from saliency_assay.storage import text

logger = logging.getLogger(__name__)


def coco_images(
    *,
    coco: Sequence[Sequence[str]],
    classes: Sequence[str],
    size: int | Sequence[int] = 224,
    fit: Annotated[str, Limits(choices=("crop", "pad", "stretch"))] = "crop",
    crop_share: Annotated[float, Limits(minimum=0.1, maximum=1)] = 1.0,
    min_object_area: NonNegativeInt = 1024,
    images_per_class: NonNegativeInt = 0,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Read the images of COCO that show objects of exactly one of ``classes``; all are test images.

    The mask of an image covers all objects of its class, including crowds. Images whose objects, apart from crowds, are
    smaller than ``min_object_area`` are left out, and so are copies of an image in another folder.

    Args:
        coco: pairs of an annotation file and its image folder.
        classes: names of COCO categories, the classes of label ``class`` in this order.
        size: side of square images in pixels, or their height and width.
        fit: fit of images of other shapes, see ``Geometry``.
        crop_share: share of the largest crop that is kept, see ``Geometry``.
        min_object_area: area in px² of an image file that the largest object must have.
        images_per_class: largest number of images sampled per class; 0 for all.
        generator: random generator for the sample of images.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 3, H, W]``, ``mask`` bool ``[n, H, W]``,
        ``split`` uint8, ``label_class`` int64 ``[n]`` and ``file`` uint8 ``[n, L]`` (names of the
        file and of its folder, see ``storage.text``).

    Raises:
        FileNotFoundError, ValueError: as ``find_annotated_images``, or during iteration a file is not an image.
    """
    sources = [Source(Path(annotations), Path(images)) for annotations, images in coco]
    by_class, left_out = find_annotated_images(sources, classes, min_area=min_object_area)
    for reason, count in left_out.items():
        logger.info("left out %d images: %s", count, reason)
    images: list[AnnotatedImage] = []
    for name in classes:
        sampled = sample(by_class[name], images_per_class, generator)
        images += sampled
        logger.info("%s: %d images", name, len(sampled))
    return {"class": tuple(classes)}, _blocks(images, classes, Geometry.of(size, fit, crop_share), block)


def class_names(*, classes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the classes in the order of their labels."""
    return tuple(classes)


def _blocks(
    images: Sequence[AnnotatedImage], classes: Sequence[str], geometry: Geometry, block: int
) -> Iterator[Block]:
    labels: Mapping[str, int] = {name: label for label, name in enumerate(classes)}
    files = text.encode([f"{image.file.parent.name}/{image.file.name}" for image in images])
    for start in range(0, len(images), block):
        rows = images[start : start + block]
        pixels, masks = [], []
        for image in rows:
            pixels.append(geometry.resized(read_annotated(image.file, image.mask)))
            masks.append(geometry.sampled(image.decoded_mask()))
        yield {
            "image": np.stack(pixels),
            "mask": np.stack(masks),
            "split": np.full(len(rows), TEST, dtype=np.uint8),
            "label_class": np.array([labels[image.category] for image in rows], dtype=np.int64),
            "file": files[start : start + block],
        }
