"""Composites of a picture and a caption, for models that use a known half of the input (Yeh et al., 2019).

One entry produces three sets, aligned index by index: ``both`` has the picture in the left half and the caption in
the right half; in ``image`` and ``caption``, the other half is black.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from saliency_assay.data.images import Block, Pixels, sample_per_class
from saliency_assay.data.splits import TEST, TRAIN, Ints, Split
from saliency_assay.registry.limits import NonNegativeInt, Share
from saliency_assay.registry.records import unknown

logger = logging.getLogger(__name__)

SETS = ("both", "image", "caption")
SPLIT_NAMES = {TRAIN: "training", TEST: "test"}
WIDEST = 0.9  # largest share of the half's height and of its width that a caption may cover
JITTER = 0.1  # largest offset of a caption from the center, as a share of the half's sides
SMALLEST = 5  # font size in pixels below which words are no longer legible
NOT_A_CHARACTER = "\uffff"  # rendered as the box that stands for every character that a font lacks


@dataclass(frozen=True)
class Plan:
    """Picture, caption and caption position of each image, without pixels."""

    source: Ints
    """``[N]``, index of the picture in the source."""
    label: Ints
    """``[N]``, class before noise: 0 or 1."""
    caption: Ints
    """``[N]``, class that the caption names."""
    aligned: npt.NDArray[np.bool_]
    """``[N]``, True where picture and caption both show the class before noise."""
    split: Split
    place: npt.NDArray[np.float64]
    """``[N, 2]`` in [0, 1): vertical and horizontal position of the caption within its range."""


def compose(
    source: Any,
    names: Sequence[str],
    member: str,
    *,
    classes: Sequence[str],
    captions: Sequence[str] = (),
    image_noise: Share = 0.0,
    caption_noise: Share = 0.0,
    images_per_class: NonNegativeInt = 0,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Compose the images of set ``member`` (one of ``SETS``), H × 2W pixels, in blocks in the source's order.

    Yeh et al. (2019), section 5, "Human Evaluation". All sets and all noise levels use the same random numbers: entries
    with the same seed differ only in the pictures and captions that their noise replaces.

    Args:
        source: an open store or any mapping with its arrays: ``image`` uint8 ``[n, C, H, W]``, ``split`` and
            ``label_class``; only the images of one block are read at a time.
        names: class names of the source.
        member: name of the set.
        classes: the two classes among ``names`` that become labels 0 and 1.
        captions: text for each of the two classes; by default the class names.
        image_noise: probability that the picture is replaced by one of the other class from the same split.
        caption_noise: probability that the caption names the other class.
        images_per_class: largest number of images sampled per class and split; 0 for all.
        generator: random generator for the images, the noise and the caption positions.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, C, H, 2W]``; ``mask`` bool ``[n, H, 2W]``,
        True on the caption's half; ``split`` from the source; ``label_class`` int64, the class before noise;
        ``aligned`` bool, True where picture and caption both show that class; ``source`` int64, index of the picture
        in the source; ``group`` of that picture, if the source has groups. All arrays except ``image`` are equal in the
        three sets.

    Raises:
        ValueError: an unknown ``member``; not two different classes or captions; a class that the source does not
            have, or that has no images in one of the splits; a caption that does not fit into its half.
    """
    if member not in SETS:
        raise ValueError(f"set {member!r}: expected one of {', '.join(SETS)}")
    words = tuple(captions) or tuple(classes)
    _check_two("classes", classes)
    _check_two("captions", words)
    for name in classes:
        if name not in names:
            raise ValueError(f"classes: {unknown('class', name, names)}")
    class_labels = [list(names).index(name) for name in classes]
    arrangement = plan(
        source["label_class"][:],
        source["split"][:],
        class_labels,
        classes=classes,
        image_noise=image_noise,
        caption_noise=caption_noise,
        images_per_class=images_per_class,
        generator=generator,
    )
    height, width = source["image"].shape[2:]
    stamps = render_words(words, height, width)
    logger.info(
        "%d of %d images: picture or caption does not match the class",
        (~arrangement.aligned).sum(),
        len(arrangement.aligned),
    )
    return {"class": tuple(classes)}, _compose_blocks(arrangement, source, stamps, member, block)


def plan(
    labels: Ints,
    split: Split,
    class_labels: Sequence[int],
    *,
    classes: Sequence[str],
    image_noise: float,
    caption_noise: float,
    images_per_class: int,
    generator: np.random.Generator,
) -> Plan:
    """Sample images of a source with ``labels`` and ``split`` ``[n]``; assign a picture and a caption to each.

    ``class_labels`` are the source's labels of the two classes; the other arguments are as in ``compose``.

    Raises:
        ValueError: a class has no image in one of the splits.
    """
    pools = dict[tuple[int, int], Ints]()  # ascending source indices, by split and class
    for split_value, split_name in SPLIT_NAMES.items():
        for class_index, (value, name) in enumerate(zip(class_labels, classes, strict=True)):
            members = np.flatnonzero((labels == value) & (split == split_value))
            if not len(members):
                raise ValueError(f"classes: found no {split_name} image of {name!r}, expected at least one")
            sampled = sample_per_class(labels[members], images_per_class, generator)
            pools[split_value, class_index] = members[sampled]
    rows = np.sort(np.concatenate(list(pools.values())))
    label = (labels[rows] == class_labels[1]).astype(np.int64)
    # All random numbers are sampled at once, so that they do not depend on the noise levels.
    # Columns: swap the picture, swap the caption, choice of the other picture, and the caption's position (two).
    chance = generator.random((len(rows), 5))
    swap_picture, swap_caption = chance[:, 0] < image_noise, chance[:, 1] < caption_noise
    source = rows.copy()
    for (split_value, class_index), pool in pools.items():
        # Pictures of the other class and the same split are replaced by pictures of this pool.
        replaced = swap_picture & (split[rows] == split_value) & (label == 1 - class_index)
        source[replaced] = pool[(chance[replaced, 2] * len(pool)).astype(np.int64)]
    caption = np.where(swap_caption, 1 - label, label)
    return Plan(
        source=source,
        label=label,
        caption=caption,
        aligned=~(swap_picture | swap_caption),
        split=split[rows],
        place=chance[:, 3:],
    )


def render_words(words: Sequence[str], height: int, width: int) -> list[Pixels]:
    """Render each word in Pillow's built-in font, white on black, uint8 ``[h, w]``, cropped to its visible pixels.

    All words have the same font size, the largest at which each fits within ``WIDEST`` of ``height`` × ``width``, so
    that the classes differ in their letters and not in the size of the letters.

    Raises:
        ValueError: a word has no visible pixel, has a character that the font lacks, or does not fit at font size
            ``SMALLEST``; or two words look the same.
    """
    _check_letters(words, height)
    for size in range(height, SMALLEST - 1, -1):
        stamps = [_render_word(word, size) for word in words]
        sides = [(stamp.shape[0] / height, stamp.shape[1] / width) for stamp in stamps]
        if all(max(side) <= WIDEST for side in sides):
            if len({(stamp.shape, stamp.tobytes()) for stamp in stamps}) < len(stamps):
                raise ValueError(f"captions: found {', '.join(map(repr, words))}, which look the same")
            return stamps
    longest = max(words, key=len)
    raise ValueError(
        f"captions: found {longest!r}, expected words that fit {height} × {width} pixels at font size {SMALLEST}; "
        f"use shorter captions or larger images"
    )


def _check_letters(words: Sequence[str], size: int) -> None:
    font = ImageFont.load_default(size)
    missing = bytes(font.getmask(NOT_A_CHARACTER))
    for word in words:
        for letter in word:
            if bytes(font.getmask(letter)) == missing:
                raise ValueError(
                    f"captions: found {word!r}, expected characters of Pillow's built-in font, which lacks {letter!r}"
                )


def _render_word(word: str, size: int) -> Pixels:
    font = ImageFont.load_default(size)
    left, top, right, bottom = (round(side) for side in font.getbbox(word))
    # The rendered word may exceed the font's bounding box by a pixel.
    image = Image.new("L", (right - left + 4, bottom - top + 4))
    ImageDraw.Draw(image).text((2 - left, 2 - top), word, fill=255, font=font)
    box = image.getbbox()
    if box is None:
        raise ValueError(f"captions: found {word!r}, expected a word with visible characters")
    return np.asarray(image.crop(box))


def _compose_blocks(
    arrangement: Plan, source: Any, stamps: Sequence[Pixels], member: str, block: int
) -> Iterator[Block]:
    pictures = source["image"]
    groups = source["group"][:] if "group" in source else None
    channels, height, width = pictures.shape[1:]
    mask = np.zeros((height, 2 * width), dtype=bool)
    mask[:, width:] = True
    for start in range(0, len(arrangement.source), block):
        rows = slice(start, min(start + block, len(arrangement.source)))
        count = rows.stop - rows.start
        image = np.zeros((count, channels, height, 2 * width), dtype=np.uint8)
        if member != "caption":
            image[..., :width] = pictures[arrangement.source[rows]]
        if member != "image":
            for position, (word, place) in enumerate(
                zip(arrangement.caption[rows], arrangement.place[rows], strict=True)
            ):
                _stamp_caption(image[position, :, :, width:], stamps[word], place)
        yield {
            "image": image,
            "mask": np.repeat(mask[None], count, axis=0),
            "split": arrangement.split[rows],
            "label_class": arrangement.label[rows],
            "aligned": arrangement.aligned[rows],
            "source": arrangement.source[rows],
            **({} if groups is None else {"group": groups[arrangement.source[rows]]}),
        }


def _stamp_caption(half: Pixels, stamp: Pixels, place: npt.NDArray[np.float64]) -> None:
    """Copy a rendered word into the black ``half`` ``[C, H, W]``, near its center."""
    corner = []
    for length, stamp_length, share in zip(half.shape[1:], stamp.shape, place, strict=True):
        centered = (length - stamp_length) // 2
        reach = min(round(JITTER * length), centered)  # largest offset that keeps the word inside the half
        corner.append(centered - reach + int(share * (2 * reach + 1)))
    top, left = corner
    half[:, top : top + stamp.shape[0], left : left + stamp.shape[1]] = stamp


def _check_two(key: str, names: Sequence[str]) -> None:
    if len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"{key}: found {', '.join(map(str, names))}, expected two different names")
