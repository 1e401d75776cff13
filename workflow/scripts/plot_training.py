"""Show how the models were trained, and how often each is right on every set."""

import json
from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.report.pages.models_page import accuracy_table, training_curves
from saliency_assay.runtime.job import job

with job("plot_training", snakemake.log[0], snakemake.params.settings):
    arms = [tuple(arm) for arm in snakemake.params.settings["arms"]]
    curves = dict(zip(arms, map(pd.read_csv, snakemake.input.curves), strict=True))
    with styled():
        save(training_curves(curves), Path(snakemake.output.curves))
    evaluations = (json.loads(Path(path).read_text(encoding="utf-8")) for path in snakemake.input.evaluations)
    table = accuracy_table(dict(zip(arms, evaluations, strict=True)))
    page = table_page(table, title="Accuracy of every model", digits=1)
    Path(snakemake.output.accuracy).write_text(page, encoding="utf-8")
