"""Fine-tuned models in a study, for a metric and as entries: trained once, and again only if their training changes."""

import numpy as np
import pandas as pd
import pytest
from checkout import Checkout

import saliency_assay
from saliency_assay.models.classifier import digest
from saliency_assay.storage.zarr_store import open_store

TABLE = "results/tables/digits/scores.parquet"
METRICS = ["faithfulness", "infidelity", "sensitivity", "ffid"]
PARAMETERS = {"points": 3, "samples": 2, "output": "probability"}


@pytest.mark.slow
def test_the_fine_tuned_model_is_evaluated(smallest: Checkout) -> None:
    smallest.configure(metrics__ffid={"metric": "f_fidelity", **PARAMETERS}, studies__digits__metrics=METRICS)
    tuned, scored = "finetune ffid digits 0", "score__ffid__digits__seed0__digits"
    planned = smallest.planned(TABLE)
    assert {tuned, scored} <= planned
    assert not any(job.startswith(("train ", "attribute ")) for job in planned)
    smallest.make(TABLE)
    assert smallest.saved_states() == set()
    results = smallest.root / "results"
    paths = {
        "model": results / "models/digits/seed0",
        "finetuned_model": results / "finetuned/ffid/digits/seed0",
    }
    models = {name: saliency_assay.load_model(folder / "weights.pt") for name, folder in paths.items()}
    assert len({digest(model.state_dict()) for model in models.values()}) == 2
    rates = [pd.read_csv(folder / "training.csv")["learning_rate"].max() for folder in paths.values()]
    np.testing.assert_allclose(rates[0], 10 * rates[1])
    table = pd.read_parquet(smallest.root / TABLE)
    seed = saliency_assay.workflow_seed(0, model="digits", data="digits", metric="f_fidelity")
    with (
        open_store(results / "data/digits.zarr.zip", kind="data") as data,
        open_store(results / "maps/digits/seed0/digits/gradient.zarr.zip", kind="maps") as maps,
    ):
        images, targets = data["image"][:][maps["image"][:]], maps["target"][:]
        expected = saliency_assay.score(
            "f_fidelity",
            **models,
            images=images,
            targets=targets,
            maps=maps["map"][:],
            seed=seed,
            **PARAMETERS,
        )
    for name, values in expected.items():
        scores = table[(table["metric"] == name) & (table["method"] == "gradient")]["score"]
        np.testing.assert_allclose(scores, values, rtol=1e-5, atol=1e-6)
    smallest.configure(metrics__ffid__samples=3)
    assert tuned not in smallest.planned(TABLE)
    smallest.configure(metrics__ffid__beta=0.2)
    assert {tuned, scored} <= smallest.planned(TABLE)


@pytest.mark.slow
def test_a_model_that_continues_the_training_of_another_is_scored(smallest: Checkout) -> None:
    smallest.configure(
        models__deletion={"finetuned_from": "digits", "training": {"augment_deletion": 4}},
        metrics__single_deletion={},
        studies__idsds={
            "kind": "fidelity",
            "model": "deletion",
            "methods": ["gradient"],
            "metrics": ["single_deletion"],
        },
    )
    table = "results/tables/idsds/scores.parquet"
    planned = smallest.planned(table)
    assert "train deletion 0" in planned
    assert "train digits 0" not in planned
    smallest.make(table)
    models = smallest.root / "results/models"
    rates = [
        pd.read_csv(models / f"{name}/seed0/training.csv")["learning_rate"].max()
        for name in ("digits", "deletion")
    ]
    np.testing.assert_allclose(rates[0], 10 * rates[1])
    scores = pd.read_parquet(smallest.root / table)
    assert set(scores["model"]) == {"deletion"}
    assert scores["score"].abs().max() <= 1
    smallest.configure(models__digits__training__learning_rate=0.05)
    assert {"train digits 0", "train deletion 0"} <= smallest.planned(table)
