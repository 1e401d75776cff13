"""Tabulate a commonality series: accuracy and MCS against k, and their correlation."""

import pandas as pd

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.series_tables import (
    SeriesModel,
    commonality_table,
    correlation_table,
    series_table,
)

COLUMNS = ["model", "seed", "data", "image", "split", "label", "predicted"]

with run_job(snakemake) as job:
    settings, paths, without = job.settings, job.input, job.settings["without"]
    arms = zip(settings["models"], settings["sets"], settings["k"], strict=True)
    series = [SeriesModel(*arm) for arm in arms]
    row_filters = [("data", "in", [*settings["sets"], without])]
    prediction_tables = (
        pd.read_parquet(path, columns=COLUMNS, filters=row_filters) for path in paths.predictions
    )
    predictions = pd.concat(prediction_tables, ignore_index=True)
    concepts = read_table(paths.concepts) if paths.concepts else None
    accuracy = commonality_table(predictions, series, without=without, scene=settings["scene"])
    mcs = series_table(score_tables.read(paths.scores), series, concepts)
    accuracy.to_csv(job.output.commonality, index=False)
    mcs.to_csv(job.output.series, index=False)
    correlation_table(mcs, accuracy).to_csv(job.output.correlation, index=False)
