"""The scores of all arms of a retrain study: image by image, their means, and in summary."""

from pathlib import Path

import pandas as pd

from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.tables import means, summary

with job("tabulate_retrain", snakemake.log[0], snakemake.params.settings):
    settings, paths, seeds = snakemake.params.settings, snakemake.input, snakemake.params.settings["seeds"]
    with zarr_store.open_store(Path(paths.data), kind="data") as data:
        _, _, height, width = data["image"].shape
        classes = len(data.attributes["classes"][settings["label"]])
    files, tables = [Path(path) for path in paths.scores], []
    with score_tables.writer(Path(snakemake.output.scores)) as append:
        # An arm at a time: all of ImageNet's would not fit into memory.
        for start in range(0, len(files), seeds):
            arm = score_tables.read(files[start : start + seeds], compact=True)
            append(arm)
            tables.append(means(arm))
    table = pd.concat(tables, ignore_index=True)
    table.to_parquet(snakemake.output.means, index=False)
    area = height * width
    occluded = pixels(area, settings["percentile"])
    counts = {"area": area, "occluded": occluded, "iterations": settings["iterations"], "classes": classes}
    summary(table, **counts).to_csv(snakemake.output.summary, index=False)
