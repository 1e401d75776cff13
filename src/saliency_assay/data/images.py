"""Reading, sampling and resizing of images for all data kinds."""

import logging
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, TiffImageFile

from saliency_assay.data.image_folders import is_hidden
from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.runtime.provenance import digest_of_file

logger = logging.getLogger(__name__)

Pixels = npt.NDArray[np.uint8]
Block = dict[str, npt.NDArray[Any]]
T = TypeVar("T")

# Modes of 8 bits or fewer. Other modes have no defined conversion to 8 bits; an arbitrary one could clip them to white.
_EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")

# Modes of one channel of 16-bit or 32-bit integers, or of floats.
_DEEP_GRAY = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")

# Pillow identifies a format by the content of the file, not by its name, and starts another program for some formats:
# Ghostscript for PostScript, which is a programming language. Untrusted files are therefore limited to these formats.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

NEW_SUBFILE_TYPE, REDUCED, TRANSPARENCY = 254, 1, 4
"""Tag of TIFF for the purpose of a page, and its bits for a thumbnail and a mask."""

# Pillow's suffixes for these formats, except .pfm, whose pixels are always floats.
SUFFIXES = (
    *(".apng", ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm"),
    *(".tif", ".tiff", ".webp"),
)


def find_images(folder: Path) -> tuple[list[str], Counter[str]]:
    """Find the image files at any depth below a folder by their suffix.

    Hidden files and folders and files with other suffixes are skipped. Symbolic links are followed, except to a folder
    that contains the link.

    Returns:
        The paths of the images relative to ``folder``, sorted, and the number of skipped files and folders by suffix.
        Hidden ones are counted as ``hidden``; a hidden folder counts once, without its content.

    Raises:
        OSError: a folder cannot be read.
    """
    images: list[str] = []
    left_out: Counter[str] = Counter()
    ancestors = {folder: [folder.resolve()]}  # by folder: resolved paths of the folder and its parents
    for directory, folders, files in os.walk(folder, onerror=_raise, followlinks=True):
        current, relative = Path(directory), Path(directory).relative_to(folder)
        # A link to one of these folders would make the walk endless.
        outer_folders = ancestors.pop(current)
        left_out["hidden"] += sum(map(is_hidden, [*folders, *files]))
        resolved = {name: (current / name).resolve() for name in folders if not is_hidden(name)}
        folders[:] = [  # in place: ``os.walk`` descends into the folders that remain in its list
            name
            for name, path in resolved.items()
            if not any(outer_folder.is_relative_to(path) for outer_folder in outer_folders)
        ]
        ancestors |= {current / name: [*outer_folders, resolved[name]] for name in folders}
        for name in files:
            if is_hidden(name):
                continue
            suffix = Path(name).suffix.lower()
            if suffix in SUFFIXES:
                images.append((relative / name).as_posix())
            else:
                left_out[suffix or "no suffix"] += 1
    return sorted(images), +left_out  # ``+`` drops counts of zero


def log_left_out(folder: Path, left_out: Counter[str]) -> None:
    """Log the number of files and folders that ``find_images`` skipped, by suffix."""
    if left_out:
        counts = ", ".join(f"{kind} {count}" for kind, count in sorted(left_out.items()))
        logger.info("%s: left out %d files and folders: %s", folder, left_out.total(), counts)


def _raise(error: OSError) -> None:
    raise error


def read_rgb(path: Path, remedy: str = "") -> Image.Image:
    """Read an image file as 8-bit RGB; gray, palette and CMYK images are converted, transparency is ignored.

    The pixels are used as stored: EXIF orientation is not applied, because COCO's polygons refer to the stored
    pixels. ``remedy`` is added to the error for a gray image of more than 8 bits.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the path is not a file or not an image of one of ``FORMATS``, or the image is truncated, has more
            than 8 bits per channel or several pages, or has more pixels than Pillow accepts without a warning
            (``Image.MAX_IMAGE_PIXELS``, 89 million).
    """
    with opened(path) as image:
        bits, pages = _bits_a_channel(image), _page_count(image)
        image.load()
        mode = image.mode
        # A palette may have transparency per color; Pillow converts it to RGB with a warning, to RGBA without.
        rgb = (image.convert("RGBA") if mode == "P" else image).convert("RGB")
    _check_pages(path, pages)
    if bits > 8 or mode not in _EIGHT_BIT:
        description = f"{bits} bits" if bits > 8 else f"pixels of mode {mode}"
        hint = remedy if mode in _DEEP_GRAY else ""
        raise ValueError(f"{path}: found {description}, expected 8 bits per channel{hint}")
    return rgb


def read_window(path: Path, window: Sequence[float]) -> Image.Image:
    """Read a gray image as floats in [0, 1] (mode ``F``), which are the values from low to high of ``window``.

    A value v becomes (v − low) / (high − low), clipped. Values are those of the file: integers of 8, 16 or 32 bits, or
    floats. Color images of 8 bits are converted to gray levels.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: as ``read_rgb``, except for gray images of more than 8 bits; the image has more than one channel of
            more than 8 bits, or a value that is not finite; or it is a PGM image whose greatest value is neither 255
            nor 65,535, to which Pillow would scale its values.
    """
    low, high = window
    with opened(path) as image:
        bits, pages = _bits_a_channel(image), _page_count(image)
        arguments = image.tile[0].args if image.format == "PPM" else None
        image.load()
        mode = image.mode
        gray: Image.Image = image
        if mode in _EIGHT_BIT:
            gray = (image.convert("RGBA") if mode == "P" else image).convert("L")
        values = np.asarray(gray, dtype=np.float64)
    _check_pages(path, pages)
    if mode not in _DEEP_GRAY and (bits > 8 or mode not in _EIGHT_BIT):
        raise ValueError(f"{path}: found {bits} bits and mode {mode}, expected one channel of gray levels")
    if isinstance(arguments, tuple) and arguments[1] not in (255, 65_535):
        raise ValueError(f"{path}: found a PGM image of values up to {arguments[1]}, expected 255 or 65535")
    if not np.isfinite(values).all():
        raise ValueError(f"{path}: found a value that is not finite, expected finite gray levels")
    return Image.fromarray(((values - low) / (high - low)).clip(0, 1).astype(np.float32))


@contextmanager
def opened(path: Path, formats: tuple[str, ...] = FORMATS) -> Iterator[ImageFile]:
    """Open an image file; errors in the ``with`` block count as damage of the file.

    Raises:
        FileNotFoundError, ValueError: see ``read_rgb``.
    """
    if not path.is_file():
        raise no_file(path)
    try:
        with _open_image(path, formats) as image:
            yield image
    except UnidentifiedImageError as error:
        raise ValueError(
            f"{path}: truncated, or not an image of a valid format ({', '.join(formats)})"
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = f"found more than {Image.MAX_IMAGE_PIXELS} pixels, expected at most that many"
        raise ValueError(f"{path}: {reason}") from error
    except Exception as error:  # the exception type of a damaged image depends on the format
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: truncated, or not an image ({reason})") from error


def _bits_a_channel(image: ImageFile) -> int:
    """Return the file's bits per channel where Pillow's mode does not show them, else 8. Call before loading pixels.

    Pillow has no mode for 16-bit color images: it keeps the upper 8 bits and reports mode RGB.
    """
    if isinstance(image, TiffImageFile):
        bits: Sequence[int] = image.tag_v2.get(BITSPERSAMPLE, (1,))
        return max(bits)
    arguments = image.tile[0].args if image.format in ("PNG", "PPM") else None
    match arguments:
        case str() if arguments.endswith(";16B"):  # PNG: raw mode, such as "RGB;16B"
            return 16
        case (str(), int(largest_value)):  # PPM: raw mode and largest value of a pixel
            return largest_value.bit_length()
    return 8


def _page_count(image: ImageFile) -> int:
    """Return the number of pages of a TIFF file, 1 if the second one is a thumbnail or mask of the first; else 1."""
    if not isinstance(image, TiffImageFile) or image.n_frames == 1:
        return 1
    image.seek(1)
    kind = image.tag_v2.get(NEW_SUBFILE_TYPE, 0)
    image.seek(0)
    return 1 if kind & (REDUCED | TRANSPARENCY) else image.n_frames


def _check_pages(path: Path, pages: int) -> None:
    """Check that a file has one page: of a stack of slices, only the first one would be read."""
    if pages > 1:
        raise ValueError(
            f"{path}: found {pages} pages, expected one image; save each page in a file of its own"
        )


def _open_image(path: Path, formats: tuple[str, ...]) -> ImageFile:
    """Open an image and read its header; too many pixels raise an error before memory is allocated."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(path, formats=formats)


def no_file(path: Path) -> OSError | ValueError:
    """Return the error for a path that is not an image file: it does not exist, or it is not a regular file."""
    if path.exists():
        return ValueError(f"{path}: found a folder, pipe or device, expected an image file")
    return FileNotFoundError(f"{path}: no such image file")


def resize_rgba(rgba: Pixels, height: int, width: int) -> Pixels:
    """Resize ``[H, W, 4]`` to ``[height, width, 4]``: bilinear, antialiased, with premultiplied color.

    Pillow premultiplies RGBA, so that the color of transparent pixels does not bleed into the edge of a cut-out, and
    widens the filter when shrinking (antialiasing).
    """
    resized = Image.fromarray(rgba).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)


def resize_squares(images: Pixels, size: int) -> Pixels:
    """Resize ``[n, C, H, H]`` to ``[n, C, size, size]``: bilinear, antialiased; unchanged if H equals ``size``."""
    if images.shape[-1] == size:
        return np.ascontiguousarray(images)
    resized = np.empty((*images.shape[:2], size, size), dtype=np.uint8)
    for position in np.ndindex(images.shape[:2]):
        channel = Image.fromarray(images[position])
        resized[position] = channel.resize((size, size), Image.Resampling.BILINEAR)
    return resized


def sample(items: Sequence[T], limit: int, generator: np.random.Generator) -> Sequence[T]:
    """Return a random sample of at most ``limit`` items in their order; all of them if ``limit`` is 0."""
    if not limit or len(items) <= limit:
        return items
    return [items[index] for index in np.sort(generator.choice(len(items), limit, replace=False))]


def sample_per_class(labels: Ints, limit: int, generator: np.random.Generator) -> Ints:
    """Sample at most ``limit`` images of each class, all if ``limit`` is 0; return their indices in ascending order."""
    if not limit:
        return np.arange(len(labels))
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    sampled = [
        indices if len(indices) <= limit else generator.choice(indices, limit, replace=False)
        for indices in members
    ]
    return np.sort(np.concatenate(sampled))


def blocks_of(
    images: Pixels, labels: Ints, rows: Ints, *, split: int, size: int, block: int
) -> Iterator[Block]:
    """Yield blocks of the ``rows`` of images ``[N, C, H, H]`` and labels ``[N]``, resized to ``size``.

    ``split`` is the split of all rows. ``images`` may be memory-mapped: only the rows of one block are read at a time.
    """
    for start in range(0, len(rows), block):
        block_rows = rows[start : start + block]
        yield {
            "image": resize_squares(images[block_rows], size),
            "split": np.full(len(block_rows), split, dtype=np.uint8),
            "label_class": labels[block_rows],
        }


def sample_blocks(
    path: str | Path,
    sources: Mapping[int, tuple[Pixels, Ints]],
    *,
    size: int,
    images_per_class: int,
    generator: np.random.Generator,
    block: int,
) -> Iterator[Block]:
    """Sample images of both splits (keys ``TRAIN`` and ``TEST``), read from ``path``, and return them in blocks.

    The images are sampled (``sample_per_class``), and their numbers logged, in the call itself; the returned iterator
    resizes them (``blocks_of``).
    """
    rows = {
        split: sample_per_class(labels, images_per_class, generator) for split, (_, labels) in sources.items()
    }
    logger.info("%s: %d images to train on, %d to test", path, len(rows[TRAIN]), len(rows[TEST]))
    return (
        blocks
        for split, (images, labels) in sources.items()
        for blocks in blocks_of(images, labels, rows[split], split=split, size=size, block=block)
    )


def read_class_names(file: Path, count: int) -> tuple[str, ...]:
    """Return the class names in a text file with one name per line; empty lines are skipped.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file does not contain ``count`` different names.
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
    """Registry of files by content; a file is read only if another one has the same size."""

    def __init__(self) -> None:
        self._first: dict[Path, Path] = {}
        self._by_size: dict[int, list[Path]] = {}
        self._digests: dict[Path, str] = {}

    def first(self, path: Path) -> Path:
        """Register a file and return the first registered file with the same content, which may be the file itself.

        A path without a file is equal only to itself.
        """
        if path not in self._first:
            self._first[path] = self._search(path) if path.is_file() else path
        return self._first[path]

    def _search(self, path: Path) -> Path:
        candidates = self._by_size.setdefault(path.stat().st_size, [])
        for other in candidates:
            if self._digest(other) == self._digest(path):
                return other
        candidates.append(path)
        return path

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest_of_file(path)
        return self._digests[path]
