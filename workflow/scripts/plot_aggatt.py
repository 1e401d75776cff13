"""Plot the aggregated maps of all methods of a grid study in one setting."""

from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.grid.figures import aggregated_maps

with run_job(snakemake) as job:
    settings, maps = job.settings, {}
    for method, path in zip(settings["methods"], job.input, strict=True):
        with open_store(path, kind="aggregated") as store:
            maps[method] = store["map"][:]
    with styled():
        save(aggregated_maps(maps, settings["cells"], Labels(**settings["labels"])), job.output[0])
