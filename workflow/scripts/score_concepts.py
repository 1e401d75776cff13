"""Score one model under TCAV: how far its logits depend on a concept, layer by layer."""

import numpy as np
import pandas as pd

from saliency_assay.models.jobs import load_model
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.tcav import examples_of, images_under_test, rows_of, tcav

with run_job(snakemake) as job:

    def opened(path, **expected):
        return job.open(zarr_store.open_store(path, kind="data", expect=expected))

    settings, at, paths = job.settings, job.wildcards, job.input
    having, data = opened(paths.with_concept), opened(paths.data)
    classifier = load_model(job, data)
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
    score_tables.write(job.output[0], rows_of(found, len(chosen)).assign(**of_all, method="tcav"))
