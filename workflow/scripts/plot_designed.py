"""Plot methods and metrics against the truth of designed networks, and write their tables as a page."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.designed.figures import HEADS, method_figure, metric_figure

with run_job(snakemake) as job:
    labels = Labels(**job.settings["labels"])
    methods, metrics = read_table(job.input.method_truth), read_table(job.input.metric_truth)
    contents = {
        "closeness of the methods to the exact importance": displayed(methods, labels, HEADS),
        "metrics against the exact importance": displayed(metrics, labels, HEADS),
    }
    title = f"{labels.study(job.settings['study'])}: methods and metrics against exact importance"
    job.output.page.write_text(tables_page(contents, title=title, digits=3), encoding="utf-8")
    with styled():
        save(method_figure(methods, labels), job.output.methods)
        save(metric_figure(metrics, labels), job.output.metrics)
