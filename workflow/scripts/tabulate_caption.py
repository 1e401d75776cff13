"""Tabulate the premise of an image-or-caption study, and INFD and attribution of every method."""

import pandas as pd

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.caption.caption_tables import caption_table, premise

with run_job(snakemake) as job:
    predictions = pd.concat(map(pd.read_parquet, job.input.predictions), ignore_index=True)
    names = {key: job.settings[key] for key in ("image_model", "caption_model", "data")}
    checks = premise(predictions, **names)
    checks.to_csv(job.output.premise, index=False)
    table = caption_table(score_tables.read(job.input.scores), checks)
    table.assign(reference=table["method"].isin(job.settings["references"])).to_csv(
        job.output.table, index=False
    )
