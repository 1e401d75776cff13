"""Plot the training curves of the models, and tabulate their accuracy on every set."""

import json

import pandas as pd

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.report.pages.models_page import accuracy_table, training_curves
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    labels = job.settings["labels"]
    arms = [(labels[model], seed) for model, seed in job.settings["arms"]]
    curves = dict(zip(arms, map(pd.read_csv, job.input.curves), strict=True))
    with styled():
        save(training_curves(curves), job.output.curves)
    evaluations = (json.loads(path.read_text(encoding="utf-8")) for path in job.input.evaluations)
    table = accuracy_table(dict(zip(arms, evaluations, strict=True)))
    page = table_page(table, title="Accuracy of every model", digits=1)
    job.output.accuracy.write_text(page, encoding="utf-8")
