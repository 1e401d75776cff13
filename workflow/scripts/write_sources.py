"""Draw the photographs and scenes of an embedded data set, as COCO and MiniPlaces folders."""

from pathlib import Path

import numpy as np

from saliency_assay.data.embedded import write_sources
from saliency_assay.job import job
from saliency_assay.provenance import seed_of

with job("write_sources", snakemake.log[0]):
    parameters = snakemake.params.settings["parameters"]
    write_sources(
        Path(snakemake.output[0]),
        cutouts_per_object=parameters["cutouts_per_object"],
        scenes_per_class=parameters["scenes_per_class"],
        source_size=parameters["source_size"],
        generator=np.random.default_rng(seed_of(parameters["seed"], "write_sources")),
    )
