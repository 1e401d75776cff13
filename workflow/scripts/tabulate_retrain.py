"""Tabulate the scores of all arms of a retrain study: by image, as means, and as a summary."""

import pandas as pd

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.retrain_tables import means, summary

with run_job(snakemake) as job:
    settings, seeds, files, tables = job.settings, job.settings["seeds"], job.input.scores, []
    data = job.open(open_store(job.input.data, kind="data"))
    _, _, height, width = data["image"].shape
    classes = len(data.attributes["classes"][settings["label"]])
    with score_tables.writer(job.output.scores) as append:
        # One arm at a time, because all arms on ImageNet would not fit into memory.
        for start in range(0, len(files), seeds):
            arm = score_tables.read(files[start : start + seeds], compact=True)
            append(arm)
            tables.append(means(arm))
    table = pd.concat(tables, ignore_index=True)
    table.to_parquet(job.output.means, index=False)
    area = height * width
    occluded = pixels(area, settings["percentile"])
    counts = {"area": area, "occluded": occluded, "iterations": settings["iterations"], "classes": classes}
    summary(table, **counts).to_csv(job.output.summary, index=False)
