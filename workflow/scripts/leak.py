"""Train classifiers on the masks behind D_i alone, with the images' labels and with labels at random."""

import shutil
from contextlib import ExitStack
from pathlib import Path

from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.leakage import leakage
from saliency_assay.studies.retrain.occluded import Shapes, layers_of, open_masks
from saliency_assay.training.task import Lesson, Place, training_of

with job("leak", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:
    settings, paths = snakemake.params.settings, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    data = stack.enter_context(zarr_store.open_store(Path(paths.data), kind="data"))
    masks = open_masks(stack, paths.masks, data)
    images = Shapes(layers_of(masks, "zero", settings["iteration"]), device)
    basis = [settings, data.attributes["digest"], [opened.attributes["digest"] for opened in masks]]
    labels, classes = data[f"label_{settings['label']}"][:], data.attributes["classes"][settings["label"]]
    table = leakage(
        Lesson(images, labels, data["split"][:], len(classes), fingerprint(basis)),
        settings["model"],
        training_of(settings["training"], paths.get("chosen")),
        Place.of(device, settings["state"], snakemake.resources),
        repeats=settings["repeats"],
        seed=settings["seed"],
    )
    table.to_csv(snakemake.output[0], index=False)
    shutil.rmtree(settings["state"], ignore_errors=True)
