"""Compose one set of a BAM collection: cut-outs pasted on scenes."""

from saliency_assay.data.bam.compose import log_sizes
from saliency_assay.data.bam.members import compose_member, is_series
from saliency_assay.data.bam.placement import collection_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings = job.settings
    cutouts = job.open(zarr_store.open_store(job.input.cutouts, kind="cutouts"))
    scenes = job.open(zarr_store.open_store(job.input.scenes, kind="scenes"))
    classes = {"object": cutouts.attributes["objects"], "scene": scenes.attributes["scenes"]}
    collection = collection_of(cutouts, scenes, object_names=classes["object"], scene_names=classes["scene"])
    blocks = compose_member(
        collection,
        settings["member"],
        settings["parameters"],
        seed=settings["seed"],
        common_object=settings.get("common_object", ""),
    )
    labels = ("scene",) if is_series(settings["member"]) else ("object", "scene")
    zarr_store.write(
        job.output[0],
        log_sizes(blocks),
        kind="data",
        attributes={
            "classes": {label: classes[label] for label in labels},
            "provenance": settings,
            "sources": [cutouts.attributes["digest"], scenes.attributes["digest"]],
        },
    )
