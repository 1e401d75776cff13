"""Train classifiers on the masks behind D_i alone, with the images' labels and with labels at random."""

import shutil

from saliency_assay.models.jobs import device_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.leakage import leakage
from saliency_assay.studies.retrain.occluded import Shapes, layers_of, open_masks
from saliency_assay.training.jobs import lesson_of, place_of, training_settings

with run_job(snakemake) as job:
    settings, device = job.settings, device_of(job)
    data = job.open(open_store(job.input.data, kind="data"))
    masks = open_masks(job.stack, job.input.masks, data)
    images = Shapes(layers_of(masks, "zero", settings["iteration"]), device)
    place = place_of(job, device)
    table = leakage(
        lesson_of(job, data, images, masks),
        settings["model"],
        training_settings(job),
        place,
        repeats=settings["repeats"],
        seed=settings["seed"],
    )
    table.to_csv(job.output[0], index=False)
    shutil.rmtree(place.state, ignore_errors=True)
