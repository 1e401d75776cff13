"""Score one arm of a retrain study: accuracy of every f_i, overlap of the masks, and mask leakage."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from saliency_assay.data.splits import TEST
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.retrain.occluded import layers_of, open_masks
from saliency_assay.studies.retrain.scores import accuracy_scores, leakage_scores, overlap_scores

COLUMNS = ["image", "split", "label", "predicted", "predicted_by_original"]

with run_job(snakemake) as job:
    settings, wildcards, paths = job.settings, job.wildcards, job.input
    data = job.open(zarr_store.open_store(paths.data, kind="data"))
    test = np.flatnonzero(data["split"][:] == TEST)
    masks = open_masks(job.stack, paths.masks, data)
    layers = layers_of(masks, wildcards.fill, settings["iterations"])
    # Predictions of f_0 may contain several sets, and have no prediction by the original. Tables are read one at a time
    # and reduced to scores, to save memory.
    predictions = (
        pd.read_parquet(
            path,
            columns=[name for name in COLUMNS if name in pq.read_schema(path).names],
            filters=[("data", "==", settings["data"])],
        )
        for path in paths.predictions
    )
    tables = [accuracy_scores(predictions), overlap_scores(layers, test)]
    if paths.leakage:
        leakage_tables = map(pd.read_csv, paths.leakage)
        tables.append(leakage_scores(dict(zip(settings["leak_iterations"], leakage_tables, strict=True))))
    table = pd.concat(tables, ignore_index=True)
    table["variant"] = f"{wildcards.protocol}/{wildcards.fill}/" + table["variant"]
    arm = {
        "study": wildcards.study,
        "data": settings["data"],
        "model": settings["model"],
        "seed": int(wildcards.seed),
    }
    score_tables.write(job.output[0], table.assign(**arm, method=wildcards.method))
