"""Show infidelity against sensitivity: how true a study's maps are, and how steady."""

from pathlib import Path

from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables
from saliency_assay.studies.fidelity.scatter import infidelity_sensitivity

with job("plot_scatter", snakemake.log[0], snakemake.params.settings):
    table = score_tables.read([Path(snakemake.input[0])])
    with styled():
        save(infidelity_sensitivity(table, snakemake.params.settings["pairs"]), Path(snakemake.output[0]))
