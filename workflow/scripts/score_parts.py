"""Score the maps of one method by FunnyBirds' protocols."""

import numpy as np
import torch

from saliency_assay.metrics import engine
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import WHOLE
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.storage.shards import open_stores
from saliency_assay.studies.parts.classes import class_table
from saliency_assay.studies.parts.parts_tables import score_rows
from saliency_assay.studies.parts.protocols import background_independence, score_protocols
from saliency_assay.studies.parts.thresholds import OF_THRESHOLDS

NAMES = ("single_deletion", "target_sensitivity")
INPUTS = ("layers", "part_logits", "object_logits")

with run_job(snakemake) as job:
    settings, wildcards = job.settings, job.wildcards
    data = job.open(zarr_store.open_store(job.input.data, kind="data"))
    classifier = load_model(job, data)
    identity = result_identity(data, classifier, WHOLE)
    responses = job.open(zarr_store.open_store(job.input.interventions, kind="responses", expect=identity))
    # The maps of other classes are computed here, so they must come from the same device.
    expect = {"data": identity["data"], "model": identity["model"], "device": classifier.device.type}
    maps = job.open(open_stores(job.input.maps, kind="maps", expect=expect))
    images, labels = zarr_store.same("image", maps, responses), responses["label"][:]
    seed_parts = (settings["seed"], settings["model_name"], settings["data"])
    inputs = engine.MetricInputs(
        {name: responses[name] for name in INPUTS},
        {"table": class_table(data["label_class"][:], data["variants"][:])},
        engine.explainer_of(settings["method"], data, classifier.device, *seed_parts),
    )
    blocks = list(
        engine.score(
            score_protocols,
            {"dilation": settings["dilation"]},
            classifier,
            data["image"].at(images),
            labels,
            maps["map"],
            names=NAMES,
            seed=0,  # nothing is random but the noise of the method
            batch_size=settings["batch_size"],
            inputs=inputs,
        )
    )
    independence = background_independence(
        *(torch.from_numpy(responses[name][:]) for name in INPUTS[1:]), torch.from_numpy(labels)
    )
    table = score_rows(
        images,
        {name: np.concatenate([block.curves[name].numpy() for block in blocks]) for name in OF_THRESHOLDS},
        {name: np.concatenate([block.scores[name, ""].numpy() for block in blocks]) for name in NAMES},
        independence.numpy(),
    )
    columns = {
        "study": wildcards.study,
        "data": settings["data"],
        "model": settings["model_name"],
        "seed": settings["seed"],
        "method": wildcards.method,
    }
    score_tables.write(job.output[0], table.assign(**columns))
