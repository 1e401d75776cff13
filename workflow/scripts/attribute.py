"""Draw one method's saliency maps of one model on the explained test images of one set."""

import json
import time
from itertools import chain
from pathlib import Path

import numpy as np

from saliency_assay.methods.cost import Stopwatch
from saliency_assay.methods.engine import draw
from saliency_assay.methods.inputs import arguments_of, explained, map_seed
from saliency_assay.models.classifier import Blueprint, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.shards import part_of
from saliency_assay.storage import zarr_store

with job("attribute", snakemake.log[0], snakemake.params.settings):
    settings, at, part = snakemake.params.settings, snakemake.wildcards, part_of(snakemake.wildcards.part)
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(snakemake.input.weights), Blueprint(**settings["model"]))
    with zarr_store.open_store(Path(snakemake.input.data), kind="data") as data:
        place(classifier, device, data["image"].shape[2:])
        chosen, targets, offset = explained(data, classifier, **settings["explained"], part=part)
        method, arguments = resolve(settings["function"]), arguments_of(settings, data, device)
        # Two states of one image are drawn with the same noise: else a method would differ from itself.
        blocks = chain.from_iterable(
            draw(
                method,
                arguments,
                classifier,
                data["image"].at(chosen[state]),
                targets[state],
                seed=map_seed(settings["seed"], at.model, at.data, settings["stream"]),
                batch_size=settings["explained"]["batch_size"],
                finite=not settings["registered"],
                offset=offset,
            )
            for state in np.split(np.arange(len(chosen)), 2 if settings["pairs"] else 1)
        )
        watch = Stopwatch(time.perf_counter)
        zarr_store.write(
            Path(snakemake.output.maps),
            zarr_store.beside(watch.over(blocks), image=chosen, target=targets),
            kind="maps",
            attributes={
                "provenance": settings,
                "part": part,
                "offset": offset,
                "data": data.attributes["digest"],
                "model": digest(classifier.network.state_dict()),
                "device": device.type,
            },
        )
        cost = {"images": len(chosen), "seconds": watch.seconds, "device": device.type}
        Path(snakemake.output.cost).write_text(json.dumps(cost), encoding="utf-8")
