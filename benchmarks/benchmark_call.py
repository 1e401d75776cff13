"""Time of ``saliency_assay.benchmark`` relative to the bare passes that it needs, and of its import beside torch.

The first call is recorded: how many images each call of the network had, and whether gradients were needed. A bare run
repeats these calls with images that are already normalized: a forward pass, and a backward pass to the pixels where
gradients were needed, with frozen parameters. The call and the bare run alternate; the ratio is the median of the
rounds' quotients, bare by call, with their range. Layers that propagation methods put in place of the network's own are
not calls of the network, so the default methods have none of these. The table of ranks, which is computed on first use,
has a column of its own.

    python benchmarks/benchmark_call.py --threads 1
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import torch
import torchvision

import saliency_assay
from saliency_assay.models.inference import exact_float32

METHODS = [
    "gradient",
    "gradient_x_input",
    {"method": "integrated_gradients", "steps": 8},
    {"method": "smoothgrad", "samples": 8},
    {"method": "occlusion", "window": 0.5, "stride": 0.25},
    "random",
]
METRICS = [
    {"metric": "deletion", "steps": 8},
    {"metric": "insertion", "steps": 8},
    {"metric": "sensitivity_max", "samples": 2},
    "complexity",
]
IMPORT = """
import time, torch
start = time.perf_counter()
from saliency_assay import benchmark
print(time.perf_counter() - start)
"""


def benchmark(network: torch.nn.Module, images: torch.Tensor, batch_size: int) -> saliency_assay.Benchmark:
    targets = torch.arange(len(images)) % 10
    result = saliency_assay.benchmark(
        network, (images, targets), METHODS, METRICS, batch_size=batch_size, progress=False
    )
    assert result.failures.empty, result.failures
    return result


def recorded_calls(network: torch.nn.Module, images: torch.Tensor, batch_size: int) -> list[tuple[int, bool]]:
    """Return the number of images of each call of the network, and True where its output had a gradient."""
    calls: list[tuple[int, bool]] = []
    handle = network.register_forward_hook(
        lambda _, inputs, output: calls.append((len(inputs[0]), output.requires_grad))
    )
    benchmark(network, images, batch_size)
    handle.remove()
    return calls


def bare_run(network: torch.nn.Module, images: torch.Tensor, calls: Sequence[tuple[int, bool]]) -> None:
    largest = max(count for count, _ in calls)
    pool = images.repeat(-(-largest // len(images)), 1, 1, 1)[:largest].contiguous(
        memory_format=torch.channels_last
    )
    with exact_float32():
        for count, with_gradient in calls:
            batch = pool[:count].detach().requires_grad_(with_gradient)
            with torch.set_grad_enabled(with_gradient):
                logits = network(batch)
            if with_gradient:
                torch.autograd.grad(logits[:, 0].sum(), batch)


def seconds(work: object, *arguments: object) -> float:
    start = time.perf_counter()
    work(*arguments)  # type: ignore[operator]
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    network = torchvision.models.resnet18(num_classes=10).eval().requires_grad_(False)
    images = torch.rand(options.images, 3, options.size, options.size)
    calls = recorded_calls(network, images, options.batch_size)
    bare_run(network, images, calls)
    rounds = []
    for _ in range(options.rounds):
        bare = seconds(bare_run, network, images, calls)
        start = time.perf_counter()
        result = benchmark(network, images, options.batch_size)
        called = time.perf_counter() - start
        rounds.append((bare, called, seconds(getattr, result, "ranks")))
    ratios = sorted(bare / called for bare, called, _ in rounds)
    medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
    imports = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(5)]
    passes = sum(count for count, _ in calls)
    print(
        f"ResNet-18, {options.images} images of {options.size} pixels, {passes} passes in {len(calls)} calls"
    )
    print("| bare, s | benchmark, s | ratio (range) | ranks, s | import, s |")
    print("|---|---|---|---|---|")
    low, ratio, high = ratios[0], statistics.median(ratios), ratios[-1]
    bare, called, ranks = medians
    times = f"{bare:.2f} | {called:.2f} | {ratio:.2f} ({low:.2f} to {high:.2f}) | {ranks:.2f}"
    print(f"| {times} | {statistics.median(imports):.3f} |")


if __name__ == "__main__":
    main()
