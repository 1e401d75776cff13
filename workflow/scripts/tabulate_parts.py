"""Tabulate the means of FunnyBirds' protocols."""

import json

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.fidelity.fidelity_tables import summary
from saliency_assay.studies.parts.parts_tables import accuracies_of, protocols_table

with run_job(snakemake) as job:
    table = score_tables.read(job.input.scores)
    data = table["data"].iloc[0]
    evaluations = [json.loads(path.read_bytes())[data] for path in job.input.evaluations]
    protocols_table(table, accuracies_of(evaluations, job.settings["seeds"])).to_csv(
        job.output.protocols, index=False
    )
    summary(table[table["image"] >= 0], {}).to_csv(job.output.summary, index=False)
