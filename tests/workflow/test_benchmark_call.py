"""``saliency_assay.benchmark`` with the model and images of a run gives the maps and scores of the run, bit for bit."""

import hashlib
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from checkout import Checkout

import saliency_assay
from saliency_assay.adapters import captum
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store
from tools.source_tree import ROOT

METHODS = {"gradient": {}, "smooth": {"method": "smoothgrad", "base": "gradcam", "samples": 2}}
METRICS = {
    "faithfulness": {"pixels": 10},
    "infidelity": {"metric": "infidelity_square", "largest": 2},
    "sensitivity": {"metric": "sensitivity_max", "samples": 2},
}


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values)).hexdigest()


def test_equal_seeds_give_the_numbers_of_the_workflow(smallest_once: Checkout, tmp_path: Path) -> None:
    results = smallest_once.root / "results"
    model = saliency_assay.load_model(results / "models/digits/seed0/weights.pt")
    maps = {name: results / f"maps/digits/seed0/digits/{name}.zarr.zip" for name in METHODS}
    with open_store(maps["gradient"], kind="maps") as store:
        numbers, targets = store["image"][:], store["target"][:]
    with open_store(results / "data/digits.zarr.zip", kind="data") as data:
        images = data["image"][numbers]
    result = saliency_assay.benchmark(
        model,
        (images, targets),
        METHODS,
        METRICS,
        model_name="digits",
        data_name="digits",
        keep=len(images),
        path=tmp_path / "benchmark",
        progress=False,
    )
    for name, path in maps.items():
        own = tmp_path / f"benchmark/maps/seed0/{name}.zarr.zip"
        with open_store(path, kind="maps") as expected, open_store(own, kind="maps") as actual:
            assert digest(actual["map"][:]) == digest(expected["map"][:])
    keys = ["method", "metric", "variant", "image"]
    table = score_tables.read([results / "tables/digits/scores.parquet"])
    own_table = result.scores.assign(image=numbers[result.scores["image"]])
    expected_scores, scores = (
        each.sort_values(keys, ignore_index=True)[[*keys, "score"]] for each in (table, own_table)
    )
    pd.testing.assert_frame_equal(scores, expected_scores, check_exact=True)
    order = pd.read_csv(results / "tables/digits/order.csv")
    columns = ["method", "metric", "mean", "low", "high", "win_rate", "rank_low", "rank_high"]
    sorted_order, ranks = (each.sort_values(["metric", "method"]) for each in (order, result.ranks))
    np.testing.assert_allclose(ranks[columns[2:]], sorted_order[columns[2:]])


@pytest.mark.slow
def test_the_example_of_the_readme_prints_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    readme, names = (ROOT / "README.md").read_text(), dict[str, Any]()
    [example] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(example, "README.md", "exec"), names)
    plt.close("all")
    printed = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    [shown] = re.findall(r"```text\n(Rank sets.*?)```", readme, re.DOTALL)
    # Rank sets may differ by one between processors.
    assert printed[:8] == [line.split("  ")[0] for line in shown.splitlines()[:8]]
    assert names["result"].complete
    best = names["result"].ranks.set_index(["metric", "method"])["rank_high"]
    assert (
        best["iou", "gradcam"]
        == best["insertion", "gradcam"]
        == best["deletion", "integrated_gradients"]
        == 1
    )


@pytest.mark.slow
def test_a_class_of_captum_is_a_method_of_the_workflow(smallest: Checkout) -> None:
    entries = {
        "path": {"captum": "IntegratedGradients", "n_steps": 5},
        "shap": {"captum": "GradientShap", "n_samples": 2},
    }
    for name, entry in entries.items():
        smallest.configure(**{f"methods__{name}": entry})
    results = smallest.root / "results"
    files = {name: results / f"maps/digits/seed0/digits/{name}.zarr.zip" for name in entries}
    status, output = smallest.snakemake(*(str(file.relative_to(smallest.root)) for file in files.values()))
    assert status == 0, output
    model = saliency_assay.load_model(results / "models/digits/seed0/weights.pt")
    with (
        open_store(files["path"], kind="maps") as maps,
        open_store(results / "data/digits.zarr.zip", kind="data") as data,
    ):
        images, targets, stored = data["image"][maps["image"][:]], maps["target"][:], maps["map"][:]
        assert "captum" in maps.attributes["libraries"]
    method = captum.method("IntegratedGradients", n_steps=5)
    np.testing.assert_allclose(saliency_assay.attribute(method, model, images, targets), stored, atol=1e-6)
    with open_store(files["shap"], kind="maps") as maps:
        assert np.isfinite(maps["map"][:]).all()
