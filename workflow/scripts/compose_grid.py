"""Select test images that a model classifies with confidence, and arrange them in grids of different classes."""

import numpy as np

from saliency_assay.data.selection import fitting
from saliency_assay.data.splits import TEST
from saliency_assay.models.jobs import device_of, load_weights
from saliency_assay.models.labels import model_labels
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import GROUP, text, zarr_store
from saliency_assay.studies.grid.composition import compose, confident_classes, one_of_each

with run_job(snakemake) as job:
    settings = job.settings
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    device = device_of(job)
    is_eligible = data["split"][:] == TEST
    if settings["where"]:
        is_eligible &= fitting(data, settings["where"])
    indices = np.flatnonzero(is_eligible)
    labels = None
    if settings["target"] == "label":
        labels = model_labels(data, settings["label"], settings.get("classes"))[indices]
    classes = confident_classes(
        (load_weights(job, data, path, device) for path in job.input.weights),
        data["image"].at(indices),
        labels,
        confidence=settings["confidence"],
        batch_size=settings["batch_size"],
    )
    if GROUP in data:
        classes = one_of_each(text.numbers(data[GROUP][:])[indices], classes)
    generator = np.random.default_rng(seed_of(settings["seed"], "compose_grid"))
    cells, count = settings["cells"], settings["grids"]
    positions = compose(classes, cells=cells, grids=count, generator=generator).ravel()
    chosen = indices[positions]
    columns = {
        "target": classes[positions],
        "source": chosen,
        "split": np.full(len(chosen), TEST, dtype=np.uint8),
        # The scores of one grid are not independent.
        GROUP: text.encode([str(grid) for grid in np.repeat(np.arange(count), cells**2)]),
        **{name: data[name][:][chosen] for name in data.names if name.startswith("label_")},
    }
    images = ({"image": block} for block in data["image"].at(chosen).blocks())
    zarr_store.write(
        job.output[0],
        zarr_store.with_columns(images, **columns),
        kind="data",
        attributes={
            "classes": data.attributes["classes"],
            "provenance": settings,
            "sources": [data.attributes["digest"]],
        },
    )
