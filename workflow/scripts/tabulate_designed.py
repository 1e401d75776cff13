"""Tabulate methods and metrics of a study against the exact importance of the pixels of designed networks."""

from saliency_assay.reliability.order_tables import Rule
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.studies.designed.designed_tables import method_truth_table, metric_truth_table

with run_job(snakemake) as job:
    settings, scores = job.settings, score_tables.read(job.input)
    directions, agreement, rule = settings["directions"], settings["agreement"], Rule(by=settings["ranks"])
    methods = method_truth_table(scores, directions, agreement, settings["baselines"], rule=rule)
    methods.to_csv(job.output.method_truth, index=False)
    metrics = metric_truth_table(
        scores, directions, settings["measures"], truth=settings["truth"], agreement=agreement, rule=rule
    )
    metrics.to_csv(job.output.metric_truth, index=False)
