"""Tabulate input independence: IIR and relative change, and the patches that do not change the model output."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.bam.input_independence import METRICS
from saliency_assay.studies.bam.input_independence_tables import changes_of, delta_table
from saliency_assay.studies.bam.metric_tables import metrics_table

with run_job(snakemake) as job:
    settings, scores = job.settings, score_tables.read(job.input.scores)
    parameters = dict.fromkeys(METRICS, settings["metrics"]["iir"])
    table = metrics_table(scores, parameters, metrics=METRICS, sets=[f"{settings['data']}_0s"])
    table.to_csv(job.output.metrics, index=False)
    stores = [job.open(open_store(path, kind="data")) for path in job.input.deltas]
    changes = dict(zip(settings["seeds"], map(changes_of, stores), strict=True))
    delta_table(changes).to_csv(job.output.deltas, index=False)
