"""Train one model, or resume a killed training; a trial of a search keeps only the curve."""

from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.training.jobs import fit_model, join_processes, task_of, write_model

with run_job(snakemake) as job:
    device = join_processes(job)
    data = job.open(open_store(job.input.data, kind="data"))
    task = task_of(job, data, data["image"])
    classifier, curve = fit_model(job, task, device, job.settings.get("normalization"))
    write_model(job, classifier, curve)
