"""Generate the objects and scenes of a synthetic data set, as COCO and MiniPlaces folders."""

import shutil
from pathlib import Path

import numpy as np

from saliency_assay.data.synthetic.sources import write_sources
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import digest_of_file, seed_of

with run_job(snakemake) as job:
    parameters, sums = job.settings["parameters"], job.output[0]
    for folder in filter(Path.is_dir, sums.parent.iterdir()):
        shutil.rmtree(folder)
    write_sources(
        sums.parent,
        cutouts_per_object=parameters["cutouts_per_object"],
        scenes_per_class=parameters["scenes_per_class"],
        source_size=parameters["source_size"],
        generator=np.random.default_rng(seed_of(parameters["seed"], "write_sources")),
    )
    files = sorted(path for path in sums.parent.rglob("*") if path.is_file())
    lines = (f"{digest_of_file(file)}  {file.relative_to(sums.parent)}\n" for file in files)
    sums.write_text("".join(lines), encoding="utf-8")
