"""Training loop for images on the device or prefetched to it, without device synchronization within a step."""

import logging
import math
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from saliency_assay.data.batching import Images, batches, dtype_of, resident
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import exact_float32, logit_batches, to_pixels
from saliency_assay.models.layout import leaves_unused, place
from saliency_assay.runtime.distributed import anyone, leading, own, own_rows, processes, summed
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.training.deletion import delete_cells, grid_cells, sample_deleted
from saliency_assay.training.hyperparameters import Training
from saliency_assay.training.replica import replica
from saliency_assay.training.state import Checkpoint, NotFinite, Progress, Row, check_finite

log = logging.getLogger(__name__)
RESIDENT_LIMIT = 8_000_000_000  # bytes of images that are kept on the device
# Columns of the learning curve, in this order; a training of 0 epochs has no rows.
COLUMNS = ("epoch", "learning_rate", "train_loss", "train_accuracy", "validation_accuracy", "test_accuracy")


def train(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    train_indices: Tensor,
    test_indices: Tensor,
    settings: Training,
    *,
    seed: int,
    state_path: Path,
    fingerprint: str,
    validation_indices: Tensor | None = None,
    save_seconds: float = 60.0,
    resident_limit: int = RESIDENT_LIMIT,
) -> list[Row]:
    """Train ``classifier`` in place on its device and return the learning curve, one row per epoch.

    A killed training resumes from the state at ``state_path`` if that has the same ``fingerprint``, and ends with the
    same weights as without interruption: bit for bit on a CPU, for the same seed and number of threads. During training
    and evaluation, the state is written every ``save_seconds`` seconds and on SIGTERM, which then raises
    SystemExit(143). The caller deletes the state with ``training.state.remove_state``. If a training diverges, its
    state is replaced by the reason, and the next attempt with the same fingerprint fails at once.

    Several processes (``distributed.joined``) train one classifier together, each on its rows of every batch. All
    return the same weights and curve, which are those of a single process up to the order of floating-point sums. The
    state does not depend on the number of processes, so a training may resume with another number.

    Args:
        classifier: the model, on the device for training.
        images: ``[N, C, H, W]`` as in ``data.batching``. They are copied to the device if they need at most
            ``resident_limit`` bytes, and are otherwise prefetched in batches, with the same result.
        labels: int64 ``[N]``.
        train_indices: int64, indices of the training images.
        test_indices: int64, indices of the test images, which never affect the weights.
        settings: hyperparameters. With ``patience``, the weights of the best epoch are kept, which need not be the last
            one of the curve.
        seed: seed of order, augmentation and dropout.
        state_path: file of the training state.
        fingerprint: identity of the training; a state with another one is discarded.
        validation_indices: int64, indices of the validation images; None for none.
        save_seconds: interval at which the state is written.
        resident_limit: maximum number of bytes of images on the device.

    Returns:
        Rows of ``COLUMNS``: ``epoch`` (from 1), ``learning_rate`` (of its last step), ``train_loss`` and
        ``train_accuracy`` (means over the augmented images of the epoch, while the weights change),
        ``validation_accuracy`` and ``test_accuracy`` (of the weights after the epoch; NaN if not evaluated).

    Raises:
        ValueError: images or labels do not fit the classifier or the settings, the batch cannot be divided among the
            processes, or the training diverges.
    """
    held_out = {"validation": torch.empty(0, dtype=torch.int64), "test": test_indices}
    if validation_indices is not None:
        held_out["validation"] = validation_indices
    _check_arguments(classifier, images, labels, train_indices, held_out, settings)
    device = classifier.device
    size = settings.batch_size
    steps = len(train_indices) // size  # an incomplete batch is dropped
    rates = learning_rates(settings, settings.epochs * steps)
    optimizer = _optimizer(classifier, settings)
    images = resident(images, device, resident_limit)
    fill = classifier.mean.flatten().clamp(0, 1)
    if dtype_of(images) == torch.uint8:
        fill = (255 * fill).round().to(torch.uint8)
    if settings.augment_fill == "black":
        fill.zero_()
    precision = precision_of(settings, device)
    if settings.precision == "auto":
        log.info("precision: auto selects %s on this device", precision)
    checkpoint = Checkpoint(state_path, fingerprint, classifier, optimizer, seconds=save_seconds)
    try:
        with _training_backend(classifier, images.shape[2:]), checkpoint:
            progress = checkpoint.resume()
            has_unused = processes() > 1 and anyone(leaves_unused(classifier, images.shape[2:]))
            network = replica(classifier, unused=has_unused)
            reported = time.monotonic()
            with _progress_bar(settings, steps, progress) as bar:
                while not finished(progress.rows, settings):
                    epoch = progress.epoch
                    with closing(
                        _remaining_batches(images, labels, train_indices, settings, seed, progress, fill)
                    ) as remaining:
                        for batch, targets in remaining:
                            rate = rates[epoch * steps + progress.step]
                            # Dropout uses the global generator. Seeding it in each step makes its state depend on the
                            # step alone, so that a resumed training needs no saved generator state.
                            torch.manual_seed(seed_of(seed, "dropout", str(epoch), str(progress.step)))
                            _training_step(
                                network, optimizer, batch, targets, rate, settings, progress, precision
                            )
                            bar.update(size)
                            checkpoint.keep(progress)
                    row = {"epoch": epoch + 1, "learning_rate": rates[(epoch + 1) * steps - 1]}
                    row |= _epoch_row(classifier, images, labels, held_out, settings, progress, checkpoint)
                    progress.end_epoch(row)
                    if settings.patience and best_epoch(progress.rows) == epoch + 1:
                        state = classifier.state_dict()
                        progress.best = {name: _cpu_copy(value) for name, value in state.items()}
                    if leading() and time.monotonic() - reported > 1:  # read while the job runs
                        reported = time.monotonic()
                        log.info("epoch %d/%d", epoch + 1, settings.epochs)
                    postfix = {"epoch": epoch + 1, "loss": row["train_loss"], "test": row["test_accuracy"]}
                    bar.set_postfix(postfix, refresh=False)  # a refresh would write a log line in each epoch
                    checkpoint.keep(progress)
            if progress.best:
                classifier.load_state_dict(progress.best)
    except NotFinite as error:
        message = (
            f"training diverged: {error} in epoch {progress.epoch + 1} of {settings.epochs}; "
            f"expected a finite loss, try a learning_rate below {settings.learning_rate}"
        )
        checkpoint.give_up(message)
        raise ValueError(message) from None
    return progress.rows


def _cpu_copy(value: Any) -> Any:
    """Return a copy of an entry of a state dict, on the CPU if it is a tensor."""
    return value.to("cpu", copy=True) if isinstance(value, Tensor) else deepcopy(value)


def precision_of(settings: Training, device: torch.device) -> str:
    """Return the precision, ``bf16`` or ``float32``, that ``settings.precision`` selects on ``device``.

    ``auto`` is bf16 on a GPU with native support; GPUs before NVIDIA's Ampere emulate it, slower than float32.
    """
    if settings.precision != "auto":
        return settings.precision
    native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if native else "float32"


def best_epoch(rows: Sequence[Row]) -> int:
    """Return the first epoch (from 1) with the highest validation accuracy in the non-empty curve ``rows``."""
    accuracies = [row["validation_accuracy"] for row in rows]
    return 1 + accuracies.index(max(accuracies))


def finished(rows: Sequence[Row], settings: Training) -> bool:
    """Return True if the curve ``rows`` has all epochs, or ``patience`` epochs after the best one."""
    if settings.patience and rows and len(rows) - best_epoch(rows) >= settings.patience:
        return True
    return len(rows) == settings.epochs


def _remaining_batches(
    images: Images,
    labels: Tensor,
    train_indices: Tensor,
    settings: Training,
    seed: int,
    progress: Progress,
    fill: Tensor,
) -> Generator[tuple[Tensor, Tensor], None, None]:
    """Yield this process's rows of the remaining batches of the current epoch, augmented, with their labels.

    ``fill``, ``[C]`` in the type of the images on the device for training, is the color of removed pixels.
    """
    device, generator = fill.device, torch.Generator(fill.device)
    rows = own_rows(len(train_indices) // settings.batch_size, settings.batch_size)
    size, first_step = settings.batch_size // processes(), progress.step
    sample = sample_epoch(len(train_indices), settings, seed, progress.epoch).at(rows)
    order = train_indices.cpu()[sample.order]
    sample, targets = sample.to(device), labels[order.to(labels.device)].to(device)
    cells = (
        grid_cells(images.shape[2:], settings.augment_deletion).to(device)
        if settings.augment_deletion
        else None
    )
    with closing(batches(images, order[first_step * size :], size, device)) as image_batches:
        for step, batch in enumerate(image_batches, first_step):
            batch_rows = slice(step * size, (step + 1) * size)
            if settings.augment_flip or settings.augment_shift:
                batch = augment(batch, sample.flip[batch_rows], sample.shift[batch_rows])
            if settings.augment_removal:
                generator.manual_seed(seed_of(seed, "removal", str(progress.epoch), str(step)))
                # Keys of the batch of all processes, so that their number does not change which pixels are removed.
                keys = torch.rand(
                    settings.batch_size, batch[0, 0].numel(), generator=generator, device=device
                )
                batch = remove_pixels(batch, own(keys), settings.augment_removal, fill)
            if cells is not None:
                generator.manual_seed(seed_of(seed, "deletion", str(progress.epoch), str(step)))
                deleted = sample_deleted(settings.batch_size, settings.augment_deletion, generator)
                batch = delete_cells(batch, cells, own(deleted), fill)
            yield batch, targets[batch_rows]


def learning_rates(settings: Training, steps: int) -> list[float]:
    """Return the learning rate of each of ``steps`` steps: linear warm-up, then linear or cosine decay towards 0.

    The w warm-up steps are the share ``warmup`` of all steps. Warm-up step t has the rate (t + 1) / w of the peak. In a
    later step, with p = (t - w) / (steps - w), it is 1 - p (linear) or (1 + cos πp) / 2 (cosine) of the peak.
    """
    warmup = round(settings.warmup * steps)
    rates = [settings.learning_rate * (step + 1) / warmup for step in range(warmup)]
    for step in range(warmup, steps):
        done = (step - warmup) / (steps - warmup)
        factor = 1 - done if settings.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        rates.append(settings.learning_rate * factor)
    return rates


@dataclass(frozen=True)
class EpochSample:
    """Order int64 ``[n]``, flip bool ``[n]`` and shift int64 ``[n, 2]`` (pixels) of the images of an epoch."""

    order: Tensor
    flip: Tensor
    shift: Tensor

    def at(self, rows: Tensor) -> "EpochSample":
        """Return the values at the positions ``rows`` (int64) of the order."""
        return EpochSample(self.order[rows], self.flip[rows], self.shift[rows])

    def to(self, device: torch.device) -> "EpochSample":
        """Return a copy on ``device``."""
        return EpochSample(self.order.to(device), self.flip.to(device), self.shift.to(device))


def sample_epoch(count: int, settings: Training, seed: int, epoch: int) -> EpochSample:
    """Sample the order of ``count`` images in ``epoch`` and their augmentation, from the arguments alone.

    Models trained with the same seed therefore share order and augmentation even if other settings differ, and a
    training can resume without the state of a generator.
    """
    generator = torch.Generator().manual_seed(seed_of(seed, "epoch", str(epoch)))
    order = torch.randperm(count, generator=generator)
    # Sampled without augmentation too, so that the generator's sequence does not depend on the setting.
    flip = torch.rand(count, generator=generator) < (0.5 if settings.augment_flip else 0.0)
    max_shift = settings.augment_shift
    shift = torch.randint(-max_shift, max_shift + 1, (count, 2), generator=generator)
    return EpochSample(order, flip, shift)


def augment(images: Tensor, flip: Tensor, shift: Tensor) -> Tensor:
    """Mirror images ``[N, C, H, W]`` left to right where ``flip`` ``[N]``, then shift them by ``shift`` ``[N, 2]``.

    ``shift`` is in pixels, down and right, and smaller than the image. Borders are filled by reflection about the
    outermost pixels, so that no colors are added that the data does not have.
    """
    count, channels, height, width = images.shape
    rows = _mirrored(torch.arange(height, device=images.device) - shift[:, :1], height)
    columns = _mirrored(torch.arange(width, device=images.device) - shift[:, 1:], width)
    columns = torch.where(flip[:, None], width - 1 - columns, columns)
    # One gather for the whole batch: each pixel's index into the flattened source image, ``[N, 1, H·W]``.
    source = (rows[:, :, None] * width + columns[:, None, :]).reshape(count, 1, height * width)
    pixels = images.reshape(count, channels, height * width)
    return pixels.gather(2, source.expand_as(pixels)).reshape(images.shape)


def remove_pixels(images: Tensor, keys: Tensor, share: float, fill: Tensor) -> Tensor:
    """Replace the pixels with the greatest ``keys [N, H·W]`` of images ``[N, C, H, W]`` by the color ``fill [C]``.

    These are ``share`` of the pixels of each image, rounded.
    """
    greatest = keys.topk(round(share * keys.shape[1]), dim=1).indices
    removed = torch.zeros_like(keys, dtype=torch.bool).scatter_(1, greatest, True)
    return torch.where(removed.reshape(len(images), 1, *images.shape[2:]), fill[:, None, None], images)


def _mirrored(index: Tensor, size: int) -> Tensor:
    """Reflect ``index``, with -size < index < 2·size - 1, about 0 and size - 1 into the range 0 to size - 1."""
    last = size - 1
    return last - (last - index.abs()).abs()


def _training_step(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Tensor,
    labels: Tensor,
    rate: float,
    settings: Training,
    progress: Progress,
    precision: str,
) -> None:
    """Run one optimizer step, and add its loss and number of correct predictions to ``progress``."""
    with torch.autocast(batch.device.type, torch.bfloat16, enabled=precision == "bf16"):
        logits = network(to_pixels(batch))
    loss = functional.cross_entropy(logits.float(), labels, label_smoothing=settings.label_smoothing)
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    correct = (logits.detach().argmax(1) == labels).sum()
    # Sums stay on the device: ``item`` would wait for the step to finish.
    sums = summed(torch.stack([(loss.detach() * len(batch)).double(), correct.double()]))
    progress.loss += sums[0]
    progress.correct += sums[1].long()
    progress.step += 1


def _epoch_row(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    held_out: Mapping[str, Tensor],
    settings: Training,
    progress: Progress,
    checkpoint: Checkpoint,
) -> Row:
    """Return the loss and accuracies of the finished epoch; this synchronizes with the device."""
    count = progress.step * settings.batch_size
    loss = progress.loss.item() / count
    check_finite(loss, classifier)
    row = {"train_loss": loss, "train_accuracy": progress.correct.item() / count}
    for name, indices in held_out.items():  # validation comes first, because ``finished`` reads its accuracy
        is_requested = settings.evaluate == "epoch" or (settings.patience > 0 and name == "validation")
        is_evaluated = len(indices) > 0 and (is_requested or finished([*progress.rows, row], settings))
        row[f"{name}_accuracy"] = math.nan
        if is_evaluated:
            correct = _count_correct(
                classifier, images, labels, indices, settings.batch_size, lambda: checkpoint.keep(progress)
            )
            row[f"{name}_accuracy"] = correct / len(indices)
    return row


def _count_correct(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    indices: Tensor,
    batch_size: int,
    between: Callable[[], None],
) -> int:
    """Count the images at ``indices`` that are classified correctly, and call ``between`` after each batch."""
    own_indices, device = own(indices), classifier.device
    targets = labels[own_indices.to(labels.device)].to(device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    # ``between`` synchronizes the processes, so all must call it equally often: once per batch of the first process,
    # which has the most images.
    batch_count = math.ceil(math.ceil(len(indices) / processes()) / batch_size)
    with closing(
        logit_batches(classifier, images, batch_size=batch_size, indices=own_indices)
    ) as remaining_batches:
        for start in range(0, batch_count * batch_size, batch_size):
            logits = next(remaining_batches, None)
            if logits is not None:
                correct += (logits.argmax(1) == targets[start : start + batch_size]).sum()
            between()
    return int(summed(correct))


def _optimizer(classifier: Classifier, settings: Training) -> torch.optim.Optimizer:
    """Return the optimizer of ``settings``; vectors, such as biases and scales of norms, have no weight decay."""
    parameters = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    momentum = settings.momentum
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(momentum, 0.999), fused=True)
    return torch.optim.SGD(
        groups, lr=settings.learning_rate, momentum=momentum, nesterov=momentum > 0, fused=True
    )


@contextmanager
def _training_backend(classifier: Classifier, size: Sequence[int]) -> Iterator[None]:
    """Set training mode, memory format and kernels within the context, and restore the global generators after it.

    The memory format is channels last if the network accepts it for images of height and width ``size``. Kernels are
    deterministic on a CPU; on a GPU, cuDNN selects the fastest. Afterwards the classifier is in evaluation mode.
    """
    on_gpu = classifier.device.type == "cuda"
    generators = torch.random.fork_rng(range(torch.cuda.device_count()) if on_gpu else ())
    benchmark, strict = torch.backends.cudnn.benchmark, torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.backends.cudnn.benchmark = on_gpu
    torch.use_deterministic_algorithms(not on_gpu)
    try:
        with exact_float32(), generators:
            place(classifier, classifier.device, size, training=True).train()
            yield
    finally:
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(strict, warn_only=warn_only)
        classifier.eval().to(memory_format=torch.contiguous_format)


def _progress_bar(settings: Training, steps: int, progress: Progress) -> "tqdm[NoReturn]":
    """Return a progress bar, in images, on standard error; in a log file it writes a line every 30 seconds."""
    live = sys.stderr.isatty()
    return tqdm(
        total=settings.epochs * steps * settings.batch_size,
        initial=(progress.epoch * steps + progress.step) * settings.batch_size,
        unit=" images",
        unit_scale=True,
        dynamic_ncols=live,
        disable=not leading(),
        mininterval=0.5 if live else 30.0,
        file=sys.stderr,
    )


def _check_arguments(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    train_indices: Tensor,
    held_out: Mapping[str, Tensor],
    settings: Training,
) -> None:
    """Check the shapes, types and ranges of the data against the classifier and the settings.

    Raises:
        ValueError: a check fails.
    """
    shape, channels = list(images.shape), classifier.channels
    # The dtype of other sources is checked for each batch when it is read.
    dtype = images.dtype if isinstance(images, Tensor) else dtype_of(images)
    if dtype not in (torch.uint8, torch.float32) or len(shape) != 4 or shape[1] != channels:
        raise ValueError(
            f"images {shape} of {dtype}: expected [N, {channels}, H, W] of torch.uint8 or torch.float32"
        )
    if labels.dtype != torch.int64 or labels.shape != (len(images),):
        raise ValueError(
            f"labels {list(labels.shape)} of {labels.dtype}: expected [{len(images)}] of torch.int64"
        )
    used = torch.cat([indices.to(labels.device) for indices in (train_indices, *held_out.values())])
    _check_range("index", used, len(images))
    _check_range("label", labels[used], classifier.classes)
    if len(train_indices) < settings.batch_size:
        raise ValueError(
            f"batch_size: found {settings.batch_size}, expected at most {len(train_indices)}, the number of training "
            "images"
        )
    own_rows(0, settings.batch_size)  # raises if a batch cannot be divided evenly
    smallest = min(shape[2:])
    if settings.augment_shift >= smallest:
        raise ValueError(
            f"augment_shift: found {settings.augment_shift}, expected less than {smallest}, the image's smaller side"
        )
    if settings.augment_deletion > smallest:
        raise ValueError(
            f"augment_deletion: found {settings.augment_deletion}, expected at most {smallest}, the image's smaller "
            "side"
        )
    if settings.patience and not len(held_out["validation"]):
        raise ValueError(f"patience: found {settings.patience} without validation images, expected 0")


def _check_range(name: str, values: Tensor, limit: int) -> None:
    """Check that all ``values`` are in 0 to ``limit`` - 1."""
    invalid = values[(values < 0) | (values >= limit)]
    if len(invalid):
        raise ValueError(f"{name} {int(invalid[0])}: expected 0 to {limit - 1}")
