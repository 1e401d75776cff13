"""Small files that ask for much: each must be refused before memory is taken for what it claims.

``python tests/property/bombs.py``: what each is answered with and how much memory it took; status 1 unless all are
refused as they should be, within ``ROOM`` of address space and ``MOST`` of memory.
"""

import gzip
import json
import os
import re
import resource
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import torch
from fuzz import bounded, files_below
from PIL import EpsImagePlugin
from readers import READERS

MOST = 250 << 20  # bytes at the peak, of all of them
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = [header, b"IDAT" + zlib.compress(bytes(1000)), b"IEND"]
    framed = (
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def put(name: str, content: bytes | str) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content
    return lambda root: Path(root, name).write_bytes(data) and None


def idx(count: int, gigabytes: int) -> bytes:
    """Images' header, and so many GiB of zeros, as gzip members of 16 MiB."""
    header = gzip.compress(struct.pack(">4I", 0x803, count, 28, 28))
    return header + gzip.compress(bytes(1 << 24)) * (64 * gigabytes)


def sparse(name: str, size: int) -> Callable[[Path], None]:
    return lambda root: os.truncate(root / name, size)


def coco(**changes: object) -> Callable[[Path], None]:
    """Keys of the first image or annotation, changed."""

    def write(root: Path) -> None:
        content = json.loads((root / "instances.json").read_text())
        for key, value in changes.items():
            content["images" if key in content["images"][0] else "annotations"][0][key] = value
        (root / "instances.json").write_text(json.dumps(content))

    return write


def member(
    name: str, change: Callable[[bytes], bytes], packing: int = zipfile.ZIP_STORED
) -> Callable[[Path], None]:
    """The store, or weights, with one member changed; ``name`` is what it ends in, "" adds one."""

    def write(root: Path) -> None:
        (path,) = root.iterdir()
        with zipfile.ZipFile(path) as archive:
            members = {entry: archive.read(entry) for entry in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for entry, data in members.items():
                hit = entry.endswith(name)
                archive.writestr(entry, change(data) if hit else data, packing if hit else None)

    return write


def metadata(**changes: object) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps({**json.loads(content), **changes}).encode()


def grid(*chunk: int) -> dict[str, object]:
    return {"name": "regular", "configuration": {"chunk_shape": chunk}}


def version2(root: Path) -> None:
    """Zarr's older format, with a codec that is a pickle."""
    with zipfile.ZipFile(root / "maps.zarr.zip", "w") as archive:
        archive.writestr(".zgroup", '{"zarr_format": 2}')
        array = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "fill_value": None, "order": "C",
                 "compressor": None, "filters": [{"id": "pickle"}]}  # fmt: skip
        archive.writestr("map/.zarray", json.dumps(array))
        archive.writestr("map/0", b"cos\nsystem\n(S'touch escaped'\ntR.")


def overlapping(root: Path) -> None:
    """The directory names one member twice, under two names."""
    path = root / "maps.zarr.zip"
    content = path.read_bytes()
    end = content.rindex(b"PK\5\6")
    count, size, start = struct.unpack("<HII", content[end + 10 : end + 20])
    entries = content[start:end]
    fields = struct.pack("<HHII", 40 * count, 40 * count, 40 * size, start)
    path.write_bytes(content[:start] + entries * 40 + content[end : end + 8] + fields + content[end + 20 :])


def expanded(root: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(1).expand(1 << 40)}, root / "weights.pt")


ANNOTATION = "objects/train/b/bedroom/1.xml"


def lol(root: Path) -> None:
    entities = "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
    text = f"<!DOCTYPE x [<!ENTITY a0 '1'>{entities}]><filename>1.jpg</filename>"
    (root / ANNOTATION).write_text(f"{text}<objects><class>&a11;</class></objects>")


def pipe(root: Path) -> None:
    (root / "a/1.png").unlink()
    os.mkfifo(root / "a/1.png")


DEEP = 100_000
ZIGZAG = [[x % 2 * 39 if at % 2 == 0 else x * 30 / 3000 for x in range(3000) for at in (0, 1)]]
BOMBS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "an image of 900 million pixels": (
        "images",
        put("a/1.png", png(30_000, 30_000)),
        "found more than 89478485 pixels",
    ),
    "an image of 100 million pixels": (
        "images",
        put("a/1.png", png(10_000, 10_000)),
        "found more than 89478485 pixels",
    ),
    "an image in PostScript": (
        "images",
        put("a/3.jpg", EPS),
        r"truncated, or not an image of a valid format \(BMP, GIF, JPEG",
    ),
    "a pipe called .png": ("images", pipe, "found a folder, pipe or device, expected an image file"),
    "more than the header says": (
        "mnist",
        put("t10k-images-idx3-ubyte.gz", idx(3, 4)),
        "found more than 2368 bytes, expected 2368 for the shape 3 × 28 × 28",
    ),
    "a header of 3 TB, packed": (
        "mnist",
        put("t10k-images-idx3-ubyte.gz", idx((1 << 32) - 1, 1)),
        "found 3367254359296 bytes according to the header, expected at most",
    ),
    "a header of 3 TB": (
        "mnist",
        put("train-images-idx3-ubyte", struct.pack(">4I", 0x803, (1 << 32) - 1, 28, 28)),
        "found 16 bytes, expected 3367254359296",
    ),
    "a file of 3 TB that is a hole": (
        "cifar10",
        sparse("data_batch_2.bin", 3073 << 30),
        "found 1073741824 images, expected 2",
    ),
    "labels of 1 TB that are a hole": (
        "stl10",
        sparse("train_y.bin", 1 << 40),
        "found 55296 bytes, expected 30399297484750848",
    ),
    "a photograph of 10^18 pixels": (
        "coco",
        coco(height=10**9, width=10**9),
        "expected at most 65535 per side",
    ),
    "an outline of 100,000 pixels": (
        "coco",
        coco(segmentation=ZIGZAG),
        "pixels, expected at most 7000 for 40 × 30 pixels",
    ),
    "a corner that is far off": (
        "coco",
        coco(segmentation=[[0, 0, 1e18, 0, 5, 5]]),
        r"segmentation has a coordinate 1e\+18",
    ),
    "a run length without end": (
        "coco",
        coco(segmentation={"size": [30, 40], "counts": "o" * 3_000_000}),
        "expected run lengths that add up to",
    ),
    "lists in lists": (
        "coco",
        put("instances.json", '{"a": ' + "[" * DEEP + "]" * DEEP + "}"),
        "nested too deeply to read",
    ),
    "a number of 5,000 digits": (
        "coco",
        put("instances.json", '{"a": 1' + "0" * 5000 + "}"),
        "not JSON: Exceeds the limit",
    ),
    "a name that climbs out": (
        "coco",
        coco(file_name="../../../etc/passwd"),
        "expected a path inside the image folder",
    ),
    "a name from the root": (
        "coco",
        coco(file_name="/etc/passwd"),
        "expected a path inside the image folder",
    ),
    "an integer of 400 digits": ("coco", coco(image_id=10**400), "expected a 64-bit integer"),
    "laughing entities": ("miniplaces", lol, "1.xml: line 1: not well-formed"),
    "elements in elements": ("miniplaces", put(ANNOTATION, "<a>" * DEEP), "1.xml: line 2: mismatched tag"),
    "an annotation of 1 TB that is a hole": (
        "miniplaces",
        sparse(ANNOTATION, 1 << 40),
        "1.xml: found 1099511627776 bytes, expected MiniPlaces' object annotations of at most",
    ),
    "an array of 10^18 items": (
        "store",
        member("map/zarr.json", metadata(shape=[10**18, 1, 5, 5])),
        "map: found 9 members in the file, expected 1[0-9]+ chunks",
    ),
    "a chunk of 2^60 items": (
        "store",
        member("image/zarr.json", metadata(shape=[6, 1 << 60], chunk_grid=grid(6, 1 << 60))),
        "expected at most 2147483648",
    ),
    "a chunk of 1 GiB, of a few bytes": (
        "store",
        member("image/zarr.json", metadata(shape=[6, 1 << 20], chunk_grid=grid(1 << 10, 1 << 20))),
        "is missing",
    ),
    "metadata of 100 MB, packed": (
        "store",
        member("map/zarr.json", lambda content: bytes(10**8), zipfile.ZIP_DEFLATED),
        "has 100000000 bytes, expected at most",
    ),
    "members over each other": ("store", overlapping, "expected distinct members that do not overlap"),
    "a codec that is a pickle": ("store", version2, "zarr.json is missing"),
    "weights that unpack to 300 MB": (
        "weights",
        member("data.pkl", lambda content: bytes(3 * 10**8), zipfile.ZIP_DEFLATED),
        "bytes that unpack to 3",
    ),
    "one number 2^40 times": (
        "weights_legacy",
        expanded,
        r"not weights of resnet8: .*conv1.weight \[1099511627776\] for",
    ),
    "a function in 100,000 brackets": (
        "function",
        put("fuzzed_bright.py", "x = " + "(" * DEEP + ")" * DEEP),
        "too many nested parentheses",
    ),
}


def answer(name: str) -> tuple[str, float]:
    """Return the error message for a bomb ("" if it is read) and the seconds that reading took."""
    reader, write, _ = BOMBS[name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "inside", "data")
        folder.mkdir(parents=True)
        READERS[reader].make(folder)
        write(folder)
        before, began = files_below(Path(scratch)), time.monotonic()
        os.chdir(folder)
        try:
            READERS[reader].read(folder)
            message = ""
        except (ValueError, OSError) as error:
            message = str(error).replace(str(folder), "HERE")
        os.chdir("/")
        seconds = time.monotonic() - began
        assert {path for path in files_below(Path(scratch)) - before if "__pycache__" not in path} == set()
    return message, seconds


def main() -> int:
    drawn: list[object] = []
    EpsImagePlugin.Ghostscript = lambda *arguments, **options: drawn.append(arguments)  # type: ignore[assignment]
    for reader in READERS.values():  # what all of them import and allocate anyway
        with tempfile.TemporaryDirectory() as scratch:
            reader.make(Path(scratch))
            reader.read(Path(scratch))
    wrong, before = 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with bounded():
        for name, (_, _, expected) in BOMBS.items():
            message, seconds = answer(name)
            good = "HERE" in message and len(message.splitlines()) == 1 and re.search(expected, message)
            wrong += not good
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
            print(
                f"{'refused' if good else 'WRONG'}: {name}: {message[:200] or 'read'} ({grown} MiB, {seconds:.1f} s)",
                flush=True,
            )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    print(
        f"{len(BOMBS)} files, {wrong} not refused as they should be, {grown >> 20} MiB at the peak beyond the start"
    )
    return 1 if wrong or drawn or grown > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
