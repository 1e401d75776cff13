"""The premise of a BAM study, and its metrics with baseline and spread, as tables."""

from pathlib import Path

import pandas as pd

from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables
from saliency_assay.studies.bam.metric_tables import metrics_table, premise

with job("tabulate_bam", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    predictions = pd.concat(map(pd.read_parquet, snakemake.input.predictions), ignore_index=True)
    names = {key: settings[key] for key in ("data", "object_model", "scene_model")}
    premise(predictions, **names).to_csv(snakemake.output.premise, index=False)
    table = score_tables.read(map(Path, snakemake.input.scores), compact=True)
    sets = [f"{settings['data']}_os", *settings.get("variants", [])]
    metrics_table(table, settings["metrics"], sets=sets).to_csv(snakemake.output.metrics, index=False)
