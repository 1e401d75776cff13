"""Show how far the scores of a study can be trusted."""

from pathlib import Path

import pandas as pd

from saliency_assay.job import job
from saliency_assay.report.html import tables_page
from saliency_assay.report.reliability_figures import consistency_figure, order_figure, reliability_figure
from saliency_assay.report.style import save, styled

with job("plot_reliability", snakemake.log[0]):
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    study = snakemake.wildcards.study
    tables = {  # a method may be called NA
        name: pd.read_csv(paths[name], keep_default_na=False, na_values=[""])
        for name in ("reliability", "order", "consistency", "variance")
    }
    with styled():
        save(reliability_figure(tables["reliability"], level=settings["level"]), Path(output.reliability))
        save(order_figure(tables["order"]), Path(output.order))
        save(consistency_figure(tables["consistency"], settings["controls"]), Path(output.consistency))
    shown = {
        f"{study}: reliability ({100 * settings['level']:.4g} % intervals)": tables["reliability"],
        f"{study}: means and ranks (95 % intervals)": tables["order"],
        f"{study}: shares of the variance of scores": tables["variance"],
        f"{study}: correlations of metrics, method by method": tables["consistency"],
    }
    Path(output.page).write_text(tables_page(shown, title=f"{study}: reliability", digits=3), "utf-8")
