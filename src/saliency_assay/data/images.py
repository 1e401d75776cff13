"""Reading, drawing and resizing images: what the kinds of data set share."""

import logging
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, TiffImageFile

from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.runtime.provenance import digest_of_file

logger = logging.getLogger(__name__)

Pixels = npt.NDArray[np.uint8]
Block = dict[str, npt.NDArray[Any]]

# 16-bit and float images have no defined conversion to 8 bits; a reader that guessed would clip them to white.
_EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")

# Pillow knows a file by its content, not by its name, and has some that it knows drawn by another program: PostScript,
# which is a language, by Ghostscript.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

# Pillow's suffixes of these formats; .pfm is left out, because its pixels are always floats.
SUFFIXES = (
    *(".apng", ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm"),
    *(".tif", ".tiff", ".webp"),
)


def find_images(folder: Path) -> tuple[list[str], Counter[str]]:
    """Find the image files at any depth below a folder, by their suffix.

    Hidden files and folders are left out, so are other files. Links are followed, but not to a folder that they are in.

    Returns:
        The images' paths relative to ``folder``, sorted, and how many files and folders of each suffix were left out;
        hidden ones are counted as ``hidden``, and of a hidden folder only the folder.

    Raises:
        OSError: a folder that cannot be read.
    """
    images: list[str] = []
    left_out: Counter[str] = Counter()
    entered = {folder: [folder.resolve()]}  # by folder: where it and those around it really are
    for place, folders, files in os.walk(folder, onerror=_stop, followlinks=True):
        here, below = Path(place), Path(place).relative_to(folder)
        around = entered.pop(here)
        left_out["hidden"] += sum(map(is_hidden, [*folders, *files]))
        really = {name: (here / name).resolve() for name in folders if not is_hidden(name)}
        folders[:] = [
            name for name, path in really.items() if not any(outer.is_relative_to(path) for outer in around)
        ]
        entered |= {here / name: [*around, really[name]] for name in folders}
        for name in files:
            if is_hidden(name):
                continue
            suffix = Path(name).suffix.lower()
            if suffix in SUFFIXES:
                images.append((below / name).as_posix())
            else:
                left_out[suffix or "no suffix"] += 1
    return sorted(images), +left_out


def is_hidden(name: str) -> bool:
    """Return whether a file or folder is not meant to be seen: ``._1.jpg`` and what macOS adds to zip archives, too."""
    return name.startswith(".") or name == "__MACOSX"


def log_left_out(folder: Path, left_out: Counter[str]) -> None:
    """Log how many files and folders ``find_images`` left out, by suffix."""
    if left_out:
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(left_out.items()))
        logger.info("%s: left out %d files and folders: %s", folder, left_out.total(), counts)


def _stop(error: OSError) -> None:
    raise error


def read_rgb(path: Path) -> Image.Image:
    """Read an image file as 8-bit RGB; grey, palette and CMYK are converted, transparency is ignored.

    The pixels are taken as stored: EXIF orientation is not applied, because COCO's polygons refer to the stored
    pixels.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is no file, not an image of one of ``FORMATS``, is truncated, has more than 8 bits a channel or
            more pixels than Pillow takes without a warning (``Image.MAX_IMAGE_PIXELS``, 89 million).
    """
    if not path.is_file():
        raise no_file(path)
    try:
        with _opened(path) as image:
            bits = _bits_a_channel(image)
            image.load()
            mode = image.mode
            # Palettes may carry transparency as bytes, which only RGBA takes without a warning.
            rgb = (image.convert("RGBA") if mode == "P" else image).convert("RGB")
    except UnidentifiedImageError as error:
        raise ValueError(f"{path}: truncated, or not an image (valid: {', '.join(FORMATS)})") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = f"found more than {Image.MAX_IMAGE_PIXELS} pixels, which is the most that is read"
        raise ValueError(f"{path}: {reason}") from error
    except Exception as error:  # a damaged image raises whatever its format's reader stumbles over
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: truncated, or not an image ({reason})") from error
    if bits > 8 or mode not in _EIGHT_BIT:
        found = f"{bits} bits" if bits > 8 else f"pixels of mode {mode}"
        raise ValueError(f"{path}: found {found}, expected 8 bits a channel")
    return rgb


def _bits_a_channel(image: ImageFile) -> int:
    """Return the file's bits a channel where Pillow's mode hides them, before the pixels are loaded; else 8.

    Of 16-bit color images Pillow has no mode: it keeps the upper 8 bits and calls them RGB.
    """
    if isinstance(image, TiffImageFile):
        bits: Sequence[int] = image.tag_v2.get(BITSPERSAMPLE, (1,))
        return max(bits)
    arguments = image.tile[0].args if image.format in ("PNG", "PPM") else None
    match arguments:
        case str() if arguments.endswith(";16B"):
            return 16
        case (str(), int(largest_value)):
            return largest_value.bit_length()
    return 8


def _opened(path: Path) -> ImageFile:
    """Open an image and read its header; too many pixels are a fault before memory is taken for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(path, formats=FORMATS)


def no_file(path: Path) -> OSError | ValueError:
    """Return what is wrong with the path of a missing image file: nothing is there, or something else."""
    if path.exists():
        return ValueError(f"{path}: found a folder, pipe or device, expected an image file")
    return FileNotFoundError(f"{path}: no such image file")


def resize_rgba(rgba: Pixels, height: int, width: int) -> Pixels:
    """Resize ``[H, W, 4]`` to ``[height, width, 4]``: bilinear, antialiased, with premultiplied colour.

    Premultiplying (which Pillow does for RGBA) keeps the photograph around a cut-out from bleeding into its
    edge; antialiasing widens the filter when shrinking.
    """
    resized = Image.fromarray(rgba).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)


def resize_squares(images: Pixels, size: int) -> Pixels:
    """Resize ``[n, C, H, H]`` to ``[n, C, size, size]``: bilinear, antialiased; images of that size are not touched."""
    if images.shape[-1] == size:
        return np.ascontiguousarray(images)
    resized = np.empty((*images.shape[:2], size, size), dtype=np.uint8)
    for position in np.ndindex(images.shape[:2]):
        channel = Image.fromarray(images[position])
        resized[position] = channel.resize((size, size), Image.Resampling.BILINEAR)
    return resized


def sample_per_class(labels: Ints, limit: int, generator: np.random.Generator) -> Ints:
    """Ascending indices of at most ``limit`` images of each class, drawn at random; of all images where it is 0."""
    if not limit:
        return np.arange(len(labels))
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    drawn = [
        which if len(which) <= limit else generator.choice(which, limit, replace=False) for which in members
    ]
    return np.sort(np.concatenate(drawn))


def blocks_of(
    images: Pixels, labels: Ints, rows: Ints, *, split: int, size: int, block: int
) -> Iterator[Block]:
    """Blocks of the ``rows`` of images ``[N, C, H, H]`` and labels ``[N]``, all of one half, resized to ``size``.

    ``images`` may be mapped from a file: only the rows of one block are read at a time.
    """
    for start in range(0, len(rows), block):
        here = rows[start : start + block]
        yield {
            "image": resize_squares(images[here], size),
            "split": np.full(len(here), split, dtype=np.uint8),
            "label_class": labels[here],
        }


def halves_in_blocks(
    path: str | Path,
    halves: Mapping[int, tuple[Pixels, Ints]],
    *,
    size: int,
    images_per_class: int,
    generator: np.random.Generator,
    block: int,
) -> Iterator[Block]:
    """Draw from the images and labels of both halves (keys ``TRAIN`` and ``TEST``) in ``path``, and yield blocks.

    As ``sample_per_class`` draws and ``blocks_of`` resizes; how many there are is logged. Drawing comes at once.
    """
    rows = {
        half: sample_per_class(labels, images_per_class, generator) for half, (_, labels) in halves.items()
    }
    logger.info("%s: %d images to train on, %d to test", path, len(rows[TRAIN]), len(rows[TEST]))
    return (
        found
        for half, (images, labels) in halves.items()
        for found in blocks_of(images, labels, rows[half], split=half, size=size, block=block)
    )


def read_class_names(file: Path, count: int) -> tuple[str, ...]:
    """Return the class names that a text file lists, one a line; empty lines are left out.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not ``count`` different names.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if len(names) != count or len(set(names)) != count:
        raise ValueError(
            f"{file}: found {len(names)} class names, {len(set(names))} different, expected {count} different"
        )
    return tuple(names)


class KnownFiles:
    """Files seen so far; a file is read only if one of the same size has been seen."""

    def __init__(self) -> None:
        self._first: dict[Path, Path] = {}
        self._by_size: dict[int, list[Path]] = {}
        self._digests: dict[Path, str] = {}

    def first(self, path: Path) -> Path:
        """Return the first file seen that has the content of the file ``path``, which may be that file itself.

        A path where there is no file is equal to itself only.
        """
        if path not in self._first:
            self._first[path] = self._search(path) if path.is_file() else path
        return self._first[path]

    def _search(self, path: Path) -> Path:
        of_this_size = self._by_size.setdefault(path.stat().st_size, [])
        for other in of_this_size:
            if self._digest(other) == self._digest(path):
                return other
        of_this_size.append(path)
        return path

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest_of_file(path)
        return self._digests[path]
