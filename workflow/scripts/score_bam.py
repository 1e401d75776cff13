"""Score one method: concept attribution, MCS and IDR of every explained image."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from saliency_assay import scores, store
from saliency_assay.device import prepare
from saliency_assay.job import job
from saliency_assay.metrics.bam_study import PAIRS, REGIONS, correct_images, score_bam
from saliency_assay.provenance import seed_of

with job("score_bam", snakemake.log[0]), ExitStack() as stack:

    def opened(path, **kind_and_expected):
        return stack.enter_context(store.open_store(Path(path), **kind_and_expected))

    settings, paths = snakemake.params.settings, snakemake.input
    prepare("cpu", snakemake.threads)
    f_o, f_s = settings["object_model"], settings["scene_model"]
    with_object, without = f"{settings['data']}_os", f"{settings['data']}_0s"
    asked = dict(zip(PAIRS, ((f_o, with_object), (f_s, with_object), (f_s, without)), strict=True))
    data = opened(paths.data, kind="data")
    partner = opened(paths.data_without, kind="data", expect={"sources": data.attributes["sources"]})
    drawn_on, drawn_without = {"data": data.attributes["digest"]}, {"data": partner.attributes["digest"]}
    o_os = opened(paths.maps_o_os, kind="maps", expect=drawn_on)
    s_os = opened(paths.maps_s_os, kind="maps", expect=drawn_on)
    s_0s = opened(paths.maps_s_0s, kind="maps", expect={**drawn_without, "model": s_os.attributes["model"]})
    maps = dict(zip(PAIRS, (o_os, s_os, s_0s), strict=True))
    images = store.same("image", *maps.values())
    table = pd.concat(map(pd.read_parquet, (paths.predictions_o, paths.predictions_s)))
    table["right"] = table["label"] == table["predicted"]
    right = table.set_index(["model", "data", "image"])["right"].sort_index()
    correct = {pair: right.loc[asked[pair]].loc[images].to_numpy() for pair in PAIRS}
    found = score_bam(
        {pair: (block["map"] for block in maps[pair].blocks("map")) for pair in PAIRS},
        data["mask"].at(images).blocks(),
        correct,
        # The random pixels are the same for every method.
        generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_bam")),
        reduction=settings["reduction"],
    )
    named = {f"concept_{pair}": ("concept_attribution", *asked[pair]) for pair in PAIRS}
    named |= {"mcs": ("mcs", f"{f_o}-{f_s}", with_object), "idr": ("idr", f_s, with_object)}
    # Images outside X_corr have no row, so that a NaN is always a map that could not be scored.
    counted = correct_images(correct)
    parts = [
        pd.DataFrame({"image": images, "score": np.asarray(found[f"{key}_{region}"], dtype=np.float64)})[
            counted.get(key, np.ones(len(images), dtype=bool))
        ].assign(data=set_name, model=model, metric=metric, variant=region)
        for key, (metric, model, set_name) in named.items()
        for region in REGIONS
        if f"{key}_{region}" in found
    ]
    of_all = {key: settings[key] for key in ("study", "seed", "method")}
    scores.write(Path(snakemake.output[0]), pd.concat(parts, ignore_index=True).assign(**of_all))
