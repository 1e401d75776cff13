"""Train classifiers on the masks of D_i alone, with the labels of the images and with random labels."""

import shutil

from saliency_assay.models.jobs import device_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.leakage import leakage
from saliency_assay.studies.retrain.occluded import MaskImages, layers_of, open_masks
from saliency_assay.training.jobs import runtime_of, task_of, training_settings

with run_job(snakemake) as job:
    settings, device = job.settings, device_of(job)
    data = job.open(open_store(job.input.data, kind="data"))
    masks = open_masks(job.stack, job.input.masks, data)
    images = MaskImages(layers_of(masks, "zero", settings["iteration"]), device)
    runtime = runtime_of(job, device)
    table = leakage(
        task_of(job, data, images, masks),
        settings["model"],
        training_settings(job),
        runtime,
        repeats=settings["repeats"],
        seed=settings["seed"],
    )
    table.to_csv(job.output[0], index=False)
    shutil.rmtree(runtime.state, ignore_errors=True)
