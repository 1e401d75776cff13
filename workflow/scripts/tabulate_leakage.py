"""Tabulate the accuracy of classifiers trained on masks alone, tested against that with random labels."""

import pandas as pd

from saliency_assay.data.splits import TEST
from saliency_assay.reliability.rated_scores import groups_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.leakage_tables import ALPHA, leakage_table

with run_job(snakemake) as job:
    data = job.open(open_store(job.input.data, kind="data"))
    classes = len(data.attributes["classes"][job.settings["label"]])
    groups = groups_of(data)
    of_test = None if groups is None else groups[data["split"][:] == TEST]
    table = leakage_table(pd.read_parquet(job.input.means), classes, ALPHA, of_test)
    table.to_csv(job.output[0], index=False)
