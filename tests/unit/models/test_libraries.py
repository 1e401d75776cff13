"""Networks of torchvision and timm by name: their layers, options, errors, normalization and weights files."""

from pathlib import Path

import pytest
import torch
from support import generator

import saliency_assay
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, FAMILIES, family_of
from saliency_assay.models.timm_networks import timm_network, timm_normalization
from saliency_assay.models.torchvision_networks import torchvision_network
from saliency_assay.models.weights import read_state, save

timm = pytest.importorskip("timm")

SMALLEST = {
    "torchvision": (
        *("resnet18", "vgg11", "densenet121", "convnext_tiny", "efficientnet_b0", "mobilenet_v3_small"),
        "mobilenet_v2",
        *("regnet_y_400mf", "mnasnet0_5", "shufflenet_v2_x0_5", "swin_t", "vit_b_32"),
    ),
    "timm": (
        *(
            "resnet18",
            "resnetv2_18",
            "densenet121",
            "convnext_atto",
            "efficientnet_b0",
            "tf_efficientnet_lite0",
        ),
        *("swin_tiny_patch4_window7_224", "vit_tiny_patch16_224", "deit_tiny_patch16_224"),
    ),
}


def from_library(library: str, name: str, **options: object) -> Classifier:
    family = family_of(library, name)
    assert family is not None
    blueprint = Blueprint(
        f"{library}/{name}",
        BUILDERS[library],
        {"name": name, **options},
        cam_layer=family.cam_layer,
        concept_layers=family.concept_layers,
    )
    return build(blueprint, classes=4, mean=[0.5] * 3, std=[0.25] * 3, generator=generator(5)).eval()


@pytest.mark.parametrize(("library", "name"), [(k, name) for k, names in SMALLEST.items() for name in names])
def test_families_name_layers_that_exist(library: str, name: str) -> None:
    # Shapes suffice, but regnet computes with values while it is built.
    with torch.device("cpu" if name.startswith("regnet") else "meta"):
        model = from_library(library, name)
    assert model.layer(model.cam_layer) is not model.network
    assert all(model.layer(layer) is not None for layer in model.concept_layers)


def test_every_family_is_tested() -> None:
    tested = {(library, family_of(library, name)) for library, names in SMALLEST.items() for name in names}
    # Slow to build; in tests/contract/test_networks.py or rare.
    apart = ("googlenet", "inception_v3", "maxvit")
    missing = [
        family.pattern
        for library, families in FAMILIES.items()
        for family in families
        if (library, family) not in tested and family.pattern not in apart
    ]
    assert missing == []


def test_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(1)
    one = from_library("timm", "vit_tiny_patch16_224", img_size=32)
    torch.manual_seed(2)
    two = from_library("timm", "vit_tiny_patch16_224", img_size=32)
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert one(torch.rand(2, 3, 32, 32)).shape == (2, 4)


def test_mistakes_name_the_library_and_what_is_valid() -> None:
    options = {"classes": 4, "channels": 3, "generator": generator()}
    with pytest.raises(ValueError, match="torchvision: unknown network 'resnet19'; did you mean 'resnet1"):
        torchvision_network(name="resnet19", **options)
    with pytest.raises(ValueError, match="timm: unknown network 'vit_tiny_patch16'"):
        timm_network(name="vit_tiny_patch16", **options)
    with pytest.raises(ValueError, match=r"torchvision/resnet18: .*img_size.*expected arguments of its"):
        torchvision_network(name="resnet18", img_size=32, **options)
    with pytest.raises(ValueError, match="torchvision/resnet18: found images of 1 channels, expected 3"):
        torchvision_network(name="resnet18", **{**options, "channels": 1})
    with pytest.raises(ValueError, match="timm/resnet18: found 'checkpoint_path'; expected weights"):
        timm_network(name="resnet18", checkpoint_path="w.pt", **options)
    gray = timm_network(name="resnet18", **{**options, "channels": 1}).eval()
    assert gray(torch.rand(2, 1, 32, 32)).shape == (2, 4)


def test_load_model_rebuilds_a_network_of_a_library(tmp_path: Path) -> None:
    model = from_library("timm", "vit_tiny_patch16_224", img_size=32)
    parameters = {"name": "vit_tiny_patch16_224", "img_size": 32}
    blueprint = Blueprint("timm/vit_tiny_patch16_224", BUILDERS["timm"], parameters)
    save(tmp_path / "weights.pt", model, blueprint)
    loaded = saliency_assay.load_model(tmp_path / "weights.pt")
    images = torch.rand(2, 3, 32, 32, generator=generator(1))
    with torch.no_grad():
        assert torch.allclose(loaded(images), model(images), atol=1e-6)
    assert loaded.cam_layer == "blocks.-1.norm1"


def test_normalization_is_that_of_the_published_weights() -> None:
    assert timm_normalization("vit_tiny_patch16_224") == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert timm_normalization("resnet18") == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def test_a_file_of_safetensors_is_a_state_dict(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    state = {"weight": torch.rand(2, 3), "bias": torch.rand(2)}
    save_file(state, tmp_path / "w.safetensors")
    loaded = read_state(tmp_path / "w.safetensors")
    assert loaded.keys() == state.keys()
    assert all(torch.equal(loaded[name], value) for name, value in state.items())
    content = (tmp_path / "w.safetensors").read_bytes()
    (tmp_path / "w.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"w.safetensors: truncated, or not a file of safetensors"):
        read_state(tmp_path / "w.safetensors")
