"""Show how far the scores of a study can be trusted."""

from pathlib import Path

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.reliability.figures import (
    agreement_figure,
    consistency_figure,
    order_figure,
    reliability_figure,
)
from saliency_assay.report.pages.reliability_page import page_tables
from saliency_assay.runtime.job import job
from saliency_assay.storage.csv_tables import read_table

with job("plot_reliability", snakemake.log[0], snakemake.params.settings):
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    study, level = snakemake.wildcards.study, settings["level"]
    tables = {
        name: read_table(Path(paths[name]))
        for name in ("reliability", "agreement", "order", "consistency", "rankings", "variance")
    }
    with styled():
        save(reliability_figure(tables["reliability"], level=level), Path(output.reliability))
        save(agreement_figure(tables["agreement"]), Path(output.agreement))
        save(order_figure(tables["order"]), Path(output.order))
        save(consistency_figure(tables["consistency"], settings["controls"]), Path(output.consistency))
    shown = page_tables(tables, study, level=level)
    Path(output.page).write_text(tables_page(shown, title=f"{study}: reliability", digits=3), "utf-8")
