"""Reading and resizing images: what every reader of image files shares."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]

# 16-bit and float images have no defined conversion to 8 bits; a reader that guessed would clip them to white.
_EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")


def read_rgb(path: Path) -> Image.Image:
    """Read an image file as 8-bit RGB; grey, palette and CMYK are converted, transparency is ignored.

    The pixels are taken as stored: EXIF orientation is not applied, because COCO's polygons refer to the stored
    pixels.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is not an image, is truncated, or has more than 8 bits a channel.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such image file")
    try:
        with Image.open(path) as image:
            image.load()
            mode = image.mode
            # Palettes may carry transparency as bytes, which only RGBA takes without a warning.
            rgb = (image.convert("RGBA") if mode == "P" else image).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: truncated, or not an image ({reason})") from error
    if mode not in _EIGHT_BIT:
        raise ValueError(f"{path}: found pixels of mode {mode}, expected 8 bits a channel")
    return rgb


def resize_rgba(rgba: Pixels, height: int, width: int) -> Pixels:
    """Resize ``[H, W, 4]`` to ``[height, width, 4]``: bilinear, antialiased, with premultiplied colour.

    Premultiplying (which Pillow does for RGBA) keeps the photograph around a cut-out from bleeding into its
    edge; antialiasing widens the filter when shrinking.
    """
    resized = Image.fromarray(rgba).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)
