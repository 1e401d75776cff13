"""Paste cut-outs on scenes: one of the aligned sets of a BAM collection."""

from pathlib import Path

import numpy as np

from saliency_assay import store
from saliency_assay.data.bam import compose
from saliency_assay.data.plan import collection_of, plan
from saliency_assay.job import job
from saliency_assay.provenance import seed_of

with job("compose_bam", snakemake.log[0]):
    settings = snakemake.params.settings
    with (
        store.open_store(Path(snakemake.input.cutouts), kind="cutouts") as cutouts,
        store.open_store(Path(snakemake.input.scenes), kind="scenes") as scenes,
    ):
        classes = {"object": cutouts.attributes["objects"], "scene": scenes.attributes["scenes"]}
        collection = collection_of(
            cutouts, scenes, object_names=classes["object"], scene_names=classes["scene"]
        )
        # The plan does not know which set it is for: all sets of a collection are aligned.
        drawn = plan(
            collection,
            **settings["parameters"],
            generator=np.random.default_rng(seed_of(settings["seed"], "compose_bam")),
        )
        store.write(
            Path(snakemake.output[0]),
            compose(drawn, collection, settings["member"]),
            kind="data",
            attributes={
                "classes": classes,
                "provenance": settings,
                "sources": [cutouts.attributes["digest"], scenes.attributes["digest"]],
            },
        )
