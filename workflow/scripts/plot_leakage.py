"""Plot the accuracy of classifiers trained on masks alone, and of those with random labels: a page and bars."""

import pandas as pd

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.retrain.leakage_figures import displayed_leakage, leakage_bars
from saliency_assay.studies.retrain.leakage_tables import ALPHA

with run_job(snakemake) as job:
    table = read_table(job.input.table, "reason")
    labels = Labels(**job.settings["labels"])
    title = f"{labels.study(job.wildcards.study)}: accuracy from masks alone"
    page = table_page(displayed_leakage(table, labels), title=title, digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        figure = leakage_bars(pd.read_parquet(job.input.means), table, alpha=ALPHA, labels=labels)
        save(figure, job.output.figure)
