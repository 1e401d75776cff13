"""Score one method by IIR: changes of its maps under patches that do not change the model output."""

import numpy as np
import pandas as pd
import torch

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.input_independence import score_independence, score_rows

with run_job(snakemake) as job:
    settings = job.settings
    prepare("cpu", job.threads)
    model, original = settings["model"], f"{settings['data']}_0s"
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    expect = {"data": data.attributes["digest"], "model": data.attributes["model"]}
    maps = job.open(zarr_store.open_store(*job.input.maps, kind="maps", expect=expect))
    source = data["source"][: len(data) // 2]
    # The images of the maps may be in another order.
    without, with_delta = np.split(zarr_store.rows_of("image", np.arange(len(data)), maps), 2)
    table = pd.read_parquet(job.input.predictions)
    table = table[(table["model"] == model) & (table["data"] == original)].set_index("image")
    correct = (table["label"] == table["predicted"]).loc[source].to_numpy()
    scores = score_independence(
        {
            "without": maps["map"].at(without).blocks(),
            "with_delta": maps["map"].at(with_delta).blocks(),
        },
        data["mask"].at(np.arange(len(source))).blocks(),
        correct,
        threshold=settings["threshold"],
        # The random pixels are the same for every method.
        generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_independence")),
        reduction=settings["reduction"],
    )
    columns = {key: settings[key] for key in ("study", "model", "seed", "method")}
    score_tables.write(job.output[0], score_rows(scores, correct, source).assign(data=original, **columns))
