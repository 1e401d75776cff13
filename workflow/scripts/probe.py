"""Ask one model what a metric wants to know that no map decides: once, for all methods."""

from pathlib import Path

from saliency_assay.methods.inputs import explained
from saliency_assay.metrics.engine import metric_seed, probe
from saliency_assay.models.classifier import Blueprint, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.shards import part_of
from saliency_assay.storage import zarr_store

with job(f"probe: metrics.{snakemake.wildcards.metric}", snakemake.log[0], snakemake.params.settings):
    settings, at, part = snakemake.params.settings, snakemake.wildcards, part_of(snakemake.wildcards.part)
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(snakemake.input.weights), Blueprint(**settings["model"]))
    with zarr_store.open_store(Path(snakemake.input.data), kind="data") as data:
        place(classifier, device, data["image"].shape[2:])
        chosen, targets, offset = explained(data, classifier, **settings["explained"], part=part)
        blocks = probe(
            resolve(settings["probe"]),
            settings["parameters"],
            classifier,
            data["image"].at(chosen),
            targets,
            seed=metric_seed(settings["seed"], at.model, at.data, settings["stream"]),
            batch_size=settings["explained"]["batch_size"],
            offset=offset,
        )
        zarr_store.write(
            Path(snakemake.output[0]),
            zarr_store.beside(blocks, image=chosen, target=targets),
            kind="probe",
            attributes={
                "provenance": settings,
                "part": part,
                "offset": offset,
                "data": data.attributes["digest"],
                "model": digest(classifier.network.state_dict()),
                "device": device.type,
            },
        )
