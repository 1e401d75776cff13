"""Check models before any training, and report the problems of all of them at once."""

import json
import logging

from saliency_assay.methods.model_check import ModelCheck, problems
from saliency_assay.models.classifier import Blueprint
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store

with run_job(snakemake) as job:
    prepare("cpu", job.threads)
    lines: list[str] = []
    for entry in job.settings["models"]:
        classes, shape = entry["classes"], entry["shape"]
        if count := entry["count_classes"]:
            classes = resolve(count["function"])(**count["parameters"])
        if path := job.input.get("data"):
            with open_store(path, kind="data") as data:
                classes = len(data.attributes["classes"][entry["label"]])
                shape = data["image"].shape[1:]
        check = ModelCheck(
            entry["name"],
            Blueprint(**entry["blueprint"]),
            classes,
            [entry.get("channels", shape[0]), *shape[1:]],
            entry["trains"],
            entry["weights"],
            entry["normalization"],
            entry["methods"],
            entry["uses"],
        )
        lines += problems(check, job.settings["alternatives"])
        logging.info("%s: checked with images %s and %d classes", check.name, check.shape, classes)
    if lines:
        raise ExceptionGroup("models", list(map(ValueError, lines)))
    names = [entry["name"] for entry in job.settings["models"]]
    job.output[0].write_text(f"{json.dumps({'checked': names}, indent=1)}\n", encoding="utf-8")
