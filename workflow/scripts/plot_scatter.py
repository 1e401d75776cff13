"""Show infidelity against sensitivity: how true a study's maps are, and how steady."""

from pathlib import Path

from saliency_assay import scores
from saliency_assay.report.scatter import infidelity_sensitivity
from saliency_assay.report.style import save, styled
from saliency_assay.runtime.job import job

with job("plot_scatter", snakemake.log[0], snakemake.params.settings):
    table = scores.read([Path(snakemake.input[0])])
    with styled():
        save(infidelity_sensitivity(table, snakemake.params.settings["pairs"]), Path(snakemake.output[0]))
