"""Score one method's maps of one model under one metric."""

from contextlib import ExitStack
from pathlib import Path

from saliency_assay.metrics import engine
from saliency_assay.models.classifier import Blueprint, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.shards import part_of
from saliency_assay.storage import score_tables, zarr_store

with (
    job(f"score: metrics.{snakemake.wildcards.metric}", snakemake.log[0], snakemake.params.settings),
    ExitStack() as stack,
):
    settings, at, paths = snakemake.params.settings, snakemake.wildcards, snakemake.input
    takes, part = settings["takes"], part_of(at.part)
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(paths.weights), blueprint := Blueprint(**settings["model"]))
    data = stack.enter_context(zarr_store.open_store(Path(paths.data), kind="data"))
    place(classifier, device, data["image"].shape[2:])
    made = {"part": part, "data": data.attributes["digest"], "model": digest(classifier.network.state_dict())}
    here = {**made, "device": device.type}  # what noise depends on, where a metric draws it anew
    expect = here if "explain" in takes else made
    maps = stack.enter_context(zarr_store.open_store(Path(paths.maps), kind="maps", expect=expect))
    images, offset, gathered = maps["image"][:], maps.attributes["offset"], []
    drawn, seed = (settings["seed"], at.model, at.data), engine.fresh_seed(settings["seed"], at.model)
    sliced = {"mask": data["mask"].at(images)} if "mask" in takes else {}
    if "probed" in takes:
        probed = stack.enter_context(zarr_store.open_store(Path(paths.probe), kind="probe", expect=here))
        zarr_store.same("image", maps, probed)
        zarr_store.same("target", maps, probed)
        sliced["probed"] = {name: probed[name] for name in probed.names}
    whole = {"fresh": engine.newly_built(classifier, blueprint, seed)} if "fresh" in takes else {}
    explainer = engine.explainer_of(settings["method"], data, device, *drawn) if "explain" in takes else None
    found = engine.score(
        resolve(settings["function"]),
        settings["parameters"],
        classifier,
        data["image"].at(images),
        maps["target"][:],
        maps["map"],
        names=settings["scores"],
        seed=engine.metric_seed(*drawn, settings["stream"]),
        batch_size=settings["batch_size"],
        given=engine.Given(sliced, whole, explainer),
        offset=offset,
    )
    zarr_store.write(
        Path(snakemake.output.curves),
        zarr_store.beside(engine.curves_of(found, gathered), image=images),
        kind="curves",
        attributes={"provenance": settings, **made, "offset": offset, "maps": maps.attributes["digest"]},
    )
    # A file may serve several studies; each study's own table names it.
    of_all = {"study": "", "data": at.data, "model": at.model, "seed": int(at.seed), "method": at.method}
    table = engine.table_of(gathered, images, at.metric).assign(**of_all)
    score_tables.write(Path(snakemake.output.scores), table)
