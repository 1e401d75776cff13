"""Plot a retrain study: accuracy over occluded pixels and overlap of the masks, as curves and tables."""

import pandas as pd

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.curves import accuracy_curves, overlap_curves
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.rank_agreement import displayed_agreement
from saliency_assay.studies.retrain.retrain_tables import summary_tables

with run_job(snakemake) as job:
    settings, study, labels = job.settings, job.wildcards.study, Labels(**job.settings["labels"])
    data = job.open(open_store(job.input.data, kind="data"))
    area = data["image"].shape[2] * data["image"].shape[3]
    classes = len(data.attributes["classes"][settings["label"]])
    table = pd.read_parquet(job.input.means)
    counts = {
        "area": area,
        "occluded": pixels(area, settings["percentile"]),
        "iterations": settings["iterations"],
    }
    with styled():
        save(accuracy_curves(table, **counts, classes=classes, labels=labels), job.output.accuracy)
        save(overlap_curves(table, **counts, labels=labels), job.output.overlap)
    tables = summary_tables(read_table(job.input.summary), study, labels)
    agreement = displayed_agreement(read_table(job.input.rank_agreement, "iteration"), labels)
    agreement_title = f"{labels.study(study)}: agreement of the rankings of methods (Spearman’s ρ)"
    if len(agreement):
        tables[agreement_title] = agreement
    title = f"{labels.study(study)}: accuracy and overlap of masks"
    page = tables_page(tables, title=title, digits=1, digits_of={agreement_title: 2})
    job.output.summary.write_text(page, encoding="utf-8")
