"""Score one method's maps of one model under one metric."""

from saliency_assay.metrics import engine
from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.jobs import load_model, origin
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import part_of
from saliency_assay.storage import score_tables, zarr_store

with run_job(snakemake, f"metrics.{snakemake.wildcards.metric}") as job:
    settings, at, takes = job.settings, job.wildcards, job.settings["takes"]
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    device, made = classifier.device, origin(data, classifier, part_of(at.part))
    here = {**made, "device": device.type}  # what noise depends on, where a metric draws it anew
    expect = here if "explain" in takes else made
    maps = job.open(zarr_store.open_store(job.input.maps, kind="maps", expect=expect))
    images, offset, gathered = maps["image"][:], maps.attributes["offset"], []
    drawn, seed = (settings["seed"], at.model, at.data), engine.fresh_seed(settings["seed"], at.model)
    sliced = {"mask": data["mask"].at(images)} if "mask" in takes else {}
    if "responses" in takes:
        responses = job.open(zarr_store.open_store(job.input.responses, kind="responses", expect=here))
        zarr_store.same("image", maps, responses)
        zarr_store.same("target", maps, responses)
        sliced["responses"] = {name: responses[name] for name in responses.names}
    blueprint = Blueprint(**settings["model"])
    whole = (
        {"randomized_model": engine.newly_built(classifier, blueprint, seed)}
        if "randomized_model" in takes
        else {}
    )
    explainer = engine.explainer_of(settings["method"], data, device, *drawn) if "explain" in takes else None
    found = engine.score(
        resolve(settings["function"]),
        settings["parameters"],
        classifier,
        data["image"].at(images),
        maps["target"][:],
        maps["map"],
        names=settings["scores"],
        seed=engine.metric_seed(*drawn, settings["noise_group"]),
        batch_size=settings["batch_size"],
        inputs=engine.MetricInputs(sliced, whole, explainer),
        offset=offset,
    )
    zarr_store.write(
        job.output.curves,
        zarr_store.beside(engine.curves_of(found, gathered), image=images),
        kind="curves",
        attributes={"provenance": settings, **made, "offset": offset, "maps": maps.attributes["digest"]},
    )
    # A file may serve several studies; each study's own table names it.
    of_all = {"study": "", "data": at.data, "model": at.model, "seed": int(at.seed), "method": at.method}
    table = engine.table_of(gathered, images, at.metric).assign(**of_all)
    score_tables.write(job.output.scores, table)
