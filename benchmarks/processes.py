"""Speed of a training in several processes relative to the same training in one, in images per second.

Each number of processes is measured in a separate program, and the programs alternate; their start, imports and first
training are not counted. Each of several processes has ``--threads / --processes`` threads, a single one all of them.

    python benchmarks/processes.py --processes 2 --threads 2 --architecture resnet18 --size 64
"""

import argparse
import json
import statistics
import subprocess
import sys

import torch
from common import CLASSES, classifier, parser_of
from training import loop_training

from saliency_assay.runtime.distributed import joined, leading
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import RESIDENT_LIMIT


def measure(options: argparse.Namespace) -> float:
    """Return images per second of the second of two trainings."""
    parameters = {"epochs": 1, "batch_size": options.batch_size, "learning_rate": 1e-3}
    settings = training_from({**parameters, "augment_flip": True, "augment_shift": 4})
    generator = torch.Generator().manual_seed(0)
    shape = (options.images, 3, options.size, options.size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator).to(options.device)
    labels = torch.randint(0, CLASSES, (options.images,), generator=generator)
    model = classifier(options)
    return [loop_training(model, images, labels, settings, RESIDENT_LIMIT) for _ in range(2)][1]


def speed_of(count: int) -> float:
    """Run this program with ``count`` processes and return its images per second."""
    command = [sys.executable, *sys.argv, "--measure", str(count)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--images", type=int, default=1280, help="in a training")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        torch.set_num_threads(options.threads)
        device = torch.device(options.device)
        with joined(device, options.threads, {"processes": options.measure}) as process_device:
            options.device = process_device
            speed = measure(options)
            if leading():
                print(speed)
        return
    rounds = [[speed_of(count) for count in (1, options.processes)] for _ in range(options.rounds)]
    one, several = (statistics.median(speeds) for speeds in zip(*rounds, strict=True))
    ratio = statistics.median(after / before for before, after in rounds)
    results = {"one": one, "several": several, "ratio": ratio}
    if options.json:
        print(json.dumps({**vars(options), **results}))
        return
    print(f"images/s: {one:.0f} in one process, {several:.0f} in {options.processes}; ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
