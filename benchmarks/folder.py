"""How long a folder of images laid out as ImageNet takes to index and to build, and how much memory, by its size.

JPEGs of about 1 KB in a temporary folder, 1,000 classes by default, the same number in each. Each size is read in a
process of its own: first listed, labelled and split, without an image being opened; then decoded, cropped and written
as a store, as ``build_data`` does. Reported are the seconds of both and that process's highest resident memory before,
between and after.

    python benchmarks/folder.py
    python benchmarks/folder.py --images 10000 50000 --size 64
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import megabytes
from PIL import Image

from saliency_assay.data.readers.folder import folder
from saliency_assay.storage import zarr_store

QUALITY = 40


def make(root: Path, images: int, classes: int) -> int:
    """Write them; the size of the largest file in bytes."""
    generator = np.random.default_rng(0)
    sizes = []
    for label in range(classes):
        place = root / f"n{label:08d}"
        place.mkdir(parents=True)
        held = io.BytesIO()
        pixels = generator.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(held, "JPEG", quality=QUALITY)
        sizes.append(len(held.getvalue()))
        for number in range(images // classes):
            (place / f"n{label:08d}_{number}.JPEG").write_bytes(held.getvalue())
    return max(sizes)


def read(options: argparse.Namespace) -> dict[str, float]:
    """Run the process that indexes and builds, and return its results."""
    before, start = megabytes(), time.perf_counter()
    classes, blocks = folder(
        path=str(options.read),
        size=options.size,
        crop_share=1,
        images_per_class=0,
        test_images_per_class=0,
        test_folder="auto",
        test_share=0.1,
        generator=np.random.default_rng(0),
    )
    indexed, middle = time.perf_counter(), megabytes()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        zarr_store.write(Path(place, "data.zarr.zip"), blocks, kind="data", attributes={"classes": classes})
    return {
        "index_s": indexed - start,
        "build_s": time.perf_counter() - indexed,
        "before_mb": before,
        "index_mb": middle,
        "build_mb": megabytes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--size", type=int, default=224, help="pixels a side")
    parser.add_argument("--folder", type=Path, help="where images and stores are written")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options)))
        return
    rows = []
    for images in options.images:
        with tempfile.TemporaryDirectory(dir=options.folder) as place:
            largest = make(Path(place, "images"), images, options.classes)
            command = [sys.executable, __file__, *sys.argv[1:], "--read", str(Path(place, "images"))]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rows.append({"images": images, "bytes": largest, **found})
    if options.json:
        print(json.dumps(rows))
        return
    heads = {
        "images": 8,
        "bytes": 8,
        "index, s": 10,
        "build, s": 10,
        "before, MB": 12,
        "indexed, MB": 13,
        "built, MB": 11,
    }
    print("".join(name.rjust(width) for name, width in heads.items()))
    for row in rows:
        times = f"{row['index_s']:10.1f}{row['build_s']:10.1f}"
        memory = f"{row['before_mb']:12.0f}{row['index_mb']:13.0f}{row['build_mb']:11.0f}"
        print(f"{row['images']:8,}{row['bytes']:8}{times}{memory}")
    first, last = rows[0], rows[-1]
    more = last["images"] - first["images"]
    if more:
        grown = {name: 1e6 * (last[name] - first[name]) / more for name in ("index_mb", "build_mb")}
        print(f"bytes more an image: indexed {grown['index_mb']:.0f}, built {grown['build_mb']:.0f}")


if __name__ == "__main__":
    main()
