import struct
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from saliency_assay.data.images import FORMATS, SUFFIXES, find_images, read_rgb, read_window

# --- which files are images ---------------------------------------------------------------------------------


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (2, 2)).save(path)


def test_the_suffixes_are_pillows_of_the_formats_that_are_read() -> None:
    Image.init()
    known = {suffix for suffix, name in Image.registered_extensions().items() if name in FORMATS}
    assert set(SUFFIXES) == known - {".pfm"}
    assert list(SUFFIXES) == sorted(SUFFIXES)


def test_each_suffix_is_found_in_upper_case_and_can_be_read(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        write(tmp_path / f"a/0{suffix}")
        (tmp_path / f"a/0{suffix}").rename(tmp_path / f"a/0{suffix.upper()}")
    images, left_out = find_images(tmp_path)
    assert (images, left_out) == ([f"a/0{suffix.upper()}" for suffix in SUFFIXES], {})
    assert {read_rgb(tmp_path / image).size for image in images} == {(2, 2)}


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/1/3.JPG", "a/x.webp", "a/._x.jpg", "a/.hidden.jpg", ".cache/1.png"):
        write(tmp_path / name)
    write(tmp_path / "__MACOSX/b/._2.png")
    for name in ("a/notes.txt", "a/LICENSE", "b/Thumbs.db", "list.TXT", "a/.DS_Store"):
        (tmp_path / name).write_text("no image")
    images, left_out = find_images(tmp_path)
    assert images == ["a/x.webp", "b/1/3.JPG", "b/2.png"]
    assert left_out == {"hidden": 5, ".txt": 2, ".db": 1, "no suffix": 1}


def test_links_across_folders_end_where_they_meet(tmp_path: Path) -> None:
    write(tmp_path / "a/1.png")
    (tmp_path / "b").mkdir()
    (tmp_path / "a/x").symlink_to("../b")
    (tmp_path / "b/y").symlink_to("../a")
    assert find_images(tmp_path) == (["a/1.png", "b/y/1.png"], {})
    (tmp_path / "b/z").symlink_to(tmp_path)  # to a folder that contains the link
    assert find_images(tmp_path / "b") == (["y/1.png"], {})


# --- bits a channel -----------------------------------------------------------------------------------------

RAMP = bytes(range(16))


def png(bits: int, kind: int) -> bytes:
    """Four pixels in a row: signature, IHDR, IDAT, IEND (PNG specification, 11.2); rows begin with their filter."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    channels = {0: 1, 2: 3, 4: 2, 6: 4}[kind]
    row = (2 * RAMP)[: 4 * channels * bits // 8]
    header = struct.pack(">IIBBBBB", 4, 1, bits, kind, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0" + row)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def tiff(bits: int, channels: int, *, packed: bool, planes: bool = False) -> bytes:
    """Four pixels in a row, the channels of which lie in one plane or each in its own."""
    pixels = np.frombuffer(2 * RAMP, f"<u{bits // 8}")[: 4 * channels]
    shape = (channels, 1, 4) if planes else (1, 4, channels) if channels > 1 else (1, 4)
    content = BytesIO()
    tifffile.imwrite(
        content,
        pixels.reshape(shape),
        photometric="rgb" if channels == 3 else "minisblack",
        planarconfig="separate" if planes else None,
        compression="zlib" if packed else None,
        metadata=None,
    )
    return content.getvalue()


def pnm(magic: str, largest: int, values: int) -> bytes:
    """Two pixels; the plain forms as text, the others as bytes, two a value above 255 (netpbm's pages ppm, pgm)."""
    head = f"{magic}\n2 1\n{largest}\n".encode()
    if magic in ("P2", "P3"):
        return head + b" ".join(b"7" for _ in range(values)) + b"\n"
    return head + bytes(values * (2 if largest > 255 else 1))


DEEP = {
    "gray.png": png(16, 0),
    "rgb.png": png(16, 2),
    "gray_alpha.png": png(16, 4),
    "rgba.png": png(16, 6),
    "gray.tif": tiff(16, 1, packed=False),
    "rgb.tif": tiff(16, 3, packed=False),
    "rgb_packed.tif": tiff(16, 3, packed=True),
    "rgb_planes.tif": tiff(16, 3, packed=False, planes=True),
    "rgb.ppm": pnm("P6", 65535, 6),
    "plain.ppm": pnm("P3", 65535, 6),
    "gray.pgm": pnm("P5", 65535, 2),
    "ten.ppm": pnm("P6", 1023, 6),
}


@pytest.mark.parametrize("name", DEEP)
def test_more_than_8_bits_a_channel_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DEEP[name])
    bits = 10 if name == "ten.ppm" else 16
    with pytest.raises(
        ValueError, match=f"^{tmp_path / name}: found {bits} bits, expected 8 bits per channel"
    ):
        read_rgb(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rgb.png", png(8, 2), RAMP[:12]),
        ("rgba.png", png(8, 6), [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14]),
        ("gray_alpha.png", png(8, 4), np.repeat([0, 2, 4, 6], 3)),
        ("gray.png", png(8, 0), np.repeat([0, 1, 2, 3], 3)),
        ("two.png", png(2, 0), np.repeat([0, 0, 0, 0], 3)),
        ("rgb.tif", tiff(8, 3, packed=False), RAMP[:12]),
        ("packed.tif", tiff(8, 3, packed=True), RAMP[:12]),
        ("planes.tif", tiff(8, 3, packed=False, planes=True), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]),
        ("rgb.ppm", pnm("P6", 255, 6), [0] * 6),
        ("plain.ppm", pnm("P3", 255, 6), [7] * 6),
        ("few.ppm", pnm("P3", 7, 6), [255] * 6),
        ("bits.pbm", b"P1\n2 1\n1 0\n", [0, 0, 0, 255, 255, 255]),
    ],
)
def test_8_bits_and_fewer_are_read(
    tmp_path: Path, name: str, content: bytes, expected: Sequence[int] | bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert np.asarray(read_rgb(tmp_path / name)).flatten().tolist() == list(expected)


# --- windows ------------------------------------------------------------------------------------------------

VALUES = np.array([[0, 100, 150], [200, 40_000, 65_535]])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("a.png", np.uint8),
        ("a.png", np.uint16),
        ("a.tif", np.uint16),
        ("a.tif", np.int32),
        ("a.tif", np.float32),
    ],
)
def test_a_window_is_scaled_in_floats(tmp_path: Path, name: str, dtype: type) -> None:
    values = VALUES.clip(0, 255).astype(dtype) if dtype == np.uint8 else VALUES.astype(dtype)
    Image.fromarray(values).save(tmp_path / name)
    image = read_window(tmp_path / name, (100, 300))
    assert image.mode == "F"
    expected = ((values.astype(np.float64) - 100) / 200).clip(0, 1).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(image), expected)


def test_16_bit_values_keep_their_differences(tmp_path: Path) -> None:
    values = np.arange(1000, 1100, dtype=np.uint16).reshape(10, 10)
    Image.fromarray(values).save(tmp_path / "a.png")
    assert len(np.unique(np.asarray(read_window(tmp_path / "a.png", (0, 65_535))))) == 100


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rgb.png", png(16, 2), "found 16 bits and mode RGB, expected one channel of gray levels"),
        ("gray_alpha.png", png(16, 4), "found 16 bits and mode .*, expected one channel of gray levels"),
        ("ten.pgm", pnm("P5", 1023, 2), "found a PGM image of values up to 1023, expected 255 or 65535"),
    ],
)
def test_values_without_a_defined_window_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"^{tmp_path / name}: {message}"):
        read_window(tmp_path / name, (0, 1))


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, np.nan]], np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(ValueError, match="found a value that is not finite"):
        read_window(tmp_path / "a.tif", (0, 1))


def test_a_stack_of_slices_is_refused_but_not_a_thumbnail(tmp_path: Path) -> None:
    slices = [Image.fromarray(np.full((4, 4), value, np.uint16)) for value in (10, 90)]
    slices[0].save(tmp_path / "stack.tif", save_all=True, append_images=slices[1:])
    with pytest.raises(ValueError, match=r"stack\.tif: found 2 pages, expected one image"):
        read_window(tmp_path / "stack.tif", (0, 100))
    photo, thumbnail = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (2, 2), "blue")
    photo.save(tmp_path / "pages.tif", save_all=True, append_images=[thumbnail])
    with pytest.raises(ValueError, match=r"pages\.tif: found 2 pages, expected one image"):
        read_rgb(tmp_path / "pages.tif")
    thumbnail.encoderinfo = {"tiffinfo": {254: 1}}
    photo.save(tmp_path / "photo.tif", save_all=True, append_images=[thumbnail])
    assert np.asarray(read_rgb(tmp_path / "photo.tif")).tolist() == [[[255, 0, 0]] * 8] * 8
