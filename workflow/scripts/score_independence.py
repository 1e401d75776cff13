"""Score one method: whether its maps change where the change of an image leaves the model's output as it is."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.input_independence import score_independence, score_rows

with job("score_independence", snakemake.log[0], snakemake.params.settings):
    settings, paths = snakemake.params.settings, snakemake.input
    prepare("cpu", snakemake.threads)
    model, original = settings["model"], f"{settings['data']}_0s"
    with zarr_store.open_store(Path(paths.data), kind="data") as data:
        drawn_on = {"data": data.attributes["digest"], "model": data.attributes["model"]}
        with zarr_store.open_store(Path(*paths.maps), kind="maps", expect=drawn_on) as maps:
            source = data["source"][: len(data) // 2]
            # Maps may be of the images in another order.
            rows = zarr_store.rows_of("image", np.arange(len(data)), maps)
            without, with_delta = np.split(rows, 2)
            table = pd.read_parquet(paths.predictions)
            table = table[(table["model"] == model) & (table["data"] == original)].set_index("image")
            correct = (table["label"] == table["predicted"]).loc[source].to_numpy()
            found = score_independence(
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
    of_all = {key: settings[key] for key in ("study", "model", "seed", "method")}
    rows = score_rows(found, correct, source).assign(data=original, **of_all)
    score_tables.write(Path(snakemake.output[0]), rows)
