"""The Python API gives the workflow's numbers: a small run on real CIFAR-10 images, done again from arrays."""

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from archives import SAFELY
from checkout import run_beside

import saliency_assay
from saliency_assay.metrics.engine import build_randomized_model, randomized_model_seed
from saliency_assay.models.classifier import Blueprint, Classifier
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store

EACH = 40
CLASSES = ("airplane", "frog", "horse", "ship")
METHODS: dict[str, dict[str, Any]] = {
    "gradcam": {},
    "smooth": {"method": "smoothgrad", "base": "gradient_x_input", "samples": 3},
    "shap": {"method": "deep_shap", "background": 4},
}
METRICS: dict[str, dict[str, Any]] = {
    "aopc": {"steps": 40, "every": 20, "random_orders": 2},
    "faithfulness": {"pixels": 20},
    "necessity_sufficiency": {"steps": 10},
    "road": {"points": 3},
    "infidelity": {"metric": "infidelity_subset", "samples": 20},
    "sensitivity_max": {"samples": 2},
    "randomization": {"stages": 2},
}
CONFIGURATION = {
    "device": "cpu",
    "data": {"cifar10": {"kind": "folder", "size": 32, "max_explained_images": 12}},
    "models": {
        "small": {
            "architecture": "resnet8",
            "width": 4,
            "data": "cifar10",
            "trained_on": "class",
            "batch_size": 8,
            "training": {"epochs": 2, "batch_size": 32, "learning_rate": 0.1},
        }
    },
    "methods": METHODS,
    "metrics": METRICS,
    "studies": {"all": {"kind": "fidelity", "model": "small", "methods": [*METHODS], "metrics": [*METRICS]}},
    "reliability": {"resamples": 200},
}
OF = {"model": "small", "data": "cifar10"}


@pytest.fixture(scope="module")
def results(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of all scores, of a model trained for a moment."""
    work = tmp_path_factory.mktemp("api")
    with tarfile.open(real_data / "cifar10/cifar10_jpg.tar.xz") as archive:
        members = (
            member
            for member in archive
            if member.isfile()
            and Path(member.name).parts[-2] in CLASSES
            and int(Path(member.name).stem) < EACH
        )
        archive.extractall(work / "images", members=members, **SAFELY)
    [train] = (work / "images").rglob("train")
    configuration = yaml.safe_load(yaml.safe_dump(CONFIGURATION))
    configuration["data"]["cifar10"]["path"] = str(train.parent)
    run_beside(work, configuration, "results/tables/all/scores.parquet", "results/tables/all/reliability.csv")
    return work / "results"


class Run:
    """Arrays of the run that a notebook would load."""

    def __init__(self, results: Path) -> None:
        torch.set_num_threads(1)  # as the jobs had it
        with open_store(results / "data/cifar10.zarr.zip", kind="data") as data:
            self.all_images, self.split, self.labels = (
                data[name][:] for name in ("image", "split", "label_class")
            )
        self.maps = {}
        for name in METHODS:
            with open_store(results / f"maps/small/seed0/cifar10/{name}.zarr.zip", kind="maps") as store:
                self.maps[name] = store["map"][:]
                self.chosen, self.targets = store["image"][:], store["target"][:]
                if name == "gradcam":
                    self.description = store.attributes["provenance"]["model"]
        self.images = self.all_images[self.chosen]
        self.model = saliency_assay.load_model(results / "models/small/seed0/weights.pt")
        self.table = score_tables.read([results / "tables/all/scores.parquet"])

    def randomized_model(self) -> Classifier:
        return build_randomized_model(
            self.model, Blueprint(**self.description), randomized_model_seed(0, "small")
        )


@pytest.fixture(scope="module")
def run(results: Path) -> Run:
    return Run(results)


def background_of(run: Run) -> np.ndarray:
    """Those of the training images that the workflow takes."""
    from saliency_assay.data.selection import background_images

    return run.all_images[background_images(run.split, [run.labels], METHODS["shap"]["background"])]


def entry_of(run: Run, name: str) -> dict[str, Any]:
    """A method as the configuration has it, with its images in place of their number."""
    entry = {"method": name, **METHODS[name]}
    return {**entry, "background": background_of(run)} if "background" in entry else entry


@pytest.mark.parametrize("name", METHODS)
def test_maps_are_the_workflows_bit_for_bit(run: Run, name: str) -> None:
    parameters = entry_of(run, name)
    seed = saliency_assay.workflow_seed(0, **OF, method=parameters["method"])
    maps = saliency_assay.attribute(
        parameters.pop("method"), run.model, run.images, run.targets, seed=seed, batch_size=8, **parameters
    )
    np.testing.assert_array_equal(maps, run.maps[name])
    assert maps.std() > 0


def scored(run: Run, metric: str, method: str, images: Any, maps: Any) -> saliency_assay.Scores:
    parameters = {key: value for key, value in METRICS[metric].items() if key != "random_orders"}
    registered = parameters.pop("metric", metric)
    drawing = entry_of(run, method)
    if registered in ("sensitivity_max", "randomization"):
        seed = saliency_assay.workflow_seed(0, **OF, method=drawing["method"])
        parameters |= {"method": drawing, "method_seed": seed}
    if registered == "randomization":
        parameters["randomized_model"] = run.randomized_model()
    seed = saliency_assay.workflow_seed(0, **OF, metric=registered)
    return saliency_assay.score(
        registered, run.model, images, run.targets, maps, seed=seed, batch_size=8, **parameters
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_the_workflows_bit_for_bit(run: Run, metric: str, method: str) -> None:
    scores = scored(run, metric, method, run.images, run.maps[method])
    table = scores.table()
    # The variant begins with the entry's name, which is the registered one but for infidelity.
    named = table["variant"].str.replace(f"^{scores.metric}", metric, regex=True)
    of_workflow = run.table[(run.table["method"] == method) & run.table["variant"].isin(set(named))]
    keys = ["metric", "variant", "image"]
    table = table.assign(variant=named, image=run.chosen[table["image"]])
    one, other = (rows.set_index(keys)["score"].sort_index() for rows in (table, of_workflow))
    assert len(one) == 12 * len(scores)
    pd.testing.assert_series_equal(one, other, check_exact=True, check_names=False, check_index_type=False)
    assert one.notna().any()


@pytest.mark.parametrize("metric", ["aopc", "road", "infidelity"])
def test_floats_and_tensors_give_the_same(run: Run, metric: str) -> None:
    expected = scored(run, metric, "smooth", run.images, run.maps["smooth"])
    images, maps = torch.tensor(run.images).double() / 255, torch.tensor(run.maps["smooth"])
    scores = scored(run, metric, "smooth", images, maps)
    for key, values in expected.items():
        np.testing.assert_array_equal(scores[key], values)


def test_reliability_is_the_workflows(run: Run, results: Path) -> None:
    of_each = {
        method: scored(run, "necessity_sufficiency", method, run.images, run.maps[method])["s_ord"]
        for method in METHODS
    }
    assessed = saliency_assay.assess(of_each, direction="higher", resamples=200)
    tables = results / "tables/all"
    table = pd.read_csv(tables / "reliability.csv")
    [row] = table[(table["metric"] == "s_ord") & (table["baselines"] == "none")].to_dict("records")
    for name, estimate in (("alpha", assessed.alpha), ("correlation", assessed.correlation)):
        ends = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert ends == pytest.approx([estimate.value, estimate.low, estimate.high], rel=1e-12, nan_ok=True)
    assert row["images"] == assessed.alpha.images
    order = pd.read_csv(tables / "order.csv")
    order = order[order["metric"] == "s_ord"].set_index("method")
    assert set(order["over"]) == {"images"}
    for column in assessed.order.drop(columns="rank"):
        np.testing.assert_allclose(order.loc[list(METHODS), column], assessed.order[column], rtol=1e-12)
