"""Show a BAM study: its premise as a table, MCS and IDR as bars and in numbers."""

from pathlib import Path

import pandas as pd

from saliency_assay.job import job
from saliency_assay.report.figures import metric_bars
from saliency_assay.report.html import table_page
from saliency_assay.report.style import save, styled

with job("plot_bam", snakemake.log[0]):
    study = snakemake.params.settings["study"]
    premise, metrics = pd.read_csv(snakemake.input.premise), pd.read_csv(snakemake.input.metrics)
    with styled():
        save(metric_bars(metrics, "mcs"), Path(snakemake.output.mcs))
        save(metric_bars(metrics, "idr"), Path(snakemake.output.idr))
    shown = premise.rename(columns={"percent": "test images (%)", "printed": "printed in the paper (%)"})
    Path(snakemake.output.premise).write_text(table_page(shown, title=f"{study}: the premise", digits=1))
    ranked = metrics.sort_values(["metric", "score"], ascending=False)
    Path(snakemake.output.metrics).write_text(table_page(ranked, title=f"{study}: MCS and IDR", digits=3))
