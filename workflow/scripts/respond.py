"""Compute the model responses that a metric compares with maps, once for all methods."""

from saliency_assay.methods.inputs import explained
from saliency_assay.metrics.engine import metric_seed, model_responses
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import shard_of
from saliency_assay.storage import zarr_store

with run_job(snakemake, f"metrics.{snakemake.wildcards.metric}") as job:
    settings, wildcards, shard = job.settings, job.wildcards, shard_of(job.wildcards.shard)
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    indices, targets, offset = explained(data, classifier, **settings["explained"], shard=shard)
    blocks = model_responses(
        resolve(settings["responses"]),
        settings["parameters"],
        classifier,
        data["image"].at(indices),
        targets,
        seed=metric_seed(settings["seed"], wildcards.model, wildcards.data, settings["noise_group"]),
        batch_size=settings["explained"]["batch_size"],
        offset=offset,
    )
    identity = {
        **result_identity(data, classifier, shard),
        "offset": offset,
        "device": classifier.device.type,
    }
    zarr_store.write(
        job.output[0],
        zarr_store.with_columns(blocks, image=indices, target=targets),
        kind="responses",
        attributes={"provenance": settings, **identity},
    )
