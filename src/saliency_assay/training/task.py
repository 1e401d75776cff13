"""From labelled images to a trained classifier: what every job that trains does, whatever it trains on."""

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
from saliency_assay.models.normalisation import channel_statistics
from saliency_assay.runtime.device import resident_bytes
from saliency_assay.runtime.provenance import digest_of_file, fingerprint, seed_of
from saliency_assay.training.loop import precision_of, train
from saliency_assay.training.settings import training_from
from saliency_assay.training.state import Row

log = logging.getLogger(__name__)
Normalisation = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class TrainingTask:
    """A classification task: ``images`` uint8 ``[N, C, H, W]``, the class of each, and the split."""

    images: Any
    """An array or what is indexed like one; see ``training.loop.train``."""
    labels: Ints
    split: Split
    classes: int
    fingerprint: str
    """Of all that it came from, code included: a state that was saved for something else is not gone on from."""


@dataclass(frozen=True)
class RuntimeOptions:
    """Device, state and limits of a training; of these only ``device`` changes the result."""

    device: torch.device
    state: Path
    save_seconds: float
    resident_limit: int
    """Bytes of images that are kept on the device."""
    threads: int = field(default_factory=torch.get_num_threads)
    """Of the job, however many processes share them: part of what makes CPU results repeat bit for bit."""

    @classmethod
    def of(
        cls, device: torch.device, state: str, resources: Mapping[str, Any], threads: int | None = None
    ) -> Self:
        """As a job's resources say: no parameters, because no change of them is a reason to train again.

        ``threads`` are the job's; by default those of this process.
        """
        seconds, limit = resources.get("save_seconds", 60), resident_bytes(resources)
        return cls(device, Path(state), seconds, limit, threads or torch.get_num_threads())


def training_of(given: Mapping[str, Any], chosen: Path | None) -> dict[str, Any]:
    """Return the configuration's settings of a training, with those that a search has ``chosen`` (its JSON file) in
    place."""
    found = json.loads(chosen.read_text(encoding="utf-8"))["training"] if chosen else {}
    return {**given, **found}


def fit(
    task: TrainingTask,
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    runtime: RuntimeOptions,
    *,
    seed: int,
    initial: Path | None = None,
    normalisation: Normalisation | None = None,
) -> tuple[Classifier, list[Row]]:
    """Return a classifier built from ``model`` and trained on ``task``, in evaluation mode, and its curve.

    Models of one ``seed`` start from the same weights and see the same order, augmentation and validation images,
    whatever else differs. For the curve see ``training.loop.train``. The caller deletes the state of ``runtime``,
    once the result is written.

    Args:
        task: what it learns.
        model: fields of ``Blueprint``.
        training: fields of ``Training``, defaults for the rest.
        runtime: where it runs.
        seed: the study's.
        initial: a file of weights to start from.
        normalisation: mean and deviation of each channel; by default those that ``initial`` comes with, or else those
            of the images that are trained on.
    """
    settings, blueprint = training_from(training), Blueprint(**model)
    split = with_validation(task.split, settings.validation_share, seed)
    learn, validation, test = (
        torch.from_numpy((split == part).nonzero()[0]) for part in (TRAIN, VALIDATION, TEST)
    )
    if normalisation is None and initial:
        normalisation = weights.normalisation_of(initial, task.images.shape[1])
    mean, std = normalisation or channel_statistics(task.images, learn)
    channels = task.images.shape[1]
    if len(mean) != channels:
        raise ValueError(
            f"normalisation: found {len(mean)} values of mean, expected {channels}, one a channel"
        )
    shown = (", ".join(f"{value:.4g}" for value in values) for values in (mean, std))
    log.info("images are normalised with mean %s and std %s", *shown)
    generator = torch.Generator().manual_seed(seed_of(seed, "train", "initialisation"))
    classifier = build(blueprint, classes=task.classes, mean=mean, std=std, generator=generator)
    if initial:
        trained = settings.epochs > 0
        weights.load_initial(classifier, initial, blueprint.architecture, head_may_start_anew=trained)
    classifier.to(runtime.device)
    if not settings.epochs:
        return classifier.eval(), []
    source = initial and digest_of_file(initial)
    basis = [model, training, seed, task.fingerprint, source, list(mean), list(std)]
    here = [runtime.device.type, torch.__version__, runtime.threads, precision_of(settings, runtime.device)]
    curve = train(
        classifier,
        task.images,
        torch.from_numpy(task.labels),
        learn,
        test,
        settings,
        validation_indices=validation,
        seed=seed_of(seed, "train"),
        state_path=runtime.state,
        fingerprint=fingerprint([*basis, *here]),
        save_seconds=runtime.save_seconds,
        resident_limit=runtime.resident_limit,
    )
    return classifier, curve
