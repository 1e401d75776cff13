"""Show what masks alone tell of the class, beside labels at random, and test the difference."""

from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.leakage_figures import leakage_bars, leakage_shown, leakage_table

ALPHA = 0.01

with job("plot_leakage", snakemake.log[0], snakemake.params.settings):
    settings, paths = snakemake.params.settings, snakemake.input
    with zarr_store.open_store(Path(paths.data), kind="data") as data:
        classes = len(data.attributes["classes"][settings["label"]])
    table = pd.read_parquet(paths.means)
    leaks = leakage_table(table, classes, ALPHA)
    leaks.to_csv(snakemake.output.table, index=False)
    page = table_page(
        leakage_shown(leaks), title=f"{snakemake.wildcards.study}: what masks alone tell", digits=3
    )
    Path(snakemake.output.page).write_text(page, encoding="utf-8")
    with styled():
        save(leakage_bars(table, classes=classes, alpha=ALPHA), Path(snakemake.output.figure))
