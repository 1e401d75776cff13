"""Score the maps of one method and model under one metric."""

from saliency_assay.metrics import engine
from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.jobs import load_model, load_weights, result_identity
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import shard_of
from saliency_assay.storage import score_tables, text, zarr_store

with run_job(snakemake, f"metrics.{snakemake.wildcards.metric}") as job:
    settings, wildcards, takes = job.settings, job.wildcards, job.settings["takes"]
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    device, identity = classifier.device, result_identity(data, classifier, shard_of(wildcards.shard))
    # Random numbers differ between CPU and GPU, so recomputed maps must come from the device of the scored maps.
    device_identity = {**identity, "device": device.type}
    expect = device_identity if "explain" in takes else identity
    maps = job.open(zarr_store.open_store(job.input.maps, kind="maps", expect=expect))
    images, offset, gathered = maps["image"][:], maps.attributes["offset"], []
    seed_parts, seed = (
        (settings["seed"], wildcards.model, wildcards.data),
        engine.randomized_model_seed(settings["seed"], wildcards.model),
    )
    image_inputs = {"mask": data["mask"].at(images)} if "mask" in takes else {}
    if "responses" in takes:
        responses = job.open(
            zarr_store.open_store(job.input.responses, kind="responses", expect=device_identity)
        )
        zarr_store.same("image", maps, responses)
        zarr_store.same("target", maps, responses)
        image_inputs["responses"] = {name: responses[name] for name in responses.names}
    shared_inputs = {}
    if "randomized_model" in takes:
        blueprint = Blueprint(**settings["model"])
        shared_inputs["randomized_model"] = engine.build_randomized_model(classifier, blueprint, seed)
    if "finetuned_model" in takes:
        shared_inputs["finetuned_model"] = load_weights(job, data, job.input.finetuned, device)
    explainer = (
        engine.explainer_of(settings["method"], data, device, *seed_parts) if "explain" in takes else None
    )
    scored = engine.score(
        resolve(settings["function"]),
        settings["parameters"],
        classifier,
        data["image"].at(images),
        maps["target"][:],
        maps["map"],
        names=settings["scores"],
        seed=engine.metric_seed(*seed_parts, settings["noise_group"]),
        batch_size=settings["batch_size"],
        inputs=engine.MetricInputs(image_inputs, shared_inputs, explainer),
        offset=offset,
    )
    zarr_store.write(
        job.output.curves,
        zarr_store.with_columns(engine.curves_of(scored, gathered), image=images),
        kind="curves",
        attributes={"provenance": settings, **identity, "offset": offset, "maps": maps.attributes["digest"]},
    )
    # A file may be used by several studies, so the column ``study`` is filled in the tables of each study.
    columns = {
        "study": "",
        "data": wildcards.data,
        "model": wildcards.model,
        "seed": int(wildcards.seed),
        "method": wildcards.method,
    }
    table = engine.table_of(gathered, images, wildcards.metric).assign(**columns)
    for name in score_tables.OF_IMAGE:
        if name in data.names:
            texts = dict(zip(images.tolist(), text.decode(data[name][images]), strict=True))
            table[name] = table["image"].map(texts)
    score_tables.write(job.output.scores, table)
