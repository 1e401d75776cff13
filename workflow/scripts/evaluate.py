"""Predict the labels of all images of every set on which a model is evaluated."""

import json

import pandas as pd

from saliency_assay.data.splits import groups_of, with_validation
from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.jobs import device_of
from saliency_assay.models.labels import model_class_names, model_labels
from saliency_assay.models.layout import adapt
from saliency_assay.models.weights import libraries_in, load_classifier
from saliency_assay.reliability.chance import with_independent_counts
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import GROUP, score_tables, text
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.training.evaluation import accuracies, predict

with run_job(snakemake) as job:
    settings, model, seed = job.settings, job.wildcards.model, int(job.wildcards.seed)
    device = device_of(job)
    classifier = load_classifier(job.input.weights, Blueprint(**settings["model"])).to(device)
    tables = []
    for name, path in zip(settings["sets"], job.input.data, strict=True):
        with open_store(path, kind="data") as data:
            adapt(classifier, data["image"].shape[2:])
            own = settings["label"], settings.get("classes")
            labels, classes = model_labels(data, *own), model_class_names(data, *own)
            table = predict(
                classifier,
                data["image"],
                labels,
                with_validation(data["split"][:], settings["validation_share"], seed, groups_of(data)),
                batch_size=settings["batch_size"],
            )
            if GROUP in data:
                table[GROUP] = text.decode(data[GROUP][:])
        tables.append(table.assign(model=model, seed=seed, data=name))
    predictions = pd.concat(tables, ignore_index=True)
    score_tables.write_predictions(job.output.predictions, predictions, libraries_in(job.input.weights))
    own_chance = 1 / 2 if classifier.multi_label else 1 / len(classes) if "classes" in settings else None
    evaluation = accuracies(predictions, classes, chance=own_chance)
    if GROUP in predictions:
        grouped = predictions[predictions[GROUP].notna()]
        for (name, split), rows in grouped.groupby(["data", "split"], sort=False):
            evaluation[name][split] = with_independent_counts(evaluation[name][split], rows)
    job.output.evaluation.write_text(json.dumps(evaluation, indent=2) + "\n")
