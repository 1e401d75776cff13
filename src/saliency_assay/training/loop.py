"""The training loop: images are uint8 on the device, or on their way there, and no step waits for the device."""

import logging
import math
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from saliency_assay.data.batching import Images, batches, resident
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import exact_float32, logit_batches, to_pixels
from saliency_assay.models.layout import leaves_unused, place
from saliency_assay.runtime.distributed import anyone, leading, own, own_rows, processes, summed
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.training.replica import replica
from saliency_assay.training.settings import Training
from saliency_assay.training.state import Checkpoint, NotFinite, Progress, Row, check_finite

log = logging.getLogger(__name__)
RESIDENT_LIMIT = 8_000_000_000  # bytes
# Of the curve, in this order; a training of no epochs has them and no row.
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
    """Train ``classifier`` in place on its device and return the curve, one row an epoch, of ``COLUMNS``.

    ``images`` uint8 ``[N, C, H, W]``, as ``feed`` has them, are gathered on the classifier's device if they take at
    most ``resident_limit`` bytes, and read ahead batch by batch otherwise; the weights are the same. ``labels`` is
    int64 ``[N]``. A row has ``epoch`` (from 1), ``learning_rate`` (its last step's), ``train_loss`` and
    ``train_accuracy`` (means over the epoch's augmented images while the weights change), ``validation_accuracy`` and
    ``test_accuracy`` (of the weights after the epoch; NaN where not taken). With ``settings.patience`` the weights of
    the best epoch are kept, which need not be the curve's last.

    A training that was killed goes on from the state at ``state_path`` if that has the same ``fingerprint``, and ends
    with the weights of one never killed: on a CPU bit for bit, for an equal seed and number of threads. The state is
    written every ``save_seconds`` and on SIGTERM, which then raises SystemExit(143), in training and in the evaluation
    after an epoch alike; the caller deletes it with ``training.state.remove_state``. A training that diverges leaves
    the reason in its place, with which the next attempt of the same fingerprint ends at once.

    Several processes (``distributed.joined``) train one classifier together, each on its rows of every batch, and all
    return with the same weights and curve: those of one process up to the order of floating-point sums. Their number
    is no part of a state: a training may go on in more of them, or in fewer.

    Raises:
        ValueError: images or labels that do not fit the classifier or the settings, or a batch the processes; a loss
            that is not finite.
    """
    held_out = {"validation": torch.empty(0, dtype=torch.int64), "test": test_indices}
    if validation_indices is not None:
        held_out["validation"] = validation_indices
    _check(classifier, images, labels, train_indices, held_out, settings)
    device = classifier.device
    size, steps = settings.batch_size, len(train_indices) // settings.batch_size
    rates = learning_rates(settings, settings.epochs * steps)
    optimizer = _optimizer(classifier, settings)
    images = resident(images, device, resident_limit)
    precision = precision_of(settings, device)
    if settings.precision == "auto":
        log.info("precision auto is %s on this device", precision)
    checkpoint = Checkpoint(state_path, fingerprint, classifier, optimizer, seconds=save_seconds)
    try:
        with _backend(classifier, images.shape[2:]), checkpoint:
            progress = checkpoint.resume()
            unused = processes() > 1 and anyone(leaves_unused(classifier, images.shape[2:]))
            network = replica(classifier, unused=unused)
            with _bar(settings, steps, progress) as bar:
                while not finished(progress.rows, settings):
                    epoch = progress.epoch
                    with closing(
                        _rest(images, labels, train_indices, settings, seed, progress, device)
                    ) as rest:
                        for batch, wanted in rest:
                            rate = rates[epoch * steps + progress.step]
                            # Dropout draws from the global generator: of this step alone, so that a state needs none.
                            torch.manual_seed(seed_of(seed, "dropout", str(epoch), str(progress.step)))
                            _step(network, optimizer, batch, wanted, rate, settings, progress, precision)
                            bar.update(size)
                            checkpoint.keep(progress)
                    row = {"epoch": epoch + 1, "learning_rate": rates[(epoch + 1) * steps - 1]}
                    row |= _figures(classifier, images, labels, held_out, settings, progress, checkpoint)
                    progress.end_epoch(row)
                    if settings.patience and best_epoch(progress.rows) == epoch + 1:
                        state = classifier.state_dict()
                        progress.best = {name: value.to("cpu", copy=True) for name, value in state.items()}
                    shown = {"epoch": epoch + 1, "loss": row["train_loss"], "test": row["test_accuracy"]}
                    bar.set_postfix(shown, refresh=False)  # no line of a log for each epoch
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


def precision_of(settings: Training, device: torch.device) -> str:
    """Return ``bf16`` or ``float32``: what ``settings.precision`` means on ``device``.

    ``auto`` is bf16 on a GPU that computes with it; GPUs before NVIDIA's Ampere emulate it, slower than float32.
    """
    if settings.precision != "auto":
        return settings.precision
    native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if native else "float32"


def best_epoch(rows: Sequence[Row]) -> int:
    """Return the first epoch (from 1) of the highest validation accuracy in the curve ``rows``, at least one of
    them."""
    accuracies = [row["validation_accuracy"] for row in rows]
    return 1 + accuracies.index(max(accuracies))


def finished(rows: Sequence[Row], settings: Training) -> bool:
    """Return True if the curve ``rows`` has all its epochs, or as many after its best one as ``patience`` waits."""
    if settings.patience and rows and len(rows) - best_epoch(rows) >= settings.patience:
        return True
    return len(rows) == settings.epochs


def _rest(
    images: Images,
    labels: Tensor,
    train_indices: Tensor,
    settings: Training,
    seed: int,
    progress: Progress,
    device: torch.device,
) -> Generator[tuple[Tensor, Tensor], None, None]:
    """Return the batches that are left of the running epoch, augmented, each with its labels; of each this process's
    rows."""
    rows = own_rows(len(train_indices) // settings.batch_size, settings.batch_size)
    size, done = settings.batch_size // processes(), progress.step
    draws = sample_epoch(len(train_indices), settings, seed, progress.epoch).at(rows)
    order = train_indices.cpu()[draws.order]
    draws, wanted = draws.to(device), labels[order.to(labels.device)].to(device)
    with closing(batches(images, order[done * size :], size, device)) as stream:
        for step, batch in enumerate(stream, done):
            part = slice(step * size, (step + 1) * size)
            if settings.augment_flip or settings.augment_shift:
                batch = augment(batch, draws.flip[part], draws.shift[part])
            yield batch, wanted[part]


def learning_rates(settings: Training, steps: int) -> list[float]:
    """Return the rate at each of ``steps`` steps: a linear rise over the share ``warmup`` of them, then down towards 0.

    With w steps of warm-up, step t has the rate (t + 1) / w of the peak; after it, p = (t - w) / (steps - w) of
    the descent is done and the rate is 1 - p (linear) or (1 + cos πp) / 2 (cosine) of the peak.
    """
    warmup = round(settings.warmup * steps)
    rates = [settings.learning_rate * (step + 1) / warmup for step in range(warmup)]
    for step in range(warmup, steps):
        done = (step - warmup) / (steps - warmup)
        left = 1 - done if settings.decay == "linear" else (1 + math.cos(math.pi * done)) / 2
        rates.append(settings.learning_rate * left)
    return rates


@dataclass(frozen=True)
class EpochSample:
    """One epoch's randomness: ``order`` int64 ``[n]``, ``flip`` bool ``[n]``, ``shift`` int64 ``[n, 2]`` in pixels."""

    order: Tensor
    flip: Tensor
    shift: Tensor

    def at(self, rows: Tensor) -> "EpochSample":
        """Those of the images at ``rows`` of the order, int64."""
        return EpochSample(self.order[rows], self.flip[rows], self.shift[rows])

    def to(self, device: torch.device) -> "EpochSample":
        """Return a copy on ``device``."""
        return EpochSample(self.order.to(device), self.flip.to(device), self.shift.to(device))


def sample_epoch(count: int, settings: Training, seed: int, epoch: int) -> EpochSample:
    """Return the order of ``count`` images in ``epoch`` and how each is moved; a function of its arguments alone.

    Models trained with one seed therefore see the same order and the same augmentation whatever else differs, and a
    training that goes on needs no generator's state.
    """
    generator = torch.Generator().manual_seed(seed_of(seed, "epoch", str(epoch)))
    order = torch.randperm(count, generator=generator)
    flip = torch.rand(count, generator=generator) < (0.5 if settings.augment_flip else 0.0)
    reach = settings.augment_shift
    shift = torch.randint(-reach, reach + 1, (count, 2), generator=generator)
    return EpochSample(order, flip, shift)


def augment(images: Tensor, flip: Tensor, shift: Tensor) -> Tensor:
    """Mirror images ``[N, C, H, W]`` left to right where ``flip`` bool ``[N]``, then move them by ``shift`` ``[N, 2]``.

    ``shift`` is in pixels down and right, smaller than the image; what comes in at the border is the image mirrored
    about its outermost pixels, so that no colour enters which the data does not have.
    """
    count, channels, height, width = images.shape
    rows = _mirrored(torch.arange(height, device=images.device) - shift[:, :1], height)
    columns = _mirrored(torch.arange(width, device=images.device) - shift[:, 1:], width)
    columns = torch.where(flip[:, None], width - 1 - columns, columns)
    source = (rows[:, :, None] * width + columns[:, None, :]).reshape(count, 1, height * width)
    pixels = images.reshape(count, channels, height * width)
    return pixels.gather(2, source.expand_as(pixels)).reshape(images.shape)


def _mirrored(index: Tensor, size: int) -> Tensor:
    """``index`` in -size < index < 2·size - 1, reflected about 0 and about size - 1."""
    last = size - 1
    return last - (last - index.abs()).abs()


def _step(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Tensor,
    labels: Tensor,
    rate: float,
    settings: Training,
    progress: Progress,
    precision: str,
) -> None:
    with torch.autocast(batch.device.type, torch.bfloat16, enabled=precision == "bf16"):
        found = network(to_pixels(batch))
    loss = functional.cross_entropy(found.float(), labels, label_smoothing=settings.label_smoothing)
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    right = (found.detach().argmax(1) == labels).sum()
    sums = summed(torch.stack([(loss.detach() * len(batch)).double(), right.double()]))
    progress.loss += sums[0]
    progress.correct += sums[1].long()
    progress.step += 1


def _figures(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    held_out: Mapping[str, Tensor],
    settings: Training,
    progress: Progress,
    checkpoint: Checkpoint,
) -> Row:
    """Return the finished epoch's loss and accuracies; here, once an epoch, the device is waited for."""
    count = progress.step * settings.batch_size
    loss = progress.loss.item() / count
    check_finite(loss, classifier)
    found = {"train_loss": loss, "train_accuracy": progress.correct.item() / count}
    for name, indices in held_out.items():  # validation first: it decides whether the epoch is the last
        asked = settings.evaluate == "epoch" or (settings.patience > 0 and name == "validation")
        taken = len(indices) > 0 and (asked or finished([*progress.rows, found], settings))
        found[f"{name}_accuracy"] = math.nan
        if taken:
            right = _right(
                classifier, images, labels, indices, settings.batch_size, lambda: checkpoint.keep(progress)
            )
            found[f"{name}_accuracy"] = right / len(indices)
    return found


def _right(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    indices: Tensor,
    batch_size: int,
    between: Callable[[], None],
) -> int:
    """Count the images at ``indices`` whose class the classifier finds, and call ``between`` after each batch."""
    part, device = own(indices), classifier.device
    wanted, right = (
        labels[part.to(labels.device)].to(device),
        torch.zeros((), dtype=torch.int64, device=device),
    )
    # As often in every process, because they meet there; the first has the most images.
    most = math.ceil(math.ceil(len(indices) / processes()) / batch_size)
    with closing(logit_batches(classifier, images, batch_size=batch_size, indices=part)) as batches_left:
        for start in range(0, most * batch_size, batch_size):
            logits = next(batches_left, None)
            if logits is not None:
                right += (logits.argmax(1) == wanted[start : start + batch_size]).sum()
            between()
    return int(summed(right))


def _optimizer(classifier: Classifier, settings: Training) -> torch.optim.Optimizer:
    parameters = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    momentum = settings.momentum
    return torch.optim.SGD(
        groups, lr=settings.learning_rate, momentum=momentum, nesterov=momentum > 0, fused=True
    )


@contextmanager
def _backend(classifier: Classifier, size: Sequence[int]) -> Iterator[None]:
    """Training mode, channels last where the network takes images of height and width ``size`` so; on a CPU kernels
    that repeat bit for bit, on a GPU the fastest measured.

    Global generators are back as they were afterwards.
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


def _bar(settings: Training, steps: int, progress: Progress) -> "tqdm[NoReturn]":
    """Images a second on standard error: live on a terminal, a line every half minute in a log."""
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


def _check(
    classifier: Classifier,
    images: Images,
    labels: Tensor,
    train_indices: Tensor,
    held_out: Mapping[str, Tensor],
    settings: Training,
) -> None:
    shape, channels = list(images.shape), classifier.channels
    dtype = images.dtype if isinstance(images, Tensor) else torch.uint8  # of others each batch is looked at
    if dtype != torch.uint8 or len(shape) != 4 or shape[1] != channels:
        raise ValueError(f"images {shape} of {dtype}: expected [N, {channels}, H, W] of torch.uint8")
    if labels.dtype != torch.int64 or labels.shape != (len(images),):
        raise ValueError(
            f"labels {list(labels.shape)} of {labels.dtype}: expected [{len(images)}] of torch.int64"
        )
    used = torch.cat([indices.to(labels.device) for indices in (train_indices, *held_out.values())])
    _check_range("index", used, len(images))
    _check_range("label", labels[used], classifier.classes)
    if len(train_indices) < settings.batch_size:
        raise ValueError(
            f"batch_size: found {settings.batch_size}, expected at most {len(train_indices)}, the training images"
        )
    own_rows(0, settings.batch_size)  # raises where a batch does not part evenly
    smallest = min(shape[2:])
    if settings.augment_shift >= smallest:
        raise ValueError(
            f"augment_shift: found {settings.augment_shift}, expected below {smallest}, the image's size"
        )
    if settings.patience and not len(held_out["validation"]):
        raise ValueError(f"patience: found {settings.patience} without validation images, expected 0")


def _check_range(name: str, values: Tensor, limit: int) -> None:
    wrong = values[(values < 0) | (values >= limit)]
    if len(wrong):
        raise ValueError(f"{name} {int(wrong[0])}: expected 0 to {limit - 1}")
