"""Plot one figure of one metric of a study."""

import numpy as np

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.records import resolve
from saliency_assay.reliability.clusters import with_clusters
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.storage.shards import grouped, open_stores

with run_job(snakemake) as job:
    settings, paths = job.settings, job.input

    def stacked(files, kind):
        """Return the concatenated arrays of several stores by name; each store is a list of the files of its shards."""
        stores = [job.open(open_stores(paths, kind=kind)) for paths in files]
        names = stores[0].names if stores else []
        return {name: np.concatenate([opened[name][:] for opened in stores]) for name in names}

    seeds, methods = len(settings["seeds"]), len(settings["methods"])
    files, responses = grouped(paths.get("curves", []), methods * seeds), paths.get("responses", [])
    curves = {
        method: stacked(files[index * seeds : (index + 1) * seeds], "curves")
        for index, method in enumerate(settings["methods"])
    }
    results = MetricResults(
        entry=job.wildcards.metric,
        parameters=settings["parameters"],
        scores=with_clusters(
            score_tables.read(paths.scores), job.open(zarr_store.open_store(paths.data, kind="data"))
        ),
        labels=settings["labels"],
        directions=settings["directions"],
        curves=curves,
        responses=stacked(grouped(responses, seeds), "responses"),
        methods=settings["methods"],
        units=settings["units"],
        names=Labels(**settings["names"]),
    )
    with styled():
        save(resolve(settings["function"])(results), job.output[0])
