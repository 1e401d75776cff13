"""A network of one's own in the section ``models``, and what a model is normalized by."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from configurations import base, changed, fault, reading

NET = """
def build(*, classes, channels, generator, width=4): ...
def narrow(*, classes, generator): ...
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_net.py").write_text(NET)
    monkeypatch.syspath_prepend(tmp_path)


def entry(**changes: Any) -> Any:
    given = {"function": "own_net:build", "data": "digits", "trained_on": "class", **changes}
    return changed("models.d", {key: value for key, value in given.items() if value is not None})


def test_a_function_stands_for_an_architecture() -> None:
    model = reading(entry(width=8, cam_layer="features", concept_layers=["features", "head"])).models["d"]
    assert (model.architecture, model.function, model.parameters) == (
        "own_net:build",
        "own_net:build",
        {"width": 8},
    )
    assert (model.cam_layer, model.concept_layers) == ("features", ("features", "head"))
    assert (model.head_is_pool_linear, model.normalization) == (False, None)


def test_without_a_layer_methods_that_need_one_are_refused() -> None:
    raw = entry()
    assert reading(raw).models["d"].cam_layer == ""
    raw["studies"]["digits"]["methods"] = ["gradcam"]
    assert fault(raw) == (
        "studies.digits.methods: gradcam needs a layer for class activation maps, which own_net:build (models.d) "
        "does not have; valid: models.d.cam_layer set to one"
    )
    raw["models"]["d"]["cam_layer"] = "features"
    assert reading(raw).models["d"].cam_layer == "features"
    raw["methods"]["cam"] = {}
    raw["studies"]["digits"]["methods"] = ["cam"]
    assert fault(raw).startswith(
        "studies.digits.methods: cam needs a head of average pooling and one linear layer"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "mlp"}, "models.d: found both function and architecture, expected one of them"),
        ({"widht": 8}, "models.d.widht: unknown parameter 'widht'; did you mean 'width'? valid: width"),
        (
            {"function": "own_net:narrow"},
            "models.d.function: found arguments (classes, generator), expected (*, classes, channels, generator, …)",
        ),
        (
            {"function": "own_net:bild"},
            "models.d.function: unknown function 'bild'; did you mean 'build'? valid: build, narrow (in ",
        ),
        ({"trained_on": None}, "models.d: key 'trained_on' is missing; required: data, function, trained_on"),
        ({"concept_layers": []}, "models.d.concept_layers: found [], expected 1 or more entries"),
        (
            {"normalization": {"mean": [0.5, 0.5], "std": [1]}},
            "models.d.normalization: found 2 values of mean and 1 of std, expected one of each for each channel",
        ),
        (
            {"normalization": {"mean": [0.5], "std": [0]}},
            "models.d.normalization.std.0: found 0, expected above 0",
        ),
        (
            {"training": {"epochs": 0}},
            "models.d.training.epochs: found 0, expected at least 1, or weights to be used as they are",
        ),
    ],
)
def test_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    said = fault(entry(**changes))
    assert said == message or (message.endswith("(in ") and said.startswith(message))


def test_layers_of_a_registered_architecture_may_be_others() -> None:
    default, other = (reading(raw).models["f_o"] for raw in (base(), changed("models.f_o.cam_layer", "one")))
    assert (default.cam_layer, default.head_is_pool_linear) == ("last", True)
    assert (other.cam_layer, other.head_is_pool_linear) == ("one", False)
    assert other.concept_layers == default.concept_layers


@pytest.mark.parametrize(
    ("architecture", "cam_layer", "is_pool_linear"),
    [
        ("torchvision/resnet34", "layer4", True),
        ("torchvision/vit_b_16", "encoder.layers.-1.ln_1", False),
        ("torchvision/unknown", "", False),
        ("timm/vit_small_patch16_224", "blocks.-1.norm1", False),
        ("timm/resnetv2_50", "norm", True),
    ],
)
def test_networks_of_libraries_have_the_layers_of_their_family(
    architecture: str, cam_layer: str, is_pool_linear: bool
) -> None:
    raw = changed("models.d", {**base()["models"]["d"], "architecture": architecture, "img_size": 8})
    raw["models"]["d"].pop("width", None)
    model = reading(raw).models["d"]
    library, name = architecture.split("/")
    assert model.function == f"saliency_assay.models.{library}_networks:{library}_network"
    assert model.parameters == {"name": name, "img_size": 8}
    assert (model.cam_layer, model.head_is_pool_linear) == (cam_layer, is_pool_linear)


def test_a_library_that_is_not_installed_is_named() -> None:
    with patch("saliency_assay.config.models.find_spec", return_value=None):
        message = fault(changed("models.d.architecture", "timm/vit_tiny_patch16_224"))
    assert message.startswith(
        "models.d.architecture: found 'timm/vit_tiny_patch16_224', but timm is not installed"
    )


def test_a_grid_of_tokens_has_two_sides() -> None:
    assert reading(changed("models.d.token_grid", [4, 7])).models["d"].token_grid == (4, 7)
    assert "models.d.token_grid" in fault(changed("models.d.token_grid", [4]))


def test_any_model_may_say_its_normalization() -> None:
    given = {"mean": [0.5, 0.4, 0.3], "std": [1, 0.2, 0.1]}
    model = reading(changed("models.f_o.normalization", given)).models["f_o"]
    assert model.normalization.channels == ((0.5, 0.4, 0.3), (1.0, 0.2, 0.1))
    assert reading(base()).models["f_o"].normalization is None
