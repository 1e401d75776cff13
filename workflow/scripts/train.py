"""Train one model, or go on with a training that was killed."""

from pathlib import Path

import pandas as pd

from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.distributed import joined, leading
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.storage import zarr_store
from saliency_assay.training.loop import COLUMNS
from saliency_assay.training.state import remove_state
from saliency_assay.training.task import Lesson, Place, fit, training_of

with job("train", snakemake.log[0], snakemake.params.settings):
    settings, paths = snakemake.params.settings, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    with (
        joined(device, snakemake.threads, snakemake.resources) as device,
        zarr_store.open_store(Path(paths.data), kind="data") as data,
    ):
        basis = fingerprint([settings, data.attributes["digest"]])
        labels, classes = data[f"label_{settings['label']}"][:], data.attributes["classes"][settings["label"]]
        classifier, curve = fit(
            Lesson(data["image"], labels, data["split"][:], len(classes), basis),
            settings["model"],
            training_of(settings["training"], paths.get("chosen")),
            Place.of(device, settings["state"], snakemake.resources, snakemake.threads),
            seed=settings["seed"],
            initial=paths.get("weights"),
            normalisation=settings.get("normalisation"),
        )
    if leading():
        pd.DataFrame(curve, columns=COLUMNS).to_csv(snakemake.output.curve, index=False)
        weights.save(Path(snakemake.output.weights), classifier, Blueprint(**settings["model"]))
        remove_state(Path(settings["state"]))
