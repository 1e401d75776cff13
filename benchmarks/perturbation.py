"""How much of bare forward passes' speed the perturbation metrics keep, what captum takes, and how memory grows.

Passes: a metric goes through ``metrics.engine`` as in a job, with its model responses where it has any: decoding,
orders, masks, perturbed images, sums and checks. The rows that went through the model are counted, and the same number
of rows go through it bare, one resident batch again and again, without gradients. Both run in turns in one process, so
that a busy machine slows them alike; the table gives medians over the rounds.

captum: ``captum.metrics.infidelity(normalize=True)`` on the same squares of the same images, the scores compared.

Memory: the peak of a process that scores N images with their maps, read from stores on disk, for 1,000 and 10,000.

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

from saliency_assay.methods.optimal import choose, covered
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.engine import MetricInputs, model_responses, score
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.registry.records import record_of, resolve, with_defaults
from saliency_assay.storage import zarr_store

PARTS = ("passes", "captum", "memory")
MEASURED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "AOPC, both orders": ("aopc", {"random_orders": 1}),
    "N-Ord, S-Ord, TPN, TPS": ("criteria", {}),
    "INFD, squares": ("infidelity_square", {"squares": 200}),
    "faithfulness": ("faithfulness", {}),
    "deletion": ("deletion", {}),
    "sensitivity-n": ("sensitivity_n", {"subsets": 20}),
}
AGREEMENT = 1e-3  # of float32 sums over a few hundred squares
SEED = 0


def made(options: argparse.Namespace, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random images uint8, targets and maps."""
    generator = np.random.default_rng(SEED)
    shape = (count, 3, options.size, options.size)
    images = generator.integers(0, 256, shape, dtype=np.uint8)
    return images, generator.integers(0, CLASSES, count), generator.normal(size=shape).astype(np.float32)


def judge(
    model: Classifier,
    name: str,
    inputs: Mapping[str, Any],
    images: Any,
    targets: np.ndarray,
    maps: Any,
    batch: int,
) -> np.ndarray:
    """Probe and score as a job does, scores ``[N]`` of the metric's first score."""
    record = record_of(METRICS, name, "metric")
    parameters = with_defaults(record.parameters, inputs)
    whole = {"mean": model.mean.flatten()}
    sliced: dict[str, Any] = {}
    at = {"seed": SEED, "batch_size": batch}
    if record.responses:
        blocks = list(
            model_responses(
                resolve(record.responses),
                parameters,
                model,
                images,
                targets,
                inputs=MetricInputs(whole=whole),
                **at,
            )
        )
        if "responses" in record.takes:
            sliced["responses"] = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    found = score(
        resolve(record.function),
        parameters,
        model,
        images,
        targets,
        maps,
        names=[score.name for score in record.scores],
        inputs=MetricInputs(sliced, whole),
        **at,
    )
    return np.concatenate([next(iter(block.scores.values())).numpy() for block in found])


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
    """Perturbed images a second of each metric, of bare passes, and the median of their ratios."""
    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    batch = options.batch_size
    images, targets, maps = made(options, batch * options.batches)
    resident = to_pixels(torch.from_numpy(images[:batch]).to(options.device))
    rows = 0

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor], logits: torch.Tensor) -> None:
        nonlocal rows
        rows += len(logits)

    handle = model.register_forward_hook(count)
    found: dict[str, list[float]] = {}
    for turn in range(options.rounds + 1):
        for label, (name, inputs) in MEASURED.items():
            rows = 0
            spent, _ = timed(
                lambda name=name, inputs=inputs: judge(model, name, inputs, images, targets, maps, batch),
                options.device,
            )
            passed, whole = rows, rows - rows % batch
            bare, _ = timed(lambda whole=whole: bare_passes(model, resident, whole), options.device)
            ours, theirs = passed / spent, whole / bare
            speeds = {label: ours, f"{label} bare": theirs, f"{label} share": ours / theirs}
            for key, value in speeds.items():
                if turn:  # the first round warms up
                    found.setdefault(key, []).append(value)
    handle.remove()
    return {key: statistics.median(values) for key, values in found.items()}


def measure_captum(options: argparse.Namespace) -> dict[str, float]:
    """Seconds for the infidelity of a batch under ``--squares`` squares, ours and captum's."""
    from captum.metrics import infidelity  # slow to import, and the other parts do without

    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    batch, count = options.batch_size, options.squares
    images, targets, maps = made(options, batch)
    pixels = to_pixels(torch.from_numpy(images).to(options.device))
    attributions = torch.from_numpy(maps).to(options.device)
    squares = choose(options.size, options.size, 1, 10, count, SEED).to(options.device)
    masks = covered(squares, options.size, options.size)
    place = 0

    def perturb(shown: torch.Tensor, baselines: None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """captum repeats each image ``n`` times in a row; every image gets the same squares."""
        nonlocal place
        repeats = len(shown) // batch
        mask = masks[place : place + repeats].repeat(batch, 1, 1, 1)
        place += repeats
        # For maps that are contributions, IᵀΦ sums them over the square.
        return mask.expand_as(shown).float(), shown.masked_fill(mask, 0)

    def theirs() -> torch.Tensor:
        nonlocal place
        place = 0
        with evaluating(model), exact_float32():
            return infidelity(
                model, perturb, pixels, attributions, target=torch.from_numpy(targets).to(options.device),
                n_perturb_samples=count, max_examples_per_batch=batch, normalize=True,
            )  # fmt: skip

    inputs = {"squares": count, "rescale": True}
    spent: dict[str, list[float]] = {"ours": [], "captum": []}
    for turn in range(options.rounds + 1):
        ours, mine = timed(
            lambda: judge(model, "infidelity_square", inputs, images, targets, maps, batch), options.device
        )
        other, expected = timed(theirs, options.device)
        if turn:
            spent["ours"].append(ours)
            spent["captum"].append(other)
    difference = float(np.max(np.abs(mine - expected.cpu().numpy()) / np.abs(mine)))
    if not difference <= AGREEMENT:
        raise SystemExit(f"captum: scores differ by {difference:.1e} of their value")
    ours, other = (statistics.median(values) for values in spent.values())
    ratios = [b / a for a, b in zip(spent["ours"], spent["captum"], strict=True)]
    return {
        "captum_ours_s": ours,
        "captum_s": other,
        "captum_ratio": statistics.median(ratios),
        "captum_difference": difference,
    }


def measure_memory(options: argparse.Namespace) -> dict[str, float]:
    """Peak memory in MB of a process of its own for each number of images."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (1000, 10_000):
            path = Path(folder) / f"{count}.zarr.zip"
            zarr_store.write(path, blocks_of(options, count), kind="benchmark", attributes={})
            command = [sys.executable, *sys.argv, "--peak-of", str(path)]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            found[f"memory_{count}_mb"] = float(run.stdout)
    found["memory_growth"] = found["memory_10000_mb"] / found["memory_1000_mb"]
    return found


def blocks_of(options: argparse.Namespace, count: int) -> Iterator[dict[str, np.ndarray]]:
    for start in range(0, count, 1000):
        images, targets, maps = made(options, min(1000, count - start))
        yield {"image": images, "target": targets, "map": maps}


def peak_of(options: argparse.Namespace) -> None:
    model = classifier(options).to(memory_format=torch.channels_last).requires_grad_(False)
    with zarr_store.open_store(Path(options.peak_of), kind="benchmark") as opened:
        everything = np.arange(len(opened))
        images, targets = opened["image"].at(everything), opened["target"][:]
        judge(model, "criteria", {"steps": 2}, images, targets, opened["map"], options.batch_size)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--batches", type=int, default=1, help="that a metric scores in a round")
    parser.add_argument("--squares", type=int, default=200, help="that captum and we remove from each image")
    parser.add_argument("--only", choices=PARTS, help="one part of the three")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak_of:
        peak_of(options)
        return
    measures = {"passes": measure_passes, "captum": measure_captum, "memory": measure_memory}
    found: dict[str, float] = {}
    for part in PARTS:
        if options.only in (None, part):
            found |= measures[part](options)
    if options.json:
        print(json.dumps({**vars(options), **found}))
        return
    show(found)


def show(found: Mapping[str, float]) -> None:
    if f"{next(iter(MEASURED))} share" in found:
        print(f"{'':26}{'images/s':>12}{'bare':>12}{'share':>12}")
        for label in MEASURED:
            print(
                f"{label:26}{found[label]:12.0f}{found[f'{label} bare']:12.0f}{found[f'{label} share']:12.2f}"
            )
    if "captum_ratio" in found:
        print(
            f"infidelity of a batch: {found['captum_ours_s']:.2f} s, captum {found['captum_s']:.2f} s, "
            f"ratio {found['captum_ratio']:.2f}, largest difference {found['captum_difference']:.1e}"
        )
    if "memory_growth" in found:
        print(
            f"peak memory: {found['memory_1000_mb']:.0f} MB for 1,000 images, "
            f"{found['memory_10000_mb']:.0f} MB for 10,000, ratio {found['memory_growth']:.3f}"
        )


if __name__ == "__main__":
    main()
