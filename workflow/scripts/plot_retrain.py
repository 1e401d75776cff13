"""Show a retrain study: accuracy as pixels go, and overlap of the masks, as curves and in numbers."""

from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.curves import accuracy_curves, overlap_curves
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.tables import summary_tables

with job("plot_retrain", snakemake.log[0], snakemake.params.settings):
    settings, paths, study = snakemake.params.settings, snakemake.input, snakemake.wildcards.study
    with zarr_store.open_store(Path(paths.data), kind="data") as data:
        area = data["image"].shape[2] * data["image"].shape[3]
        classes = len(data.attributes["classes"][settings["label"]])
    table = pd.read_parquet(paths.means)
    counts = {
        "area": area,
        "occluded": pixels(area, settings["percentile"]),
        "iterations": settings["iterations"],
    }
    with styled():
        save(accuracy_curves(table, **counts, classes=classes), Path(snakemake.output.accuracy))
        save(overlap_curves(table, **counts), Path(snakemake.output.overlap))
    # A method may be called NA.
    summary = pd.read_csv(paths.summary, keep_default_na=False, na_values=[""])
    page = tables_page(summary_tables(summary, study), title=f"{study}: retrain and remask", digits=1)
    Path(snakemake.output.summary).write_text(page, encoding="utf-8")
