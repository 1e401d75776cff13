"""Tabulate the scores of all methods and metrics of a study: by image, and as a summary."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.fidelity.fidelity_tables import summary

with run_job(snakemake) as job:
    table = score_tables.read(job.input, with_files=True).assign(study=job.settings["study"])
    score_tables.write(job.output.scores, table)
    failed = {*job.settings["metrics"]} - score_tables.entries(table)
    summary(table, job.settings["printed"], failed).to_csv(job.output.summary, index=False)
