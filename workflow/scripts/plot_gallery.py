"""Plot the same images under every method and model of a study."""

import json

import torch

from saliency_assay.data.selection import explained_images, fitting
from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import gallery, titles
from saliency_assay.plotting.style import save, styled
from saliency_assay.plotting.thumbnails import gallery_page, thumbnails
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.storage.shards import grouped, open_stores

with run_job(snakemake) as job:
    settings = job.settings
    with zarr_store.open_store(job.input.data, kind="data") as data:
        labels = {name: data[name][:] for name in data.names if name.startswith("label_")}
        selection = {"order": settings["order"], "among": fitting(data, settings["where"])}
        indices = explained_images(data["split"][:], list(labels.values()), settings["images"], **selection)
        images = data["image"][indices]
        masks = data["mask"][indices] if "mask" in data.names else None
        captions = titles(
            {name: label[indices] for name, label in labels.items()}, data.attributes["classes"]
        )
        expect = {"data": data.attributes["digest"]}
    maps = {model: {} for model in settings["models"]}
    paths = iter(grouped(job.input.maps, len(settings["models"]) * len(settings["methods"])))
    for model in settings["models"]:
        for method in settings["methods"]:
            with open_stores(next(paths), kind="maps", expect=expect) as store:
                rows = zarr_store.rows_of("image", indices, store)
                maps[model][method] = reduce(torch.from_numpy(store["map"][rows]), "visual").numpy()
    display = Labels(**settings["labels"])
    with styled():
        figure = gallery(images, maps, titles=captions, masks=masks, labels=display)
        save(figure, job.output.image)
    small = thumbnails(images, maps, titles=captions, masks=masks, labels=display)
    job.output.thumbnails.write_text(json.dumps(small), encoding="utf-8")
    page = gallery_page(small, title="Maps of the same images by every method")
    job.output.page.write_text(page, encoding="utf-8")
