"""Score one method: concept attribution, MCS and IDR of every explained image, and of its variants for robustness."""

import pandas as pd
import torch

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.storage.parts import grouped, open_stores
from saliency_assay.studies.bam.scores import PAIRS, pairs_of, right_images, score_bam, score_rows

with run_job(snakemake) as job:

    def opened(path, **expect):
        return job.open(zarr_store.open_store(path, kind="data", expect=expect))

    def drawn_maps(parts, data, **expect):
        expect = {"data": data.attributes["digest"], **expect}
        return job.open(open_stores(parts, kind="maps", expect=expect))

    settings, paths = job.settings, job.input
    prepare("cpu", job.threads)
    names = [f"{settings['data']}_os", *settings.get("variants", [])]
    data = opened(paths.data)
    alike = {"sources": data.attributes["sources"]}
    partner = opened(paths.data_without, **alike)
    o_os, s_os = (drawn_maps(parts, data) for parts in (paths.maps_o_os, paths.maps_s_os))
    f_o, f_s = ({"model": drawn.attributes["model"]} for drawn in (o_os, s_os))
    s_0s = drawn_maps(paths.maps_s_0s, partner, **f_s)
    sets = [(data, o_os, s_os)]
    variants = paths.get("variant_data", [])
    of_variants = (grouped(paths.get(f"variant_maps_{of}", []), len(variants)) for of in "os")
    for variant, maps_o, maps_s in zip(variants, *of_variants, strict=True):
        other = opened(variant, **alike)
        sets.append((other, drawn_maps(maps_o, other, **f_o), drawn_maps(maps_s, other, **f_s)))
    images = zarr_store.same("image", *(maps for _, *drawn in sets for maps in drawn), s_0s)
    predictions = pd.concat(map(pd.read_parquet, (paths.predictions_o, paths.predictions_s)))
    parts = []
    for name, (with_object, maps_o, maps_s) in zip(names, sets, strict=True):
        maps = dict(zip(PAIRS, (maps_o, maps_s, s_0s), strict=True))
        models = settings["object_model"], settings["scene_model"]
        asked = pairs_of(*models, name, f"{settings['data']}_0s")
        correct = right_images(predictions, asked, images)
        found = score_bam(
            {pair: (block["map"] for block in drawn.blocks("map")) for pair, drawn in maps.items()},
            with_object["mask"].at(images).blocks(),
            correct,
            # The random pixels are the same for every method.
            generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_bam")),
            reduction=settings["reduction"],
        )
        # Without the object there is one set for all: its attribution has a row under X_os's mask alone.
        pairs = PAIRS if name == names[0] else PAIRS[:2]
        parts.append(score_rows(found, correct, images, asked, pairs=pairs))
    of_all = {key: settings[key] for key in ("study", "seed", "method")}
    score_tables.write(job.output[0], pd.concat(parts, ignore_index=True).assign(**of_all))
