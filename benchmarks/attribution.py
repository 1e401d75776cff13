"""Speed of attribution relative to bare passes, and of least squares relative to its textbook form.

Passes: a bare pass is one forward pass and one backward pass to the pixels of one decoded batch on the device, with
frozen parameters, or the forward pass alone for a method that needs no gradients. ``attribute`` adds decoding, noise or
paths, sums, checks and maps in main memory. Both make the same number of passes, that of the method's record or, if it
has none, the rows that reach the model. They alternate in one process, so that other load on the machine slows both;
the table has medians over the rounds. ``--methods all`` measures every method that the architecture supports.

Memory: the peak of the process while ``attribute`` explains two batches, and while it explains ``--many`` batches,
which are already in memory. Peaks are reset between methods, which needs Linux.

Least squares, in float64 and without the model: the square explanation, of all squares of sides 1 to 10 on 28 × 28,
against pinv(MᵀM) MᵀΔ for each image; the noisy-baseline explanation of 784 values, for a single image and for a batch,
against pinv(XᵀWX) XᵀWΔ with a dense diagonal W. For the latter, our time includes sampling the baselines twice and the
factorization, as for the first batch of a run, while the textbook form gets the baselines as input. The program stops
if solutions differ by more than 1e-8 of the largest value.

    python benchmarks/attribution.py --size 32 --width 16 --threads 1
    python benchmarks/attribution.py --only passes --methods all --architecture vit --width 96 --threads 1
    python benchmarks/attribution.py --only memory --methods all --threads 1
    python benchmarks/attribution.py --only squares --threads 1
"""

import argparse
import json
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from common import CLASSES, classifier, megabytes, parser_of, wait

from saliency_assay.config.methods import unsupported
from saliency_assay.methods import METHODS, Method, optimal
from saliency_assay.methods.cost import Map, counted_rows, passes
from saliency_assay.methods.differentiate import input_gradient, target_logits
from saliency_assay.methods.engine import attribute
from saliency_assay.methods.optimal import Design, covered, explain_squares, make_design
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.registry.records import record_of, resolve

MEASUREMENTS = ("passes", "memory", "squares", "noise")
AGREEMENT = 1e-8
USUAL = ("gradient", "smoothgrad", "integrated_gradients")
SETTINGS: dict[str, dict[str, float]] = {
    "kernel_shap": {"segments": 16, "samples": 64},
    "lime": {"segments": 16, "samples": 64},
    "optimal_square": {"squares": 64, "largest": 8},
    "optimal_noisy_baseline": {"samples": 6400},
}
"""Parameters of methods for which ``--samples`` is too few."""
LEAST_SQUARES = {
    name: (f"{name}_s", f"{name}_textbook_s", f"{name}_ratio", f"{name}_difference")
    for name in ("squares", "noise", "noise_batch")
}
Result = TypeVar("Result")


def timed(work: Callable[[], Result], device: str) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    wait(device)
    return time.perf_counter() - start, result


def bare_passes(
    model: Classifier, batch: torch.Tensor, targets: torch.Tensor, count: int, gradients: bool
) -> None:
    run = input_gradient if gradients else target_logits
    with evaluating(model), exact_float32():
        for _ in range(count):
            run(model, batch, targets)


def selected(options: argparse.Namespace) -> list[Method]:
    """Return the methods to measure; all are those that the architecture supports and that use the model."""
    if options.methods != ["all"]:
        return [record_of(METHODS, name, "method") for name in options.methods]
    architecture = record_of(ARCHITECTURES, options.architecture, "architecture")
    return [method for method in METHODS if method.uses_model and not unsupported(method.needs, architecture)]


def explain(
    method: Method,
    parameters: dict[str, Any],
    model: Classifier,
    images: torch.Tensor,
    targets: torch.Tensor,
    rows: int,
) -> None:
    function = resolve(method.function)
    maps = attribute(function, parameters, model, images.numpy(), targets.numpy(), seed=0, batch_size=rows)
    # A queue of length 0 consumes the maps without keeping them, like a caller that writes them to disk.
    deque(maps, maxlen=0)


def measure_passes(options: argparse.Namespace) -> dict[str, float]:
    """Return passes (of one image) per second of each method and of bare passes, and the median of their ratios."""
    model, rows, samples = classifier(options).requires_grad_(False), options.batch_size, options.samples
    most, size = options.batches * samples * rows, (options.size, options.size)
    images = torch.randint(0, 256, (most, 3, *size), dtype=torch.uint8)
    targets = torch.randint(0, CLASSES, (most,))
    resident = to_pixels(images[:rows].to(options.device)), targets[:rows].to(options.device)
    results: dict[str, float] = {}
    for method in selected(options):
        parameters = few_passes(method, samples)
        background = {"background": resident[0][:samples]} if "background" in method.takes else {}
        work = partial(explain, method, parameters | background, model, rows=rows)
        if method.passes is None:
            with counted_rows(model) as counts:
                work(images[:rows], targets[:rows])
            passes_of_image = sum(counts) / rows
        else:
            count = len(resident[0][:samples])
            passes_of_image = passes(method.passes, Map(parameters, size, rows, background=count))
        count = rows * max(1, int(most / rows / passes_of_image))
        bare_count = round(count * passes_of_image / rows)
        bare = partial(bare_passes, model, *resident, bare_count, "gradients" in method.needs)
        turns = []
        for turn in range(options.rounds + 1):
            work_s, _ = timed(partial(work, images[:count], targets[:count]), options.device)
            bare_s, _ = timed(bare, options.device)
            if turn:  # the first round warms up
                turns.append((bare_count * rows / work_s, bare_count * rows / bare_s, bare_s / work_s))
        names = (method.name, f"bare_{method.name}", f"{method.name}_share")
        medians = map(statistics.median, zip(*turns, strict=True))
        results |= dict(zip(names, medians, strict=True))
    return results


def measure_memory(options: argparse.Namespace) -> dict[str, float]:
    """Return the peak memory in MB of each method for two batches and for many."""
    model, rows = classifier(options).requires_grad_(False), options.batch_size
    images = torch.randint(0, 256, (options.many * rows, 3, options.size, options.size), dtype=torch.uint8)
    targets = torch.randint(0, CLASSES, (len(images),))
    results: dict[str, float] = {}
    for method in selected(options):
        parameters = few_passes(method, options.samples)
        if "background" in method.takes:
            parameters["background"] = to_pixels(images[: options.samples].to(options.device))
        for name, count in (("few", 2 * rows), ("many", len(images))):
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
            explain(method, parameters, model, images[:count], targets[:count], rows)
            results[f"{method.name}_{name}_mb"] = megabytes()
    return results


def few_passes(method: Method, samples: int) -> dict[str, Any]:
    """Return the method's default parameters with few passes."""
    few = {name: samples for name in ("samples", "steps") if name in method.parameters}
    defaults = {name: each.default for name, each in method.parameters.items()}
    return {**defaults, **few, **SETTINGS.get(method.name, {})}


def measure_squares(options: argparse.Namespace) -> dict[str, float]:
    """Compare explanations by 5,605 squares of 784 pixels; ``--images`` images share one factorization."""
    device = torch.device(options.device)

    def factorized_design() -> Design:
        make_design.cache_clear()
        return make_design(28, 28, 1, 10, 0, 0.0, None, device)

    masks = covered(factorized_design().squares, 28, 28).flatten(1).double()
    drops = torch.randn(options.images, len(masks), dtype=torch.float64, device=device)
    textbook_times, our_times = [], []
    for _ in range(options.rounds):
        seconds, expected = timed(
            lambda: torch.linalg.pinv(masks.T @ masks) @ (masks.T @ drops[0]), options.device
        )
        textbook_times.append(seconds)
        seconds, solutions = timed(lambda: explain_squares(factorized_design(), drops), options.device)
        our_times.append(seconds / options.images)
    return compare("squares", textbook_times, our_times, expected, solutions[0].flatten())


def measure_noise(options: argparse.Namespace) -> dict[str, float]:
    """Compare explanations by ``--noise-samples`` baselines of 784 values, processed in portions as in the method."""
    count, size, batch_size = options.noise_samples, 784, options.noise_images
    tensor_options = {"dtype": torch.float64, "device": options.device}
    baselines = optimal.Baselines(
        0, (1, 28, 28), torch.float32, torch.device(options.device), 0.2, clipped=False
    )
    images = torch.rand(batch_size, size, **tensor_options)
    weights = torch.randn(size, CLASSES, **tensor_options) / size**0.5
    sampled = next(baselines.portions(count)).flatten(1)
    baseline_logits, image_logits = torch.tanh(sampled.double() @ weights), torch.tanh(images @ weights)
    targets = torch.arange(batch_size, device=options.device) % CLASSES

    def textbook() -> torch.Tensor:
        design, drops = images[0] - sampled, image_logits[0, 0] - baseline_logits[:, 0]
        ones = torch.ones(count, **tensor_options)
        gram = design.T @ torch.diag(ones) @ design
        return torch.linalg.pinv(gram) @ (design.T @ torch.diag(ones) @ drops)

    def shared(rows: int) -> torch.Tensor:
        optimal.make_scatter.cache_clear()
        scatter = optimal.make_scatter(baselines, count)
        size = rows * -(-optimal.BLOCK // rows)  # the portion size of the method
        portions = zip(baselines.portions(size), baseline_logits.split(size), strict=False)
        trimmed = ((sampled[: len(logits)].flatten(1), logits) for sampled, logits in portions)
        products, level = optimal.cross_products(trimmed, scatter.mean, CLASSES)
        drops = (image_logits[:rows] - level).gather(1, targets[:rows, None])[:, 0]
        return optimal.explain_noisy(scatter, products[:, targets[:rows]], images[:rows], drops)

    timings: dict[str, list[float]] = {"textbook": [], "noise": [], "noise_batch": []}
    for _ in range(options.noise_rounds):
        seconds, expected = timed(textbook, options.device)
        timings["textbook"].append(seconds)
    for _ in range(options.rounds):
        seconds, alone = timed(lambda: shared(1), options.device)
        timings["noise"].append(seconds)
        seconds, batch = timed(lambda: shared(batch_size), options.device)
        timings["noise_batch"].append(seconds / batch_size)
    return {
        **compare("noise", timings["textbook"], timings["noise"], expected, alone[0]),
        **compare("noise_batch", timings["textbook"], timings["noise_batch"], expected, batch[0]),
    }


def compare(
    name: str,
    textbook_times: list[float],
    our_times: list[float],
    expected: torch.Tensor,
    solution: torch.Tensor,
) -> dict[str, float]:
    difference = float((solution - expected).abs().max() / expected.abs().max())
    if not difference <= AGREEMENT:
        raise SystemExit(f"{name}: the solutions differ by {difference:.1e} of the largest value")
    textbook, ours = statistics.median(textbook_times), statistics.median(our_times)
    figures = {"s": ours, "textbook_s": textbook, "ratio": textbook / ours, "difference": difference}
    return {f"{name}_{key}": value for key, value in figures.items()}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument(
        "--samples", type=int, default=25, help="SmoothGrad's samples, integrated gradients' steps"
    )
    parser.add_argument("--methods", nargs="+", default=list(USUAL), help="registered methods, or all")
    parser.add_argument("--batches", type=int, default=1, help="per round, for a method of many passes")
    parser.add_argument("--many", type=int, default=40, help="batches of the memory measurement")
    parser.add_argument("--images", type=int, default=50, help="that share one factorization of all squares")
    parser.add_argument("--noise-samples", type=int, default=20_000, help="W is of their number squared")
    parser.add_argument(
        "--noise-images", type=int, default=16, help="that share their baselines in noise_batch"
    )
    parser.add_argument("--noise-rounds", type=int, default=1, help="of the textbook form, which is slow")
    parser.add_argument("--only", choices=MEASUREMENTS, help="run only this measurement")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measures = {
        "passes": measure_passes,
        "memory": measure_memory,
        "squares": measure_squares,
        "noise": measure_noise,
    }
    results: dict[str, float] = {}
    for name in MEASUREMENTS:
        if options.only in (None, name):
            results |= measures[name](options)
    if options.json:
        print(json.dumps({**vars(options), **results}))
        return
    show(results)


def show(results: dict[str, float]) -> None:
    methods = [name.removesuffix("_share") for name in results if name.endswith("_share")]
    measured = [name.removesuffix("_few_mb") for name in results if name.endswith("_few_mb")]
    memory_of = {name: (f"{name}_few_mb", f"{name}_many_mb") for name in measured}
    passes_of = {name: (name, f"bare_{name}", f"{name}_share") for name in methods}
    for headings, template, names in (
        (["passes/s", "bare", "share"], "{:32}{:12.0f}{:12.0f}{:12.2f}", passes_of),
        (["MB, few", "MB, many"], "{:32}{:12.0f}{:12.0f}", memory_of),
        (
            ["s/image", "textbook", "ratio", "difference"],
            "{:32}{:12.5f}{:12.3f}{:12.0f}{:12.1e}",
            LEAST_SQUARES,
        ),
    ):
        rows = [(name, *(results[key] for key in keys)) for name, keys in names.items() if keys[0] in results]
        if rows:
            print(" " * 32 + "".join(f"{title:>12}" for title in headings))
        for row in rows:
            print(template.format(*row))


if __name__ == "__main__":
    main()
