"""A trained classifier is rebuilt from its weights file alone, and no code that the file names is imported."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from support import RESNET8, small_resnet8
from torch import nn

import saliency_assay
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, build

IMAGES = torch.rand(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weights.save(tmp_path / "weights.pt", small_resnet8(), RESNET8)
    return tmp_path / "weights.pt"


def custom_network(classes: int, channels: int, generator: torch.Generator, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, classes),
    )


BUILDER = f"{__name__}:custom_network"


@pytest.fixture
def custom_path(tmp_path: Path) -> Path:
    blueprint = Blueprint(BUILDER, BUILDER, {"width": 4})
    model = build(
        blueprint, classes=5, mean=[0.5] * 3, std=[0.25] * 3, generator=torch.Generator().manual_seed(3)
    )
    weights.save(tmp_path / "custom.pt", model, blueprint)
    return tmp_path / "custom.pt"


def test_a_registered_model_is_rebuilt_with_its_layers(path: Path) -> None:
    expected, model = small_resnet8().eval(), saliency_assay.load_model(str(path))
    assert torch.equal(model(IMAGES), expected.to(memory_format=torch.channels_last)(IMAGES))
    assert (model.classes, model.cam_layer, model.training) == (3, "layer3", False)
    assert model.mean.flatten().tolist() == pytest.approx([0.1, 0.5, 0.9])
    maps = saliency_assay.attribute("gradcam", model, IMAGES, [0, 1])
    assert maps.shape == (2, 1, 12, 12)
    assert saliency_assay.load_model(path, cam_layer="layer2").cam_layer == "layer2"


def test_a_custom_model_is_rebuilt_by_the_function_that_the_caller_names(custom_path: Path) -> None:
    model = saliency_assay.load_model(custom_path, builder=BUILDER, cam_layer="1")
    assert model(IMAGES).shape == (2, 5)
    assert model.cam_layer == "1"
    with pytest.raises(
        ValueError, match=f"^{custom_path}: architecture: found .*custom_network'; valid: resnet8"
    ):
        saliency_assay.load_model(custom_path)
    with pytest.raises(ValueError, match=r"architecture: found .*custom_network', expected 'other:build'"):
        saliency_assay.load_model(custom_path, builder="other:build")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "resnet9"}, "architecture: found 'resnet9'; valid: resnet8, "),
        ({"parameters": {"width": 0}}, "resnet8: width: found 0, expected at least 1"),
        ({"std": [0.5, 0.0, 0.5]}, r"resnet8: normalization: found .* std \[0\.5, 0\.0, 0\.5\]"),
        # networks larger than the file
        ({"parameters": {"width": 512}}, "found [0-9]+ bytes, expected at least [0-9]+ of resnet8 "),
        ({"classes": 10**9}, "found [0-9]+ bytes, expected at least [0-9]+ of resnet8 "),
    ],
)
def test_a_description_that_does_not_fit_the_weights(
    path: Path, change: dict[str, Any], message: str
) -> None:
    content = weights.read(path)
    content["classifier"] |= change
    weights.write(path, content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}"):
        saliency_assay.load_model(path)


def test_files_without_a_description(tmp_path: Path) -> None:
    torch.save(small_resnet8().network.state_dict(), tmp_path / "state.pt")
    with pytest.raises(ValueError, match="no entry 'classifier' with architecture"):
        saliency_assay.load_model(tmp_path / "state.pt")
    with pytest.raises(FileNotFoundError, match=r"missing\.pt: no such file"):
        saliency_assay.load_model(tmp_path / "missing.pt")
