"""Image files in a folder for each class, as ImageNet is laid out: any size in, squares of one size out."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliency_assay.data.images import SUFFIXES, Pixels, find_images, is_hidden, log_left_out, read_rgb
from saliency_assay.data.splits import TEST, TRAIN, Ints, Split, random_split
from saliency_assay.registry.records import shown

logger = logging.getLogger(__name__)

Block = dict[str, npt.NDArray[Any]]
Listing = Mapping[str, Sequence[str]]  # paths of images below a folder, sorted, by class

LONGEST_NAME = 255  # bytes of a file's name
_TEST_FOLDERS = ("test", "val")
_TINY_LIST = "val_annotations.txt"  # Tiny ImageNet's val/ has one folder for all classes, and this list


def folder(
    *,
    path: str,
    size: int = 224,
    crop_share: float = 1.0,
    images_per_class: int = 0,
    test_images_per_class: int = 0,
    test_folder: str = "auto",
    test_share: float = 0.1,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Return the images below ``path``: ``train/CLASS/`` beside ``test/CLASS/`` or ``val/CLASS/``, or ``CLASS/`` alone.

    Images lie anywhere below their class's folder and are known by their suffix (``images.SUFFIXES``); other files
    and hidden ones are left out and counted in the log. Labels follow the sorted names of the classes, images the
    sorted paths, those of ``train`` first. Only the block that is yielded is in memory.

    Args:
        path: the folder.
        size: side of the squares, in pixels.
        crop_share: share of an image's shorter side that the square keeps, see ``square``.
        images_per_class: at most so many of a class in each half are drawn; 0 for all.
        test_images_per_class: another limit for test images, where folders say which they are; 0 for the same one.
        test_folder: ``test`` or ``val``; ``auto`` takes the one there is, and where there is none ``path`` itself
            holds the classes.
        test_share: share of each class that is for testing where no folder says so.
        generator: draws the images, and that split.
        block: images at a time.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 3, size, size]``, ``split`` uint8 and
        ``label_class`` int64 ``[n]``.

    Raises:
        FileNotFoundError: ``path``, ``test_folder``, or an image that a list names is missing.
        ValueError: fewer than two classes, a class without images, or with too few to be split; classes of
            training and test that differ; while blocks are drawn, a file that is not an image.
    """
    root = Path(path)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder of images")
    halves = _halves(root, test_folder)
    listings = [_by_class(half) for half in halves]
    _check_classes(halves, listings)
    _check_classes(halves[::-1], listings[::-1])
    files: list[str] = []
    labels, splits = [], []
    for half, listing, part in zip(halves, listings, (TRAIN, TEST), strict=False):
        for label, (name, found) in enumerate(listing.items()):
            limit = (test_images_per_class if part == TEST else 0) or images_per_class
            drawn = _drawn(found, limit, generator)
            if len(halves) == 1 and len(drawn) < 2:
                raise ValueError(f"{half / name}: found 1 image of this class, expected 2 or more to split")
            files += [f"{half}/{file}" for file in drawn]
            labels.append(np.full(len(drawn), label, dtype=np.int64))
            fixed = np.full(len(drawn), part, dtype=np.uint8)
            splits.append(fixed if len(halves) == 2 else random_split(len(drawn), test_share, generator))
    split = np.concatenate(splits)
    logger.info("%s: %d images to train on, %d to test", root, *np.bincount(split, minlength=2))
    blocks = _blocks(files, np.concatenate(labels), split, size, crop_share, block)
    return {"class": tuple(listings[0])}, blocks


def _blocks(
    files: Sequence[str], labels: Ints, split: Split, size: int, crop_share: float, block: int
) -> Iterator[Block]:
    for start in range(0, len(files), block):
        part = slice(start, min(start + block, len(files)))
        yield {
            "image": np.stack([square(read_rgb(Path(file)), size, crop_share) for file in files[part]]),
            "split": split[part],
            "label_class": labels[part],
        }


def square(image: Image.Image, size: int, crop_share: float) -> Pixels:
    """Return the central square of an RGB image, ``[3, size, size]``.

    As if the shorter side were resized to ``size / crop_share``, bilinearly and with antialiasing, and the centre
    cropped: 224 and 0.875 are ImageNet's resize to 256, as torchvision's ``Resize`` and ``CenterCrop`` do it but
    for rounding.
    Only what is kept is computed, so that a panorama costs no more than a square.
    """
    shorter, scaled = min(image.size), round(size / crop_share)
    box = list[float]()
    for length in image.size:
        after = scaled * length // shorter
        first = round((after - size) / 2)
        box += [first * length / after, min((first + size) * length / after, length)]
    left, right, top, bottom = box
    resized = image.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, right, bottom))
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def _halves(root: Path, wanted: str) -> list[Path]:
    """Return the folders of training and of test images, or ``root`` alone where it holds the classes itself."""
    if wanted == "auto":
        found = [name for name in _TEST_FOLDERS if (root / name).is_dir()]
        if not found or not (root / "train").is_dir():
            return [root]
        if len(found) > 1:
            raise ValueError(
                f"{root}: found {' and '.join(found)} beside train; set test_folder to one of them"
            )
        wanted = found[0]
    halves = [root / "train", root / wanted]
    for half in halves:
        if not half.is_dir():
            raise FileNotFoundError(f"{half}: no such folder of images, though test_folder is {wanted!r}")
    return halves


def _by_class(half: Path) -> Listing:
    """Return the images below ``half`` by class; other files are counted in the log."""
    if (half / _TINY_LIST).is_file():
        return _listed(half / _TINY_LIST)
    images, left_out = find_images(half)
    folders = sorted(entry.name for entry in half.iterdir() if entry.is_dir() and not is_hidden(entry.name))
    listing: dict[str, list[str]] = {name: [] for name in folders}
    for image in images:
        name, within, _ = image.partition("/")
        if within:
            listing[name].append(image)
        else:
            left_out[Path(image).suffix.lower()] += 1  # beside the classes
    log_left_out(half, left_out)
    for name, found in listing.items():
        if not found:
            raise ValueError(f"{half / name}: found no image of this class, expected {', '.join(SUFFIXES)}")
    if len(listing) < 2:
        classes = f"{', '.join(listing) or 'none'}, expected a folder for each of two or more classes"
        raise ValueError(f"{half}: found {classes}")
    return listing


def _listed(file: Path) -> Listing:
    """Return the images in Tiny ImageNet's list: each line a name in ``images/``, its class and a box, tabs between."""
    listing: dict[str, set[str]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        name, *rest = line.split("\t")
        if name in ("", "..") or not any(rest[:1]) or Path(name).name != name or len(name) > LONGEST_NAME:
            raise ValueError(
                f"{file}: line {number} is {shown(line)}, expected an image's name, a tab and its class"
            )
        listing.setdefault(rest[0], set()).add(f"images/{name}")
    return {name: sorted(listing[name]) for name in sorted(listing)}


def _check_classes(halves: Sequence[Path], listings: Sequence[Listing]) -> None:
    missing = [name for name in listings[-1] if name not in listings[0]]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ValueError(f"{halves[0]}: lacks classes that {halves[-1]} has: {', '.join(missing[:3])}{more}")


def _drawn(files: Sequence[str], limit: int, generator: np.random.Generator) -> Sequence[str]:
    if not limit or len(files) <= limit:
        return files
    return [files[index] for index in np.sort(generator.choice(len(files), limit, replace=False))]
