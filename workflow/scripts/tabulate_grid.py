"""Tabulate the localization scores of a grid study."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.grid.grid_tables import localization_table

with run_job(snakemake) as job:
    order = read_table(job.input.order)
    table = localization_table(score_tables.read(job.input.scores), order, job.settings["layers"])
    table.to_csv(job.output[0], index=False)
