"""Put pictures of two classes beside their captions: one of the aligned sets of an entry of kind caption."""

from pathlib import Path

import numpy as np

from saliency_assay.data.caption import compose
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store

with job("compose_caption", snakemake.log[0], snakemake.params.settings):
    settings = snakemake.params.settings
    parameters = dict(settings["parameters"])
    # The set is not part of the seed: all sets of an entry are aligned.
    generator = np.random.default_rng(seed_of(parameters.pop("seed", 0), "compose_caption"))
    with zarr_store.open_store(Path(snakemake.input[0]), kind="data") as source:
        classes, blocks = compose(
            source,
            source.attributes["classes"]["class"],
            settings["member"],
            classes=settings["classes"],
            captions=settings["captions"],
            **parameters,
            generator=generator,
        )
        zarr_store.write(
            Path(snakemake.output[0]),
            blocks,
            kind="data",
            attributes={
                "classes": classes,
                "provenance": settings,
                "sources": [source.attributes["digest"]],
            },
        )
