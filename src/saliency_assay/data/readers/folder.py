"""Reader of image files: in one folder per class, the layout of ImageNet, or in a CSV file that lists them.

Images are cropped to squares of one size, and so are their masks, if there are any.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliency_assay.data.image_lists import SPLITS, columns_of, is_list, read_images
from saliency_assay.data.images import SUFFIXES, Pixels, find_images, is_hidden, log_left_out, read_rgb
from saliency_assay.data.masks import Crop, Masks, find_masks
from saliency_assay.data.splits import TEST, TRAIN, random_split
from saliency_assay.registry.limits import Limits, NonNegativeInt
from saliency_assay.registry.records import short_repr
from saliency_assay.runtime.job import printable
from saliency_assay.storage import text

logger = logging.getLogger(__name__)

Block = dict[str, npt.NDArray[Any]]
Listing = Mapping[str, Sequence[str]]  # paths of images below a folder, sorted, by class

LONGEST_NAME = 255  # bytes of a file's name
_TEST_FOLDERS = ("test", "val")
_SPLIT_VALUES = {"train": TRAIN, "test": TEST}
_SPLIT_NAMES = frozenset(("train", "training", "test", "testing", "val", "valid", "validation"))
# Class of each image in Tiny ImageNet's val/, which has no folders of classes.
_TINY_LIST = "val_annotations.txt"


@dataclass(frozen=True)
class _Source:
    """Images by class; names are relative to the root."""

    place: str
    """Folder, or list and split, for errors."""
    listing: Listing
    separator: str
    """Text between ``place`` and the name of a class, for errors."""
    split: int | None
    """Split of all images; None if they are to be split at random."""


def folder(
    *,
    path: str,
    masks: str = "",
    size: Annotated[int, Limits(minimum=8, maximum=1024)] = 224,
    crop_share: Annotated[float, Limits(minimum=0.1, maximum=1)] = 1.0,
    gray: bool = False,
    images_per_class: NonNegativeInt = 0,
    test_images_per_class: NonNegativeInt = 0,
    test_folder: Annotated[str, Limits(choices=("auto", "test", "val"))] = "auto",
    split: Annotated[str, Limits(choices=("auto", "test"))] = "auto",
    test_share: Annotated[float, Limits(minimum=0.01, maximum=0.5)] = 0.1,
    generator: np.random.Generator,
    block: int = 256,
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """Read the images below ``path``: in ``train/CLASS/`` and ``test/CLASS/`` or ``val/CLASS/``, or in ``CLASS/``.

    If ``path`` has only one of the folders ``test/`` and ``val/`` and no other, or if all rows of a list have the split
    ``test``, there are no training images.

    Images may be at any depth below the folder of their class and are identified by their suffix (``images.SUFFIXES``);
    other and hidden files are skipped, and their number is logged. Labels are in the order of the sorted class names.
    Images are in the order of the sorted paths, training images first. Only one block at a time is in memory.

    Args:
        path: the folder, or a list of images, labels, masks and splits (``image_lists.read_images``).
        masks: folder of masks, or list of boxes (``masks.find_masks``); empty for no masks, or those of the list.
        size: side of the squares, in pixels.
        crop_share: share of an image's shorter side that the square contains, see ``square``.
        gray: True for images of one channel, the luma of ITU-R 601-2.
        images_per_class: largest number of images sampled per class and split; 0 for all.
        test_images_per_class: separate limit for test images in a separate folder or split; 0 for the same limit.
        test_folder: ``test`` or ``val``; ``auto`` uses whichever exists. If neither does, ``path`` itself contains the
            classes. Not used for a list.
        split: ``test`` if all images are test images, in ``CLASS/``; ``auto`` for the rules above.
        test_share: share of each class for testing, if there is no test folder or column ``split``.
        generator: random generator for the sample of images and for a split by ``test_share``.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 3 or 1, size, size]``, ``split``
        uint8, ``label_class`` int64 ``[n]``, ``file`` uint8 ``[n, L]`` (path relative to ``path`` or the list's folder,
        see ``storage.text``) and, with masks, ``mask`` bool ``[n, size, size]``.

    Raises:
        FileNotFoundError: ``path``, ``test_folder``, ``masks`` or a listed image is missing.
        ValueError: there are fewer than two classes and training images, a class has no images or too few to split, the
            classes of training and test differ, a list contradicts ``split``, or a test image has no mask; during
            iteration, a file is not an image or mask.
    """
    root = Path(path)
    listed_masks = None
    if is_list(root):
        sources, listed_masks = _read_list(root, split)
        root = root.parent
    elif root.is_dir():
        sources = [
            _source_of(root, split_folder, split_value)
            for split_value, split_folder in _find_split_folders(root, test_folder, split).items()
        ]
    else:
        raise FileNotFoundError(f"{root}: no such folder of images")
    _check_classes(sources)
    is_random = sources[0].split is None
    if is_random and images_per_class == 1:
        raise ValueError(
            "images_per_class: found 1, expected 0, or 2 or more to split the images of each class"
        )
    if is_random and test_images_per_class:
        raise ValueError(
            f"test_images_per_class: found {test_images_per_class}, but {path} has no folder or split of test images; "
            "use images_per_class and test_share"
        )
    files: list[str] = []
    labels, splits = [], []
    for source in sources:
        for label, (name, class_files) in enumerate(source.listing.items()):
            limit = (test_images_per_class if source.split == TEST else 0) or images_per_class
            sampled = _sample_files(class_files, limit, generator)
            if is_random and len(sampled) < 2:
                raise ValueError(
                    f"{source.place}{source.separator}{name}: found 1 image of this class, expected 2 or more to split"
                )
            files += sampled
            labels.append(np.full(len(sampled), label, dtype=np.int64))
            splits.append(
                random_split(len(sampled), test_share, generator)
                if source.split is None
                else np.full(len(sampled), source.split, dtype=np.uint8)
            )
    image_splits = np.concatenate(splits)
    logger.info("%s: %d images to train on, %d to test", path, *np.bincount(image_splits, minlength=2))
    image_masks = find_masks(Path(masks), files) if masks else listed_masks
    if image_masks:
        image_masks.require([files[index] for index in np.flatnonzero(image_splits == TEST)])
    columns: Block = {
        "split": image_splits,
        "label_class": np.concatenate(labels),
        "file": text.encode(files),
    }
    blocks = _load_blocks(root, files, columns, image_masks, size, crop_share, block, gray=gray)
    return {"class": tuple(map(printable, sources[0].listing))}, blocks


def _load_blocks(
    root: Path,
    files: Sequence[str],
    columns: Block,
    masks: Masks | None,
    size: int,
    crop_share: float,
    block: int,
    *,
    gray: bool,
) -> Iterator[Block]:
    empty = 0
    for start in range(0, len(files), block):
        rows = slice(start, min(start + block, len(files)))
        images, image_masks = [], []
        for name in files[rows]:
            image = read_rgb(root / name)
            images.append(square(image.convert("L") if gray else image, size, crop_share))
            if masks:
                crop = crop_of(*image.size, size, crop_share)
                image_masks.append(masks.of(name, *image.size, crop, size))
        arrays = {"image": np.stack(images), **({"mask": np.stack(image_masks)} if masks else {})}
        yield {**arrays, **{name: column[rows] for name, column in columns.items()}}
        if masks:
            is_test = columns["split"][rows] == TEST
            empty += int((is_test & ~arrays["mask"].any(axis=(1, 2))).sum())
    if empty:
        logger.warning(
            "masks of %d test images are empty after resizing and cropping: their scores are NaN", empty
        )


def square(image: Image.Image, size: int, crop_share: float) -> Pixels:
    """Return the central square of an RGB or gray image, ``[3 or 1, size, size]``.

    The result is that of resizing the shorter side to ``size / crop_share`` (bilinear, antialiased) and a center crop:
    ``size`` 224 and ``crop_share`` 0.875 correspond to ImageNet's resize to 256, up to rounding as in torchvision's
    ``Resize`` and ``CenterCrop``. Only the cropped region is resized, so that a panorama takes no longer than a square
    image.
    """
    crop = crop_of(*image.size, size, crop_share)
    resized = image.resize((size, size), Image.Resampling.BILINEAR, box=crop)
    return np.ascontiguousarray(np.atleast_3d(np.asarray(resized)).transpose(2, 0, 1))


def crop_of(width: int, height: int, size: int, crop_share: float) -> Crop:
    """Return the rectangle of an image that ``square`` resizes to ``size`` × ``size`` pixels."""
    scaled = round(size / crop_share)
    edges = list[tuple[float, float]]()
    for length in (width, height):
        resized_length = scaled * length // min(width, height)  # rounded down, as in torchvision
        first = round((resized_length - size) / 2)
        # The crop in coordinates of the original; ``min`` removes the rounding error at the far edge.
        end = min((first + size) * length / resized_length, length)
        edges.append((first * length / resized_length, end))
    (left, right), (upper, lower) = edges
    return left, upper, right, lower


def _read_list(path: Path, split: str) -> tuple[list[_Source], Masks | None]:
    """Return the images of a list, by split if it has that column, and their masks if it has that column."""
    images = read_images(path)
    listings: dict[str, dict[str, list[str]]] = {}
    for row in sorted(images, key=lambda row: (row.label, row.image)):
        listings.setdefault(row.split or split, {}).setdefault(row.label, []).append(row.image)
    if split == "test" and list(listings) != ["test"]:
        raise ValueError(f"{path}: found images of split train, expected only test, because split is test")
    names = ("test",) if list(listings) == ["test"] else SPLITS if images[0].split else ("auto",)
    sources = []
    for name in names:
        place = f"{path}, split {name}" if images[0].split else str(path)
        sources.append(_Source(place, listings.get(name, {}), ", class ", _SPLIT_VALUES.get(name)))
    if "mask" not in columns_of(path):
        return sources, None
    files = {row.image: path.parent / row.mask for row in images if row.mask}
    return sources, Masks(str(path), "its path in the column mask", files=files)


def _source_of(root: Path, split_folder: Path, split: int | None) -> _Source:
    """Return the images of ``root`` or of one of its folders of a split."""
    prefix = f"{split_folder.name}/" if split_folder != root else ""
    listing = {
        name: [f"{prefix}{file}" for file in files] for name, files in _list_classes(split_folder).items()
    }
    return _Source(str(split_folder), listing, "/", split)


def class_names(*, path: str, test_folder: str = "auto", split: str = "auto") -> tuple[str, ...]:
    """Return the names of the classes of ``path`` in the order of their labels, without reading or listing images.

    Raises:
        FileNotFoundError, ValueError: as ``folder``.
    """
    root = Path(path)
    if is_list(root):
        return tuple(map(printable, sorted({row.label for row in read_images(root)})))
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder of images")
    first = next(iter(_find_split_folders(root, test_folder, split).values()))
    names = _read_tiny_list(first / _TINY_LIST) if (first / _TINY_LIST).is_file() else _folder_names(first)
    return tuple(map(printable, names))


def has_training_images(*, path: str, test_folder: str = "auto", split: str = "auto") -> bool:
    """Return False if all images of ``path``, which exists, are test images, without reading or listing images.

    Raises:
        ValueError: the list cannot be read.
    """
    root = Path(path)
    if split == "test":
        return False
    if is_list(root):
        return "split" not in columns_of(root) or any(row.split == "train" for row in read_images(root))
    return test_folder != "auto" or _only_split(_folder_names(root)) is None


def _folder_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not is_hidden(entry.name))


def _only_split(names: Sequence[str]) -> str | None:
    """Return the name of the folder of test images if there is no other folder."""
    return names[0] if len(names) == 1 and names[0] in _TEST_FOLDERS else None


def _find_split_folders(root: Path, test_folder: str, split: str) -> dict[int | None, Path]:
    """Return the folders of training and test images, or the one whose images are all test images or to be split."""
    names = _folder_names(root)
    if test_folder == "auto" and (only := _only_split(names)):
        return {TEST: root / only}
    if split == "test":
        _check_no_splits(names, root, "set path to the one of the test images")
        return {TEST: root}
    if test_folder == "auto":
        test_names = [name for name in _TEST_FOLDERS if (root / name).is_dir()]
        if not test_names or not (root / "train").is_dir():
            _check_no_splits(names, root, "for a split, name them train and test or val")
            return {None: root}
        if len(test_names) > 1:
            raise ValueError(
                f"{root}: found {' and '.join(test_names)} next to train; set test_folder to one of them"
            )
        test_folder = test_names[0]
    folders: dict[int | None, Path] = {TRAIN: root / "train", TEST: root / test_folder}
    for folder in folders.values():
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{folder}: no such folder of images, expected one as test_folder is {test_folder!r}"
            )
    return folders


def _check_no_splits(names: Sequence[str], root: Path, remedy: str) -> None:
    """Raise an error if the class folders of ``root`` look like folders of splits under unsupported names."""
    splits = [name for name in names if name.lower() in _SPLIT_NAMES]
    if len(splits) > 1:
        raise ValueError(f"{root}: found the folders {', '.join(splits)}, which would be classes; {remedy}")


def _list_classes(folder: Path) -> Listing:
    """Return the images below ``folder`` by class; log the number of other files."""
    if (folder / _TINY_LIST).is_file():
        return _read_tiny_list(folder / _TINY_LIST)
    images, left_out = find_images(folder)
    listing: dict[str, list[str]] = {name: [] for name in _folder_names(folder)}
    for image in images:
        name, below_class, _ = image.partition("/")
        if below_class:
            listing[name].append(image)
        else:
            left_out[Path(image).suffix.lower()] += 1  # not in a class folder
    log_left_out(folder, left_out)
    for name, files in listing.items():
        if not files:
            raise ValueError(f"{folder / name}: found no image of this class, expected {', '.join(SUFFIXES)}")
    return listing


def _read_tiny_list(file: Path) -> Listing:
    """Return the images of Tiny ImageNet's list by class; a line has file name, class and box, separated by tabs."""
    listing: dict[str, set[str]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        name, *rest = line.split("\t")
        if name in ("", "..") or not any(rest[:1]) or Path(name).name != name or len(name) > LONGEST_NAME:
            raise ValueError(
                f"{file}: line {number} is {short_repr(line)}, expected an image's file name, a tab and its class"
            )
        listing.setdefault(rest[0], set()).add(f"images/{name}")
    return {name: sorted(listing[name]) for name in sorted(listing)}


def _check_classes(sources: Sequence[_Source]) -> None:
    """Check that training and test images have the same classes: two or more, or one if all are test images."""
    for source in sources:
        names = ", ".join(source.listing) or "none"
        if not source.listing or (len(source.listing) == 1 and sources[0].split != TEST):
            expected = "one or more" if sources[0].split == TEST else "two or more"
            expected += ", each in its own folder" if source.separator == "/" else ""
            raise ValueError(f"{source.place}: found classes {short_repr(names)}, expected {expected}")
    for source, other in zip(sources, sources[::-1], strict=True):
        missing = [name for name in other.listing if name not in source.listing]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ValueError(
                f"{source.place}: missing classes of {other.place}: {', '.join(missing[:3])}{more}"
            )


def _sample_files(files: Sequence[str], limit: int, generator: np.random.Generator) -> Sequence[str]:
    if not limit or len(files) <= limit:
        return files
    return [files[index] for index in np.sort(generator.choice(len(files), limit, replace=False))]
