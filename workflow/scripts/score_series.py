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
    # The set of the last model; of the other sets only maps are read.
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
        correct_predictions = (table["label"] == table["predicted"]).set_axis(table["image"])
        correct[model] = correct_predictions.loc[images].to_numpy()
    scores = score_series(
        {model: (block["map"] for block in store.blocks("map")) for model, store in maps.items()},
        data["mask"].at(images).blocks(),
        correct,
        # The random pixels are the same for every method.
        generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_series")),
        reduction=settings["reduction"],
    )
    is_correct, all_images = correct_images(correct), np.ones(len(images), dtype=bool)
    tables = []
    for model, set_name in sets.items():
        score_groups = {"concept": ("concept_attribution", model, all_images)}
        # Images outside X_corr have no row, so that NaN always means a map that could not be scored.
        score_groups["mcs"] = ("mcs", contrast(model, last), is_correct[model])
        for key, (metric, name, is_scored) in score_groups.items():
            for region in REGIONS:
                values = np.asarray(scores[f"{key}_{region}"][model], dtype=np.float64)
                rows = pd.DataFrame({"image": images[is_scored], "score": values[is_scored]})
                tables.append(rows.assign(data=set_name, model=name, metric=metric, variant=region))
    constants = {key: settings[key] for key in ("study", "seed", "method")}
    score_tables.write(job.output[0], pd.concat(tables, ignore_index=True).assign(**constants))
