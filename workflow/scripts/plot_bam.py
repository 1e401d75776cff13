"""Show a BAM study: its premise as a table, MCS and IDR as bars and in numbers."""

from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.studies.bam.figures import metric_bars

with job("plot_bam", snakemake.log[0], snakemake.params.settings):
    study = snakemake.params.settings["study"]
    # A method may be called NA.
    premise, metrics = (pd.read_csv(path, keep_default_na=False, na_values=[""]) for path in snakemake.input)
    with styled():
        save(metric_bars(metrics, "mcs"), Path(snakemake.output.mcs))
        save(metric_bars(metrics, "idr"), Path(snakemake.output.idr))
    shown = premise.rename(columns={"percent": "test images (%)", "printed": "printed in the paper (%)"})
    page = table_page(shown, title=f"{study}: the premise", digits=1)
    Path(snakemake.output.premise).write_text(page, encoding="utf-8")
    ranked = metrics.sort_values(["metric", "data", "score"], ascending=[False, True, False])
    page = table_page(ranked, title=f"{study}: MCS and IDR", digits=3)
    Path(snakemake.output.metrics).write_text(page, encoding="utf-8")
