"""Train f_i on D_i: the images as they are left by all masks before, everything else as for f_0."""

from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from saliency_assay.data.batching import resident
from saliency_assay.data.splits import with_validation
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint
from saliency_assay.runtime.device import prepare, resident_bytes
from saliency_assay.runtime.distributed import joined, leading
from saliency_assay.runtime.environment import loaded_versions
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.retrain.occluded import Occluded, layers_of, open_masks
from saliency_assay.training.evaluation import predict
from saliency_assay.training.loop import COLUMNS
from saliency_assay.training.state import remove_state
from saliency_assay.training.task import Lesson, Place, fit, training_of

with job("retrain", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:
    settings, at, paths = snakemake.params.settings, snakemake.wildcards, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    device = stack.enter_context(joined(device, snakemake.threads, snakemake.resources))
    data = stack.enter_context(zarr_store.open_store(Path(paths.data), kind="data"))
    masks = open_masks(stack, paths.masks, data)
    seen = Occluded(data["image"], layers_of(masks, settings["fill"], settings["iteration"]), device)
    images = resident(seen, device, resident_bytes(snakemake.resources))  # composed once where it fits
    labels, split = data[f"label_{settings['label']}"][:], data["split"][:]
    basis = [settings, data.attributes["digest"], [opened.attributes["digest"] for opened in masks]]
    classes = len(data.attributes["classes"][settings["label"]])
    training = training_of(settings["training"], paths.get("chosen"))
    classifier, curve = fit(
        Lesson(images, labels, split, classes, fingerprint(basis)),
        settings["model"],
        training,
        Place.of(device, settings["state"], snakemake.resources, snakemake.threads),
        seed=settings["seed"],
        initial=paths.get("weights"),
        normalisation=weights.normalisation_of(Path(paths.first), images.shape[1]),
    )
    if leading():
        whose = with_validation(split, training["validation_share"], settings["seed"])
        table = predict(classifier, images, labels, whose, batch_size=training["batch_size"])
        pd.DataFrame(curve, columns=COLUMNS).to_csv(snakemake.output.curve, index=False)
        named = table.assign(model=settings["name"], seed=int(at.seed), data=settings["data"])
        score_tables.write_predictions(Path(snakemake.output.predictions), named, loaded_versions())
        weights.save(Path(snakemake.output.weights), classifier, Blueprint(**settings["model"]))
        remove_state(Path(settings["state"]))
