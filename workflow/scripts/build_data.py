"""Build a data set that comes whole from one registered function."""

from pathlib import Path

import numpy as np

from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store

with job("build_data", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    parameters = dict(settings["parameters"])
    generator = np.random.default_rng(seed_of(parameters.pop("seed", 0), "build_data"))
    classes, blocks = resolve(settings["function"])(**parameters, generator=generator)
    zarr_store.write(
        Path(snakemake.output[0]),
        blocks,
        kind="data",
        attributes={"classes": classes, "provenance": settings},
    )
