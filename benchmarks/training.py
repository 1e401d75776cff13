"""Speed of the training loop relative to bare training steps, and of evaluation relative to bare forward passes.

The bare step is forward, backward and optimizer on one decoded batch on the device; the loop adds selection,
augmentation, decoding, the schedule, sums for the curve and the checkpoint timer. The two alternate in one process, so
that other load on the machine slows both; the table has medians over the rounds.

With ``--masks L`` the images of the loop are composed of the base images, L masks and their fills (``Occluded``). Each
training gathers them again, so that with ``--epochs 1`` the cost of composition is fully included. With ``--stream``
nothing is gathered: images are read from a store, and composed, during the previous step.

    python benchmarks/training.py --size 32 --width 16 --precision float32 --threads 1
    python benchmarks/training.py --size 32 --width 16 --precision float32 --threads 1 --masks 5
    python benchmarks/training.py --size 32 --width 16 --precision float32 --threads 1 --masks 5 --stream
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
from common import CLASSES, classifier, parser_of, wait
from torch.nn import functional

from saliency_assay.data.batching import Images, resident
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, logits, to_pixels
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.occluded import Layer, Occluded
from saliency_assay.training.hyperparameters import Training, training_from
from saliency_assay.training.loop import RESIDENT_LIMIT, train


def bare_training(model: Classifier, images: torch.Tensor, labels: torch.Tensor, settings: Training) -> float:
    """Return images per second of bare steps on the first batch."""
    model.train().to(memory_format=torch.channels_last)
    device, count = model.device.type, len(images) // settings.batch_size
    batch, target = to_pixels(images[: settings.batch_size]), labels[: settings.batch_size]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True, fused=True)
    bf16 = settings.precision == "bf16" or (settings.precision == "auto" and device == "cuda")
    start = time.perf_counter()
    for _ in range(count):
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            predicted = model(batch)
        optimizer.zero_grad()
        functional.cross_entropy(predicted.float(), target).backward()
        optimizer.step()
    wait(device)
    return count * settings.batch_size / (time.perf_counter() - start)


def loop_training(
    model: Classifier, images: Images, labels: torch.Tensor, settings: Training, limit: int
) -> float:
    """Return images per second of ``train``, including its work before the first step."""
    count = len(images) // settings.batch_size * settings.batch_size * settings.epochs
    everything, nothing = torch.arange(len(images)), torch.empty(0, dtype=torch.int64)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train(
            model,
            images,
            labels,
            everything,
            nothing,
            settings,
            seed=0,
            state_path=Path(folder, "state.pt"),
            fingerprint="",
            resident_limit=limit,
        )
        return count / (time.perf_counter() - start)


def bare_evaluation(model: Classifier, images: torch.Tensor, batch_size: int) -> float:
    batch, count = to_pixels(images[:batch_size]), len(images) // batch_size
    with evaluating(model), exact_float32(), torch.inference_mode():
        start = time.perf_counter()
        for _ in range(count):
            model(batch)
        wait(model.device.type)
    return count * batch_size / (time.perf_counter() - start)


def loop_evaluation(model: Classifier, images: Images, batch_size: int) -> float:
    start = time.perf_counter()
    logits(model, images, batch_size=batch_size)
    return len(images) / (time.perf_counter() - start)


def blocks(images: torch.Tensor, masks: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the blocks of a store: ``images``, each with ``masks`` masks of 1/20 of the pixels and their fills."""
    generator = np.random.default_rng(0)
    for block in images.cpu().split(zarr_store.BLOCK):
        shape = (len(block), masks, *block.shape[2:])
        yield {
            "image": block.numpy(),
            "mask": generator.random(shape, dtype=np.float32) < 0.05,
            "mean": generator.integers(0, 256, (*shape[:2], block.shape[1]), dtype=np.uint8),
        }


def source(options: argparse.Namespace, images: torch.Tensor, stack: ExitStack) -> Images:
    """Return the images as input of the loop; ``stack`` closes their store."""
    if not options.masks and not options.stream:
        return images
    path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "data.zarr.zip")
    zarr_store.write(path, blocks(images, options.masks), kind="data", attributes={})
    store = stack.enter_context(zarr_store.open_store(path, kind="data"))
    base = store["image"] if options.stream else images
    layers = [Layer(store["mask"], store["mean"], options.masks)] if options.masks else []
    return Occluded(base, layers, images.device) if layers else base


def measure(options: argparse.Namespace) -> dict[str, float]:
    settings = training_from(
        {
            "epochs": options.epochs,
            "batch_size": options.batch_size,
            "learning_rate": 1e-3,
            "precision": options.precision,
            "augment_flip": True,
            "augment_shift": 4,
        }
    )
    shape = (options.images, 3, options.size, options.size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, device=options.device)
    labels = torch.randint(0, CLASSES, (options.images,), device=options.device)
    with ExitStack() as stack:
        return in_turns(options, images, labels, source(options, images, stack), settings)


def in_turns(
    options: argparse.Namespace,
    images: torch.Tensor,
    labels: torch.Tensor,
    source_images: Images,
    settings: Training,
) -> dict[str, float]:
    model, limit = classifier(options), 0 if options.stream else RESIDENT_LIMIT
    resident_images = resident(source_images, images.device, limit)  # as in the evaluations of a training
    speeds_by_turn: dict[str, list[float]] = {}
    for turn in range(options.rounds + 1):
        speeds = {
            "train": loop_training(model, source_images, labels.cpu(), settings, limit),
            "bare_train": bare_training(model, images, labels, settings),
        }
        model.to(memory_format=torch.contiguous_format)
        speeds["evaluate"] = loop_evaluation(model, resident_images, options.batch_size)
        speeds["bare_evaluate"] = bare_evaluation(model, images, options.batch_size)
        speeds["train_share"] = speeds["train"] / speeds["bare_train"]
        speeds["evaluate_share"] = speeds["evaluate"] / speeds["bare_evaluate"]
        for name, value in speeds.items():
            if turn:  # the first round warms up
                speeds_by_turn.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in speeds_by_turn.items()}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--images", type=int, default=2560, help="in a round")
    parser.add_argument("--epochs", type=int, default=1, help="of a round")
    parser.add_argument(
        "--masks", type=int, default=0, help="compose the images with so many masks and fills"
    )
    parser.add_argument("--stream", action="store_true", help="read the images from a store, batch by batch")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", default="auto", choices=("auto", "float32", "bf16"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    speeds = measure(options)
    if options.json:
        print(json.dumps({**vars(options), **speeds}))
        return
    print(f"{'':10}{'images/s':>12}{'bare':>12}{'share':>8}")
    for name in ("train", "evaluate"):
        print(f"{name:10}{speeds[name]:12.0f}{speeds[f'bare_{name}']:12.0f}{speeds[f'{name}_share']:8.2f}")


if __name__ == "__main__":
    main()
