"""Plot the masks of all methods under one protocol and fill: their overlap, and images over the iterations."""

from contextlib import ExitStack

import numpy as np
import pandas as pd
import torch

from saliency_assay.data.selection import explained_images
from saliency_assay.methods.inputs import labels_of
from saliency_assay.plotting.gallery import class_text
from saliency_assay.plotting.html import images_page
from saliency_assay.plotting.style import png, save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.mask_figures import iteration_images, overlap_matrices
from saliency_assay.studies.retrain.occluded import layers_of, open_masks, states_of
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.retrain_tables import named

with run_job(snakemake) as job:
    settings, paths, wildcards = job.settings, job.input, job.wildcards
    methods, iterations = settings["methods"], settings["iterations"]
    data = job.open(zarr_store.open_store(paths.data, kind="data"))
    classes, labels = data.attributes["classes"][settings["label"]], Labels(**settings["labels"])
    method_labels = [labels.method(method) for method in methods]
    area = data["image"].shape[2] * data["image"].shape[3]
    counts = {"area": area, "occluded": pixels(area, settings["percentile"]), "iterations": iterations}
    indices = explained_images(data["split"][:], labels_of(data), settings["images"], order=settings["order"])
    states = []
    for method_masks in np.array_split(paths.masks, len(methods)):
        # Closed after each method, because the files of all methods may exceed the limit of open files.
        with ExitStack() as opened:
            layers = layers_of(open_masks(opened, method_masks, data), wildcards.fill, iterations)
            states.append(states_of(data["image"], layers, indices))
    table = pd.read_parquet(paths.means)
    with styled():
        arm = {"protocol": wildcards.protocol, "fill": wildcards.fill}
        save(overlap_matrices(table, **arm, **counts, labels=labels), job.output.matrices)
        plots = {}
        for index, (image, label) in enumerate(
            zip(indices, data[f"label_{settings['label']}"][indices], strict=True)
        ):
            title = (
                f"test image {image}: {class_text(classes[label])} "
                f"({named(wildcards.protocol, wildcards.fill)}, seed {settings['seed']})"
            )
            visible, occluded = (
                torch.stack([state[item][:, index] for state in states]).numpy() for item in (0, 1)
            )
            plots[title] = png(iteration_images(visible, occluded, names=method_labels, title=title))
    page = images_page(plots, title=f"{labels.study(wildcards.study)}: images over the iterations")
    job.output.images.write_text(page, encoding="utf-8")
