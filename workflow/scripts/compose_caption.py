"""Combine images of two classes with their captions: one of the aligned sets of an entry of kind caption."""

import numpy as np

from saliency_assay.data.caption import compose
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings, parameters = job.settings, dict(job.settings["parameters"])
    # The name of the set is not part of the seed, so that all sets of an entry are aligned.
    generator = np.random.default_rng(seed_of(parameters.pop("seed", 0), "compose_caption"))
    source = job.open(zarr_store.open_store(job.input[0], kind="data"))
    classes, blocks = compose(
        source,
        source.attributes["classes"]["class"],
        settings["member"],
        classes=settings["classes"],
        captions=settings["captions"],
        **parameters,
        generator=generator,
    )
    attributes = {"classes": classes, "provenance": settings, "sources": [source.attributes["digest"]]}
    zarr_store.write(job.output[0], blocks, kind="data", attributes=attributes)
