"""Of all trials, take the one of highest validation accuracy."""

import json
from pathlib import Path

import pandas as pd

from saliency_assay.runtime.job import job
from saliency_assay.training.search import best_of

with job("choose", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    curves = [pd.read_csv(path) for path in snakemake.input]
    chosen = best_of(settings["training"], settings["trials"], curves)
    Path(snakemake.output[0]).write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")
