"""Reader of image files: in one folder per class, the layout of ImageNet, or in a CSV file that lists them.

Images are fitted to one size (``geometry.Geometry``), and so are their masks, if there are any.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliency_assay.data.geometry import Geometry
from saliency_assay.data.image_folders import (
    TINY_LIST,
    Listing,
    find_split_folders,
    folder_names,
    read_tiny_list,
)
from saliency_assay.data.image_lists import SPLITS, ListedImage, columns_of, is_list, read_images
from saliency_assay.data.images import SUFFIXES, find_images, log_left_out, read_rgb, read_window, sample
from saliency_assay.data.masks import Masks, Row, find_masks
from saliency_assay.data.splits import TEST, TRAIN, ClassError, Ints, Split, grouped_split, random_split
from saliency_assay.registry.limits import Limits, NonNegativeInt
from saliency_assay.registry.records import short_repr
from saliency_assay.runtime.job import printable
from saliency_assay.storage import text

logger = logging.getLogger(__name__)

Block = dict[str, npt.NDArray[Any]]

_SPLITS = {"train": TRAIN, "test": TEST}


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
    explained_classes: Sequence[str] = (),
    size: int | Sequence[int] = 224,
    fit: Annotated[str, Limits(choices=("crop", "pad", "stretch"))] = "crop",
    crop_share: Annotated[float, Limits(minimum=0.1, maximum=1)] = 1.0,
    gray: bool = False,
    window: Sequence[float] = (),
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
        explained_classes: names of the classes whose test images need a file in a folder of masks; empty for all.
        size: side of square images in pixels, or their height and width.
        fit: fit of images of other shapes, see ``Geometry``.
        crop_share: share of the largest crop that is kept, see ``Geometry``.
        gray: True for images of one channel, the luma of ITU-R 601-2.
        window: values of gray images that become 0 and 1, see ``images.read_window``; empty for 8-bit images.
        images_per_class: largest number of images sampled per class and split; 0 for all.
        test_images_per_class: separate limit for test images in a separate folder or split; 0 for the same limit.
        test_folder: ``test`` or ``val``; ``auto`` uses whichever exists. If neither does, ``path`` itself contains the
            classes. Not used for a list.
        split: ``test`` if all images are test images, in ``CLASS/``; ``auto`` for the rules above.
        test_share: share of each class for testing, if there is no test folder or column ``split``. Images of one group
            of a list stay together.
        generator: random generator for the sample of images and for a split by ``test_share``.
        block: number of images per block.

    Returns:
        The classes of label ``class``, and blocks of ``image`` ``[n, 3 or 1, H, W]`` (uint8, or float32 with a window),
        ``split`` uint8, ``label_class`` int64 ``[n]``, ``file`` uint8 ``[n, L]`` (path relative to ``path`` or the
        list's folder, see ``storage.text``), with masks ``mask`` bool ``[n, H, W]`` and, for a list with the column
        ``group`` or with several rows of an image, ``group`` like ``file``, by default the path of the image.

    Raises:
        FileNotFoundError: ``path``, ``test_folder``, ``masks`` or a listed image is missing.
        ValueError: there are fewer than two classes and training images, a class has no images or too few to split, the
            classes of training and test differ, a list contradicts ``split``, or a test image has no mask; during
            iteration, a file is not an image or mask, or all values of all images are outside the window.
    """
    root = Path(path)
    listed_masks, groups = None, dict[str, str]()
    if is_list(root):
        images = read_images(root)
        sources, groups, listed_masks = (
            _sources_of(root, images, split),
            _groups_of(images),
            _masks_of(root, images),
        )
        root = root.parent
    elif root.is_dir():
        sources = [
            _source_of(root, split_folder, _SPLITS.get(name))
            for name, split_folder in find_split_folders(root, test_folder, split).items()
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
    rows: list[Row] = []
    labels, splits = [], []
    for source in sources:
        for label, (name, class_files) in enumerate(source.listing.items()):
            limit = (test_images_per_class if source.split == TEST else 0) or images_per_class
            sampled = sample(class_files, limit, generator)
            if is_random and len(sampled) < 2:
                raise ValueError(
                    f"{source.place}{source.separator}{name}: found 1 image of this class, expected 2 or more to split"
                )
            rows += [(file, name) for file in sampled]
            labels.append(np.full(len(sampled), label, dtype=np.int64))
            if source.split is not None:
                splits.append(np.full(len(sampled), source.split, dtype=np.uint8))
            elif not groups:
                splits.append(random_split(len(sampled), test_share, generator))
    files, label_class = [file for file, _ in rows], np.concatenate(labels)
    image_groups = [groups[file] for file in files] if groups else []
    image_splits = (
        np.concatenate(splits)
        if splits
        else _split_groups(sources[0], label_class, image_groups, test_share, generator)
    )
    logger.info("%s: %d images to train on, %d to test", path, *np.bincount(image_splits, minlength=2))
    if masks and len({file for file, _ in rows}) < len(rows):
        raise ValueError(
            f"masks: found {masks}, whose masks are those of images, but {path} lists an image for several labels; "
            "expected the column mask"
        )
    image_masks = find_masks(Path(masks), rows) if masks else listed_masks
    if image_masks:
        test_rows = (rows[index] for index in np.flatnonzero(image_splits == TEST))
        image_masks.require(
            [row for row in test_rows if not explained_classes or printable(row[1]) in explained_classes]
        )
    columns: Block = {"split": image_splits, "label_class": label_class, "file": text.encode(files)}
    if groups:
        columns["group"] = text.encode(image_groups)
    geometry = Geometry.of(size, fit, crop_share)
    blocks = _load_blocks(root, rows, columns, image_masks, geometry, block, window, gray)
    return {"class": tuple(map(printable, sources[0].listing))}, blocks


def _load_blocks(
    root: Path,
    rows: Sequence[Row],
    columns: Block,
    masks: Masks | None,
    geometry: Geometry,
    block: int,
    window: Sequence[float],
    gray: bool,
) -> Iterator[Block]:
    read = partial(read_window, window=window) if window else partial(_read, gray=gray)
    empty, is_above, is_below = 0, False, False
    for start in range(0, len(rows), block):
        block_rows = slice(start, min(start + block, len(rows)))
        images, image_masks = [], []
        for row in rows[block_rows]:
            image = read(root / row[0])
            if window and not (is_above and is_below):
                extrema = np.array(image.getextrema())
                is_above, is_below = is_above or bool(extrema.max() > 0), is_below or bool(extrema.min() < 1)
            images.append(geometry.resized(image))
            if masks:
                image_masks.append(masks.of(row, *image.size, geometry))
        arrays = {"image": np.stack(images), **({"mask": np.stack(image_masks)} if masks else {})}
        yield {**arrays, **{name: column[block_rows] for name, column in columns.items()}}
        if masks:
            is_test = columns["split"][block_rows] == TEST
            empty += int((is_test & ~arrays["mask"].any(axis=(1, 2))).sum())
    if window and not (is_above and is_below):
        limit = f"above {window[0]:g}" if not is_above else f"below {window[1]:g}"
        raise ValueError(
            f"window: found [{window[0]:g}, {window[1]:g}], but no value of {len(rows)} images is {limit}; expected a "
            "window that contains some of their values"
        )
    if masks and empty:
        count = int((columns["split"] == TEST).sum())
        if empty == count:
            raise ValueError(
                f"{masks.source}: found an empty mask of each of {count} test images after resizing and cropping, "
                "expected an object in one or more"
            )
        logger.warning(
            "masks of %d of %d test images are empty after resizing and cropping: they have no scores of localization",
            empty,
            count,
        )


def _read(path: Path, *, gray: bool) -> Image.Image:
    image = read_rgb(path, remedy="; set gray: true and window: [low, high], the values that become 0 and 1")
    return image.convert("L") if gray else image


def _sources_of(path: Path, images: Sequence[ListedImage], split: str) -> list[_Source]:
    """Return the images of a list, by split if it has that column."""
    listings: dict[str, dict[str, list[str]]] = {}
    for row in sorted(images, key=lambda row: (row.label, row.image)):
        listings.setdefault(row.split or split, {}).setdefault(row.label, []).append(row.image)
    if split == "test" and list(listings) != ["test"]:
        raise ValueError(f"{path}: found images of split train, expected only test, because split is test")
    names = ("test",) if list(listings) == ["test"] else SPLITS if images[0].split else ("auto",)
    sources = []
    for name in names:
        place = f"{path}, split {name}" if images[0].split else str(path)
        sources.append(_Source(place, listings.get(name, {}), ", class ", _SPLITS.get(name)))
    return sources


def _masks_of(path: Path, images: Sequence[ListedImage]) -> Masks | None:
    """Return the masks of a list, if it has that column."""
    if "mask" not in columns_of(path):
        return None
    files = {(row.image, row.label): path.parent / row.mask for row in images if row.mask}
    return Masks(str(path), "its path in the column mask", complete=False, files=files)


def _groups_of(images: Sequence[ListedImage]) -> dict[str, str]:
    """Return the group of each image of a list, by default itself; empty if no two rows could be in one group."""
    if not images[0].group and len({row.image for row in images}) == len(images):
        return {}
    return {row.image: row.group or row.image for row in images}


def _split_groups(
    source: _Source, labels: Ints, names: Sequence[str], test_share: float, generator: np.random.Generator
) -> Split:
    """Return a random split of images in the groups ``names``.

    Raises:
        ValueError: a class has no group that can be split off.
    """
    try:
        return grouped_split(labels, np.unique(names, return_inverse=True)[1], test_share, generator)
    except ClassError as error:
        name = list(source.listing)[error.label]
        raise ValueError(
            f"{source.place}{source.separator}{name}: found too few groups of images, expected some to train on and "
            "others to test"
        ) from None


def _source_of(root: Path, split_folder: Path, split: int | None) -> _Source:
    """Return the images of ``root`` or of one of its folders of a split."""
    prefix = f"{split_folder.name}/" if split_folder != root else ""
    listing = {
        name: [f"{prefix}{file}" for file in files] for name, files in _list_classes(split_folder).items()
    }
    return _Source(str(split_folder), listing, "/", split)


def _list_classes(folder: Path) -> Listing:
    """Return the images below ``folder`` by class; log the number of other files."""
    if (folder / TINY_LIST).is_file():
        return read_tiny_list(folder / TINY_LIST)
    images, left_out = find_images(folder)
    listing: dict[str, list[str]] = {name: [] for name in folder_names(folder)}
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


def _check_classes(sources: Sequence[_Source]) -> None:
    """Check that training and test images have the same classes: two or more, or one if all are test images."""
    for source in sources:
        names = ", ".join(source.listing) or "none"
        if not source.listing or (len(source.listing) == 1 and sources[0].split != TEST):
            expected = "one or more" if sources[0].split == TEST else "two or more"
            expected += ", each in its own folder, or a list of images" if source.separator == "/" else ""
            raise ValueError(f"{source.place}: found classes {short_repr(names)}, expected {expected}")
    for source, other in zip(sources, sources[::-1], strict=True):
        missing = [name for name in other.listing if name not in source.listing]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ValueError(
                f"{source.place}: missing classes of {other.place}: {', '.join(missing[:3])}{more}"
            )
