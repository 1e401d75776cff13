"""Speed and peak memory of passes and training steps on a CPU with and without ``reuse_freed_memory``.

Each line is the median over rounds of a process with glibc's defaults and of one that reuses freed memory, which take
turns, and the ratio of their speeds. Peaks include Python and torch.

    python benchmarks/allocator.py --architecture reliability_cnn --width 32 --threads 2
    python benchmarks/allocator.py --architecture resnet50 --size 224 --batches 8 16 --threads 2
"""

import argparse
import statistics
import subprocess
import sys
import time

import torch
from common import CLASSES, classifier, megabytes, parser_of

from saliency_assay.runtime.device import reuse_freed_memory

SECONDS = 3.0


def measure(options: argparse.Namespace, batch: int) -> None:
    """Print forward passes and training steps in images per second, and the peak in MB."""
    if options.reuse:
        reuse_freed_memory()
    torch.set_num_threads(options.threads)
    model = classifier(options).to(memory_format=torch.channels_last)
    images = torch.rand(batch, 3, options.size, options.size).contiguous(memory_format=torch.channels_last)
    targets = torch.arange(batch) % CLASSES

    def forward() -> None:
        with torch.inference_mode():
            model.eval()(images)

    def step() -> None:
        model.requires_grad_(True).train().zero_grad()
        torch.nn.functional.cross_entropy(model(images), targets).backward()

    speeds = []
    for work in (forward, step):
        work()
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            work()
            count += batch
        speeds.append(count / (time.perf_counter() - start))
    print(*speeds, megabytes())


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--reuse", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reuse is not None:
        measure(options, options.batches[0])
        return
    print("| batch | | passes/s | training, images/s | peak, MB |\n|---|---|---|---|---|")
    for batch in options.batches:
        runs: dict[int, list[list[float]]] = {0: [], 1: []}
        for _ in range(options.rounds):
            for reuse, rows in runs.items():
                command = [sys.executable, *sys.argv, "--batches", str(batch), "--reuse", str(reuse)]
                printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                rows.append([float(value) for value in printed.split()])
        default, reused = (list(map(statistics.median, zip(*rows, strict=True))) for rows in runs.values())
        ratios = [b / a for a, b in zip(default, reused, strict=True)]
        for name, values, form in (
            ("default", default, ",.0f"),
            ("reused", reused, ",.0f"),
            ("ratio", ratios, ".2f"),
        ):
            print(f"| {batch} | {name} | " + " | ".join(format(value, form) for value in values) + " |")


if __name__ == "__main__":
    main()
