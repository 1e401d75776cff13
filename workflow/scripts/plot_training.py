"""Plot the training curves of the models, and tabulate their accuracy on every set."""

import json

import pandas as pd

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.models_page import accuracy_table, displayed_accuracies, training_curves
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    arms, labels = [tuple(arm) for arm in job.settings["arms"]], Labels(**job.settings["labels"])
    curves = dict(zip(arms, map(pd.read_csv, job.input.curves), strict=True))
    with styled():
        save(training_curves(curves, labels), job.output.curves)
    evaluations = (json.loads(path.read_text(encoding="utf-8")) for path in job.input.evaluations)
    tables = displayed_accuracies(accuracy_table(dict(zip(arms, evaluations, strict=True))), labels)
    page = tables_page(tables, title="Accuracy by model and data set", digits=1)
    job.output.accuracy.write_text(page, encoding="utf-8")
