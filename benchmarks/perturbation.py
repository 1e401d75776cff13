"""Speed of the perturbation metrics relative to bare forward passes and to captum, and growth of their memory.

Passes: a metric is computed by ``metrics.engine`` as in a job, with model responses if it uses them: decoding, orders,
masks, perturbed images, sums and checks. The rows that go through the model are counted, and the same number of rows is
then passed through it without gradients as one resident batch, repeatedly. The two alternate in one process, so that
other load on the machine slows both; the table has medians over the rounds.

captum: ``captum.metrics.infidelity(normalize=True)`` on the same squares of the same images; the scores are compared.

Memory: peak of a process that scores N images with their maps from stores on disk, for 1,000 and 10,000 images.

    python benchmarks/perturbation.py --architecture reliability_cnn --threads 1
    python benchmarks/perturbation.py --only memory --threads 1
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import CLASSES, classifier, parser_of, wait

from saliency_assay.methods.optimal import covered, sample_squares
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.engine import MetricInputs, model_responses, score
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.registry.records import record_of, resolve, with_defaults
from saliency_assay.storage import zarr_store

MEASUREMENTS = ("passes", "captum", "memory")
MEASURED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "AOPC, both orders": ("aopc", {"random_orders": 1}),
    "N-Ord, S-Ord, TPN, TPS": ("necessity_sufficiency", {}),
    "INFD, squares": ("infidelity_square", {"squares": 200}),
    "faithfulness": ("faithfulness", {}),
    "deletion": ("deletion", {}),
    "sensitivity-n": ("sensitivity_n", {"subsets": 20}),
}
AGREEMENT = 1e-3  # tolerance for float32 sums over a few hundred squares
SEED = 0


def random_inputs(options: argparse.Namespace, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random uint8 images, targets and maps."""
    generator = np.random.default_rng(SEED)
    shape = (count, 3, options.size, options.size)
    images = generator.integers(0, 256, shape, dtype=np.uint8)
    return images, generator.integers(0, CLASSES, count), generator.normal(size=shape).astype(np.float32)


def score_metric(
    model: Classifier,
    name: str,
    inputs: Mapping[str, Any],
    images: Any,
    targets: np.ndarray,
    maps: Any,
    batch: int,
) -> np.ndarray:
    """Compute model responses and scores as a job does; return the metric's first score ``[N]``."""
    record = record_of(METRICS, name, "metric")
    parameters = with_defaults(record.parameters, inputs)
    shared = {"mean": model.mean.flatten()}
    sliced: dict[str, Any] = {}
    sampling = {"seed": SEED, "batch_size": batch}
    if record.responses:
        blocks = list(
            model_responses(
                resolve(record.responses),
                parameters,
                model,
                images,
                targets,
                inputs=MetricInputs(whole=shared),
                **sampling,
            )
        )
        if "responses" in record.takes:
            sliced["responses"] = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    scored_blocks = score(
        resolve(record.function),
        parameters,
        model,
        images,
        targets,
        maps,
        names=[score.name for score in record.scores],
        inputs=MetricInputs(sliced, shared),
        **sampling,
    )
    return np.concatenate([next(iter(block.scores.values())).numpy() for block in scored_blocks])


def timed(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    wait(device)
    return time.perf_counter() - start, result


def bare_passes(model: Classifier, batch: torch.Tensor, rows: int) -> None:
    with evaluating(model), exact_float32(), torch.no_grad():
        for _ in range(rows // len(batch)):
            model(batch)


def measure_passes(options: argparse.Namespace) -> dict[str, float]:
    """Return perturbed images per second of each metric and of bare passes, and the median of their ratios."""
    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    batch = options.batch_size
    images, targets, maps = random_inputs(options, batch * options.batches)
    resident = to_pixels(torch.from_numpy(images[:batch]).to(options.device))
    rows = 0

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor], logits: torch.Tensor) -> None:
        nonlocal rows
        rows += len(logits)

    handle = model.register_forward_hook(count)
    speeds_by_turn: dict[str, list[float]] = {}
    for turn in range(options.rounds + 1):
        for label, (name, inputs) in MEASURED.items():
            rows = 0
            metric_s, _ = timed(
                lambda name=name, inputs=inputs: score_metric(
                    model, name, inputs, images, targets, maps, batch
                ),
                options.device,
            )
            rows_scored, rows_bare = rows, rows - rows % batch
            bare_s, _ = timed(
                lambda rows_bare=rows_bare: bare_passes(model, resident, rows_bare), options.device
            )
            ours, theirs = rows_scored / metric_s, rows_bare / bare_s
            speeds = {label: ours, f"{label} bare": theirs, f"{label} share": ours / theirs}
            for key, value in speeds.items():
                if turn:  # the first round warms up
                    speeds_by_turn.setdefault(key, []).append(value)
    handle.remove()
    return {key: statistics.median(values) for key, values in speeds_by_turn.items()}


def measure_captum(options: argparse.Namespace) -> dict[str, float]:
    """Return the seconds for the infidelity of a batch with ``--squares`` squares, ours and captum's."""
    from captum.metrics import infidelity  # slow to import, and only needed here

    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    batch, count = options.batch_size, options.squares
    images, targets, maps = random_inputs(options, batch)
    pixels = to_pixels(torch.from_numpy(images).to(options.device))
    attributions = torch.from_numpy(maps).to(options.device)
    seed = BlockGenerator(SEED, "metric").initial_seed()  # as in ``score``
    squares = sample_squares(options.size, options.size, 1, 10, count, seed).to(options.device)
    masks = covered(squares, options.size, options.size)
    place = 0

    def perturb(repeated: torch.Tensor, baselines: None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Occlude the next squares, the same in all images; captum repeats each image ``n`` times in a row."""
        nonlocal place
        repeats = len(repeated) // batch
        mask = masks[place : place + repeats].repeat(batch, 1, 1, 1)
        place += repeats
        # A binary I, so that IᵀΦ is the sum of the contributions in the square.
        return mask.expand_as(repeated).float(), repeated.masked_fill(mask, 0)

    def theirs() -> torch.Tensor:
        nonlocal place
        place = 0
        with evaluating(model), exact_float32():
            return infidelity(
                model, perturb, pixels, attributions, target=torch.from_numpy(targets).to(options.device),
                n_perturb_samples=count, max_examples_per_batch=batch, normalize=True,
            )  # fmt: skip

    inputs = {"squares": count, "rescale": True}
    timings: dict[str, list[float]] = {"ours": [], "captum": []}
    for turn in range(options.rounds + 1):
        ours, our_scores = timed(
            lambda: score_metric(model, "infidelity_square", inputs, images, targets, maps, batch),
            options.device,
        )
        captum_seconds, expected = timed(theirs, options.device)
        if turn:
            timings["ours"].append(ours)
            timings["captum"].append(captum_seconds)
    difference = float(np.max(np.abs(our_scores - expected.cpu().numpy()) / np.abs(our_scores)))
    if not difference <= AGREEMENT:
        raise SystemExit(f"captum: scores differ by {difference:.1e} of their value")
    ours, captum_seconds = (statistics.median(values) for values in timings.values())
    ratios = [b / a for a, b in zip(timings["ours"], timings["captum"], strict=True)]
    return {
        "captum_ours_s": ours,
        "captum_s": captum_seconds,
        "captum_ratio": statistics.median(ratios),
        "captum_difference": difference,
    }


def measure_memory(options: argparse.Namespace) -> dict[str, float]:
    """Return the peak memory in MB of a separate process for each number of images."""
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (1000, 10_000):
            path = Path(folder) / f"{count}.zarr.zip"
            zarr_store.write(path, blocks_of(options, count), kind="benchmark", attributes={})
            command = [sys.executable, *sys.argv, "--peak-of", str(path)]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[f"memory_{count}_mb"] = float(run.stdout)
    peaks["memory_growth"] = peaks["memory_10000_mb"] / peaks["memory_1000_mb"]
    return peaks


def blocks_of(options: argparse.Namespace, count: int) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, count, 1000):
        images, targets, maps = random_inputs(options, min(1000, count - start))
        yield {"image": images, "target": targets, "map": maps}


def peak_of(options: argparse.Namespace) -> None:
    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    with zarr_store.open_store(Path(options.peak_of), kind="benchmark") as opened:
        everything = np.arange(len(opened))
        images, targets = opened["image"].at(everything), opened["target"][:]
        score_metric(
            model, "necessity_sufficiency", {"steps": 2}, images, targets, opened["map"], options.batch_size
        )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--batches", type=int, default=1, help="that a metric scores in a round")
    parser.add_argument("--squares", type=int, default=200, help="that captum and we remove from each image")
    parser.add_argument("--only", choices=MEASUREMENTS, help="run only this measurement")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak_of:
        peak_of(options)
        return
    measures = {"passes": measure_passes, "captum": measure_captum, "memory": measure_memory}
    results: dict[str, float] = {}
    for name in MEASUREMENTS:
        if options.only in (None, name):
            results |= measures[name](options)
    if options.json:
        print(json.dumps({**vars(options), **results}))
        return
    show(results)


def show(results: Mapping[str, float]) -> None:
    if f"{next(iter(MEASURED))} share" in results:
        print(f"{'':26}{'images/s':>12}{'bare':>12}{'share':>12}")
        for label in MEASURED:
            print(
                f"{label:26}{results[label]:12.0f}{results[f'{label} bare']:12.0f}{results[f'{label} share']:12.2f}"
            )
    if "captum_ratio" in results:
        print(
            f"infidelity of a batch: {results['captum_ours_s']:.2f} s, captum {results['captum_s']:.2f} s, "
            f"ratio {results['captum_ratio']:.2f}, largest difference {results['captum_difference']:.1e}"
        )
    if "memory_growth" in results:
        print(
            f"peak memory: {results['memory_1000_mb']:.0f} MB for 1,000 images, "
            f"{results['memory_10000_mb']:.0f} MB for 10,000, ratio {results['memory_growth']:.3f}"
        )


if __name__ == "__main__":
    main()
