"""Optimize image patches that do not change the model output; write pairs of images without and with a patch."""

from saliency_assay.models.classifier import digest
from saliency_assay.models.jobs import load_model
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.studies.bam.invariant_patch import Descent, change_all, paired, select_images

with run_job(snakemake) as job:
    settings, paths = job.settings, job.input
    data = job.open(zarr_store.open_store(paths.data, kind="data"))
    expect = {"sources": data.attributes["sources"]}
    without = job.open(zarr_store.open_store(paths.data_without, kind="data", expect=expect))
    classifier = load_model(job, data)
    classes = data.attributes["classes"]
    labels = {name: data[name][:] for name in ("label_object", "label_scene")}
    indices = select_images(
        data["split"][:], labels, classes["object"], settings["common_object"], settings["images"]
    )
    images, masks = without["image"][indices], data["mask"][indices]
    changes = change_all(
        classifier,
        images,
        data["image"].at(indices),
        masks,
        Descent(**settings["parameters"]),
        batch_size=settings["batch_size"],
    )
    columns = {"mask": masks, **{name: label[indices] for name, label in labels.items()}}
    zarr_store.write(
        job.output[0],
        [paired(images, columns, indices, changes)],
        kind="data",
        attributes={
            "classes": classes,
            "provenance": settings,
            "sources": [data.attributes["digest"], without.attributes["digest"]],
            "model": digest(classifier.network.state_dict()),
            "device": classifier.device.type,
        },
    )
