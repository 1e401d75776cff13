"""Tabulate the agreement of the rankings of methods in a retrain study."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.retrain.rank_agreement import METRICS, image_accuracies, rank_agreement

with run_job(snakemake) as job:
    accuracies = {}
    for method in job.settings["methods"]:
        only = [("method", "==", method), ("metric", "in", list(METRICS))]
        accuracies |= image_accuracies(score_tables.read([job.input.scores], compact=True, only=only))
    rank_agreement(accuracies).to_csv(job.output[0], index=False)
