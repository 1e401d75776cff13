"""How much memory one epoch of training takes, with the images gathered on the device and with them streamed.

A store of random images, by default of 7.5 GB, is written block by block to a temporary folder (``--folder`` for one on
another disk than the usual). Each kind of training then runs in a process of its own, on a CPU, with a network that
hardly costs anything; reported are that process's highest resident memory, which holds Python and torch too, and
images a second, gathering included.

    python benchmarks/memory.py --threads 1
    python benchmarks/memory.py --threads 1 --images 2000 --size 64
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from common import CLASSES, classifier, parser_of

from saliency_assay import store
from saliency_assay.training import train
from saliency_assay.training_settings import training_from

KINDS = ("resident", "streamed")


def blocks(options: argparse.Namespace) -> Iterator[dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    for start in range(0, options.images, store.BLOCK):
        count = min(store.BLOCK, options.images - start)
        shape = (count, 3, options.size, options.size)
        yield {"image": generator.integers(0, 256, shape, dtype=np.uint8)}


def megabytes() -> float:
    """The highest resident memory of this process so far; ``getrusage`` would count its parent's, too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6


def epoch(options: argparse.Namespace) -> dict[str, float]:
    """What the process that trains has to say."""
    torch.set_num_threads(options.threads)
    labels = torch.randint(0, CLASSES, (options.images,))
    settings = training_from({"epochs": 1, "batch_size": options.batch_size, "learning_rate": 1e-3})
    before = megabytes()
    with (
        tempfile.TemporaryDirectory() as folder,
        store.open_store(options.store, kind="data") as data,
    ):
        start = time.perf_counter()
        train(
            classifier(options),
            data["image"],
            labels,
            torch.arange(options.images),
            torch.empty(0, dtype=torch.int64),
            settings,
            seed=0,
            state_path=Path(folder, "state.pt"),
            fingerprint="",
            resident_limit=0 if options.kind == "streamed" else sys.maxsize,
        )
        seconds = time.perf_counter() - start
    return {"images_per_second": options.images / seconds, "before_mb": before, "peak_mb": megabytes()}


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "data.zarr.zip")
        store.write(path, blocks(options), kind="data", attributes={})
        found = {}
        for kind in KINDS:
            command = [sys.executable, __file__, *sys.argv[1:], "--store", str(path), "--kind", kind]
            found[kind] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    parser = parser_of(__doc__)
    parser.set_defaults(width=4, stem_stride=8, size=224)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where the store is written")
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(epoch(options)))
        return
    found = measure(options)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.images * 3 * options.size**2 / 1e6:.0f} MB of images")
    print(f"{'':10}{'images/s':>12}{'peak, MB':>12}{'before, MB':>12}")
    for kind, row in found.items():
        print(f"{kind:10}{row['images_per_second']:12.0f}{row['peak_mb']:12.0f}{row['before_mb']:12.0f}")


if __name__ == "__main__":
    main()
