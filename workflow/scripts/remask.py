"""Compute the maps of f_i on all images of D_i, and store only the masks of the pixels that they occlude."""

from pathlib import Path

import torch

from saliency_assay.data.batching import resident
from saliency_assay.methods.inputs import arguments_of
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import resident_bytes
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import fingerprint, seed_of
from saliency_assay.runtime.shards import shard_of
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.masks import remasked, targets_of
from saliency_assay.studies.retrain.occluded import ImageRange, Occluded, layers_of, open_masks
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.state import MaskState

with run_job(snakemake) as job:
    settings, shard = dict(job.settings), shard_of(job.wildcards.shard)
    folder = Path(settings.pop("state"))
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    device = classifier.device
    masks = open_masks(job.stack, job.input.masks, data)
    occluded = Occluded(data["image"], layers_of(masks, settings["fill"], settings["iteration"]), device)
    image_range = shard.slice_of(len(occluded))
    images = resident(ImageRange(occluded, image_range), device, resident_bytes(job.resources))
    labels, batch_size = data[f"label_{settings['label']}"][image_range], settings["batch_size"]
    names = [str(settings[key]) for key in ("name", "data", "noise_group", "iteration")]
    attributes = {
        "provenance": settings,
        **result_identity(data, classifier, shard),
        "offset": image_range.start,
        "before": [mask_store.attributes["digest"] for mask_store in masks],
    }
    environment = [device.type, torch.__version__, job.threads]
    seconds = job.resources.get("save_seconds", 60)
    state = job.open(MaskState(folder, fingerprint([attributes, environment]), seconds=seconds))
    blocks = remasked(
        resolve(settings["function"]),
        arguments_of(settings, data, device, occluded),
        classifier,
        images,
        targets_of(classifier, images, labels, settings["target"], batch_size),
        # The noise is the same in every arm and differs between iterations.
        seed=seed_of(settings["seed"], "remask", *names),
        batch_size=batch_size,
        finite=not settings["registered"],
        reduction=settings["reduction"],
        count=pixels(images.shape[2] * images.shape[3], settings["percentile"]),
        masks=settings["masks"],
        shape=settings["transform"],
        least_first=settings["least_first"],
        keep_maps=settings["keep_maps"],
        offset=image_range.start,
        state=state,
    )
    zarr_store.write(job.output[0], blocks, kind="masks", attributes=attributes)
    state.remove()
