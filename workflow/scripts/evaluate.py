"""Predict the label of every image of every set a model is compared on."""

import json
from pathlib import Path

import pandas as pd

from saliency_assay.data.splits import with_validation
from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.layout import adapt
from saliency_assay.models.weights import libraries_in, load_classifier
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.training.evaluation import accuracies, predict

with job("evaluate", snakemake.log[0], snakemake.params.settings):
    settings, at = snakemake.params.settings, snakemake.wildcards
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(snakemake.input.weights), Blueprint(**settings["model"])).to(device)
    tables = []
    for name, path in zip(settings["sets"], snakemake.input.data, strict=True):
        with zarr_store.open_store(Path(path), kind="data") as data:
            adapt(classifier, data["image"].shape[2:])
            table = predict(
                classifier,
                data["image"],
                data[f"label_{settings['label']}"][:],
                with_validation(data["split"][:], settings["validation_share"], int(at.seed)),
                batch_size=settings["batch_size"],
            )
            classes = data.attributes["classes"][settings["label"]]
        tables.append(table.assign(model=at.model, seed=int(at.seed), data=name))
    predictions = pd.concat(tables, ignore_index=True)
    made_with = libraries_in(Path(snakemake.input.weights))
    score_tables.write_predictions(Path(snakemake.output.predictions), predictions, made_with)
    Path(snakemake.output.evaluation).write_text(
        json.dumps(accuracies(predictions, classes), indent=2) + "\n"
    )
