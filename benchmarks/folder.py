"""Time and memory to index and build data sets from ImageNet-like folders of several sizes.

The folders have JPEGs of about 1 KB, by default in 1,000 classes of equal size. Each folder is read in a separate
process: first its files are listed, labeled and split without opening images; then they are decoded, cropped and
written as a store, as ``build_data`` does. Reports the seconds of both steps and the peak resident memory of the
process before, between and after them.

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
    """Write the images and return the size of the largest file in bytes."""
    generator = np.random.default_rng(0)
    sizes = []
    for label in range(classes):
        class_folder = root / f"n{label:08d}"
        class_folder.mkdir(parents=True)
        encoded = io.BytesIO()
        pixels = generator.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(encoded, "JPEG", quality=QUALITY)
        sizes.append(len(encoded.getvalue()))
        for number in range(images // classes):
            (class_folder / f"n{label:08d}_{number}.JPEG").write_bytes(encoded.getvalue())
    return max(sizes)


def read(options: argparse.Namespace) -> dict[str, float]:
    """Index and build a data set in this process, and return times and memory."""
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
    indexed, index_memory = time.perf_counter(), megabytes()
    with tempfile.TemporaryDirectory(dir=options.folder) as output_folder:
        zarr_store.write(
            Path(output_folder, "data.zarr.zip"), blocks, kind="data", attributes={"classes": classes}
        )
    return {
        "index_s": indexed - start,
        "build_s": time.perf_counter() - indexed,
        "before_mb": before,
        "index_mb": index_memory,
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
        with tempfile.TemporaryDirectory(dir=options.folder) as image_folder:
            largest = make(Path(image_folder, "images"), images, options.classes)
            command = [sys.executable, __file__, *sys.argv[1:], "--read", str(Path(image_folder, "images"))]
            measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rows.append({"images": images, "bytes": largest, **measured})
    if options.json:
        print(json.dumps(rows))
        return
    columns = {
        "images": 8,
        "bytes": 8,
        "index, s": 10,
        "build, s": 10,
        "before, MB": 12,
        "indexed, MB": 13,
        "built, MB": 11,
    }
    print("".join(name.rjust(width) for name, width in columns.items()))
    for row in rows:
        times = f"{row['index_s']:10.1f}{row['build_s']:10.1f}"
        memory = f"{row['before_mb']:12.0f}{row['index_mb']:13.0f}{row['build_mb']:11.0f}"
        print(f"{row['images']:8,}{row['bytes']:8}{times}{memory}")
    first, last = rows[0], rows[-1]
    added_images = last["images"] - first["images"]
    if added_images:
        growth = {name: 1e6 * (last[name] - first[name]) / added_images for name in ("index_mb", "build_mb")}
        print(f"bytes more an image: indexed {growth['index_mb']:.0f}, built {growth['build_mb']:.0f}")


if __name__ == "__main__":
    main()
