"""Plot the maps of images without and with a patch that does not change the model output, for every method."""

import numpy as np
import torch

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import gallery, titles
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings, output, labels = job.settings, job.output, Labels(**job.settings["labels"])
    with zarr_store.open_store(job.input.data, kind="data") as data:
        count = len(data) // 2
        sources = np.arange(min(settings["images"], count))
        rows = np.stack([sources, count + sources], axis=1).ravel()  # each x and its x + δ
        images, masks = data["image"][rows], data["mask"][rows]
        titles_of_rows = titles({"label_scene": data["label_scene"][rows]}, data.attributes["classes"])
        expect = {"data": data.attributes["digest"]}
    captions = [name if index % 2 == 0 else f"{name} + δ" for index, name in enumerate(titles_of_rows)]
    maps = {}
    for method, path in zip(settings["methods"], job.input.maps, strict=True):
        with zarr_store.open_store(path, kind="maps", expect=expect) as store:
            map_rows = zarr_store.rows_of("image", rows, store)
            maps[method] = reduce(torch.from_numpy(store["map"][map_rows]), "visual").numpy()
    with styled():
        figure = gallery(images, {settings["model"]: maps}, titles=captions, masks=masks, labels=labels)
        save(figure, output.image)
