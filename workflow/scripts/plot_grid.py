"""Plot the localization scores of a grid study, and write them as a page."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.grid.figures import localization_boxes
from saliency_assay.studies.grid.grid_tables import HEADS

with run_job(snakemake) as job:
    settings, labels = job.settings, Labels(**job.settings["labels"])
    table = read_table(job.input[0], "layer")
    title = f"{labels.study(job.wildcards.study)}: localization"
    page = tables_page({title: displayed(table, labels, HEADS)}, title=title, digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        save(localization_boxes(table, cells=settings["cells"], labels=labels), job.output.figure)
