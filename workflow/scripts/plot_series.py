"""Show a commonality series: accuracy and MCS against k, how they go together, and one image under every f_k."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.html import image_page, tables_page
from saliency_assay.plotting.style import png, readable, save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.series_figures import chosen_image, series_figure, series_maps
from saliency_assay.studies.bam.series_tables import (
    SeriesModel,
    commonality_table,
    correlation_table,
    series_table,
    series_tables,
)

COLUMNS = ["model", "seed", "data", "image", "split", "label", "predicted"]

with job("plot_series", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    study, scene, ks = snakemake.wildcards.study, settings["scene"], settings["k"]
    series = [SeriesModel(*of) for of in zip(settings["models"], settings["sets"], ks, strict=True)]
    wanted = [("data", "in", [*settings["sets"], settings["without"]])]
    read = (pd.read_parquet(path, columns=COLUMNS, filters=wanted) for path in paths.predictions)
    predictions = pd.concat(read, ignore_index=True)
    named = {"keep_default_na": False, "na_values": [""]}  # a model may be called NA
    concepts = pd.read_csv(paths.concepts, **named) if paths.get("concepts") else None
    accuracy = commonality_table(predictions, series, without=settings["without"], scene=scene)
    mcs = series_table(score_tables.read(map(Path, paths.scores)), series, concepts)
    correlation = correlation_table(mcs, accuracy)
    accuracy.to_csv(output.commonality, index=False)
    mcs.to_csv(output.series, index=False)
    correlation.to_csv(output.correlation, index=False)
    shown = series_tables(accuracy, mcs, correlation, scene=scene)
    Path(output.accuracy).write_text(tables_page(shown, title=f"{study}: the series", digits=3), "utf-8")
    sets = [stack.enter_context(zarr_store.open_store(Path(path), kind="data")) for path in paths.data]
    files, maps, chosen = iter(paths.maps), {method: [] for method in settings["methods"]}, None
    for method in settings["methods"]:
        for data in sets:
            expect = {"data": data.attributes["digest"]}
            with zarr_store.open_store(Path(next(files)), kind="maps", expect=expect) as drawn:
                if chosen is None:  # all have the same images
                    seed, images = settings["seeds"][0], drawn["image"][:]
                    chosen, right = chosen_image(predictions, series, seed=seed, images=images)
                row = zarr_store.rows_of("image", np.array([chosen]), drawn)
                maps[method].append(reduce(torch.from_numpy(drawn["map"][row]), "visual").numpy()[0])
    image, mask = (sets[-1][name][chosen] for name in ("image", "mask"))
    title = f"test image {chosen}:\n{readable(scene)}, seed {seed}"
    with styled():
        save(series_figure(mcs, accuracy, correlation), Path(output.figure))
        picture = png(series_maps(image, mask, maps, ks=ks, right=right, title=title))
    Path(output.maps).write_text(image_page(picture, title=f"{study}: one image under every f_k"), "utf-8")
