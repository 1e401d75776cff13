"""TCAV of every model of a study: as a table, as its page, and as a figure."""

from pathlib import Path

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables
from saliency_assay.studies.bam.tcav_figures import concept_figure, concepts_table

with job("plot_concepts", snakemake.log[0], snakemake.params.settings):
    settings, study = snakemake.params.settings, snakemake.wildcards.study
    significance = settings["parameters"]["significance"]
    found = score_tables.read(map(Path, snakemake.input))
    table = concepts_table(found, significance=significance)
    table.to_csv(snakemake.output.table, index=False)
    page = table_page(table, title=f"{study}: TCAV of {settings['concept']}", digits=3)
    Path(snakemake.output.page).write_text(page, encoding="utf-8")
    with styled():
        save(concept_figure(found, significance=significance), Path(snakemake.output.figure))
