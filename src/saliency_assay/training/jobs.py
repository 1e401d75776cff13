"""Steps of every training job: its processes, task, settings and output files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from saliency_assay.data.splits import groups_of
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, Classifier
from saliency_assay.models.families import weights_file
from saliency_assay.models.jobs import device_of
from saliency_assay.models.labels import model_class_names, model_labels
from saliency_assay.runtime.distributed import joined, leading
from saliency_assay.runtime.job import Job
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.storage.zarr_store import Store
from saliency_assay.training.loop import COLUMNS
from saliency_assay.training.state import Row, remove_state
from saliency_assay.training.task import Normalization, RuntimeOptions, TrainingTask, fit, training_of


def join_processes(job: Job) -> torch.device:
    """Join the job's process group until the job ends, and return the device of this process; see ``joined``."""
    return job.open(joined(device_of(job), job.threads, job.resources))


def task_of(job: Job, data: Store, images: Any, masks: Sequence[Store] = ()) -> TrainingTask:
    """Return the task to classify ``images`` by the labels of ``data``.

    ``masks`` are the stores of masks by which ``images`` are occluded, if any; they count in the task's fingerprint.
    """
    own = job.settings["label"], job.settings.get("classes")
    labels, classes = model_labels(data, *own), model_class_names(data, *own)
    sources = [job.settings, *(store.attributes["digest"] for store in (data, *masks))]
    return TrainingTask(images, labels, data["split"][:], len(classes), fingerprint(sources), groups_of(data))


def training_settings(job: Job) -> dict[str, Any]:
    """Return the training settings of the job, with the hyperparameters that a search has selected, if any."""
    return training_of(job.settings["training"], job.input.get("hyperparameters"))


def runtime_of(job: Job, device: torch.device) -> RuntimeOptions:
    """Return the device, state file and limits of the job's training."""
    return RuntimeOptions.of(device, job.settings["state"], job.resources, job.threads)


def fit_model(
    job: Job, task: TrainingTask, device: torch.device, normalization: Normalization | None = None
) -> tuple[Classifier, list[Row]]:
    """Train the job's model on ``task`` from the weights among its inputs or settings, if it has any; see ``fit``."""
    file = job.settings.get("weights")
    return fit(
        task,
        job.settings["model"],
        training_settings(job),
        runtime_of(job, device),
        seed=job.settings["seed"],
        initial=job.input.get("weights", weights_file(file) if file else None),
        normalization=normalization,
    )


def write_model(job: Job, classifier: Classifier, curve: Sequence[Row]) -> None:
    """Write the learning curve and, if the rule has that output, the weights; then delete the training state.

    Only the first of several processes does so.
    """
    if not leading():
        return
    pd.DataFrame(curve, columns=COLUMNS).to_csv(job.output.curve, index=False)
    if path := job.output.get("weights"):
        weights.save(path, classifier, Blueprint(**job.settings["model"]))
    remove_state(Path(job.settings["state"]))
