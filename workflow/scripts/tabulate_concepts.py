"""Tabulate TCAV of every model of a study, for each layer and as the mean over layers."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.bam.tcav_tables import concepts_table

with run_job(snakemake) as job:
    table = concepts_table(score_tables.read(job.input), significance=job.settings["significance"])
    table.to_csv(job.output[0], index=False)
