"""How much of bare passes' speed attribution keeps, and what least squares gains over its textbook form.

Passes: a bare pass is one forward and one backward pass to the pixels of one batch that lies decoded on the device,
with frozen parameters. ``attribute`` adds decoding, noise or paths, sums, checks and maps in main memory. Both run in
turns in one process, so that a busy machine slows them alike; the table gives medians over the rounds.

Least squares, in float64 and without the model: the square explanation, of all squares of sides 1 to 10 on 28 × 28,
against pinv(MᵀM) MᵀΔ for each image; the noisy-baseline explanation of 784 values, for one image alone and for a batch,
against pinv(XᵀWX) XᵀWΔ with a dense diagonal W. Ours of the latter draws its baselines twice and factorises, as for the
first batch of a run; the textbook's are given. Solutions that differ by more than 1e-8 of the largest value end it.

    python benchmarks/attribution.py --size 32 --width 16 --threads 1
    python benchmarks/attribution.py --only squares --threads 1
"""

import argparse
import json
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from common import CLASSES, classifier, parser_of, wait

from saliency_assay.methods import optimal
from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.methods.engine import attribute
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.optimal import Design, covered, explain_squares, make_design
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels

PARTS = ("passes", "squares", "noise")
AGREEMENT = 1e-8
PASSES = {
    name: (name, f"bare_{name}", f"{name}_share")
    for name in ("gradient", "smoothgrad", "integrated_gradients")
}
LEAST_SQUARES = {
    part: (f"{part}_s", f"{part}_textbook_s", f"{part}_ratio", f"{part}_difference")
    for part in ("squares", "noise", "noise_batch")
}
Result = TypeVar("Result")


def timed(work: Callable[[], Result], device: str) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    wait(device)
    return time.perf_counter() - start, result


def bare_passes(model: Classifier, batch: torch.Tensor, targets: torch.Tensor, count: int) -> None:
    with evaluating(model), exact_float32():
        for _ in range(count):
            input_gradient(model, batch, targets)


def measure_passes(options: argparse.Namespace) -> dict[str, float]:
    """Return passes (of one image) a second of each method and of bare passes, and the median of their ratios."""
    many = options.samples
    methods = {
        "gradient": (gradient, {}, 1),
        "smoothgrad": (smoothgrad, {"samples": many}, many),
        "integrated_gradients": (integrated_gradients, {"steps": many}, many),
    }
    model, rows = classifier(options).requires_grad_(False), options.batch_size
    batches = options.batches * many
    shape = (batches * rows, 3, options.size, options.size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    targets = torch.randint(0, CLASSES, (len(images),))
    resident = to_pixels(images[:rows].to(options.device)), targets[:rows].to(options.device)
    found: dict[str, list[float]] = {}
    for turn in range(options.rounds + 1):
        for name, (method, parameters, passes) in methods.items():
            few = len(images) // passes
            given = (method, parameters, model, images[:few].numpy(), targets[:few].numpy())
            # A queue of no length: maps are made and let go, as by a caller that writes them down.
            drawing = partial(deque, attribute(*given, seed=0, batch_size=rows), maxlen=0)
            drawn, _ = timed(drawing, options.device)
            bare, _ = timed(partial(bare_passes, model, *resident, batches), options.device)
            speeds = {
                name: len(images) / drawn,
                f"bare_{name}": len(images) / bare,
                f"{name}_share": bare / drawn,
            }
            for key, value in speeds.items():
                if turn:  # the first round warms up
                    found.setdefault(key, []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def measure_squares(options: argparse.Namespace) -> dict[str, float]:
    """5,605 squares of 784 pixels; the time of the one factorisation is shared by ``--images`` images."""
    device = torch.device(options.device)

    def factorised() -> Design:
        make_design.cache_clear()
        return make_design(28, 28, 1, 10, 0, 0.0, None, device)

    masks = covered(factorised().squares, 28, 28).flatten(1).double()
    falls = torch.randn(options.images, len(masks), dtype=torch.float64, device=device)
    before, after = [], []
    for _ in range(options.rounds):
        spent, expected = timed(
            lambda: torch.linalg.pinv(masks.T @ masks) @ (masks.T @ falls[0]), options.device
        )
        before.append(spent)
        spent, found = timed(lambda: explain_squares(factorised(), falls), options.device)
        after.append(spent / options.images)
    return compared("squares", before, after, expected, found[0].flatten())


def measure_noise(options: argparse.Namespace) -> dict[str, float]:
    """``--noise-samples`` baselines of 784 values, which the method sees as many at a time as there are images."""
    count, size, together = options.noise_samples, 784, options.noise_images
    like = {"dtype": torch.float64, "device": options.device}
    baselines = optimal.Baselines(
        0, (1, 28, 28), torch.float32, torch.device(options.device), 0.2, clipped=False
    )
    images = torch.rand(together, size, **like)
    weights = torch.randn(size, CLASSES, **like) / size**0.5
    drawn = next(baselines.portions(count)).flatten(1)
    after, before = torch.tanh(drawn.double() @ weights), torch.tanh(images @ weights)
    targets = torch.arange(together, device=options.device) % CLASSES

    def textbook() -> torch.Tensor:
        design, falls = images[0] - drawn, before[0, 0] - after[:, 0]
        ones = torch.ones(count, **like)
        gram = design.T @ torch.diag(ones) @ design
        return torch.linalg.pinv(gram) @ (design.T @ torch.diag(ones) @ falls)

    def shared(rows: int) -> torch.Tensor:
        optimal.make_scatter.cache_clear()
        scatter = optimal.make_scatter(baselines, count)
        size = rows * -(-optimal.BLOCK // rows)  # as many as the method holds back
        portions = zip(baselines.portions(size), after.split(size), strict=False)
        trimmed = ((drawn[: len(logits)].flatten(1), logits) for drawn, logits in portions)
        products, level = optimal.cross_products(trimmed, scatter.mean, CLASSES)
        drops = (before[:rows] - level).gather(1, targets[:rows, None])[:, 0]
        return optimal.explain_noisy(scatter, products[:, targets[:rows]], images[:rows], drops)

    spent: dict[str, list[float]] = {"textbook": [], "noise": [], "noise_batch": []}
    for _ in range(options.noise_rounds):
        seconds, expected = timed(textbook, options.device)
        spent["textbook"].append(seconds)
    for _ in range(options.rounds):
        seconds, alone = timed(lambda: shared(1), options.device)
        spent["noise"].append(seconds)
        seconds, batch = timed(lambda: shared(together), options.device)
        spent["noise_batch"].append(seconds / together)
    return {
        **compared("noise", spent["textbook"], spent["noise"], expected, alone[0]),
        **compared("noise_batch", spent["textbook"], spent["noise_batch"], expected, batch[0]),
    }


def compared(
    part: str, before: list[float], after: list[float], expected: torch.Tensor, found: torch.Tensor
) -> dict[str, float]:
    difference = float((found - expected).abs().max() / expected.abs().max())
    if not difference <= AGREEMENT:
        raise SystemExit(f"{part}: the solutions differ by {difference:.1e} of the largest value")
    textbook, ours = statistics.median(before), statistics.median(after)
    figures = {"s": ours, "textbook_s": textbook, "ratio": textbook / ours, "difference": difference}
    return {f"{part}_{key}": value for key, value in figures.items()}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument(
        "--samples", type=int, default=25, help="SmoothGrad's samples, integrated gradients' steps"
    )
    parser.add_argument(
        "--batches", type=int, default=1, help="that a method of many passes draws in a round"
    )
    parser.add_argument("--images", type=int, default=50, help="that share one factorisation of all squares")
    parser.add_argument("--noise-samples", type=int, default=20_000, help="W is of their number squared")
    parser.add_argument(
        "--noise-images", type=int, default=16, help="that share their baselines in noise_batch"
    )
    parser.add_argument("--noise-rounds", type=int, default=1, help="of the textbook form, which is slow")
    parser.add_argument("--only", choices=PARTS, help="one part of the three")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measures = {"passes": measure_passes, "squares": measure_squares, "noise": measure_noise}
    found: dict[str, float] = {}
    for part in PARTS:
        if options.only in (None, part):
            found |= measures[part](options)
    if options.json:
        print(json.dumps({**vars(options), **found}))
        return
    show(found)


def show(found: dict[str, float]) -> None:
    for head, line, names in (
        (["passes/s", "bare", "share"], "{:22}{:12.0f}{:12.0f}{:12.2f}", PASSES),
        (
            ["s/image", "textbook", "ratio", "difference"],
            "{:22}{:12.5f}{:12.3f}{:12.0f}{:12.1e}",
            LEAST_SQUARES,
        ),
    ):
        rows = [(name, *(found[key] for key in keys)) for name, keys in names.items() if keys[0] in found]
        if rows:
            print(" " * 22 + "".join(f"{title:>12}" for title in head))
        for row in rows:
            print(line.format(*row))


if __name__ == "__main__":
    main()
