"""How far the scores of a study can be trusted: reliability, order of methods, consistency and variance."""

from pathlib import Path

from saliency_assay import scores
from saliency_assay.job import job
from saliency_assay.report.reliability import (
    consistency_table,
    order_table,
    reliability_table,
    variance_table,
)

with job("tabulate_reliability", snakemake.log[0]):
    settings, output = snakemake.params.settings, snakemake.output
    table = scores.read([Path(snakemake.input[0])], compact=True)
    resamples, directions = settings["resamples"], settings["directions"]
    found = {
        "reliability": reliability_table(
            table, settings["controls"], resamples=resamples, level=settings["level"]
        ),
        "order": order_table(table, directions, settings["controls"], resamples=resamples),
        "consistency": consistency_table(table, directions),
        "variance": variance_table(table),
    }
    for name, made in found.items():
        made.to_csv(output[name], index=False)
