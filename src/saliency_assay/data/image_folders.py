"""Classes and splits of image files, from the names of their folders or a list, without reading an image.

The configuration reads them, so this module imports no library.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from saliency_assay.data.image_lists import columns_of, has_training_row, is_list, read_images
from saliency_assay.registry.records import short_repr
from saliency_assay.runtime.job import printable

Listing = Mapping[str, Sequence[str]]
"""Paths of images below a folder, sorted, by class."""

LONGEST_NAME = 255  # bytes of a file's name
TINY_LIST = "val_annotations.txt"
"""Class of each image in Tiny ImageNet's val/, which has no folders of classes."""
_TEST_FOLDERS = ("test", "val")
_SPLIT_NAMES = frozenset(("train", "training", "test", "testing", "val", "valid", "validation"))


def class_names(*, path: str, test_folder: str = "auto", split: str = "auto") -> tuple[str, ...]:
    """Return the names of the classes of ``path`` in the order of their labels, without reading or listing images.

    Raises:
        FileNotFoundError, ValueError: as the reader.
    """
    root = Path(path)
    if is_list(root):
        return tuple(map(printable, sorted({row.label for row in read_images(root)})))
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder of images")
    first = next(iter(find_split_folders(root, test_folder, split).values()))
    names = read_tiny_list(first / TINY_LIST) if (first / TINY_LIST).is_file() else folder_names(first)
    if not names:
        raise ValueError(f"{first}: found no folder of a class, expected one or more, or a list of images")
    return tuple(map(printable, names))


def has_training_images(path: str, test_folder: str, split: str) -> bool:
    """Return False if all images of ``path``, which exists, are test images, without reading or listing images.

    Raises:
        ValueError: the list cannot be read.
    """
    root = Path(path)
    if split == "test":
        return False
    if is_list(root):
        return "split" not in columns_of(root) or has_training_row(root)
    return test_folder != "auto" or _only_test_folder(root) is None


def is_hidden(name: str) -> bool:
    """Return True for a hidden file or folder, including ``._1.jpg`` and ``__MACOSX``, which macOS adds to archives."""
    return name.startswith(".") or name == "__MACOSX"


def folder_names(folder: Path) -> list[str]:
    """Return the sorted names of the folders in a folder that are not hidden."""
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not is_hidden(entry.name))


def _only_test_folder(root: Path) -> Path | None:
    """Return the folder of test images if there is no other folder."""
    folders = [root / name for name in _TEST_FOLDERS if (root / name).is_dir()]
    # The folders of a thousand classes are listed only if one of them may be that of the test images.
    return folders[0] if len(folders) == 1 and folder_names(root) == [folders[0].name] else None


def find_split_folders(root: Path, test_folder: str, split: str) -> dict[str, Path]:
    """Return the folders of training and test images by split; the key is empty for images to be split at random.

    Raises:
        FileNotFoundError, ValueError: a folder is missing, or there are several folders of test images.
    """
    if test_folder == "auto" and (only := _only_test_folder(root)):
        return {"test": only}
    if split == "test":
        _check_no_splits(folder_names(root), root, "set path to the one of the test images")
        return {"test": root}
    if test_folder == "auto":
        test_names = [name for name in _TEST_FOLDERS if (root / name).is_dir()]
        if not test_names or not (root / "train").is_dir():
            _check_no_splits(folder_names(root), root, "for a split, name them train and test or val")
            return {"": root}
        if len(test_names) > 1:
            raise ValueError(
                f"{root}: found {' and '.join(test_names)} next to train; set test_folder to one of them"
            )
        test_folder = test_names[0]
    folders: dict[str, Path] = {"train": root / "train", "test": root / test_folder}
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


def read_tiny_list(file: Path) -> Listing:
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
