"""Tabulate the premise of a BAM study, and its metrics with baseline and spread."""

import pandas as pd

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.bam.metric_tables import metrics_table, premise

with run_job(snakemake) as job:
    settings = job.settings
    predictions = pd.concat(map(pd.read_parquet, job.input.predictions), ignore_index=True)
    names = {key: settings[key] for key in ("data", "object_model", "scene_model")}
    premise(predictions, **names).to_csv(job.output.premise, index=False)
    table = score_tables.read(job.input.scores, compact=True)
    sets = [f"{settings['data']}_os", *settings.get("variants", [])]
    metrics_table(table, settings["metrics"], sets=sets).to_csv(job.output.metrics, index=False)
