"""Score one method over a commonality series: concept attribution under every f_k, and MCS against the last."""

import numpy as np
import pandas as pd
import torch

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.series import REGIONS, check_images, contrast, correct_images, score_series

with run_job(snakemake) as job:
    settings, paths = job.settings, job.input
    prepare("cpu", job.threads)
    sets, last = dict(zip(settings["models"], settings["sets"], strict=True)), settings["models"][-1]
    # The last model's set; of the others' only their maps are read.
    data = job.open(zarr_store.open_store(paths.data, kind="data"))
    maps, correct = {}, {}
    for model, path in zip(sets, paths.maps, strict=True):
        expected = {"data": data.attributes["digest"]} if model == last else {}
        maps[model] = job.open(zarr_store.open_store(path, kind="maps", expect=expected))
    images = zarr_store.same("image", *maps.values())
    check_images(images, data["label_scene"][:][images])
    for model, path in zip(sets, paths.predictions, strict=True):
        columns = ["image", "label", "predicted"]
        table = pd.read_parquet(path, columns=columns, filters=[("data", "==", sets[model])])
        right = (table["label"] == table["predicted"]).set_axis(table["image"])
        correct[model] = right.loc[images].to_numpy()
    found = score_series(
        {model: (block["map"] for block in drawn.blocks("map")) for model, drawn in maps.items()},
        data["mask"].at(images).blocks(),
        correct,
        # The random pixels are the same for every method.
        generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_series")),
        reduction=settings["reduction"],
    )
    counted, everyone = correct_images(correct), np.ones(len(images), dtype=bool)
    parts = []
    for model, set_name in sets.items():
        named = {"concept": ("concept_attribution", model, everyone)}
        # Images outside X_corr have no row, so that a NaN is always a map that could not be scored.
        named["mcs"] = ("mcs", contrast(model, last), counted[model])
        for key, (metric, name, shown) in named.items():
            for region in REGIONS:
                values = np.asarray(found[f"{key}_{region}"][model], dtype=np.float64)
                rows = pd.DataFrame({"image": images[shown], "score": values[shown]})
                parts.append(rows.assign(data=set_name, model=name, metric=metric, variant=region))
    of_all = {key: settings[key] for key in ("study", "seed", "method")}
    score_tables.write(job.output[0], pd.concat(parts, ignore_index=True).assign(**of_all))
