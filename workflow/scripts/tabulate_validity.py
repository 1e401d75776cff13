"""Tabulate the known order, meta-consistency, baselines, pairs of settings and recommendations of a study."""

import json

import pandas as pd

from saliency_assay.reliability.chance import is_above_chance
from saliency_assay.reliability.rated_scores import clusters_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.validity.known_order import known_order_table
from saliency_assay.studies.validity.meta_consistency import meta_consistency_table
from saliency_assay.studies.validity.rescoring import ORIGINAL
from saliency_assay.studies.validity.validity_tables import (
    baselines_table,
    pairs_table,
    recommendations_table,
)

with run_job(snakemake) as job:
    settings, directions = job.settings, job.settings["directions"]
    rescored = pd.concat(map(pd.read_parquet, job.input.rescored), ignore_index=True)
    clusters = clusters_of(job.open(open_store(job.input.data, kind="data")))
    order = known_order_table(rescored, directions, level=0.95, clusters=clusters)
    consistency = meta_consistency_table(
        rescored, directions, perturbations=settings["perturbations"], clusters=clusters
    )
    scores = score_tables.read(job.input.scores)
    baselines = baselines_table(scores, rescored, directions, settings["baselines"])
    rated = {name: read_table(job.input[name], "other") for name in ("order", "pairs", "reliability")}
    original = rescored[rescored["test"] == ORIGINAL]
    passes = original.groupby(["metric", "variant"], sort=False, as_index=False)["passes"].mean()
    evaluations = (json.loads(path.read_bytes())[settings["data"]]["test"] for path in job.input.evaluations)
    at_chance = not all(map(is_above_chance, evaluations))
    tables = {
        "known_order": order,
        "meta_consistency": consistency,
        "baselines": baselines,
        "settings_pairs": pairs_table(read_table(job.input.rankings), settings["pairs"]),
        "recommendations": recommendations_table(
            order, consistency, rated, baselines, passes, settings["measures"], at_chance=at_chance
        ),
    }
    for name, table in tables.items():
        table.to_csv(job.output[name], index=False)
