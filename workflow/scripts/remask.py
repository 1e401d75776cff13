"""Draw the maps of f_i on all images of D_i, and keep of them only the pixels that they occlude."""

from contextlib import ExitStack
from pathlib import Path

from saliency_assay import store
from saliency_assay.device import prepare, resident_bytes
from saliency_assay.feed import resident
from saliency_assay.job import job
from saliency_assay.methods.explained import arguments_of
from saliency_assay.models.classifier import Blueprint, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.occluded import Occluded, layers_of, open_masks
from saliency_assay.provenance import seed_of
from saliency_assay.registry import resolve
from saliency_assay.remask import remasked, targets_of
from saliency_assay.retrain_settings import pixels

with job("remask", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:
    settings, paths = snakemake.params.settings, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(paths.weights), Blueprint(**settings["model"]))
    data = stack.enter_context(store.open_store(Path(paths.data), kind="data"))
    place(classifier, device, data["image"].shape[2:])
    masks = open_masks(stack, paths.masks, data)
    seen = Occluded(data["image"], layers_of(masks, settings["fill"], settings["iteration"]), device)
    images = resident(seen, device, resident_bytes(snakemake.resources))
    labels, batch_size = data[f"label_{settings['label']}"][:], settings["batch_size"]
    names = [str(settings[key]) for key in ("name", "data", "stream", "iteration")]
    blocks = remasked(
        resolve(settings["function"]),
        arguments_of(settings, data, device, images),
        classifier,
        images,
        targets_of(classifier, images, labels, settings["target"], batch_size),
        # Of equal noise in every arm, other noise in every iteration.
        seed=seed_of(settings["seed"], "remask", *names),
        batch_size=batch_size,
        finite=not settings["registered"],
        reduction=settings["reduction"],
        count=pixels(images.shape[2] * images.shape[3], settings["percentile"]),
        masks=settings["masks"],
        shape=settings["transform"],
        keep_maps=settings["keep_maps"],
    )
    store.write(
        Path(snakemake.output[0]),
        blocks,
        kind="masks",
        attributes={
            "provenance": settings,
            "data": data.attributes["digest"],
            "model": digest(classifier.network.state_dict()),
            "before": [opened.attributes["digest"] for opened in masks],
        },
    )
