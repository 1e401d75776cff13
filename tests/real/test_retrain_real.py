"""ROAR and IteROAR on a part of the real MNIST, from the files to the tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import run_beside

from saliency_assay.storage.zarr_store import open_store

K = 196  # a quarter of 28 × 28
CONFIGURATION = {
    "device": "cpu",
    "data": {"mnist": {"kind": "mnist", "images_per_class": 60, "max_explained_images": 20}},
    "models": {
        "mnist": {
            "architecture": "resnet8",
            "width": 8,
            "data": "mnist",
            "trained_on": "class",
            "training": {"epochs": 8, "batch_size": 32, "learning_rate": 0.1, "validation_share": 0.15},
        }
    },
    "methods": {"sensitivity": {}},
    "studies": {
        "retrain": {
            "kind": "retrain",
            "model": "mnist",
            "protocols": ["iteroar", "roar"],
            "fills": ["zero"],
            "percentile": 75,
        }
    },
}
ARMS = "remask/retrain/{protocol}/sensitivity/{fill}/seed0/iteration{iteration}"


@pytest.fixture(scope="module")
def results(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("retrain")
    configuration = yaml.safe_load(yaml.safe_dump(CONFIGURATION))
    configuration["data"]["mnist"]["path"] = str((real_data / "mnist").resolve())
    run_beside(work, configuration)
    return work / "results"


def masks(results: Path, **arm: object) -> np.ndarray:
    path = results / ARMS.format(**{"fill": "shared", "iteration": 0, **arm}) / "masks.zarr.zip"
    with open_store(path, kind="masks") as store:
        return store["mask"][:]


def test_both_protocols_begin_alike(results: Path) -> None:
    """The first mask is that of f_0 for both, so D_1 is, and then f_1, bit for bit."""
    once, anew = masks(results, protocol="roar"), masks(results, protocol="iteroar")
    assert once.shape == (1200, 2, 28, 28)
    assert anew.shape == (1200, 1, 28, 28)
    np.testing.assert_array_equal(once[:, :1], anew)
    one, other = (
        (results / ARMS.format(protocol=name, fill="zero", iteration=1) / "weights.pt").read_bytes()
        for name in ("roar", "iteroar")
    )
    assert one == other


def test_masks_have_their_share_of_every_image(results: Path) -> None:
    assert (masks(results, protocol="roar").sum(axis=(2, 3)) == K).all()
    for arm in ({}, {"fill": "zero", "iteration": 1}):
        assert (masks(results, protocol="iteroar", **arm).sum(axis=(2, 3)) == K).all()


def test_roar_never_occludes_a_pixel_twice_and_iteroar_does(results: Path) -> None:
    table = pd.read_csv(results / "tables/retrain/summary.csv").set_index(["protocol", "iteration"])
    assert table.loc[("roar", 0), "mamo"] == 0
    assert table.loc[("roar", 1), "cma"] == 2 * K
    assert table.loc[("iteroar", 1), "cma"] == pytest.approx(2 * K - table.loc[("iteroar", 0), "mamo"])
    assert 0 < table.loc[("iteroar", 0), "mamo"] < K


def test_digits_are_learnt_and_missed_when_they_go(results: Path) -> None:
    table = pd.read_csv(results / "tables/retrain/summary.csv").set_index(["protocol", "iteration"])
    assert table.loc[("iteroar", 0), "accuracy_test"] > 0.7
    assert table.loc[("roar", 0), "accuracy_test"] == table.loc[("iteroar", 0), "accuracy_test"]
    assert (table["accuracy_test"] > table["chance"]).all()
    assert (table["images"] == 600).all()
