"""Score one method: concept attribution, MCS and IDR of every explained image."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from saliency_assay import scores, store
from saliency_assay.device import prepare
from saliency_assay.job import job
from saliency_assay.metrics.bam_study import PAIRS, REGIONS, score_bam
from saliency_assay.provenance import seed_of

with job("score_bam", snakemake.log[0]):
    settings = snakemake.params.settings
    prepare("cpu", snakemake.threads)
    f_o, f_s, data_name = settings["object_model"], settings["scene_model"], settings["data"]
    models = dict(zip(PAIRS, (f_o, f_s, f_s), strict=True))
    sets = dict(zip(PAIRS, (f"{data_name}_os", f"{data_name}_os", f"{data_name}_0s"), strict=True))
    table = pd.concat(map(pd.read_parquet, (snakemake.input.predictions_o, snakemake.input.predictions_s)))
    right = (
        (table["label"] == table["predicted"])
        .groupby([table["model"], table["data"], table["image"]])
        .first()
    )
    with (
        store.open_store(Path(snakemake.input.data), kind="data") as data,
        store.open_store(
            Path(snakemake.input.maps_o_os), kind="maps", expect={"data": data.attributes["digest"]}
        ) as o_os,
        store.open_store(
            Path(snakemake.input.maps_s_os), kind="maps", expect={"data": data.attributes["digest"]}
        ) as s_os,
        store.open_store(
            Path(snakemake.input.maps_s_0s), kind="maps", expect={"model": s_os.attributes["model"]}
        ) as s_0s,
    ):
        maps = dict(zip(PAIRS, (o_os, s_os, s_0s), strict=True))
        images = store.same("image", *maps.values())
        found = score_bam(
            {pair: (block["map"] for block in maps[pair].blocks("map", size=256)) for pair in PAIRS},
            (data["mask"].at(images)[start : start + 256] for start in range(0, len(images), 256)),
            {pair: right[models[pair], sets[pair]].loc[images].to_numpy() for pair in PAIRS},
            # The random pixels are the same for every method.
            generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_bam")),
        )
    named = {f"concept_{pair}": ("concept_attribution", models[pair], sets[pair]) for pair in PAIRS}
    named |= {"mcs": ("mcs", f"{f_o}-{f_s}", sets[PAIRS[0]]), "idr": ("idr", f_s, sets[PAIRS[0]])}
    parts = [
        pd.DataFrame(
            {"image": images, "score": np.asarray(found[f"{key}_{region}"], dtype=np.float64)}
        ).assign(data=data_of, model=model, metric=metric, variant=region)
        for key, (metric, model, data_of) in named.items()
        for region in REGIONS
    ]
    of_all = {key: settings[key] for key in ("study", "seed", "method")}
    scores.write(Path(snakemake.output[0]), pd.concat(parts, ignore_index=True).assign(**of_all))
