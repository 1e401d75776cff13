"""Plot TCAV of every model of a study: a page and a figure."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.tcav_figures import concept_figure

with run_job(snakemake) as job:
    settings, table = job.settings, read_table(job.input.table)
    labels = Labels(**settings["labels"])
    title = f"{labels.study(job.wildcards.study)}: TCAV of {settings['concept']}"
    page = table_page(
        displayed(table, labels, {"random": "random concepts", "kept": "significant"}), title=title, digits=3
    )
    job.output.page.write_text(page, encoding="utf-8")
    scores = score_tables.read(job.input.scores)
    with styled():
        figure = concept_figure(scores, table, significance=settings["significance"], labels=labels)
        save(figure, job.output.figure)
