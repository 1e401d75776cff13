"""The how-to pages, as a reader follows them: the files that they show, and the commands, with fewer epochs."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import yaml
from checkout import Checkout

from saliency_assay.storage.zarr_store import open_store
from tools.pages import DOCS, write_files

pytestmark = pytest.mark.slow

HOW_TO = DOCS / "howto"
MAPS = "results_my_{what}/maps/{model}/seed0/{model}/{method}.zarr.zip"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with all files that the how-to pages have a reader write."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("howto") / "project")
    for page in [*sorted(HOW_TO.glob("own-*.md")), HOW_TO / "trained-network.md", DOCS / "tutorial.md"]:
        assert write_files(page, checkout.root), page
    return checkout


def study(project: Checkout, what: str) -> Checkout:
    return replace(project, configuration=f"my_{what}/study.yaml")


def python(project: Checkout, script: str) -> str:
    """Run a script of a page in the project's folder and return its output."""
    run = subprocess.run(
        [sys.executable, script], cwd=project.root, capture_output=True, text=True, env=environment(project)
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def environment(project: Checkout) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(project.root / "src")}


def quick(project: Checkout, what: str) -> Checkout:
    """The same with one epoch, which is what takes the time."""
    checkout = study(project, what)
    model = next(iter(yaml.safe_load((project.root / checkout.configuration).read_text())["models"]))
    checkout.configure(**{f"models__{model}__training__epochs": 1})
    return checkout


def test_a_method_of_ones_own(project: Checkout) -> None:
    own = quick(project, "method")
    assert "report" in own.planned()
    own.make(MAPS.format(what="method", model="digits", method="bright"))
    assert python(project, "my_method/read.py") == "(50, 1, 16, 16)\n"


def test_maps_from_another_program(project: Checkout) -> None:
    own = quick(project, "maps")
    maps = MAPS.format(what="maps", model="digits", method="{}")
    own.make(maps.format("gradient"))
    python(project, "my_maps/export.py")
    assert "report" in own.planned()
    own.make(maps.format("captum_ig"))
    with open_store(project.root / maps.format("captum_ig"), kind="maps") as stored:
        assert stored["map"].shape == (50, 1, 16, 16)


def test_a_metric_of_ones_own(project: Checkout) -> None:
    own = quick(project, "metric")
    assert "report" in own.planned()
    own.configure(
        methods={"gradient_x_input": {}, "random": {}}, studies__compare__metrics=["top_share", "kept"]
    )
    own.make("results_my_metric/tables/compare/scores.parquet")
    output = python(project, "my_metric/read.py").splitlines()
    assert output[0].split() == ["method", "gradient_x_input", "random"]
    assert [line.split()[0] for line in output[2:]] == ["kept", "top_share"]


def test_a_folder_of_images(project: Checkout) -> None:
    python(project, "my_images/make_images.py")
    assert len(list((project.root / "my_images/photos/two").glob("*.png"))) == 177
    own = quick(project, "images")
    assert "report" in own.planned()
    own.configure(methods={"gradcam": {}, "edge": {}})
    own.make("results_my_images/tables/compare/scores.parquet")
    printed = python(project, "my_images/worst.py").splitlines()
    assert len(printed) == 6
    assert all(re.search(r" (zero|one|two)/\d+\.png +0\.\d+$", line) for line in printed[1:])
    again = own.planned("results_my_images/data/photos.zarr.zip", "--forcerun", "build_data")
    assert again == {"build_data photos"}


def test_a_model_with_its_weights(project: Checkout) -> None:
    """It is right on the digits, as it was where it was trained: so its normalization is the one it was given."""
    own = study(project, "model")
    status, output = own.snakemake("--dry-run")
    assert status == 1
    assert (
        "models.mine.weights: found 'my_model/net.pt', expected a file that exists" in output.splitlines()[-1]
    )
    python(project, "my_model/train.py")
    assert "report" in own.planned()
    own.make(
        *(
            MAPS.format(what="model", model="mine", method=name).replace("seed0/mine", "seed0/digits")
            for name in ("gradcam", "lrp_epsilon")
        ),
        "results_my_model/models/mine/seed0/evaluation.json",
    )
    accuracy = yaml.safe_load(
        (project.root / "results_my_model/models/mine/seed0/evaluation.json").read_text()
    )
    assert accuracy["digits"]["test"]["accuracy"] > 0.9
    own.configure(models__mine__normalization={"mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]})
    status, output = own.snakemake("results_my_model/models/mine/seed0/weights.pt")
    assert status == 1
    message = "check_models: models.mine.normalization: found 3 values of mean, expected 1, one per channel"
    assert message in output.splitlines()


WEIGHTS = """
import sys
import numpy as np
import torch
from PIL import Image
from pathlib import Path

sys.path.insert(0, "my_network")
from my_resnet import build

torch.manual_seed(0)
torch.save(build(classes=3, channels=3, generator=torch.Generator()).state_dict(), "my_network/weights.pt")
generator = np.random.default_rng(0)
for name in ("cat", "dog"):
    folder = Path("my_network/images", name)
    folder.mkdir(parents=True)
    for number in range(6):
        pixels = generator.integers(0, 256, (50 + number, 70, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{('jpg', 'png')[number % 2]}")
"""


def test_a_trained_network_on_a_folder_of_color_images(project: Checkout) -> None:
    own = study(project, "network")
    assert len((project.root / own.configuration).read_text().splitlines()) <= 25
    (project.root / "weights.py").write_text(WEIGHTS)
    python(project, "weights.py")
    own.configure(data__images__size=64)
    own.make("results_my_network/report.html")
    models = project.root / "results_my_network/models/mine/seed0/evaluation.json"
    evaluation = yaml.safe_load(models.read_text())["images"]["test"]
    assert (evaluation["images"], evaluation["chance"]) == (12, 1 / 3)
    scores = pd.read_parquet(project.root / "results_my_network/tables/compare/scores.parquet")
    assert set(scores["metric"]) == {
        "deletion", "insertion", "average_drop", "average_gain", "increase_in_confidence",
    }  # fmt: skip
    assert scores.groupby(["metric", "method"]).size().eq(12).all()

    own.configure(models__mine__cam_layer="layer5")
    done = own.assay("dry")
    assert done.returncode == 1
    assert "models.mine.cam_layer: unknown layer 'layer5'; did you mean 'layer4'?" in done.stderr
    assert "Jobs by rule" in done.stdout


def test_the_tutorials_study(project: Checkout) -> None:
    own = study(project, "study")
    assert "score__insertion__digits__seed0__digits" in own.planned()
    own.configure(metrics={"insertoin": {}})
    status, output = own.snakemake("--dry-run")
    assert status == 1
    assert "did you mean 'insertion'?" in output.splitlines()[-1]
