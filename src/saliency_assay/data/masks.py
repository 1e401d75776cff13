"""Masks of objects in image files: PNG files or boxes, with the geometry of the images."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from saliency_assay.data.geometry import Geometry
from saliency_assay.data.image_lists import BOX_SUFFIXES, Box, read_boxes
from saliency_assay.data.images import opened

Mask = npt.NDArray[np.bool_]
Row = tuple[str, str]
"""Path of an image and name of its class."""

TOLERANCE = (
    1  # pixels by which a box may reach beyond the image: annotations are rounded or count pixels from 1
)


@dataclass(frozen=True)
class Masks:
    """Masks of a data set: files of its rows, or boxes of its images; an image without either has an empty mask."""

    source: str
    """Source of the masks, for errors."""
    expected: str
    """Condition for an image to have a mask, for errors; ``{stem}`` and ``{name}`` are those of the image."""
    complete: bool
    """True if a missing mask is an error, False if it is that of an image without an object."""
    files: Mapping[Row, Path] = field(default_factory=dict)
    boxes: Mapping[str, Sequence[Box]] = field(default_factory=dict)

    def require(self, rows: Sequence[Row]) -> None:
        """Check that each of the explained rows has a mask or, unless masks must be ``complete``, at least one of them.

        Raises:
            ValueError: a row has no mask.
        """
        missing = [row for row in rows if row not in self.files and row[0] not in self.boxes]
        if missing and (self.complete or len(missing) == len(rows)):
            name = missing[0][0]
            expected = self.expected.format(stem=PurePosixPath(name).with_suffix(""), name=name)
            raise ValueError(
                f"{self.source}: found no mask of {len(missing)} of {len(rows)} test images, first {name}; "
                f"expected {expected}"
            )

    def of(self, row: Row, width: int, height: int, geometry: Geometry) -> Mask:
        """Return the mask ``[H, W]`` of an image of ``width`` × ``height`` pixels in the ``geometry`` of the data set.

        A pixel is on the object if its center is, in the coordinates of the file (nearest neighbor).

        Raises:
            FileNotFoundError, ValueError: the mask cannot be read, or does not fit the image.
        """
        name, _ = row
        if row in self.files:
            mask = read_mask(self.files[row])
            if mask.shape != (height, width):
                actual = f"found {mask.shape[1]} × {mask.shape[0]} pixels"
                raise ValueError(f"{self.files[row]}: {actual}, expected {width} × {height} as of {name}")
            return geometry.sampled(mask)
        x, y = geometry.centers(width, height)
        sampled = np.zeros((len(y), len(x)), dtype=bool)
        for box in self.boxes.get(name, ()):
            _check_inside(box, name, width, height)
            columns, rows = (box.x <= x) & (x < box.x + box.width), (box.y <= y) & (y < box.y + box.height)
            sampled |= rows[:, None] & columns
        return geometry.padded(sampled, geometry.placement(width, height))


def find_masks(path: Path, rows: Sequence[Row]) -> Masks:
    """Return the masks of the images of ``rows`` in a folder of PNG files, or in a list of boxes.

    Raises:
        FileNotFoundError: there is no such folder or list.
        ValueError: the list cannot be read, or two images have the same mask.
    """
    if path.is_file() and path.suffix.lower() in BOX_SUFFIXES:
        return Masks(str(path), "a box with image {name}", complete=False, boxes=read_boxes(path))
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path}: expected a folder of masks, or a list of boxes ({', '.join(BOX_SUFFIXES)})"
        )
    mask_names = {name: str(PurePosixPath(name).with_suffix(".png")) for name, _ in rows}
    for mask_name, count in Counter(mask_names.values()).items():
        if count > 1:
            images = " and ".join(name for name in mask_names if mask_names[name] == mask_name)
            raise ValueError(f"{path / mask_name}: is the mask of {images}, expected one image; rename them")
    files = {row: path / mask_names[row[0]] for row in rows}
    existing = {row: file for row, file in files.items() if file.exists()}
    return Masks(str(path), "{stem}.png in it", complete=True, files=existing)


def read_mask(path: Path) -> Mask:
    """Read a mask, bool ``[H, W]``, from a PNG file: True where the value of any channel is not zero.

    Values of a palette image are its indices; transparency is ignored.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a PNG image (see ``images.read_rgb``).
    """
    with opened(path, ("PNG",)) as image:
        image.load()
        values, mode = np.asarray(image), image.mode
    channels = values.reshape(*values.shape[:2], -1)
    mask: Mask = np.any(channels[..., :-1] if mode.endswith("A") else channels, axis=2)
    return mask


def _check_inside(box: Box, name: str, width: int, height: int) -> None:
    starts, ends = (box.x, box.y), (box.x + box.width - width, box.y + box.height - height)
    if min(starts) < -TOLERANCE or max(ends) > TOLERANCE:
        corners = f"{box.x:g} to {box.x + box.width:g} × {box.y:g} to {box.y + box.height:g}"
        raise ValueError(
            f"{box.place}: found a box of {corners}, expected it in {width} × {height} as of {name}"
        )
