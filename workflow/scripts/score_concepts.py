"""Score one model under TCAV: how far its logits depend on a concept, layer by layer."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from saliency_assay.models.classifier import Blueprint
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.tcav import examples_of, images_under_test, rows_of, tcav

with job("score_concepts", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:

    def opened(path, **expected):
        return stack.enter_context(zarr_store.open_store(Path(path), kind="data", expect=expected))

    settings, at, paths = snakemake.params.settings, snakemake.wildcards, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(paths.weights), Blueprint(**settings["model"]))
    having, data = opened(paths.with_concept), opened(paths.data)
    place(classifier, device, data["image"].shape[2:])
    lacking = opened(paths.without, sources=having.attributes["sources"])
    concept, objects = settings["concept"], having.attributes["classes"]["object"]
    if concept not in objects:
        raise ValueError(unknown("concept", concept, objects))
    examples = examples_of(
        concept,
        having["image"],
        lacking["image"],
        has_concept=having["label_object"][:] == objects.index(concept),
        split=zarr_store.same("split", having, lacking),
        scene=zarr_store.same("scene", having, lacking),
    )
    where = settings["where"] or {"label_object": objects.index(concept)}
    table = pd.read_parquet(paths.predictions)
    table = table[table["data"] == settings["data"]].set_index("image").loc[np.arange(len(data))]
    # Examples and images under test are the same for all models, as far as these are right about them.
    chosen = images_under_test(
        data["split"][:],
        {name: data[name][:] for name in where},
        where,
        (table["label"] == table["predicted"]).to_numpy(),
        limit=settings["limit"],
        seed=seed_of(settings["seed"], "score_concepts", "images"),
    )
    tested, labels = data["image"].at(chosen), table["label"].to_numpy()[chosen]
    generator = np.random.default_rng(seed_of(settings["seed"], "score_concepts", "examples"))
    given = {key: value for key, value in settings["parameters"].items() if key != "significance"}
    found = tcav(classifier, examples, tested, labels, settings["batch_size"], **given, generator=generator)
    of_all = {"study": at.study, "data": settings["data"], "model": at.model, "seed": int(at.seed)}
    score_tables.write(Path(snakemake.output[0]), rows_of(found, len(chosen)).assign(**of_all, method="tcav"))
