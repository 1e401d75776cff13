"""Train one model, or go on with a training that was killed."""

from pathlib import Path

import pandas as pd
import torch

from saliency_assay import store
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.device import prepare
from saliency_assay.job import job
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, build
from saliency_assay.models.normalisation import channel_statistics
from saliency_assay.provenance import digest_of_file, fingerprint, seed_of
from saliency_assay.training import COLUMNS, train
from saliency_assay.training_settings import training_from
from saliency_assay.training_state import remove_state

with job("train", snakemake.log[0]):
    settings = snakemake.params.settings
    initial = snakemake.input.get("weights")
    device = prepare(settings["device"], snakemake.threads)
    training = training_from(settings["training"])
    with store.open_store(Path(snakemake.input.data), kind="data") as data:
        known = weights.normalisation_of(Path(initial), data["image"].shape[1]) if initial else None
        # Weights that are used as they are need no images.
        images = torch.from_numpy(data["image"][:]) if training.epochs or not known else None
        labels = torch.from_numpy(data[f"label_{settings['label']}"][:])
        split = torch.from_numpy(data["split"][:])
        classes = data.attributes["classes"][settings["label"]]
        basis = [settings, data.attributes["digest"], initial and digest_of_file(Path(initial))]
    learn, test = (torch.nonzero(split == part).squeeze(1) for part in (TRAIN, TEST))
    mean, std = known or channel_statistics(images, learn)
    # Models that are compared start from the same weights: the seed knows the study's seed, not the model's name.
    generator = torch.Generator().manual_seed(seed_of(settings["seed"], "train", "initialisation"))
    blueprint = Blueprint(**settings["model"])
    classifier = build(blueprint, classes=len(classes), mean=mean, std=std, generator=generator)
    if initial:
        trained = training.epochs > 0
        weights.load_initial(classifier, Path(initial), blueprint.architecture, head_may_start_anew=trained)
    curve = []
    if training.epochs:
        curve = train(
            classifier.to(device),
            images,
            labels,
            learn,
            test,
            training,
            seed=seed_of(settings["seed"], "train"),
            state_path=Path(settings["state"]),
            fingerprint=fingerprint([*basis, str(device), torch.__version__, torch.get_num_threads()]),
            # A resource, not a parameter: how often the state is saved is no reason to train again.
            save_seconds=snakemake.resources.get("save_seconds", 60),
        )
    pd.DataFrame(curve, columns=COLUMNS).to_csv(snakemake.output.curve, index=False)
    weights.save(Path(snakemake.output.weights), classifier, blueprint)
    remove_state(Path(settings["state"]))
