"""Scripts that read the groups of a data set: evaluation, tables of scores, rankings after retraining, leakage."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jobs import run_script
from support import RESNET, RESNET_SETTINGS, small_resnet

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models import weights
from saliency_assay.storage import score_tables, text, zarr_store

IMAGES, TESTED = 60, 32
PATIENTS = [f"patient {place // 4}" for place in range(IMAGES)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data set of 15 patients with four images each, of which eight are tested."""
    generator = np.random.default_rng(0)
    columns = {
        "image": generator.integers(0, 256, (IMAGES, 3, 8, 8), dtype=np.uint8),
        "split": np.where(np.arange(IMAGES) < TESTED, TEST, TRAIN).astype(np.uint8),
        "label_class": np.arange(IMAGES) % 3,
        "group": text.encode(PATIENTS),
    }
    attributes = {"classes": {"class": ["a", "b", "c"]}}
    zarr_store.write(tmp_path / "d.zarr.zip", [columns], kind="data", attributes=attributes)
    del columns["group"]
    zarr_store.write(tmp_path / "other.zarr.zip", [columns], kind="data", attributes=attributes)
    return tmp_path / "d.zarr.zip"


@pytest.mark.usefixtures("one_thread")
def test_the_evaluation_of_a_set_with_groups_counts_them(data: Path, tmp_path: Path) -> None:
    weights.save(tmp_path / "weights.pt", small_resnet(), RESNET)
    settings = {"device": "cpu", "model": RESNET_SETTINGS, "label": "class", "sets": ["d", "other"]}
    settings |= {"validation_share": 0.0, "batch_size": 7}
    files = {"weights": tmp_path / "weights.pt", "data": [data, tmp_path / "other.zarr.zip"]}
    output = {"predictions": tmp_path / "p.parquet", "evaluation": tmp_path / "e.json"}
    run_script("evaluate", tmp_path, settings, files, output, model="m", seed="0")
    predictions = pd.read_parquet(output["predictions"])
    assert predictions.loc[predictions["data"] == "d", "group"].tolist() == PATIENTS
    assert predictions.loc[predictions["data"] == "other", "group"].isna().all()
    evaluation = json.loads(output["evaluation"].read_text())
    assert {split: of_split["groups"] for split, of_split in evaluation["d"].items()} == {
        "test": 8,
        "train": 7,
    }
    for count in evaluation["d"]["test"]["counts"].values():
        assert 0 < count["independent"] <= count["images"]
    assert "groups" not in evaluation["other"]["test"]


def retrained_scores() -> pd.DataFrame:
    """Return accuracies of images after and without retraining, equal for the images of a patient, and leakage."""
    keys = {"study": "r", "data": "d", "model": "m", "seed": 0}
    tables = []
    for method, share in (("a", 0.0), ("b", 0.375), ("c", 1.0)):
        for metric in ("accuracy", "accuracy_without_retraining"):
            score = (np.arange(TESTED) < share * TESTED).astype(float)
            variant = {"method": method, "metric": metric, "variant": "roar/mean/1"}
            tables.append(pd.DataFrame({**keys, **variant, "image": np.arange(TESTED), "score": score}))
        for metric, shift in (("leakage", 0.2), ("leakage_random", 0.0)):
            for repeat in range(2):
                variant = {"method": method, "metric": metric, "variant": f"roar/mean/1/repeat{repeat}"}
                row = {**keys, **variant, "image": -1, "score": 0.33 + shift + 0.01 * repeat}
                tables.append(pd.DataFrame([row]))
    return pd.concat(tables, ignore_index=True)


def test_retraining_is_tested_between_groups(data: Path, tmp_path: Path) -> None:
    seeds = {"seeds": 1, "label": "class", "methods": ["a", "b", "c"]}
    score_tables.write(tmp_path / "arm.parquet", retrained_scores())
    tables = {}
    for name, store in (("grouped", data), ("alone", tmp_path / "other.zarr.zip")):
        folder = tmp_path / name
        folder.mkdir()
        scores, means = folder / "scores.parquet", folder / "means.parquet"
        output = {"scores": scores, "means": means, "summary": folder / "summary.csv"}
        settings = {**seeds, "percentile": 90, "iterations": 1}
        run_script(
            "tabulate_retrain",
            folder,
            settings,
            {"scores": [tmp_path / "arm.parquet"], "data": store},
            output,
        )
        run_script(
            "tabulate_rank_agreement",
            folder,
            seeds,
            {"scores": scores, "data": store},
            [folder / "ranks.csv"],
        )
        run_script(
            "tabulate_leakage", folder, seeds, {"means": means, "data": store}, [folder / "leakage.csv"]
        )
        tables[name] = [pd.read_csv(folder / f"{table}.csv") for table in ("ranks", "leakage")]
    (ranks, leakage), (ranks_alone, leakage_alone) = tables["grouped"], tables["alone"]
    assert set(ranks["groups"]) == set(leakage["groups"]) == {8}
    assert set(ranks["images"]) == set(leakage["images"]) == {TESTED}
    for alone in (ranks_alone, leakage_alone):
        assert "groups" not in alone
    assert (ranks["rho_low"] < ranks_alone["rho_low"]).all()
    assert (leakage["p"] > leakage_alone["p"]).all()


def test_tables_of_studies_keep_the_groups(tmp_path: Path) -> None:
    keys = {"study": "", "data": "d", "model": "m", "seed": 0, "metric": "auc", "variant": "auc"}
    for method in "ab":
        columns = {"method": method, "image": np.arange(IMAGES), "score": 0.5, "group": PATIENTS}
        score_tables.write(tmp_path / f"{method}.parquet", pd.DataFrame({**keys, **columns}))
    files = [tmp_path / f"{method}.parquet" for method in "ab"]
    output = {"scores": tmp_path / "scores.parquet", "summary": tmp_path / "summary.csv"}
    run_script("tabulate_scores", tmp_path, {"study": "s", "printed": {}, "metrics": ["auc"]}, files, output)
    assert pd.read_parquet(output["scores"])["group"].tolist() == 2 * PATIENTS
    assert pd.read_csv(output["summary"])["groups"].tolist() == [15, 15]
