"""The scores of all methods of a study under all its metrics, image by image and in summary."""

from pathlib import Path

from saliency_assay import scores
from saliency_assay.report.scores import summary
from saliency_assay.runtime.job import job

with job("tabulate_scores", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    table = scores.read(map(Path, snakemake.input)).assign(study=settings["study"])
    scores.write(Path(snakemake.output.scores), table)
    summary(table, settings["printed"]).to_csv(snakemake.output.summary, index=False)
