"""Cut objects out of COCO images and collect MiniPlaces scenes, all at one size."""

import logging
from pathlib import Path

from saliency_assay.data.bam.classes import OBJECTS, SCENES
from saliency_assay.data.bam.coco import Source, find_instances
from saliency_assay.data.bam.collection import collect_cutouts, collect_scenes
from saliency_assay.data.bam.miniplaces import find_scenes
from saliency_assay.data.bam.placement import canvas_side, side_range
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings = job.settings
    parameters = settings["parameters"]
    if synthetic_sources := job.input.get("sources"):
        folder = synthetic_sources.parent
        settings = {**settings, "objects": OBJECTS, "scenes": SCENES, "miniplaces": folder / "miniplaces"}
        settings["coco"] = [(folder / "coco/annotations/instances.json", folder / "coco/images")]
    sources = [Source(Path(annotations), Path(images)) for annotations, images in settings["coco"]]
    miniplaces = Path(settings["miniplaces"])
    instances, skipped_instances = find_instances(
        sources,
        settings["objects"],
        min_area=parameters["min_object_area"],
        limit=parameters["cutouts_per_object"],
    )
    scenes, skipped_scenes, left_out = find_scenes(
        miniplaces,
        settings["scenes"],
        objects=settings["objects"],
        limit=parameters["scenes_per_class"],
    )
    skipped = {
        name: dict(counts) for name, counts in {**skipped_instances, **skipped_scenes}.items() if counts
    }
    logging.info("%d cut-outs, %d scenes; left out: %s", len(instances), len(scenes), skipped or "none")
    for file, reason in left_out.items():
        logging.info("left out %s: %s", miniplaces / file, reason)
    attributes = {"provenance": settings, "skipped": skipped}
    sides = {key: parameters[key] for key in ("measure", "smallest", "largest")}
    least, _ = side_range(parameters["size"], **sides)
    zarr_store.write(
        job.output.cutouts,
        collect_cutouts(
            instances, settings["objects"], canvas=canvas_side(parameters["size"], **sides), least=least
        ),
        kind="cutouts",
        attributes={
            **attributes,
            "objects": settings["objects"],
            "files": [i.coco_image.relative_to(sources[i.source].images).as_posix() for i in instances],
        },
    )
    zarr_store.write(
        job.output.scenes,
        collect_scenes(scenes, settings["scenes"], size=parameters["size"]),
        kind="scenes",
        attributes={
            **attributes,
            "scenes": settings["scenes"],
            "files": [scene.path.relative_to(miniplaces).as_posix() for scene in scenes],
            "left_out": left_out,
        },
    )
