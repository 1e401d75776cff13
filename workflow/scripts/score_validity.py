"""Score the maps of one method under one metric after known changes of the map, the model and the images."""

import pandas as pd

from saliency_assay.methods.inputs import explained
from saliency_assay.metrics import engine
from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.jobs import load_model, load_weights
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store
from saliency_assay.studies.validity.rescoring import Rescoring, rescored

with run_job(snakemake, f"metrics.{snakemake.wildcards.metric}") as job:
    settings, wildcards, takes = job.settings, job.wildcards, job.settings["takes"]
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    indices, targets, _ = explained(data, classifier, **settings["explained"])
    seed_parts = (settings["seed"], settings["model_name"], settings["data"])
    shared_inputs = {}
    if "randomized_model" in takes:
        random_seed = engine.randomized_model_seed(*seed_parts[:2])
        blueprint = Blueprint(**settings["model"])
        shared_inputs["randomized_model"] = engine.build_randomized_model(classifier, blueprint, random_seed)
    if "finetuned_model" in takes:
        shared_inputs["finetuned_model"] = load_weights(job, data, job.input.finetuned, classifier.device)
    rescoring = Rescoring(
        resolve(settings["function"]),
        settings["parameters"],
        settings["scores"],
        resolve(settings["responses"]) if settings["responses"] else None,
        settings["response_parameters"],
        engine.metric_seed(*seed_parts, settings["noise_group"]),
        engine.explainer_of(settings["method"], data, classifier.device, *seed_parts),
        "explain" in takes,
        engine.MetricInputs({"mask": data["mask"][indices]} if "mask" in takes else {}, shared_inputs),
        settings["explained"]["batch_size"],
        wildcards.metric,
    )
    tests = rescored(
        rescoring,
        classifier,
        data["image"][indices],
        targets,
        **settings["tests"],
        seed=seed_of(settings["seed"], "score_validity", *seed_parts[1:]),
    )
    table = pd.concat(tests, ignore_index=True)
    table["image"] = indices[table["image"]]
    table = table.assign(seed=int(wildcards.seed), method=wildcards.method)
    with replacing(job.output[0]) as temporary:
        table.to_parquet(temporary, index=False)
