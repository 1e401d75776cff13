"""Plot a commonality series: accuracy and MCS against k, their correlation, and one image under every f_k."""

import numpy as np
import pandas as pd
import torch

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import class_text
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.series_figures import select_image, series_figure, series_maps
from saliency_assay.studies.bam.series_tables import SeriesModel, series_tables

COLUMNS = ["model", "seed", "data", "image", "label", "predicted"]

with run_job(snakemake) as job:
    settings, paths = job.settings, job.input
    labels = Labels(**settings["labels"])
    study = labels.study(job.wildcards.study)
    scene, commonalities, seed = (settings[key] for key in ("scene", "k", "seed"))
    series = [
        SeriesModel(*arm) for arm in zip(settings["models"], settings["sets"], commonalities, strict=True)
    ]
    tables = [read_table(path) for path in (paths.commonality, paths.series, paths.correlation)]
    accuracy, mcs, correlation = tables
    page = tables_page(
        series_tables(*tables, scene=class_text(scene), labels=labels),
        title=f"{study}: commonality series",
        digits=3,
    )
    job.output.accuracy.write_text(page, encoding="utf-8")
    row_filters = [("data", "in", settings["sets"])]
    prediction_tables = (
        pd.read_parquet(path, columns=COLUMNS, filters=row_filters) for path in paths.predictions
    )
    predictions = pd.concat(prediction_tables, ignore_index=True)
    sets = [job.open(zarr_store.open_store(path, kind="data")) for path in paths.data]
    files, maps, image_index = iter(paths.maps), {method: [] for method in settings["methods"]}, None
    for method in settings["methods"]:
        for data in sets:
            expect = {"data": data.attributes["digest"]}
            with zarr_store.open_store(next(files), kind="maps", expect=expect) as store:
                if image_index is None:  # all have the same images
                    images = store["image"][:]
                    image_index, is_correct = select_image(predictions, series, seed=seed, images=images)
                row = zarr_store.rows_of("image", np.array([image_index]), store)
                maps[method].append(reduce(torch.from_numpy(store["map"][row]), "visual").numpy()[0])
    image, mask = (sets[-1][name][image_index] for name in ("image", "mask"))
    title = f"test image {image_index}:\n{class_text(scene)}, seed {seed}"
    with styled():
        save(series_figure(mcs, accuracy, correlation, labels), job.output.figure)
        texts = {"title": title, "labels": labels}
        save(series_maps(image, mask, maps, ks=commonalities, right=is_correct, **texts), job.output.maps)
