"""Every method on networks of torchvision and timm: it returns finite maps, or refuses with the expected message.

Score-CAM, which needs a pass for each channel, is checked as Grad-CAM, which needs the same layer.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.engine import frozen
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, family_of
from saliency_assay.registry.records import record_of, resolve

pytest.importorskip("timm")

SIZE, CLASSES = 32, 5
NETWORKS: Mapping[str, dict[str, Any]] = {
    "torchvision/resnet18": {},
    "torchvision/resnet50": {},
    "torchvision/densenet121": {},
    "torchvision/vgg16": {},
    "torchvision/efficientnet_b0": {},
    "torchvision/mobilenet_v3_small": {},
    "torchvision/convnext_tiny": {},
    "torchvision/swin_t": {},
    "torchvision/vit_b_16": {"image_size": SIZE},
    "timm/resnet18": {},
    "timm/efficientnet_b0": {},
    "timm/convnext_atto": {},
    "timm/swin_tiny_patch4_window7_224": {"img_size": SIZE, "window_size": 4},
    "timm/vit_tiny_patch16_224": {"img_size": SIZE},
    "timm/deit_tiny_distilled_patch16_224": {"img_size": SIZE},
}
"""Networks and the options with which they take images of ``SIZE`` pixels."""
FEW: Mapping[str, Any] = {"samples": 2, "steps": 2}
FEW_OF: Mapping[str, dict[str, Any]] = {
    "kernel_shap": {"segments": 4, "samples": 12},
    "optimal_noisy_baseline": {"samples": 4},
    "occlusion": {"window": 0.5, "stride": 0.5},
    "optimal_square": {"smallest": 32, "largest": 32, "squares": 1},
    "lime": {"segments": 4},
    "xrai": {"resolution": 32},
}
"""Parameters that need few passes."""

GUIDED, RELEVANCE = ("guided_backprop", "guided_gradcam"), ("lrp_alpha_beta", "deep_taylor")
ROLLOUT = (
    "raw_attention",
    "attention_rollout",
    "gradient_weighted_attention",
    "transformer_attribution",
    "legrad",
)
WITHOUT_RELU = "efficientnet|convnext|swin|vit|deit"
REFUSALS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (GUIDED, WITHOUT_RELU, "found no ReLU in .*; without one the result is the gradient"),
    (GUIDED, "mobilenet", "found ReLU and Hardswish in .*; the rule is defined for ReLU"),
    (RELEVANCE, WITHOUT_RELU, "found no ReLU in .*; expected a ReLU network"),
    (RELEVANCE, "mobilenet", "found Hardswish .*, which has no rule"),
    (("cam",), "densenet|vgg|mobilenet|convnext|vit|deit", "is not average pooling and one linear layer"),
    (("fullgrad",), "efficientnet|mobilenet", "found Multiply .*, whose offset is not a bias"),
    (("fullgrad",), "convnext|swin", "found LayerNorm .*, whose offset is not a bias"),
    (("fullgrad",), "vit|deit", "found 'cat'.*, which joins a constant to activations"),
    ((*ROLLOUT, "libragrad"), "resnet|densenet|vgg|efficientnet|mobilenet|convnext", "found no attention"),
    (ROLLOUT, "swin", r"found attention .*, expected \[1, heads, tokens, tokens\]"),
    (("libragrad",), "swin", "before the first attention of .*, expected tokens"),
)
"""Methods, pattern of the networks that they refuse, and pattern of the message."""


def model_of(name: str) -> Classifier:
    library, _, network = name.partition("/")
    family = family_of(library, network)
    assert family is not None
    blueprint = Blueprint(name, BUILDERS[library], {"name": network, **NETWORKS[name]}, family.cam_layer)
    generator = torch.Generator().manual_seed(0)
    return build(blueprint, classes=CLASSES, mean=[0.5] * 3, std=[0.25] * 3, generator=generator).eval()


def refusal(method: Method, model: Classifier) -> str | None:
    """Return the message with which a method refuses a network; None if it returns maps."""
    images = torch.rand(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    few = {name: value for name, value in FEW.items() if name in method.parameters} | FEW_OF.get(
        method.name, {}
    )
    more: dict[str, Any] = {"background": images} if "background" in method.takes else {}
    if "mask" in method.takes:
        more["mask"] = torch.ones(len(images), *images.shape[2:], dtype=torch.bool)
    target, generator = torch.tensor([0]), torch.Generator().manual_seed(0)
    if method.passes is None:  # thousands of passes, for Score-CAM
        method = record_of(METHODS, method.checked_as, "method")
    try:
        with frozen(model):
            maps = resolve(method.function)(model, images, target, generator=generator, **few, **more)
    except ValueError as error:
        return str(error)
    assert maps.shape[2:] == images.shape[2:], method.name
    assert bool(maps.isfinite().all()), method.name
    return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("network", NETWORKS)
def test_methods_run_or_refuse(network: str) -> None:
    model = model_of(network)
    for method in METHODS:
        if "exact_importance" in method.needs:  # of designed networks
            continue
        expected = [
            message
            for methods, networks, message in REFUSALS
            if method.name in methods and re.search(networks, network)
        ]
        message = refusal(method, model)
        if not expected:
            assert message is None, method.name
        else:
            assert message is not None, method.name
            assert re.search(expected[0], message), (method.name, message)
