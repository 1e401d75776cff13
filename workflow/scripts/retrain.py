"""Train f_i on D_i, the images occluded by all previous masks, with all other settings as for f_0."""

import numpy as np

from saliency_assay.data.batching import resident
from saliency_assay.data.splits import TEST, with_validation
from saliency_assay.models.jobs import load_weights
from saliency_assay.models.weights import normalization_of
from saliency_assay.runtime.device import resident_bytes
from saliency_assay.runtime.distributed import leading
from saliency_assay.runtime.environment import loaded_versions
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.occluded import ImagesAt, Occluded, layers_of, open_masks
from saliency_assay.training.evaluation import predict
from saliency_assay.training.jobs import (
    fit_model,
    join_processes,
    task_of,
    training_settings,
    write_model,
)

with run_job(snakemake) as job:
    settings = job.settings
    device = join_processes(job)
    data = job.open(open_store(job.input.data, kind="data"))
    masks = open_masks(job.stack, job.input.masks, data)
    occluded = Occluded(data["image"], layers_of(masks, settings["fill"], settings["iteration"]), device)
    images = resident(occluded, device, resident_bytes(job.resources))  # composed once where it fits
    task = task_of(job, data, images, masks)
    classifier, curve = fit_model(job, task, device, normalization_of(job.input.first, images.shape[1]))
    if leading():
        training, seed = training_settings(job), settings["seed"]
        split = with_validation(task.split, training["validation_share"], seed, task.groups)
        table = predict(classifier, images, task.labels, split, batch_size=training["batch_size"])
        table = table.assign(model=settings["name"], seed=seed, data=settings["data"])
        # Without retraining, for comparison: f_0 on the same test images.
        test = np.flatnonzero(task.split == TEST)
        original = load_weights(job, data, job.input.first, device)
        of_original = predict(
            original,
            ImagesAt(images, test),
            task.labels[test],
            task.split[test],
            batch_size=training["batch_size"],
        )
        table["predicted_by_original"] = -1  # no prediction for other images
        table.loc[test, "predicted_by_original"] = of_original["predicted"].to_numpy()
        score_tables.write_predictions(job.output.predictions, table, loaded_versions())
    write_model(job, classifier, curve)
