"""The scores of all methods of a study under all its metrics, image by image and in summary."""

from pathlib import Path

from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables
from saliency_assay.studies.fidelity.figures import summary

with job("tabulate_scores", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    table = score_tables.read(map(Path, snakemake.input)).assign(study=settings["study"])
    score_tables.write(Path(snakemake.output.scores), table)
    summary(table, settings["printed"]).to_csv(snakemake.output.summary, index=False)
