"""Write the provenance page: configuration, versions, data and times."""

from pathlib import Path

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.provenance import (
    data_facts,
    packages_of,
    provenance_page,
    sizes,
    times,
    versions,
)
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables, zarr_store

with run_job(snakemake, needs=()) as job:
    settings, paths, attributes, data = job.settings, job.input, [], []
    labels = Labels(**settings["labels"])
    files = {"weights": [score_tables.libraries_in(path) for path in paths.predictions]}
    for name, path in zip(settings["sets"], paths.data, strict=True):
        with zarr_store.open_store(path, kind="data") as store:
            data.append(data_facts(labels.data[name], store["image"].shape, store.attributes))
            attributes.append(store.attributes)
    files["data sets"] = [store_attributes["libraries"] for store_attributes in attributes]
    for path in paths.maps:
        with zarr_store.open_store(path, kind="maps") as maps:
            attributes.append(maps.attributes)
    files["maps"] = [store_attributes["libraries"] for store_attributes in attributes[len(data) :]]
    files["scores"] = [score_tables.libraries_in(path) for path in paths.scores]
    page = provenance_page(
        settings["configuration"],
        versions=versions(attributes),
        packages=packages_of(files),
        data=data,
        took=times(Path(settings["benchmarks"])),
        sizes=sizes(Path(settings["benchmarks"]).parent),
    )
    job.output[0].write_text(page, encoding="utf-8")
