"""Tabulate the agreement of the rankings of methods in a retrain study."""

from saliency_assay.data.splits import TEST
from saliency_assay.reliability.rated_scores import groups_of
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.retrain.rank_agreement import METRICS, image_accuracies, rank_agreement

with run_job(snakemake) as job:
    accuracies, scores, only = {}, job.input.scores, [("metric", "in", list(METRICS))]
    scored = [row["method"] for row in score_tables.combinations(scores, ["method"], only=only)]
    for method in filter(scored.__contains__, job.settings["methods"]):
        of_method = [("method", "==", method), *only]
        accuracies |= image_accuracies(score_tables.read([scores], compact=True, only=of_method))
    data = job.open(open_store(job.input.data, kind="data"))
    groups = groups_of(data)
    clusters = {} if groups is None else {GROUPS: groups[data["split"][:] == TEST]}
    rank_agreement(accuracies, clusters).to_csv(job.output[0], index=False)
