"""Plot FunnyBirds' protocols by method, and write their means as a page."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.parts.figures import protocols_figure
from saliency_assay.studies.parts.page import HEADS

with run_job(snakemake) as job:
    labels = Labels(**job.settings["labels"])
    title = labels.study(job.wildcards.study)
    heading = f"{title}: means over images"
    tables = {heading: displayed(read_table(job.input.protocols), labels, HEADS)}
    page = tables_page(tables, title=f"{title}: FunnyBirds' protocols", digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        figure = protocols_figure(
            read_table(job.input.order), job.settings["baselines"], job.settings["level"], labels
        )
        save(figure, job.output.figure)
