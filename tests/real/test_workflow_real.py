"""The workflow on real photographs: the configuration that needs two folders and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import PROJECT, run_beside

from saliency_assay.data.bam.miniplaces import Scene, read_scene
from saliency_assay.data.splits import TEST
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.exhaustive

SMALL_SETS = {
    **dict.fromkeys((f"bam_{name}" for name in ("os", "0s", "og", "os_scale", "os_location")), 2000),
    **dict.fromkeys((f"bam_{name}" for name in ("os_k01", "os_k05", "os_k10", "0s_k")), 400),
    **dict.fromkeys((f"bam_leak_free_{name}" for name in ("os", "0s", "og")), 2000),
}


def configured(name: str, real_data: Path, miniplaces: Path) -> dict[str, Any]:
    """A configuration with its two folders put in."""
    configuration: dict[str, Any] = yaml.safe_load((PROJECT / "config" / name).read_text())
    for entry in configuration["data"].values():
        entry |= {"coco": str((real_data / "coco").resolve()), "miniplaces": str(miniplaces)}
    return configuration


@pytest.fixture(scope="module")
def results(real_data: Path, miniplaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of config/bam_smallest.yaml."""
    work = tmp_path_factory.mktemp("real")
    run_beside(work, configured("bam_smallest.yaml", real_data, miniplaces))
    return work / "results_bam_smallest"


@pytest.fixture(scope="module")
def small(real_data: Path, miniplaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All data sets and the leak-free study of config/bam_small.yaml, with few images, small models and two methods."""
    work = tmp_path_factory.mktemp("small")
    configuration = configured("bam_small.yaml", real_data, miniplaces)
    for entry in configuration["data"].values():
        entry |= {"images_per_pair": 20, "max_explained_images": 100}
    configuration["data"]["bam"]["images_per_scene"] = 40
    for model in configuration["models"].values():
        model |= {"width": 8, "training": {**model["training"], "epochs": 2, "precision": "auto"}}
    configuration["methods"] = {name: configuration["methods"][name] for name in ("gradient", "random")}
    configuration["metrics"] = {name: {"sample_size": 5} for name in ("mcs", "idr", "iir")}
    sets = [f"results_bam_small/data/{name}.zarr.zip" for name in SMALL_SETS]
    run_beside(work, configuration, *sets, "results_bam_small/tables/bam_leak_free/metrics.csv")
    return work / "results_bam_small"


def test_the_sets_are_what_they_say(results: Path) -> None:
    with (
        open_store(results / "data/bam_os.zarr.zip", kind="data") as both,
        open_store(results / "data/bam_0s.zarr.zip", kind="data") as scene,
        open_store(results / "data/bam_og.zarr.zip", kind="data") as gray,
    ):
        assert len(both) == 100 * 40
        mask, image = both["mask"][:], both["image"][:]
        np.testing.assert_array_equal(np.where(mask[:, None], both["covered"][:], image), scene["image"][:])
        np.testing.assert_array_equal(np.where(mask[:, None], image, 128), gray["image"][:])
        longer = both["placement"][:][:, 2:].max(axis=1)
        assert 48 / 3**0.5 <= longer.min() < longer.max() < 48 / 2**0.5
        pairs = both["label_object"][:] * 10 + both["label_scene"][:]
        assert np.bincount(pairs).tolist() == [40] * 100
        assert np.count_nonzero(both["split"][:] == TEST) == 400


def test_the_premise_begins_to_show(results: Path) -> None:
    evaluations = {
        model: json.loads((results / f"models/{model}/seed0/evaluation.json").read_text())
        for model in ("f_o", "f_s")
    }
    accuracy = {
        (model, name): sets["test"]["accuracy"]
        for model in evaluations
        for name, sets in evaluations[model].items()
    }
    assert accuracy["f_o", "bam_os"] > 0.6
    assert accuracy["f_s", "bam_os"] > 0.5
    assert accuracy["f_o", "bam_0s"] < 0.2
    assert accuracy["f_s", "bam_og"] < 0.2


def test_gradcam_follows_the_model_and_baselines_do_not(results: Path) -> None:
    table = pd.read_csv(results / "tables/bam/metrics.csv").set_index(["metric", "method"])
    gradcam = table.loc[("mcs", "gradcam")]
    assert gradcam["score"] > gradcam["baseline"] + 2 * (gradcam["spread"] + gradcam["baseline_spread"])
    assert gradcam["score"] == table.loc["mcs", "score"].max()
    assert table.loc[("mcs", "edge"), "score"] == 0
    assert abs(table.loc[("mcs", "random"), "score"]) < 0.02
    assert 0.35 < table.loc[("idr", "random"), "score"] < 0.65


def test_the_report_is_there(results: Path) -> None:
    assert (results / "report.html").stat().st_size > 1_000_000


# --- every data set of a whole study, with the publishers' object annotations in place -------------------------------


def test_all_sets_of_the_small_study_are_there(small: Path) -> None:
    for name, images in SMALL_SETS.items():
        with open_store(small / f"data/{name}.zarr.zip", kind="data") as data:
            assert len(data) == images
            assert data["image"].shape == (images, 3, 64, 64)
            classes = data["label_scene"][:]
            assert np.bincount(classes).tolist() == [images // 10] * 10
    table = pd.read_csv(small / "tables/bam_leak_free/metrics.csv")
    assert set(table["method"]) == {"gradient", "random"}
    assert np.isfinite(table.loc[table["metric"] == "mcs", "score"]).all()


@pytest.mark.parametrize("collection", ["bam", "bam_leak_free"])
def test_the_scene_with_a_truck_is_left_out_counted_and_named(small: Path, collection: str) -> None:
    file, reason = "images/train/r/runway/00000005.jpg", "contains truck"
    with open_store(small / f"collections/{collection}/scenes.zarr.zip", kind="scenes") as scenes:
        assert scenes.attributes["left_out"] == {file: reason}
        assert scenes.attributes["skipped"]["runway"] == {"contains one of the objects": 1}
        assert len(scenes) == len(scenes.attributes["files"]) == 3999
        assert file not in scenes.attributes["files"]
    log = (small / f"logs/collect_bam/{collection}.log").read_text()
    assert len(re.findall(rf"left out .*/{file}: {reason}$", log, re.MULTILINE)) == 1


def test_composites_are_traced_to_their_files(small: Path, real_data: Path, miniplaces: Path) -> None:
    instances = []  # of each source: category and file by annotation id
    for half in ("train", "val"):
        content = json.loads((real_data / f"coco/annotations/instances_{half}2017.json").read_text())
        names = {category["id"]: category["name"] for category in content["categories"]}
        files = {image["id"]: image["file_name"] for image in content["images"]}
        instances.append(
            {
                entry["id"]: (names[entry["category_id"]], files[entry["image_id"]])
                for entry in content["annotations"]
            }
        )
    with (
        open_store(small / "collections/bam/cutouts.zarr.zip", kind="cutouts") as cutouts,
        open_store(small / "collections/bam/scenes.zarr.zip", kind="scenes") as scenes,
        open_store(small / "data/bam_0s.zarr.zip", kind="data") as data,
    ):
        sources, annotations = cutouts["source"][:].tolist(), cutouts["annotation"][:].tolist()
        assert set(sources) == {0, 1}
        for index in range(0, len(data), 137):
            scene, cutout = int(data["scene"][index]), int(data["cutout"][index])
            file = miniplaces / scenes.attributes["files"][scene]
            np.testing.assert_array_equal(data["image"][index], read_scene(Scene("", file), 64))
            name = cutouts.attributes["objects"][data["label_object"][index]]
            traced = instances[sources[cutout]][annotations[cutout]]
            assert traced == (name, cutouts.attributes["files"][cutout])
