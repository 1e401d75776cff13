"""Memory of an iteration of IteROAR, with images gathered on the device and with streamed images.

Stores of random images, by default 7.5 GB, and of one mask per image are written block by block to a temporary folder
(``--folder`` selects its location). Each kind of iteration then runs in a separate process on a CPU with a tiny
network: one epoch of training on D_1, and the next masks from gradients of all its images, written as a store. Reports
the peak resident memory of that process, Python and torch included, and images per second of both steps, gathering and
writing included.

    python benchmarks/memory.py --threads 1
    python benchmarks/memory.py --threads 1 --images 2000 --size 64
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from common import CLASSES, classifier, megabytes, parser_of

from saliency_assay.methods.gradient import gradient
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.masks import remasked
from saliency_assay.studies.retrain.occluded import Occluded, layers_of
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import train

KINDS = ("resident", "streamed")


def masks(options: argparse.Namespace) -> Iterator[dict[str, np.ndarray]]:
    """Yield a mask of 1/20 of the pixels for each image and its fill color, in blocks."""
    generator = np.random.default_rng(1)
    for start in range(0, options.images, zarr_store.BLOCK):
        count = min(zarr_store.BLOCK, options.images - start)
        mask = generator.random((count, 1, options.size, options.size), dtype=np.float32) < 1 / 20
        yield {"mask": mask, "mean": generator.integers(0, 256, (count, 1, 3), dtype=np.uint8)}


def blocks(options: argparse.Namespace) -> Iterator[dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    for start in range(0, options.images, zarr_store.BLOCK):
        count = min(zarr_store.BLOCK, options.images - start)
        shape = (count, 3, options.size, options.size)
        yield {"image": generator.integers(0, 256, shape, dtype=np.uint8)}


def iteration(options: argparse.Namespace) -> dict[str, float]:
    """Train and compute masks in this process, and return the speeds and peak memory."""
    torch.set_num_threads(options.threads)
    labels = torch.randint(0, CLASSES, (options.images,))
    settings = training_from({"epochs": 1, "batch_size": options.batch_size, "learning_rate": 1e-3})
    before, model = megabytes(), classifier(options)
    with (
        tempfile.TemporaryDirectory(dir=options.store) as folder,
        zarr_store.open_store(options.store / "data.zarr.zip", kind="data") as data,
        zarr_store.open_store(options.store / "masks.zarr.zip", kind="masks") as occluding,
    ):
        images = Occluded(data["image"], layers_of([occluding], "mean", 1), model.device)
        start = time.perf_counter()
        train(
            model,
            images,
            labels,
            torch.arange(options.images),
            torch.empty(0, dtype=torch.int64),
            settings,
            seed=0,
            state_path=Path(folder, "state.pt"),
            fingerprint="",
            resident_limit=0 if options.kind == "streamed" else sys.maxsize,
        )
        trained = time.perf_counter()
        mask_blocks = remasked(
            gradient,
            {},
            model,
            images,
            labels.numpy(),
            seed=0,
            batch_size=options.batch_size,
            finite=True,
            reduction="abs_sum",
            count=pixels(options.size**2, 95),
            masks=1,
            shape={"kind": "none"},
        )
        zarr_store.write(Path(folder, "masks.zarr.zip"), mask_blocks, kind="masks", attributes={})
        end = time.perf_counter()
    speeds = {"train": options.images / (trained - start), "remask": options.images / (end - trained)}
    return {**speeds, "before_mb": before, "peak_mb": megabytes()}


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        zarr_store.write(Path(folder, "data.zarr.zip"), blocks(options), kind="data", attributes={})
        zarr_store.write(Path(folder, "masks.zarr.zip"), masks(options), kind="masks", attributes={})
        results = {}
        for kind in KINDS:
            command = [sys.executable, __file__, *sys.argv[1:], "--store", folder, "--kind", kind]
            results[kind] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return results


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
        print(json.dumps(iteration(options)))
        return
    results = measure(options)
    if options.json:
        print(json.dumps(results))
        return
    print(f"{options.images * 3 * options.size**2 / 1e6:.0f} MB of images")
    print(f"{'':10}{'train, /s':>12}{'remask, /s':>12}{'peak, MB':>12}{'before, MB':>12}")
    for kind, row in results.items():
        speeds = f"{row['train']:12.0f}{row['remask']:12.0f}"
        print(f"{kind:10}{speeds}{row['peak_mb']:12.0f}{row['before_mb']:12.0f}")


if __name__ == "__main__":
    main()
