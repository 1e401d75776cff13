"""Score one method: concept attribution, MCS and IDR of all explained images, also on variants of the data."""

import pandas as pd
import torch

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.storage.shards import grouped, open_stores
from saliency_assay.studies.bam.scores import PAIRS, pairs_of, right_images, score_bam, score_rows

with run_job(snakemake) as job:

    def open_data(path, **expect):
        """Return an open store of a data set."""
        return job.open(zarr_store.open_store(path, kind="data", expect=expect))

    def open_maps(shards, data, **expect):
        """Return the open maps of all shards, which must be of the images ``data``."""
        expect = {"data": data.attributes["digest"], **expect}
        return job.open(open_stores(shards, kind="maps", expect=expect))

    settings, paths = job.settings, job.input
    prepare("cpu", job.threads)
    set_names = [f"{settings['data']}_os", *settings.get("variants", [])]
    data = open_data(paths.data)
    same_sources = {"sources": data.attributes["sources"]}
    data_without = open_data(paths.data_without, **same_sources)
    o_os, s_os = (open_maps(shards, data) for shards in (paths.maps_o_os, paths.maps_s_os))
    identity_o, identity_s = ({"model": store.attributes["model"]} for store in (o_os, s_os))
    s_0s = open_maps(paths.maps_s_0s, data_without, **identity_s)
    sets = [(data, o_os, s_os)]
    variants = paths.get("variant_data", [])
    variant_maps = (
        grouped(paths.get(f"variant_maps_{model_letter}", []), len(variants)) for model_letter in "os"
    )
    for variant, maps_o, maps_s in zip(variants, *variant_maps, strict=True):
        variant_store = open_data(variant, **same_sources)
        sets.append(
            (
                variant_store,
                open_maps(maps_o, variant_store, **identity_o),
                open_maps(maps_s, variant_store, **identity_s),
            )
        )
    images = zarr_store.same("image", *(maps for _, *stores in sets for maps in stores), s_0s)
    predictions = pd.concat(map(pd.read_parquet, (paths.predictions_o, paths.predictions_s)))
    tables = []
    for name, (with_object, maps_o, maps_s) in zip(set_names, sets, strict=True):
        maps = dict(zip(PAIRS, (maps_o, maps_s, s_0s), strict=True))
        models = settings["object_model"], settings["scene_model"]
        model_pairs = pairs_of(*models, name, f"{settings['data']}_0s")
        correct = right_images(predictions, model_pairs, images)
        scores = score_bam(
            {pair: (block["map"] for block in store.blocks("map")) for pair, store in maps.items()},
            with_object["mask"].at(images).blocks(),
            correct,
            # The random pixels are the same for every method.
            generator=torch.Generator().manual_seed(seed_of(settings["seed"], "score_bam")),
            reduction=settings["reduction"],
        )
        # The set without objects is the same for all variants, so it has rows only under the mask of X_os.
        pairs = PAIRS if name == set_names[0] else PAIRS[:2]
        tables.append(score_rows(scores, correct, images, model_pairs, pairs=pairs))
    columns = {key: settings[key] for key in ("study", "seed", "method")}
    score_tables.write(job.output[0], pd.concat(tables, ignore_index=True).assign(**columns))
