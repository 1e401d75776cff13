"""F-Fidelity in a study: the model is fine-tuned once, and again only if its training changes."""

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
