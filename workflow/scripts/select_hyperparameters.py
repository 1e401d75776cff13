"""Select the trial with the highest validation accuracy."""

import json

import pandas as pd

from saliency_assay.runtime.job import run_job
from saliency_assay.training.search import best_of

with run_job(snakemake) as job:
    curves = [pd.read_csv(path) for path in job.input]
    best = best_of(job.settings["training"], job.settings["trials"], curves)
    job.output[0].write_text(json.dumps(best, indent=2) + "\n", encoding="utf-8")
