"""Tabulate the localization scores of a grid study."""

from saliency_assay.reliability.order_tables import Rule
from saliency_assay.reliability.rated_scores import clusters_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.grid.grid_tables import localization_table

with run_job(snakemake) as job:
    settings, scores = job.settings, score_tables.read(job.input.scores)
    clusters = clusters_of(job.open(open_store(job.input.data, kind="data")))
    rule = Rule(by=settings["ranks"])
    table = localization_table(scores, settings["layers"], settings["baselines"], clusters, rule)
    table.to_csv(job.output[0], index=False)
