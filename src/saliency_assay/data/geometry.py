"""Geometry of image files in a data set: crop, pad or stretch to one height and width, for images and their masks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from PIL import Image

Crop = tuple[float, float, float, float]
"""Left, upper, right and lower edge of a rectangle, in pixels of an image file."""


@dataclass(frozen=True)
class Placement:
    """Rectangle ``crop`` of a file, and the rectangle of the data set's image to which it is resized."""

    crop: Crop
    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class Geometry:
    """Size of the images of a data set in pixels, and how image files of other sizes are fitted to it."""

    height: int
    width: int
    fit: str = "crop"
    """``crop``: the image covers the size, and its center is kept. ``pad``: the whole image is inside, centered on
    black. ``stretch``: both sides are resized independently."""
    crop_share: float = 1.0
    """For ``crop``: share of the largest possible rectangle, on each side, that is kept."""

    @classmethod
    def of(cls, size: int | Sequence[int], fit: str, crop_share: float) -> Self:
        """Return the geometry of images of ``size``: the side of squares, or height and width."""
        height, width = (size, size) if isinstance(size, int) else size
        return cls(height, width, fit, crop_share)

    def placement(self, width: int, height: int) -> Placement:
        """Return where the pixels of a file of ``width`` × ``height`` pixels are in the image of the data set."""
        whole = (0.0, 0.0, float(width), float(height))
        if self.fit == "stretch":
            return Placement(whole, 0, 0, self.width, self.height)
        if self.fit == "pad":
            if width * self.height > height * self.width:  # wider than the size
                resized = self.width, max(1, round(height * self.width / width))
            else:
                resized = max(1, round(width * self.height / height)), self.height
            left, top = (self.width - resized[0]) // 2, (self.height - resized[1]) // 2
            return Placement(whole, left, top, *resized)
        return Placement(self._crop(width, height), 0, 0, self.width, self.height)

    def _crop(self, width: int, height: int) -> Crop:
        """Return the rectangle of a file that is resized to the size.

        The result is that of resizing the file so that it covers the size divided by ``crop_share``, and a center crop:
        a size of 224 and a share of 0.875 correspond to ImageNet's resize to 256, up to rounding as in torchvision's
        ``Resize`` and ``CenterCrop``. Only the cropped region is resized, so that a panorama takes no longer than a
        square image.
        """
        scaled_width, scaled_height = (
            round(self.width / self.crop_share),
            round(self.height / self.crop_share),
        )
        # The side that just covers its length; for a square, the shorter one.
        scaled, side = (
            (scaled_width, width)
            if scaled_width * height >= scaled_height * width
            else (scaled_height, height)
        )
        edges = list[tuple[float, float]]()
        for length, size in ((width, self.width), (height, self.height)):
            resized_length = scaled * length // side  # rounded down, as in torchvision
            first = round((resized_length - size) / 2)
            # The crop in coordinates of the original; ``min`` removes the rounding error at the far edge.
            end = min((first + size) * length / resized_length, length)
            edges.append((first * length / resized_length, end))
        (left, right), (upper, lower) = edges
        return left, upper, right, lower

    def resized(self, image: Image.Image) -> npt.NDArray[Any]:
        """Return an image of the data set, ``[C, H, W]``, in the type of the pixels: bilinear, antialiased."""
        placement = self.placement(*image.size)
        size = (placement.width, placement.height)
        resized = image.resize(size, Image.Resampling.BILINEAR, box=placement.crop)
        pixels = np.atleast_3d(np.asarray(resized)).transpose(2, 0, 1)
        return np.ascontiguousarray(self.padded(pixels, placement))

    def centers(self, width: int, height: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return x of the columns and y of the rows of the pixels that ``padded`` surrounds, in pixels of the file."""
        placement = self.placement(width, height)
        left, upper, right, lower = placement.crop
        x = left + (np.arange(placement.width) + 0.5) * ((right - left) / placement.width)
        y = upper + (np.arange(placement.height) + 0.5) * ((lower - upper) / placement.height)
        return x, y

    def sampled(self, mask: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return the mask ``[H, W]`` of an image of the data set from that of its file: nearest neighbor at centers."""
        height, width = mask.shape
        x, y = self.centers(width, height)
        nearest = mask[np.ix_(y.astype(np.int64), x.astype(np.int64))].astype(bool)
        return self.padded(nearest, self.placement(width, height))

    def padded(self, pixels: npt.NDArray[Any], placement: Placement) -> npt.NDArray[Any]:
        """Return ``[…, H, W]``, 0 around the ``pixels`` of a file's placement."""
        bottom = self.height - placement.height - placement.top
        right = self.width - placement.width - placement.left
        if not (placement.top or placement.left or bottom or right):
            return pixels
        around = [(0, 0)] * (pixels.ndim - 2) + [(placement.top, bottom), (placement.left, right)]
        return np.pad(pixels, around)
