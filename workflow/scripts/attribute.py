"""Compute the saliency maps of one method and model on the explained images of one set."""

import json
import time
from itertools import chain
from pathlib import Path

import numpy as np

from saliency_assay.methods.cost import Stopwatch, counted_rows
from saliency_assay.methods.engine import attribute
from saliency_assay.methods.inputs import arguments_of, explained, explained_indices, map_seed
from saliency_assay.methods.stored_maps import read_maps
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import shard_of
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings, wildcards, shard = job.settings, job.wildcards, shard_of(job.wildcards.shard)
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    device = classifier.device
    indices, targets, offset = explained(data, classifier, **settings["explained"], shard=shard)
    if path := settings.get("maps"):
        selection = {name: settings["explained"][name] for name in ("limit", "order", "where")}
        blocks = read_maps(Path(path), data, indices, explained_indices(data, **selection))
    else:
        method, arguments = resolve(settings["function"]), arguments_of(settings, data, device)
        # The two images of a pair have the same noise: otherwise noise alone would change the map of a method.
        blocks = chain.from_iterable(
            attribute(
                method,
                arguments,
                classifier,
                data["image"].at(indices[state]),
                targets[state],
                seed=map_seed(settings["seed"], wildcards.model, wildcards.data, settings["noise_group"]),
                batch_size=settings["explained"]["batch_size"],
                finite=not settings["registered"],
                offset=offset,
                mask=data["mask"].at(indices[state]) if settings.get("takes_mask") else None,
            )
            for state in np.split(np.arange(len(indices)), 2 if settings["pairs"] else 1)
        )
    watch, identity = Stopwatch(time.perf_counter), result_identity(data, classifier, shard)
    with counted_rows(classifier) as rows:
        zarr_store.write(
            job.output.maps,
            zarr_store.with_columns(watch.over(blocks), image=indices, target=targets),
            kind="maps",
            attributes={"provenance": settings, **identity, "offset": offset, "device": device.type},
        )
    cost = {
        "images": len(indices),
        "seconds": watch.seconds,
        "device": device.type,
        "passes": sum(rows) / len(indices),
    }
    job.output.cost.write_text(json.dumps(cost), encoding="utf-8")
