"""Masks of objects in image files: PNG files or boxes, resized and cropped like the images."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from saliency_assay.data.image_lists import BOX_SUFFIXES, Box, read_boxes
from saliency_assay.data.images import opened

Mask = npt.NDArray[np.bool_]
Crop = tuple[float, float, float, float]
"""Left, upper, right and lower edge of a rectangle, in pixels of an image file."""

TOLERANCE = (
    1  # pixels by which a box may reach beyond the image: annotations are rounded or count pixels from 1
)


@dataclass(frozen=True)
class Masks:
    """Masks of a data set by the name of the image: files, or boxes."""

    source: str
    """Source of the masks, for errors."""
    expected: str
    """Condition for an image to have a mask, for errors; ``{stem}`` and ``{name}`` are those of the image."""
    files: Mapping[str, Path] = field(default_factory=dict)
    boxes: Mapping[str, Sequence[Box]] = field(default_factory=dict)

    def require(self, names: Sequence[str]) -> None:
        """Check that each image has a mask.

        Raises:
            ValueError: an image has no mask.
        """
        missing = [name for name in names if name not in self.files and name not in self.boxes]
        if missing:
            stem = PurePosixPath(missing[0]).with_suffix("")
            expected = self.expected.format(stem=stem, name=missing[0])
            raise ValueError(
                f"{self.source}: found no mask of {len(missing)} of {len(names)} test images, first {missing[0]}; "
                f"expected {expected}"
            )

    def of(self, name: str, width: int, height: int, crop: Crop, size: int) -> Mask:
        """Return the mask of an image of ``width`` × ``height`` pixels in its square ``crop``, ``[size, size]``.

        A pixel is on the object if its center is, in the coordinates of the file (nearest neighbor). An image without
        a mask has an empty one.

        Raises:
            FileNotFoundError, ValueError: the mask cannot be read, is empty, or does not fit the image.
        """
        left, upper, right, lower = crop
        x = left + (np.arange(size) + 0.5) * ((right - left) / size)
        y = upper + (np.arange(size) + 0.5) * ((lower - upper) / size)
        if name in self.files:
            mask = read_mask(self.files[name])
            if mask.shape != (height, width):
                found = f"found {mask.shape[1]} × {mask.shape[0]} pixels"
                raise ValueError(f"{self.files[name]}: {found}, expected {width} × {height} as of {name}")
            return mask[np.ix_(y.astype(np.int64), x.astype(np.int64))]
        sampled = np.zeros((size, size), dtype=bool)
        for box in self.boxes.get(name, ()):
            _check_inside(box, name, width, height)
            columns, rows = (box.x <= x) & (x < box.x + box.width), (box.y <= y) & (y < box.y + box.height)
            sampled |= rows[:, None] & columns
        return sampled


def find_masks(path: Path, names: Sequence[str]) -> Masks:
    """Return the masks of the images ``names`` in a folder of PNG files, or in a list of boxes.

    Raises:
        FileNotFoundError: there is no such folder or list.
        ValueError: the list cannot be read, or two images have the same mask.
    """
    if path.is_file() and path.suffix.lower() in BOX_SUFFIXES:
        return Masks(str(path), "a box with image {name}", boxes=read_boxes(path))
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path}: expected a folder of masks, or a list of boxes ({', '.join(BOX_SUFFIXES)})"
        )
    mask_names = {name: str(PurePosixPath(name).with_suffix(".png")) for name in names}
    for mask_name, count in Counter(mask_names.values()).items():
        if count > 1:
            images = " and ".join(name for name in names if mask_names[name] == mask_name)
            raise ValueError(f"{path / mask_name}: is the mask of {images}, expected one image; rename them")
    files = {name: path / mask_name for name, mask_name in mask_names.items()}
    return Masks(
        str(path), "{stem}.png in it", files={name: file for name, file in files.items() if file.exists()}
    )


def read_mask(path: Path) -> Mask:
    """Read a mask, bool ``[H, W]``, from a PNG file: True where the value of any channel is not zero.

    Values of a palette image are its indices; transparency is ignored.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a PNG image (see ``images.read_rgb``), or it is zero everywhere.
    """
    with opened(path, ("PNG",)) as image:
        image.load()
        values, mode = np.asarray(image), image.mode
    channels = values.reshape(*values.shape[:2], -1)
    mask: Mask = np.any(channels[..., :-1] if mode.endswith("A") else channels, axis=2)
    if not mask.any():
        raise ValueError(f"{path}: found no pixel above 0, expected the pixels of the object")
    return mask


def _check_inside(box: Box, name: str, width: int, height: int) -> None:
    starts, ends = (box.x, box.y), (box.x + box.width - width, box.y + box.height - height)
    if min(starts) < -TOLERANCE or max(ends) > TOLERANCE:
        corners = f"{box.x:g} to {box.x + box.width:g} × {box.y:g} to {box.y + box.height:g}"
        raise ValueError(
            f"{box.place}: found a box of {corners}, expected it in {width} × {height} as of {name}"
        )
