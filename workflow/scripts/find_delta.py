"""Change images where an object would be, so that a model's output stays as it is: a set of originals and changed."""

from pathlib import Path

from saliency_assay.models.classifier import Blueprint, digest
from saliency_assay.models.layout import place
from saliency_assay.models.weights import load_classifier
from saliency_assay.runtime.device import prepare
from saliency_assay.runtime.job import job
from saliency_assay.storage import zarr_store
from saliency_assay.studies.bam.delta_set import chosen_images, paired
from saliency_assay.studies.bam.invariant_patch import Descent, change_all

with job("find_delta", snakemake.log[0], snakemake.params.settings):
    settings, paths = snakemake.params.settings, snakemake.input
    device = prepare(settings["device"], snakemake.threads, snakemake.resources)
    classifier = load_classifier(Path(paths.weights), Blueprint(**settings["model"]))
    with (
        zarr_store.open_store(Path(paths.data), kind="data") as data,
        zarr_store.open_store(
            Path(paths.data_without), kind="data", expect={"sources": data.attributes["sources"]}
        ) as without,
    ):
        place(classifier, device, data["image"].shape[2:])
        classes = data.attributes["classes"]
        labels = {name: data[name][:] for name in ("label_object", "label_scene")}
        chosen = chosen_images(
            data["split"][:], labels, classes["object"], settings["common_object"], settings["images"]
        )
        images, masks = without["image"][chosen], data["mask"][chosen]
        found = change_all(
            classifier,
            images,
            data["image"].at(chosen),
            masks,
            Descent(**settings["parameters"]),
            batch_size=settings["batch_size"],
        )
        columns = {"mask": masks, **{name: label[chosen] for name, label in labels.items()}}
        zarr_store.write(
            Path(snakemake.output[0]),
            [paired(images, columns, chosen, found)],
            kind="data",
            attributes={
                "classes": classes,
                "provenance": settings,
                "sources": [data.attributes["digest"], without.attributes["digest"]],
                "model": digest(classifier.network.state_dict()),
                "device": device.type,
            },
        )
