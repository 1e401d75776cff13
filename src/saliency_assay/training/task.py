"""Training of a classifier from settings of the configuration: initial weights, normalization, split and training."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch

from saliency_assay.data.splits import TEST, TRAIN, VALIDATION, Ints, Split, with_validation
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, TIMM_NORMALIZATION
from saliency_assay.models.independence import check_independence
from saliency_assay.models.inference import to_evaluation
from saliency_assay.models.layout import place, trial_images
from saliency_assay.models.normalization import IMAGENET, channel_statistics
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import resident_bytes
from saliency_assay.runtime.distributed import leading
from saliency_assay.runtime.provenance import digest_of_file, fingerprint, seed_of
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import precision_of, train
from saliency_assay.training.state import Row

log = logging.getLogger(__name__)
Normalization = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class TrainingTask:
    """A classification task: ``images`` ``[N, C, H, W]``, the class of each image, and the split."""

    images: Any
    """An array or an object that is indexed like one; see ``training.loop.train``."""
    labels: Ints
    split: Split
    classes: int
    fingerprint: str
    """Fingerprint of all that defines the task, including code: no training resumes from the state of another."""
    groups: Ints | None = None
    """Group of each image; None if each is its own."""


@dataclass(frozen=True)
class RuntimeOptions:
    """Device, state file and limits of a training; only ``device`` and ``threads`` can change the result."""

    device: torch.device
    state: Path
    save_seconds: float
    resident_limit: int
    """Bytes of images that may be kept on the device."""
    threads: int = field(default_factory=torch.get_num_threads)
    """Threads of the job, shared by its processes; results on a CPU repeat bit for bit only with the same number."""

    @classmethod
    def of(
        cls, device: torch.device, state: str, resources: Mapping[str, Any], threads: int | None = None
    ) -> Self:
        """Return the options of a job with these resources.

        Snakemake does not rerun a job whose resources change. ``threads`` defaults to the threads of this process.
        """
        seconds, limit = resources.get("save_seconds", 60), resident_bytes(resources)
        return cls(device, Path(state), seconds, limit, threads or torch.get_num_threads())


def training_of(training: Mapping[str, Any], hyperparameters: Path | None) -> dict[str, Any]:
    """Return the training settings, updated with those in the JSON file ``hyperparameters`` if there is one."""
    selected = json.loads(hyperparameters.read_text(encoding="utf-8"))["training"] if hyperparameters else {}
    return {**training, **selected}


def _published(blueprint: Blueprint) -> Normalization:
    """Return the mean and standard deviation that published weights of a network expect: timm's, or ImageNet's."""
    if blueprint.function != BUILDERS["timm"]:
        return IMAGENET
    # By reference, so that only jobs of such networks depend on the module and on timm.
    return resolve(TIMM_NORMALIZATION)(blueprint.parameters["name"]) or IMAGENET


def fit(
    task: TrainingTask,
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    runtime: RuntimeOptions,
    *,
    seed: int,
    initial: Path | None = None,
    normalization: Normalization | None = None,
) -> tuple[Classifier, list[Row]]:
    """Return a classifier built from ``model`` and trained on ``task``, in evaluation mode, and its curve.

    Models with the same ``seed`` share initial weights, order, augmentation and validation images, even if other
    settings differ. The curve is that of ``training.loop.train``. The caller deletes the state file after
    the result is written.

    Args:
        task: images, labels and split.
        model: fields of ``Blueprint``.
        training: fields of ``Training``, defaults for the rest.
        runtime: device, state file and limits.
        seed: the training seed of the configuration.
        initial: file of initial weights.
        normalization: mean and standard deviation of each channel. By default, they are those that the weights in
            ``initial`` expect (for files from elsewhere, those that timm states for the network, or ImageNet's) or,
            without such weights, those of the training images.

    Raises:
        ValueError: the normalization has another number of channels than the images, or an error of ``loop.train``.
    """
    settings, blueprint = training_from(training), Blueprint(**model)
    split = with_validation(task.split, settings.validation_share, seed, task.groups)
    train_indices, validation_indices, test_indices = (
        torch.from_numpy((split == code).nonzero()[0]) for code in (TRAIN, VALIDATION, TEST)
    )
    if normalization is None and initial:
        normalization = weights.normalization_of(initial, task.images.shape[1], _published(blueprint))
    mean, std = normalization or channel_statistics(task.images, train_indices)
    channels = task.images.shape[1]
    if len(mean) != channels:
        raise ValueError(
            f"normalization: found {len(mean)} values of mean, expected {channels}, one per channel"
        )
    formatted = (", ".join(f"{value:.4g}" for value in values) for values in (mean, std))
    log.info("images are normalized with mean %s and std %s", *formatted)
    # The spelling is that of version 0.1, so that weights stay the same.
    generator = torch.Generator().manual_seed(seed_of(seed, "train", "initialisation"))  # codespell:ignore
    classifier = build(blueprint, classes=task.classes, mean=mean, std=std, generator=generator)
    if initial:
        trained = settings.epochs > 0
        weights.load_initial(classifier, initial, blueprint.architecture, head_may_start_anew=trained)
    place(classifier, runtime.device, task.images.shape[2:])
    trial = trial_images(classifier, task.images.shape[2:])
    check_independence(classifier, trial)
    if leading():
        weights.check_reloading(classifier, blueprint, trial)
    classifier.to(memory_format=torch.contiguous_format)
    if not settings.epochs:
        to_evaluation(classifier)
        return classifier, []
    source = initial and digest_of_file(initial)
    identity = [model, training, seed, task.fingerprint, source, list(mean), list(std)]
    # Values on which the bits of the result depend: a state is not resumed if one of them has changed.
    environment = [
        runtime.device.type,
        torch.__version__,
        runtime.threads,
        precision_of(settings, runtime.device),
    ]
    curve = train(
        classifier,
        task.images,
        torch.from_numpy(task.labels),
        train_indices,
        test_indices,
        settings,
        validation_indices=validation_indices,
        seed=seed_of(seed, "train"),
        state_path=runtime.state,
        fingerprint=fingerprint([*identity, *environment]),
        save_seconds=runtime.save_seconds,
        resident_limit=runtime.resident_limit,
    )
    return classifier, curve
