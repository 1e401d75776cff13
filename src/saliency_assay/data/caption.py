"""Image or caption: a picture beside the word for it, so that what a model relies on is known (Yeh et al., 2019).

The three sets of one entry are aligned index by index: ``both`` is the picture in the left half and the caption in the
right one, ``image`` the picture beside black, ``caption`` black beside the caption.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from saliency_assay.data.images import Block, Pixels, draw_per_class
from saliency_assay.data.splits import TEST, TRAIN, Ints, Split
from saliency_assay.registry.records import unknown

logger = logging.getLogger(__name__)

SETS = ("both", "image", "caption")
PARTS = {TRAIN: "training", TEST: "test"}
WIDEST = 0.9  # share of the half's sides that the longer caption takes at most
JITTER = 0.1  # share of the half's sides by which a caption is off its centre at most, where there is room
SMALLEST = 5  # font size in pixels below which words can no longer be distinguished


@dataclass(frozen=True)
class Plan:
    """Which picture and which caption each image has, and where: all but how it looks."""

    source: Ints
    """``[N]``, the picture's index in the source."""
    label: Ints
    """``[N]``, the class before noise: 0 or 1."""
    caption: Ints
    """``[N]``, the class whose word is the caption."""
    aligned: npt.NDArray[np.bool_]
    """``[N]``, whether the picture and the caption are of the class before noise."""
    split: Split
    place: npt.NDArray[np.float64]
    """``[N, 2]`` in [0, 1): how far down and to the right the caption is of the room that it has."""


def compose(
    source: Any,
    names: Sequence[str],
    member: str,
    *,
    classes: Sequence[str],
    captions: Sequence[str] = (),
    image_noise: float = 0.0,
    caption_noise: float = 0.0,
    images_per_class: int = 0,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """The images of set ``member`` (one of ``SETS``) of H × 2W pixels, ``block`` at a time, in the source's order.

    Yeh et al. (2019), section 5, "Human Evaluation". Chance falls alike for every set and every noise: entries of one
    seed differ in what their noise replaces, and in nothing else.

    Args:
        source: an open store, or what is indexed like one: ``image`` uint8 ``[n, C, H, W]``, ``split`` and
            ``label_class``; only the rows of a block are read.
        names: of the source's classes.
        member: the set.
        classes: the two classes of ``names``, labels 0 and 1.
        captions: their words; by default the classes' names.
        image_noise: probability that the picture is one of the other class, of the same half of the split.
        caption_noise: probability that the caption names the other class.
        images_per_class: at most so many of a class in each half of the split are drawn; 0 for all.
        generator: draws them, the noise and the captions' places.
        block: images at a time.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, C, H, 2W]``; ``mask`` bool ``[n, H, 2W]``,
        True on the caption's half; ``split``, the source's; ``label_class`` int64, the class before noise; ``aligned``
        bool, whether picture and caption are of that class; ``source`` int64, the picture's index there. All but
        ``image`` is equal in the three sets.

    Raises:
        ValueError: another ``member``; classes or captions that are not two different ones, that the source does not
            have, or without images in a half of the split; a caption that does not fit beside the picture.
    """
    if member not in SETS:
        raise ValueError(f"set {member!r}: expected one of {', '.join(SETS)}")
    words = tuple(captions) or tuple(classes)
    _check_two("classes", classes)
    _check_two("captions", words)
    for name in classes:
        if name not in names:
            raise ValueError(f"classes: {unknown('class', name, names)}")
    wanted = [list(names).index(name) for name in classes]
    drawn = plan(
        source["label_class"][:],
        source["split"][:],
        wanted,
        classes=classes,
        image_noise=image_noise,
        caption_noise=caption_noise,
        images_per_class=images_per_class,
        generator=generator,
    )
    height, width = source["image"].shape[2:]
    stamps = draw_words(words, height, width)
    logger.info("%d of %d pictures do not fit their caption", (~drawn.aligned).sum(), len(drawn.aligned))
    return {"class": tuple(classes)}, _blocks(drawn, source["image"], stamps, member, block)


def plan(
    labels: Ints,
    split: Split,
    wanted: Sequence[int],
    *,
    classes: Sequence[str],
    image_noise: float,
    caption_noise: float,
    images_per_class: int,
    generator: np.random.Generator,
) -> Plan:
    """Draw which images of the source, ``labels`` and ``split`` ``[n]``, are shown with which captions.

    ``wanted`` are the two labels; the rest is as for ``compose``.

    Raises:
        ValueError: a class has no image in a half of the split.
    """
    pools = dict[tuple[int, int], Ints]()  # ascending indices, by half of the split and label
    for part, called in PARTS.items():
        for of_label, (value, name) in enumerate(zip(wanted, classes, strict=True)):
            members = np.flatnonzero((labels == value) & (split == part))
            if not len(members):
                raise ValueError(f"classes: found no {called} image of {name!r}, expected at least one")
            sampled = draw_per_class(labels[members], images_per_class, generator)
            pools[part, of_label] = members[sampled]
    rows = np.sort(np.concatenate(list(pools.values())))
    label = (labels[rows] == wanted[1]).astype(np.int64)
    # One draw of everything, whatever the noise is.
    chance = generator.random((len(rows), 5))
    other_picture, other_caption = chance[:, 0] < image_noise, chance[:, 1] < caption_noise
    source = rows.copy()
    for (part, of_label), pool in pools.items():
        replaced = other_picture & (split[rows] == part) & (label == 1 - of_label)
        source[replaced] = pool[(chance[replaced, 2] * len(pool)).astype(np.int64)]
    caption = np.where(other_caption, 1 - label, label)
    return Plan(
        source=source,
        label=label,
        caption=caption,
        aligned=~(other_picture | other_caption),
        split=split[rows],
        place=chance[:, 3:],
    )


def draw_words(words: Sequence[str], height: int, width: int) -> list[Pixels]:
    """Each word in white on black, uint8 ``[h, w]``, cropped to its ink, with Pillow's built-in font.

    All have one font size, the largest at which each fits within ``WIDEST`` of ``height`` × ``width``: what tells
    classes apart is the letters, not their size.

    Raises:
        ValueError: a word without ink, or one that does not fit at font size ``SMALLEST``.
    """
    for size in range(height, SMALLEST - 1, -1):
        stamps = [_draw_word(word, size) for word in words]
        sides = [(stamp.shape[0] / height, stamp.shape[1] / width) for stamp in stamps]
        if all(max(side) <= WIDEST for side in sides):
            return stamps
    longest = max(words, key=len)
    raise ValueError(
        f"captions: found {longest!r}, expected words that fit {height} × {width} pixels at font size {SMALLEST}; "
        f"give shorter captions or larger images"
    )


def _draw_word(word: str, size: int) -> Pixels:
    font = ImageFont.load_default(size)
    left, top, right, bottom = (round(side) for side in font.getbbox(word))
    # Ink may leave the box that the font tells of by a pixel.
    image = Image.new("L", (right - left + 4, bottom - top + 4))
    ImageDraw.Draw(image).text((2 - left, 2 - top), word, fill=255, font=font)
    box = image.getbbox()
    if box is None:
        raise ValueError(f"captions: found {word!r}, expected a word that can be seen")
    return np.asarray(image.crop(box))


def _blocks(drawn: Plan, pictures: Any, stamps: Sequence[Pixels], member: str, block: int) -> Iterator[Block]:
    channels, height, width = pictures.shape[1:]
    mask = np.zeros((height, 2 * width), dtype=bool)
    mask[:, width:] = True
    for start in range(0, len(drawn.source), block):
        part = slice(start, min(start + block, len(drawn.source)))
        count = part.stop - part.start
        image = np.zeros((count, channels, height, 2 * width), dtype=np.uint8)
        if member != "caption":
            image[..., :width] = pictures[drawn.source[part]]
        if member != "image":
            for position, (word, place) in enumerate(
                zip(drawn.caption[part], drawn.place[part], strict=True)
            ):
                _put(image[position, :, :, width:], stamps[word], place)
        yield {
            "image": image,
            "mask": np.repeat(mask[None], count, axis=0),
            "split": drawn.split[part],
            "label_class": drawn.label[part],
            "aligned": drawn.aligned[part],
            "source": drawn.source[part],
        }


def _put(half: Pixels, stamp: Pixels, place: npt.NDArray[np.float64]) -> None:
    """Draw a word into the black ``half`` ``[C, H, W]``, near its centre."""
    corner = []
    for length, taken, share in zip(half.shape[1:], stamp.shape, place, strict=True):
        middle = (length - taken) // 2
        reach = min(round(JITTER * length), middle)
        corner.append(middle - reach + int(share * (2 * reach + 1)))
    top, left = corner
    half[:, top : top + stamp.shape[0], left : left + stamp.shape[1]] = stamp


def _check_two(key: str, found: Sequence[str]) -> None:
    if len(found) != 2 or found[0] == found[1]:
        raise ValueError(f"{key}: found {', '.join(map(str, found))}, expected two different ones")
