"""Score the maps of one method of all grids of a study by their localization in one setting, and aggregate the maps."""

import numpy as np
import pandas as pd

from saliency_assay.methods.inputs import map_seed
from saliency_assay.models.jobs import load_model
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import GROUP, score_tables, text, zarr_store
from saliency_assay.studies.grid.composition import Grids, arguments_for_grids
from saliency_assay.studies.grid.localization import aggregate, score_cells

with run_job(snakemake) as job:
    settings, wildcards, method = job.settings, job.wildcards, job.settings["method"]
    cells, setting = settings["cells"], wildcards.setting
    grids = job.open(zarr_store.open_store(job.input.grids, kind="data"))
    classifier = load_model(job, grids)
    data = None
    if "background" in method:
        data = job.open(zarr_store.open_store(job.input.background, kind="data"))

    def seed_of_cell(cell):
        """Return the seed of a method's noise, the same for all methods of its group."""
        name = f"{wildcards.study} {setting} {cell}"
        return map_seed(settings["seed"], settings["model_name"], name, method["noise_group"])

    scored = list(
        score_cells(
            classifier,
            Grids(grids["image"], cells),
            grids["target"][:].reshape(-1, cells**2),
            setting,
            cells=cells,
            method=resolve(method["function"]),
            parameters=arguments_for_grids(method, grids, data, classifier.device, cells),
            seed_of_cell=seed_of_cell,
            batch_size=settings["batch_size"],
        )
    )
    scores, maps = zip(*scored, strict=True)
    table = pd.DataFrame({"image": np.arange(len(grids)), "score": np.stack(scores, 1).ravel()})
    columns = {
        "study": wildcards.study,
        "data": settings["data"],
        "model": settings["model_name"],
        "seed": int(wildcards.seed),
        "method": wildcards.method,
        "metric": setting,
        "variant": "",
        GROUP: text.decode(grids[GROUP][:]),
    }
    score_tables.write(job.output.scores, table.assign(**columns))
    attributes = {"provenance": settings, "grids": grids.attributes["digest"]}
    aggregated = aggregate(maps[0], scores[0])
    zarr_store.write(job.output.maps, [{"map": aggregated}], kind="aggregated", attributes=attributes)
