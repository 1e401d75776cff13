"""How much memory an iteration of IteROAR takes, with the images gathered on the device and with them streamed.

Stores of random images, by default of 7.5 GB, and of one mask of each are written block by block to a temporary folder
(``--folder`` for one on another disk than the usual). Each kind of iteration then runs in a process of its own, on
a CPU, with a network that hardly costs anything: one epoch of training on D_1, and the masks that gradients of all its
images occlude, written as a store. Reported are that process's highest resident memory, which holds Python and torch
too, and images a second of both parts, gathering and writing included.

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
from saliency_assay.training.loop import train
from saliency_assay.training.settings import training_from

KINDS = ("resident", "streamed")


def masks(options: argparse.Namespace) -> Iterator[dict[str, np.ndarray]]:
    """Return a mask of a twentieth of the pixels for each image, and the colour that fills it."""
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
    """Run the process that trains and occludes, and return its results."""
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
        found = remasked(
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
        zarr_store.write(Path(folder, "masks.zarr.zip"), found, kind="masks", attributes={})
        end = time.perf_counter()
    speeds = {"train": options.images / (trained - start), "remask": options.images / (end - trained)}
    return {**speeds, "before_mb": before, "peak_mb": megabytes()}


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        zarr_store.write(Path(folder, "data.zarr.zip"), blocks(options), kind="data", attributes={})
        zarr_store.write(Path(folder, "masks.zarr.zip"), masks(options), kind="masks", attributes={})
        found = {}
        for kind in KINDS:
            command = [sys.executable, __file__, *sys.argv[1:], "--store", folder, "--kind", kind]
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
        print(json.dumps(iteration(options)))
        return
    found = measure(options)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.images * 3 * options.size**2 / 1e6:.0f} MB of images")
    print(f"{'':10}{'train, /s':>12}{'remask, /s':>12}{'peak, MB':>12}{'before, MB':>12}")
    for kind, row in found.items():
        speeds = f"{row['train']:12.0f}{row['remask']:12.0f}"
        print(f"{kind:10}{speeds}{row['peak_mb']:12.0f}{row['before_mb']:12.0f}")


if __name__ == "__main__":
    main()
