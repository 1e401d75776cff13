"""Write the pages of the methods with the cost of their maps, and of the metrics with their reliability."""

import json
from itertools import islice

import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.catalog import cost_table, methods_page, metrics_page
from saliency_assay.runtime.failure import entry_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake, needs=()) as job:
    settings, paths, output, sizes = job.settings, job.input, job.output, {}
    labels = Labels(**settings["labels"])
    for name, path in zip(settings["sets"], paths.data, strict=True):
        with zarr_store.open_store(path, kind="data") as data:
            sizes[name] = data["image"].shape[2:]
    costs_of_maps = (json.loads(path.read_text(encoding="utf-8")) for path in paths.costs)
    failed = {entry_of(str(path))[0] for path in job.failed if entry_of(str(path))}
    gallery_maps = [each for each in settings["gallery_maps"] if each["method"] not in failed]
    measured = [list(islice(costs_of_maps, gallery_map["shards"])) for gallery_map in gallery_maps]
    costs = cost_table(settings["methods"], gallery_maps, measured, sizes)
    output.methods.write_text(methods_page(settings["methods"], costs, labels), encoding="utf-8")
    tables = [
        read_table(path).assign(study=study)
        for study, path in zip(settings["studies"], paths.every("reliability"), strict=True)
        if path not in job.failed
    ]
    reliability = (
        pd.concat(tables) if tables else pd.DataFrame({"metric": [], "variant": pd.Series(dtype=str)})
    )
    output.metrics.write_text(metrics_page(settings["metrics"], reliability, labels), encoding="utf-8")
