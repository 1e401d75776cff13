"""Score one model by TCAV: the dependence of its logits on a concept, layer by layer."""

import numpy as np
import pandas as pd

from saliency_assay.models.jobs import load_model
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.tcav import examples_of, images_under_test, rows_of, tcav

with run_job(snakemake) as job:

    def open_data(path, **expected):
        """Return an open store of a data set."""
        return job.open(zarr_store.open_store(path, kind="data", expect=expected))

    settings, wildcards, paths = job.settings, job.wildcards, job.input
    with_concept, data = open_data(paths.with_concept), open_data(paths.data)
    classifier = load_model(job, data)
    without_concept = open_data(paths.without, sources=with_concept.attributes["sources"])
    concept, objects = settings["concept"], with_concept.attributes["classes"]["object"]
    if concept not in objects:
        raise ValueError(unknown("concept", concept, objects))
    examples = examples_of(
        concept,
        with_concept["image"],
        without_concept["image"],
        has_concept=with_concept["label_object"][:] == objects.index(concept),
        split=zarr_store.same("split", with_concept, without_concept),
        scene=zarr_store.same("scene", with_concept, without_concept),
    )
    condition = settings["where"] or {"label_object": objects.index(concept)}
    table = pd.read_parquet(paths.predictions)
    table = table[table["data"] == settings["data"]].set_index("image").loc[np.arange(len(data))]
    # Examples and tested images are the same for all models, as far as the models predict them correctly.
    indices = images_under_test(
        data["split"][:],
        {name: data[name][:] for name in condition},
        condition,
        (table["label"] == table["predicted"]).to_numpy(),
        limit=settings["limit"],
        seed=seed_of(settings["seed"], "score_concepts", "images"),
    )
    tested, labels = data["image"].at(indices), table["label"].to_numpy()[indices]
    generator = np.random.default_rng(seed_of(settings["seed"], "score_concepts", "examples"))
    parameters = {key: value for key, value in settings["parameters"].items() if key != "significance"}
    scores = tcav(
        classifier, examples, tested, labels, settings["batch_size"], **parameters, generator=generator
    )
    columns = {
        "study": wildcards.study,
        "data": settings["data"],
        "model": wildcards.model,
        "seed": int(wildcards.seed),
    }
    score_tables.write(job.output[0], rows_of(scores, len(indices)).assign(**columns, method="tcav"))
