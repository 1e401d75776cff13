"""Steps of every job with a model: selecting the device, loading the model, identifying the results."""

from pathlib import Path
from typing import Any

import torch

from saliency_assay.models.classifier import Blueprint, Classifier, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import Job
from saliency_assay.runtime.shards import Shard
from saliency_assay.storage.zarr_store import Store


def device_of(job: Job) -> torch.device:
    """Return the device that the job's settings and resources request; see ``prepare``."""
    return prepare(job.settings["device"], job.threads, job.resources)


def load_model(job: Job, data: Store) -> Classifier:
    """Load the classifier ``job.input.weights`` to the job's device, in the memory format for images of ``data``."""
    return load_weights(job, data, job.input.weights, device_of(job))


def load_weights(job: Job, data: Store, weights: Path, device: torch.device) -> Classifier:
    """Load a classifier of the job's architecture to ``device``, in the memory format for images of ``data``."""
    classifier = load_classifier(weights, Blueprint(**job.settings["model"]))
    return place(classifier, device, data["image"].shape[2:])


def result_identity(data: Store, classifier: Classifier, shard: Shard) -> dict[str, Any]:
    """Return the attributes that identify results of one shard of a set: ``shard``, ``data`` and ``model``."""
    model = digest(classifier.network.state_dict())
    return {"shard": shard, "data": data.attributes["digest"], "model": model}
