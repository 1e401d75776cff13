"""Evaluate a model on images rendered without parts and objects, once for all methods."""

from saliency_assay.methods.inputs import explained
from saliency_assay.metrics.engine import MetricInputs, model_responses
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import WHOLE
from saliency_assay.storage import zarr_store
from saliency_assay.studies.parts.interventions import evaluate_interventions

with run_job(snakemake) as job:
    settings = job.settings
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    indices, targets, _ = explained(data, classifier, **settings["explained"])
    inputs = {name: data[name].at(indices) for name in ("scene_seed", "variants")}
    blocks = model_responses(
        evaluate_interventions,
        {"objects": settings["objects"]},
        classifier,
        data["image"].at(indices),
        targets,
        seed=0,  # nothing is random
        batch_size=settings["explained"]["batch_size"],
        inputs=MetricInputs(inputs),
    )
    zarr_store.write(
        job.output[0],
        zarr_store.with_columns(blocks, image=indices, label=data["label_class"][:][indices]),
        kind="responses",
        attributes={"provenance": settings, **result_identity(data, classifier, WHOLE)},
    )
