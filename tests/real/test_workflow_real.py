"""The workflow on real photographs: the configuration that needs two folders and nothing else."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import PROJECT, run_beside

from saliency_assay.data.splits import TEST
from saliency_assay.store import open_store


@pytest.fixture(scope="module")
def results(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of config/bam_smallest.yaml with its two folders put in."""
    work = tmp_path_factory.mktemp("real")
    configuration = yaml.safe_load((PROJECT / "config/bam_smallest.yaml").read_text())
    entry = configuration["data"]["bam"]
    entry["coco"], entry["miniplaces"] = (
        str((real_data / name).resolve()) for name in ("coco", "miniplaces")
    )
    run_beside(work, configuration)
    return work / "results_bam_smallest"


def test_the_sets_are_what_they_say(results: Path) -> None:
    with (
        open_store(results / "data/bam_os.zarr.zip", kind="data") as both,
        open_store(results / "data/bam_0s.zarr.zip", kind="data") as scene,
        open_store(results / "data/bam_og.zarr.zip", kind="data") as grey,
    ):
        assert len(both) == 100 * 40
        mask, image = both["mask"][:], both["image"][:]
        np.testing.assert_array_equal(np.where(mask[:, None], both["covered"][:], image), scene["image"][:])
        np.testing.assert_array_equal(np.where(mask[:, None], image, 128), grey["image"][:])
        longer = both["placement"][:][:, 2:].max(axis=1)
        assert 48 / 3**0.5 <= longer.min() < longer.max() < 48 / 2**0.5
        pairs = both["label_object"][:] * 10 + both["label_scene"][:]
        assert np.bincount(pairs).tolist() == [40] * 100
        assert np.count_nonzero(both["split"][:] == TEST) == 400


def test_the_premise_begins_to_show(results: Path) -> None:
    found = {
        model: json.loads((results / f"models/{model}/seed0/evaluation.json").read_text())
        for model in ("f_o", "f_s")
    }
    accuracy = {
        (model, name): sets["test"]["accuracy"] for model in found for name, sets in found[model].items()
    }
    assert accuracy["f_o", "bam_os"] > 0.6
    assert accuracy["f_s", "bam_os"] > 0.5
    assert accuracy["f_o", "bam_0s"] < 0.2
    assert accuracy["f_s", "bam_og"] < 0.2


def test_gradcam_follows_the_model_and_controls_do_not(results: Path) -> None:
    table = pd.read_csv(results / "tables/bam/metrics.csv").set_index(["metric", "method"])
    gradcam = table.loc[("mcs", "gradcam")]
    assert gradcam["score"] > gradcam["baseline"] + 2 * (gradcam["spread"] + gradcam["baseline_spread"])
    assert gradcam["score"] == table.loc["mcs", "score"].max()
    assert table.loc[("mcs", "edge"), "score"] == 0
    assert abs(table.loc[("mcs", "random"), "score"]) < 0.02
    assert 0.35 < table.loc[("idr", "random"), "score"] < 0.65


def test_the_report_is_there(results: Path) -> None:
    assert (results / "report.html").stat().st_size > 1_000_000
