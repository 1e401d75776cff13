"""Build a data set by one registered function."""

import numpy as np

from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings, parameters = job.settings, dict(job.settings["parameters"])
    generator = np.random.default_rng(seed_of(parameters.pop("seed", 0), "build_data"))
    classes, blocks = resolve(settings["function"])(**parameters, generator=generator)
    attributes = {"classes": classes, "provenance": settings}
    zarr_store.write(job.output[0], blocks, kind="data", attributes=attributes)
