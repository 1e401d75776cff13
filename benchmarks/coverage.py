"""Methods on 60 networks of timm, torchvision, Hugging Face and hand-written code: which run, and whether sums hold.

    python benchmarks/coverage.py                     # measure what is missing, write build/coverage.json
    python benchmarks/coverage.py --networks timm/    # measure these again
    python benchmarks/coverage.py --table             # only write the table of docs/methods.md, as expected

Each network has random weights, runs in a process of its own, and is saved when it is done. Each method explains two
random images through the Python API. Three methods are also checked in float64:

- LRP-ε (ε = 1e-12): a map sums to the logit of the network without additive constants (``without_constants``), which
  would otherwise take relevance.
- DeepLIFT, both rules: a map sums to the difference of the logits of the image and the black baseline.
- FullGrad: all terms of the image and the biases sum to the logit.

Errors are relative to the logit or difference; the explained class is the one where it is largest. Maps are compared
with those of captum (DeepLIFT, Rescale) and zennit (LRP-ε, LRP-α2β1) for networks of ReLUs, lxt (AttnLRP) for vision
transformers, and autograd (LRP-ε, see ``Linearized``). A peer's maps count if its own sums hold. Differences are
relative to the largest value of a map.
"""

import argparse
import copy
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

import saliency_assay
from saliency_assay.methods import relevance
from saliency_assay.methods.canonical import canonical, normalized
from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.feature_maps import cam_layers
from saliency_assay.methods.fullgrad import full_gradient
from saliency_assay.methods.relevance import attnlrp, lrp_alpha_beta, lrp_epsilon
from saliency_assay.methods.relevance_rules import by_contribution
from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.families import family_of

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "build/coverage.json", ROOT / "docs/methods.md"
BEGIN, END = "<!-- coverage, written by benchmarks/coverage.py -->\n", "<!-- end of coverage -->\n"
CLASSES, COUNT, MINUTES = 10, 2, 10
TOLERANCE, CLOSE = 1e-5, 1e-4
"""Largest relative error of a sum, and largest relative difference from a peer: ε is not 0, and sums may be near it."""

GROUPS: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "Gradients": {"gradient": {}, "integrated_gradients": {"steps": 3}},
    "Grad-CAM": {"gradcam": {}},
    "Perturbation": {"occlusion": {"window": 0.5, "stride": 0.5}, "rise": {"samples": 4}},
    "Guided backpropagation": {"guided_backprop": {}},
    "LRP-ε": {"lrp_epsilon": {}},
    "AttnLRP": {"attnlrp": {}},
    "DeepLIFT": {"deeplift": {}, "deeplift (Rescale)": {"rule": "rescale"}},
    "LRP-αβ, deep Taylor": {"lrp_alpha_beta": {}, "deep_taylor": {}},
    "FullGrad": {"fullgrad": {}},
    "Attention": {
        "raw_attention": {},
        "attention_rollout": {},
        "gradient_weighted_attention": {},
        "transformer_attribution": {},
    },
}
"""Methods by the heading of their column in the table, with parameters that need few passes."""

REASONS = {
    "no ReLU": (r"found no ReLU in ", "no ReLU"),
    "other activation": (r"the rule is defined for ReLU", "activation functions in addition to ReLUs"),
    "no rule": (
        r"found \w+ \('.*'\) in \w+, which has no rule; .*use lrp_epsilon",
        "layers other than convolutions, linear layers, ReLUs, poolings and additions",
    ),
    "offset": (
        r"whose offset is not a bias|expected one vector|which permutes dimensions|joins a constant",
        "layers other than convolutions, linear layers of one vector per image, activation functions, poolings and "
        "additions",
    ),
    "no attention": (r"found no attention in ", "no attention"),
    "other attention": (
        r"(expected \[\d+, heads, tokens, tokens\] with|expected one attention after the other|found no attention in )",
        "no attention of all tokens of an image in each layer",
    ),
}
"""Pattern of the message and words of the table for each property of a network with which a method refuses it."""

_SIGNS, _ATTENTION = GROUPS["LRP-αβ, deep Taylor"], GROUPS["Attention"]
KINDS: Mapping[str, Mapping[str, str]] = {
    "relu": dict.fromkeys(_ATTENTION, "no attention"),
    "mixed": {
        **dict.fromkeys(_SIGNS, "no rule"),
        "fullgrad": "offset",
        **dict.fromkeys(_ATTENTION, "no attention"),
    },
    "smooth": {
        **dict.fromkeys((*_SIGNS, "guided_backprop"), "no ReLU"),
        "fullgrad": "offset",
        **dict.fromkeys(_ATTENTION, "no attention"),
    },
    "windows": {
        **dict.fromkeys((*_SIGNS, "guided_backprop"), "no ReLU"),
        "fullgrad": "offset",
        **dict.fromkeys(_ATTENTION, "other attention"),
    },
    "vit": {**dict.fromkeys((*_SIGNS, "guided_backprop"), "no ReLU"), "fullgrad": "offset"},
}
"""Expected refusals of each kind of network: of ReLUs alone, of ReLUs and other layers, without ReLU, with attention in
windows or channels, and with attention of all tokens; a key of ``REASONS`` for each method."""

MODULES = "torchvision/(alexnet|vgg|resne|squeezenet|googlenet)|timm/densenet"
"""Networks whose sums and averages have a rule in zennit: they are modules, or those of ``ResNetCanonizer``."""


@dataclass(frozen=True)
class Network:
    """A network and the methods that refuse it."""

    name: str
    """``LIBRARY/NAME``."""
    kind: str
    size: int = 64
    """Height and width of the images."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its builder that make it small."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Expected refusals other than those of its kind; empty for a method that applies all the same."""

    @property
    def library(self) -> str:
        return self.name.partition("/")[0]

    @property
    def expected(self) -> dict[str, str]:
        """Return the key of ``REASONS`` for each method that refuses the network."""
        return {method: key for method, key in {**KINDS[self.kind], **self.refusals}.items() if key}

    def build(self) -> nn.Module:
        """Return the network with the weights that its library samples."""
        library, _, name = self.name.partition("/")
        return BUILDERS[library](name, **self.options)


# ------------------------------------------------------------------------------------------------ networks


def timm_network(name: str, **options: Any) -> nn.Module:
    import timm

    network: nn.Module = timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)
    return network


def torchvision_network(name: str, **options: Any) -> nn.Module:
    from torchvision import models

    if name == "vit_b_16":
        return models.VisionTransformer(64, 16, 3, 3, 96, 192, num_classes=CLASSES)
    if name == "maxvit_t":
        return models.MaxVit((64, 64), 16, 4, [16, 32], [1, 2], 8, 0.0, num_classes=CLASSES)
    network: nn.Module = models.get_model(name, weights=None, num_classes=CLASSES, **options)
    if name.startswith(("alexnet", "vgg")):  # whose classifier has a gigabyte of weights
        layers = [(i, layer) for i, layer in enumerate(network.classifier) if isinstance(layer, nn.Linear)]
        for (i, layer), outputs in zip(layers, (64, 64, CLASSES), strict=True):
            inputs = layer.in_features if layer is layers[0][1] else 64
            network.classifier[i] = nn.Linear(inputs, outputs)
    return network


def transformers_network(name: str, **options: Any) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{name}Config")(num_labels=CLASSES, **options)
    network: nn.Module = getattr(transformers, f"{name}ForImageClassification")(config)
    return network


class NormalizingNet(nn.Module):
    """Normalizes images in ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]).reshape(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.9, 0.8, 0.7]).reshape(3, 1, 1))
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features((images - self.mean) / self.std).mean((2, 3)))


class HookedNet(nn.Sequential):
    """Has hooks that scale the output of a layer and the input of another one."""

    def __init__(self) -> None:
        first, second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))
        super().__init__(first, nn.ReLU(), second, nn.ReLU(), *head)
        first.register_forward_hook(lambda layer, inputs, output: 2 * output)
        second.register_forward_pre_hook(lambda layer, inputs: (0.7 * inputs[0],))


class Heads(NamedTuple):
    """Output of ``HeadsNet``."""

    features: Tensor
    logits: Tensor
    boxes: Tensor


class HeadsNet(nn.Module):
    """Returns an object with the attribute ``logits``, which is not its first entry."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
        self.head, self.boxes = nn.Linear(8, CLASSES), nn.Linear(8, 4)

    def forward(self, images: Tensor) -> Heads:
        features = self.features(images).mean((2, 3))
        return Heads(features, self.head(features), self.boxes(features))


class SharedNet(nn.Module):
    """Calls its layers more than once."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.block, self.relu = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        self.norm, self.head = nn.BatchNorm2d(8), nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = self.relu(self.stem(images))
        for _ in range(2):
            features = self.relu(self.norm(self.block(features))) + features
        return self.head(features.mean((2, 3)))


class FunctionalNet(nn.Module):
    """Calls functions of PyTorch, and modules that it makes in ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.left, self.right = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = nn.LeakyReLU(0.2)(self.stem(images))
        features = torch.sub(functional.relu(self.left(features)), self.right(features), alpha=0.5)
        largest = features.amax((2, 3))
        pooled = functional.adaptive_max_pool2d(features, 4).relu().mean((2, 3))
        return functional.linear(torch.cat([largest, pooled], 1), self.head.weight, self.head.bias)


HAND_WRITTEN: Mapping[str, Callable[[], nn.Module]] = {
    "normalization in forward": NormalizingNet,
    "hooks that change values": HookedNet,
    "several heads": HeadsNet,
    "shared layers": SharedNet,
    "functions": FunctionalNet,
}
BUILDERS: Mapping[str, Callable[..., nn.Module]] = {
    "timm": timm_network,
    "torchvision": torchvision_network,
    "transformers": transformers_network,
    "hand-written": lambda name: HAND_WRITTEN[name](),
}

_SMALL_VIT = {"embed_dim": 96, "depth": 3, "num_heads": 3}
_SMALL_HF: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 96,
    "image_size": 64,
    "patch_size": 16,
}
_MIXED_ACTIVATIONS = {"guided_backprop": "other activation"}

NETWORKS = (
    Network("timm/resnet18", "relu"),
    Network("timm/resnest14d", "mixed"),
    Network("timm/seresnet18", "mixed"),
    Network("timm/densenet121", "relu"),
    Network("timm/regnety_002", "mixed"),
    Network("timm/repvgg_a0", "relu"),
    Network("timm/hrnet_w18_small", "relu"),
    Network("timm/ghostnet_050", "mixed"),
    Network("timm/nf_resnet26", "relu"),
    Network("timm/tf_efficientnet_b0", "smooth"),
    Network("timm/tf_efficientnetv2_s", "smooth"),
    Network("timm/tf_mobilenetv3_small_minimal_100", "relu"),
    Network("timm/mobilenetv4_conv_small_035", "relu"),
    Network("timm/mobilevit_xxs", "windows"),
    Network("timm/edgenext_xx_small", "windows"),
    Network("timm/fastvit_t8", "mixed", refusals=_MIXED_ACTIVATIONS),
    Network("timm/convnext_atto", "smooth"),
    Network("timm/convnextv2_atto", "smooth"),
    Network("timm/poolformer_s12", "smooth"),
    Network("timm/vit_tiny_patch16_224", "vit", options={"img_size": 64, **_SMALL_VIT}),
    Network("timm/deit_tiny_distilled_patch16_224", "vit", options={"img_size": 64, **_SMALL_VIT}),
    Network("timm/beit_base_patch16_224", "vit", options={"img_size": 64, **_SMALL_VIT}),
    Network("timm/eva02_tiny_patch14_224", "vit", 56, options={"img_size": 56, **_SMALL_VIT}),
    Network("timm/cait_xxs24_224", "windows", options={"img_size": 64, **_SMALL_VIT}),
    Network(
        "timm/swin_tiny_patch4_window7_224",
        "windows",
        options={
            "img_size": 64,
            "window_size": 4,
            "embed_dim": 24,
            "depths": (2, 2),
            "num_heads": (2, 4),
        },
    ),
    Network("timm/levit_128s", "windows", 224),
    Network("timm/pit_ti_224", "windows", 224),
    Network("timm/coatnet_pico_rw_224", "windows", options={"img_size": 64}),
    Network("timm/mixer_s32_224", "smooth", options={"img_size": 64}),
    Network("timm/resmlp_12_224", "smooth", options={"img_size": 64}),
    Network("torchvision/alexnet", "relu"),
    Network("torchvision/vgg11_bn", "relu"),
    Network("torchvision/resnet50", "relu"),
    Network("torchvision/resnext50_32x4d", "relu"),
    Network("torchvision/densenet121", "relu"),
    Network("torchvision/googlenet", "relu", options={"init_weights": False, "aux_logits": False}),
    Network("torchvision/inception_v3", "relu", 80, options={"init_weights": False}),
    Network("torchvision/squeezenet1_1", "relu"),
    Network("torchvision/mnasnet0_5", "relu"),
    Network("torchvision/mobilenet_v2", "relu"),
    Network("torchvision/mobilenet_v3_small", "mixed", refusals=_MIXED_ACTIVATIONS),
    Network("torchvision/shufflenet_v2_x0_5", "relu"),
    Network("torchvision/efficientnet_b0", "smooth"),
    Network("torchvision/efficientnet_v2_s", "smooth"),
    Network("torchvision/regnet_y_400mf", "mixed"),
    Network("torchvision/convnext_tiny", "smooth"),
    Network("torchvision/vit_b_16", "vit"),
    Network("torchvision/swin_t", "windows"),
    Network("torchvision/swin_v2_t", "windows"),
    Network("torchvision/maxvit_t", "windows"),
    Network("transformers/ViT", "vit", options=_SMALL_HF),
    Network("transformers/DeiT", "vit", options=_SMALL_HF),
    Network("transformers/Dinov2", "vit", options=_SMALL_HF),
    Network(
        "transformers/Swin",
        "windows",
        options={"image_size": 64, "window_size": 4, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4]},
    ),
    Network(
        "transformers/ConvNext",
        "smooth",
        options={"hidden_sizes": [16, 32], "depths": [2, 2], "num_stages": 2},
    ),
    Network("hand-written/normalization in forward", "relu"),
    Network("hand-written/hooks that change values", "relu"),
    Network("hand-written/several heads", "relu"),
    Network("hand-written/shared layers", "relu"),
    Network(
        "hand-written/functions", "relu", refusals={**dict.fromkeys(_SIGNS, "no rule"), **_MIXED_ACTIVATIONS}
    ),
)


# ---------------------------------------------------------------------------------------------- weights


def randomize(network: nn.Module) -> None:
    """Sample weights that give every layer an effect and keep the size of signals.

    Libraries initialize biases and tokens as 0, the last scale of residual branches as 0 or nearly 0, and gates with
    weights so large that they jump between 0 and 1.
    """
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_constant = bool((parameter == parameter.flatten()[0]).all())
            if parameter.ndim > 1 and not is_added(name):
                parameter.copy_(noise / parameter[0].numel() ** 0.5)
            elif is_constant and parameter.numel() > 1:
                parameter.copy_(noise / 10 + (not is_added(name)))
            elif is_constant and not is_added(name):
                parameter.fill_(1)


def calibrate(network: nn.Module, size: int) -> None:
    """Fit BatchNorm to random images, so that signals neither vanish nor grow with depth.

    The variance is about that of all channels around 0. That of each channel around its mean would amplify rounding
    errors layer by layer, since deep features of random images hardly differ.
    """
    generator = torch.Generator().manual_seed(2)

    def fit(norm: Any, inputs: tuple[Tensor, ...]) -> None:
        square = inputs[0].square().mean()
        norm.running_var.uniform_(0.5, 1.5, generator=generator).mul_(square)
        norm.running_mean.normal_(0, 0.1, generator=generator).mul_(square.sqrt())

    norms = [layer for layer in network.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    handles = [norm.register_forward_pre_hook(fit) for norm in norms]
    with torch.no_grad():
        network.eval()(torch.randn(8, 3, size, size, generator=generator))
    for handle in handles:
        handle.remove()


_ADDED = re.compile(
    r"(bias|tokens?|pos_embed(ding)?|position_embeddings?|beta|mean|token_projection\.weight)$"
)
_NOT_ADDED = re.compile(r"cpb_mlp|rope")
"""Position biases in a softmax of Swin v2, and rotations of queries and keys."""


def is_added(name: str) -> bool:
    """Return True for the name of a parameter or buffer that is added to activations outside a softmax."""
    return bool(_ADDED.search(name)) and not _NOT_ADDED.search(name)


def without_constants(model: Classifier, images: Tensor) -> Classifier:
    """Set everything to 0 that a network adds to its activations, so that it returns 0 for an image of zeros.

    The mean of the classifier's normalization and those of BatchNorm are among it.
    """
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if is_added(name):
                tensor.zero_()
        assert float(model(torch.zeros_like(images)).abs().max()) == 0, "constants are left"
    return model


def network_of(network: Network) -> tuple[Classifier, Tensor]:
    """Return a network as a classifier of float32, with its CAM layer, and images in [0, 1]."""
    torch.manual_seed(0)
    module = network.build().requires_grad_(False)
    randomize(module)
    calibrate(module, network.size)
    images = torch.rand(COUNT, 3, network.size, network.size, generator=torch.Generator().manual_seed(3))
    library, _, name = network.name.partition("/")
    family = family_of(library, name) if library in ("timm", "torchvision") else None
    normalization = {"classes": CLASSES, "mean": [0.5] * 3, "std": [0.25] * 3}
    model = saliency_assay.wrap(module, **normalization)
    layer = family.cam_layer if family else next(reversed(cam_layers(model, images)), "")
    return saliency_assay.wrap(module, cam_layer=layer, **normalization), images


# -------------------------------------------------------------------------------------------- measurements


def examine(network: Network) -> dict[str, Any]:
    """Return the refusal of each method, the error of each sum, and the difference from each peer.

    ``methods`` maps each method to its error message, empty if it returns maps. ``sums`` and ``peers`` map to a number,
    or to a message if there is none.
    """
    model, images = network_of(network)
    methods = {
        method: _message(model, images, method, parameters)
        for group in GROUPS.values()
        for method, parameters in group.items()
    }
    runs = {method for method, message in methods.items() if not message}
    results: dict[str, dict[str, float | str]] = {"sums": {}, "peers": {}}
    for kind, name, measure in _checks(network, model.double(), images.double(), runs):
        try:
            results[kind][name] = measure()
        except Exception as error:  # a peer's, too
            results[kind][name] = f"{type(error).__name__}: {error}".splitlines()[0]
    seconds = round(time.process_time(), 1)  # with the imports
    return {"methods": methods, **results, "cam_layer": model.cam_layer, "seconds": seconds}


def _message(model: Classifier, images: Tensor, method: str, parameters: Mapping[str, Any]) -> str:
    """Return the first line of a method's error; empty if its maps have the right shape and are finite."""
    name = method.partition(" ")[0]
    try:
        maps = saliency_assay.attribute(name, model, images, [0, 1], batch_size=COUNT, **parameters)
    except ValueError as error:
        return str(error).splitlines()[0]
    except Exception as error:  # any other error is a fault of the project
        traceback.print_exc()
        return f"{type(error).__name__}: {error}".splitlines()[0]
    assert isinstance(maps, Tensor)
    if maps.shape[2:] != images.shape[2:] or not bool(maps.isfinite().all()):
        return f"WRONG: returned maps {list(maps.shape)}, finite: {bool(maps.isfinite().all())}"
    # After a ReLU, Grad-CAM may be 0.
    return "" if name == "gradcam" or bool((maps != 0).any()) else "WRONG: returned zeros"


def _checks(
    network: Network, model: Classifier, images: Tensor, runs: Collection[str]
) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Yield the kind (``sums`` or ``peers``), name and measurement of each check of the methods ``runs``.

    The model changes between the measurements.
    """
    none = torch.Generator()  # for methods without random numbers
    with torch.no_grad():
        change, targets = _largest(model(images) - model(torch.zeros_like(images)))

    def by_deeplift(rule: str) -> Tensor:
        return deeplift(model, images, targets, generator=none, rule=rule)

    if "deeplift" in runs:
        yield "sums", "deeplift", lambda: _sum_error(by_deeplift("reveal_cancel"), change)
    if "deeplift (Rescale)" in runs:
        yield "sums", "deeplift (Rescale)", lambda: _sum_error(by_deeplift("rescale"), change)
    if "deeplift (Rescale)" in runs and network.kind == "relu":
        theirs = partial(captum_deeplift, model, images, targets)
        yield "peers", "captum", lambda: _difference(by_deeplift("rescale"), _with_sums(theirs(), change))
    if "fullgrad" in runs:
        yield "sums", "fullgrad", lambda: _fullgrad_error(model, images)
    if "attnlrp" in runs and re.search(r"/(vit|deit|beit|dinov2)", network.name, re.IGNORECASE):
        exact = {"epsilon": 1e-12, "gamma_linear": 0.0, "gamma_convolution": 0.0}
        yield (
            "peers",
            "lxt",
            lambda: _difference(
                attnlrp(model, images, targets, generator=none, **exact), lxt_attnlrp(model, images, targets)
            ),
        )

    if "lrp_epsilon" not in runs:
        return
    without_constants(model, images)
    with torch.no_grad():
        logits, classes = _largest(model(images))

    def by_epsilon() -> Tensor:
        return lrp_epsilon(model, images, classes, generator=none, epsilon=1e-12)

    def by_peer(peer: Callable[[Classifier, Tensor, Tensor], Tensor]) -> Tensor:
        return _with_sums(peer(model, images, classes), logits)

    yield "sums", "lrp_epsilon", lambda: _sum_error(by_epsilon(), logits)
    yield "peers", "autograd", lambda: _difference(by_epsilon(), by_peer(autograd_epsilon))
    is_of_modules = bool(re.match(MODULES, network.name))
    if is_of_modules:
        yield "peers", "zennit, LRP-ε", lambda: _difference(by_epsilon(), by_peer(zennit_epsilon))
    if is_of_modules and "lrp_alpha_beta" in runs:

        def alpha_beta_difference() -> float:
            # LRP-αβ itself does not keep sums where all inputs of a neuron have one sign.
            by_peer(zennit_epsilon)
            # By the project's rule of additions and averages, terms of the other sign than the sum get no relevance.
            with patch.object(relevance, "ShareOfItsSign", by_contribution(1e-12)):
                maps = lrp_alpha_beta(model, images, classes, generator=none, input_rule="same")
            return _difference(maps, zennit_alpha_beta(model, images, classes))

        yield "peers", "zennit, LRP-αβ", alpha_beta_difference


def _largest(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the output of largest size of each image and its class, both ``[N]``, from outputs ``[N, classes]``."""
    targets = outputs.abs().argmax(1)
    return outputs.gather(1, targets[:, None])[:, 0], targets


def _sum_error(maps: Tensor, totals: Tensor) -> float:
    """Return the largest difference of the sums of maps from ``totals [N]``, relative to each total."""
    return float(((maps.sum((1, 2, 3)) - totals) / totals).abs().max())


def _with_sums(maps: Tensor, totals: Tensor) -> Tensor:
    """Return a peer's maps.

    Raises:
        ValueError: they do not sum to ``totals``, so that the peer does not support the network.
    """
    if not (error := _sum_error(maps, totals)) < TOLERANCE:
        raise ValueError(f"not supported: its maps miss their sums by {error:.1g}")
    return maps


def _difference(maps: Tensor, expected: Tensor) -> float:
    """Return the largest difference of maps, relative to the largest value of each expected map."""
    return float(((maps - expected).abs().amax((1, 2, 3)) / expected.abs().amax((1, 2, 3))).max())


def _fullgrad_error(model: Classifier, images: Tensor) -> float:
    with torch.no_grad():
        logits, targets = _largest(model(images))
    terms: list[Tensor] = []
    of_input, _ = full_gradient(
        canonical(model, images),
        normalized(model, images),
        targets,
        lambda name, term: terms.append(term.flatten(1).sum(1)),
    )
    return float((((of_input.sum((1, 2, 3)) + sum(terms)) - logits) / logits).abs().max())


# --------------------------------------------------------------------------------------------------- peers


def captum_deeplift(model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    import captum.attr

    model = copy.deepcopy(model)
    for layer in model.modules():
        if hasattr(layer, "inplace"):
            layer.inplace = False
    maps: Tensor = captum.attr.DeepLift(model).attribute(images, torch.zeros_like(images), target=targets)
    return maps.detach()


def zennit_epsilon(model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    from zennit.rules import Epsilon

    return _zennit(model, images, targets, Epsilon(epsilon=1e-12))


def zennit_alpha_beta(model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    from zennit.rules import AlphaBeta

    return _zennit(model, images, targets, AlphaBeta(alpha=2, beta=1, stabilizer=1e-12))


def _zennit(model: Classifier, images: Tensor, targets: Tensor, rule: Any) -> Tensor:
    """Return maps by zennit, with ``rule`` for linear layers and convolutions, and those for additions of ResNets."""
    from zennit.composites import LayerMapComposite
    from zennit.layer import Sum
    from zennit.rules import Epsilon, Norm, Pass
    from zennit.torchvision import ResNetCanonizer, SequentialMergeBatchNorm
    from zennit.types import Activation, AvgPool, BatchNorm, Convolution, Linear

    layers = [
        (Activation, Pass()),
        ((AvgPool, Sum), Norm(stabilizer=1e-12)),
        (BatchNorm, Epsilon(epsilon=1e-12)),
        ((Convolution, Linear), rule),
    ]
    network, pixels = copy.deepcopy(model.network), normalized(model, images).requires_grad_()
    for layer in network.modules():
        if isinstance(
            layer, nn.modules.batchnorm._BatchNorm
        ):  # of which zennit forgets the ε that it has merged
            layer.running_var.add_(layer.eps)
            layer.eps = 0.0
    is_resnet = type(network).__name__ == "ResNet"
    canonizer = ResNetCanonizer() if is_resnet else SequentialMergeBatchNorm()
    with LayerMapComposite(layers, [canonizer]).context(network):
        logits = main_output(network(pixels))
        start = logits.detach() * functional.one_hot(targets, CLASSES)
        return torch.autograd.grad(logits, pixels, start)[0]


def lxt_attnlrp(model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    """Return maps by the functions of lxt's efficient implementation, in which relevance is gradient ⊙ input."""
    # Without its ``__init__``, which imports language models from one version of transformers.
    (location,) = find_spec("lxt").submodule_search_locations
    package = sys.modules["lxt.efficient"] = ModuleType("lxt.efficient")
    package.__path__ = [f"{location}/efficient"]
    patches = import_module("lxt.efficient.patches")

    kinds = {type(layer) for layer in model.modules()}
    attend = patches.wrap_attention_forward(lambda module, *inputs, **options: attention(*inputs, **options))
    attention = functional.scaled_dot_product_attention
    pixels = normalized(model, images).requires_grad_()
    with ExitStack() as patched:
        for kind in kinds:
            if issubclass(kind, nn.LayerNorm):
                patched.enter_context(patch.object(kind, "forward", patches.layer_norm_forward))
            elif "GELU" in kind.__name__:
                patched.enter_context(patch.object(kind, "original_forward", kind.forward, create=True))
                patched.enter_context(patch.object(kind, "forward", patches.non_linear_forward))
        patched.enter_context(
            patch.object(
                functional,
                "scaled_dot_product_attention",
                lambda *inputs, **options: attend(None, *inputs, **options),
            )
        )
        logits = main_output(model.network(pixels)).gather(1, targets[:, None])
        return torch.autograd.grad(logits.sum(), pixels)[0] * pixels.detach()


def autograd_epsilon(model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    """Return LRP-ε for ε → 0 as gradient ⊙ input of the network with linearized operations."""
    pixels = normalized(model, images).requires_grad_()
    with Linearized():
        logits = main_output(model.network(pixels)).gather(1, targets[:, None])
    return torch.autograd.grad(logits.sum(), pixels)[0] * pixels.detach()


class Linearized(TorchFunctionMode):
    """Replaces functions by others of the same value, whose gradient ⊙ input is their relevance by LRP-ε for ε → 0.

    Standard deviations, softmax and other gates are constants; activations are their quotient times their input; the
    gradients of two factors are halved (Ali et al. 2022).
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        name = getattr(func, "__name__", "").strip("_")
        vary = [isinstance(each, Tensor) and each.requires_grad for each in args[:2]]
        if name in ("softmax", "sigmoid", "hardsigmoid", "rsqrt", "var", "std"):
            return func(*args, **options).detach()
        if name in ("gelu", "silu", "hardswish", "mish", "relu6", "hardtanh", "elu", "tanh"):
            values = args[0]
            result = func(values.detach().clone(), *args[1:], **options).detach()
            return values * torch.where(values == 0, 0, result / values).detach()
        if name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
            return func(args[0].detach(), args[1].detach(), *args[2:], **options)
        if name in ("layer_norm", "group_norm"):
            return _linear_norm(func, *args, **options)
        if name in ("mul", "imul", "rmul", "matmul", "rmatmul", "bmm") and vary == [True, True]:
            a, b = args[:2]
            return (func(a, b.detach().clone()) + func(a.detach().clone(), b)) / 2
        if "div" in name and len(vary) == 2 and vary[1]:
            return func(args[0], args[1].detach(), *args[2:], **options)
        return func(*args, **options)


def _linear_norm(func: Any, values: Tensor, *args: Any, **options: Any) -> Tensor:
    """Return a LayerNorm or GroupNorm whose standard deviation is a constant."""
    groups = args[0] if args else options.get("num_groups", options.get("normalized_shape"))
    weight, bias = (
        options.get(key, args[i] if len(args) > i else None) for key, i in (("weight", 1), ("bias", 2))
    )
    eps = options.get("eps", args[3] if len(args) > 3 else 1e-5)
    if func is functional.group_norm:
        grouped = values.unflatten(1, (groups, -1)).flatten(2)
        centered = grouped - grouped.mean(2, keepdim=True)
        scale = (centered.detach().square().mean(2, keepdim=True) + eps).rsqrt()
        result = (centered * scale).reshape(values.shape)
        shape = (1, -1, *[1] * (values.ndim - 2))
    else:
        axes = tuple(range(-len(tuple(groups)), 0))
        centered = values - values.mean(axes, keepdim=True)
        result = centered * (centered.detach().square().mean(axes, keepdim=True) + eps).rsqrt()
        shape = tuple(groups)
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


# ------------------------------------------------------------------------------------------------ results


Results = dict[str, dict[str, Any]]


def run(network: Network) -> dict[str, Any]:
    """Return ``examine(network)`` of a process of its own.

    Raises:
        RuntimeError: the process fails or takes more than ``MINUTES``; the message is its last line.
    """
    command = [sys.executable, "-W", "ignore", __file__, "--only", network.name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60 * MINUTES)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not within {MINUTES} minutes") from None
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def is_installed(network: Network) -> bool:
    """Return True if the library of a network is installed."""
    return network.library == "hand-written" or find_spec(network.library) is not None


def problems(network: Network, result: Mapping[str, Any]) -> list[str]:
    """Return what differs from the expectation: refusals, sums and differences from peers."""
    lines = []
    for method, message in result["methods"].items():
        reason = network.expected.get(method)
        if not reason and message:
            lines.append(message)
        elif reason and not re.search(REASONS[reason][0], message):
            lines.append(f"{method}: {message or 'returned maps'}; expected a refusal: {REASONS[reason][1]}")
    lines += [
        f"{method}: sums differ: {error}"
        for method, error in result["sums"].items()
        if isinstance(error, str) or not error <= TOLERANCE
    ]
    lines += [
        f"{peer}: maps differ by {difference:.1g}"
        for peer, difference in result["peers"].items()
        if isinstance(difference, float) and not difference <= CLOSE
    ]
    return lines


def _is_right(result: Mapping[str, Any], method: str) -> bool:
    error = result["sums"].get(method, 0.0)
    return not result["methods"][method] and isinstance(error, float) and error <= TOLERANCE


def summary(results: Results) -> str:
    """Return for each method the number of networks on which it runs, and its sums are right where they are checked."""
    methods = [method for group in GROUPS.values() for method in group]
    counts = (
        f"{method} {sum(_is_right(result, method) for result in results.values())}" for method in methods
    )
    return f"of {len(results)}: {', '.join(counts)}"


def table() -> str:
    """Return the table of library networks × methods that refuse some of them, with numbered reasons below it."""
    networks = [network for network in NETWORKS if network.library != "hand-written"]
    columns = [
        name for name, group in GROUPS.items() if any(set(group) & set(each.expected) for each in networks)
    ]
    numbers: dict[str, int] = {}
    rows: dict[tuple[str, ...], list[Network]] = {}
    for network in networks:
        reasons = ({network.expected.get(method, "") for method in GROUPS[name]} for name in columns)
        cells = (
            ", ".join(str(numbers.setdefault(key, len(numbers) + 1)) for key in sorted(keys - {""})) or "✓"
            for keys in reasons
        )
        rows.setdefault(tuple(cells), []).append(network)
    lines = [f"| networks | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {_names(group)} | {' | '.join(cells)} |" for cells, group in rows.items()]
    lines += ["", *(f"{number}. {REASONS[key][1]}" for key, number in numbers.items())]
    return "\n".join(lines) + "\n"


def _names(networks: Sequence[Network]) -> str:
    by_library: dict[str, list[str]] = {}
    for network in networks:
        by_library.setdefault(network.library, []).append(network.name.partition("/")[2])
    return "; ".join(f"{library}: {', '.join(names)}" for library, names in by_library.items())


def page() -> str:
    """Return the text of docs/methods.md with the table up to date."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def _largest_errors(results: Results, kind: str) -> dict[str, tuple[int, float]]:
    """Return for each sum or peer the number of networks and the largest value."""
    values: dict[str, list[float]] = {}
    for result in results.values():
        for key, value in result[kind].items():
            if isinstance(value, float):
                values.setdefault(key, []).append(value)
    return {key: (len(each), max(each)) for key, each in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--networks", default="", metavar="PATTERN", help="measure the matching networks again"
    )
    parser.add_argument("--table", action="store_true", help="write the table without measuring")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--only", help=argparse.SUPPRESS)  # for ``run``
    options = parser.parse_args()
    if options.only:
        [network] = [network for network in NETWORKS if network.name == options.only]
        print(json.dumps(examine(network), ensure_ascii=False))
        return
    if options.table:
        PAGE.write_text(page(), encoding="utf-8")
        return
    stored: Results = json.loads(options.results.read_text()) if options.results.exists() else {}
    for network in NETWORKS:
        selected = (
            bool(re.search(options.networks, network.name))
            if options.networks
            else network.name not in stored
        )
        if not selected or not is_installed(network):
            continue
        try:
            stored[network.name] = run(network)
        except RuntimeError as error:
            print(f"{network.name}: {error}", flush=True)
            continue
        stored = {each.name: stored[each.name] for each in NETWORKS if each.name in stored}
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(
            network.name,
            f"{stored[network.name]['seconds']} s",
            *dict.fromkeys(
                re.sub("^(\\w+: )+", "", line) for line in problems(network, stored[network.name])
            ),
            sep="\n  ",
            flush=True,
        )
    print(summary(stored))
    for kind in ("sums", "peers"):
        for name, (count, error) in _largest_errors(stored, kind).items():
            print(f"{kind}: {name}: {count} networks, largest error {error:.0e}")


if __name__ == "__main__":
    main()
