"""Every method and metric on networks as users write them: a right result, or one ValueError."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import test_metrics_contract as contract
import torch
from support import CLASSES, attention_classifier, few_passes, masks_of, random_images
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import saliency_assay
from saliency_assay.methods import METHODS, Method
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.resnet import resnet8
from saliency_assay.registry.records import record_of
from saliency_assay.registry.signatures import declared

SIZE, COUNT = 12, 3
IMAGES, TARGETS = random_images(COUNT, size=SIZE, dtype=torch.float32), list(range(COUNT))
BACKGROUND = random_images(2, size=SIZE, seed=9, dtype=torch.float32)
MAPS = torch.randn(COUNT, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
MASK = np.zeros((COUNT, SIZE, SIZE), bool)
MASK[:, 3:7, 4:9] = True


def body() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
    )


class Plain(nn.Module):
    """The function that most of the others compute, too."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.fc = body(), nn.Linear(8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.body(images).mean((2, 3)))


class InPlaceView(Plain):
    """An in-place ReLU writes to a view."""

    def forward(self, images: Tensor) -> Tensor:
        convolution, norm, _, pool, second, relu = self.body
        channels_last = norm(convolution(images)).permute(0, 2, 3, 1)
        functional.relu(channels_last, inplace=True)
        return self.fc(relu(second(pool(channels_last.permute(0, 3, 1, 2)))).mean((2, 3)))


class Clamped(Plain):
    """ReLUs in other spellings."""

    def forward(self, images: Tensor) -> Tensor:
        convolution, norm, _, pool, second, _ = self.body
        first = torch.clamp(norm(convolution(images)), min=0)
        return self.fc(torch.maximum(second(pool(first)), torch.zeros(())).mean((2, 3)))


class FrozenBackbone(Plain):
    """The pixels have no gradient, the features have one."""

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            features = self.body(images)
        return self.fc(torch.relu(features).mean((2, 3)))


class Checkpointed(Plain):
    """Features are recomputed in the backward pass."""

    reentrant = False

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(checkpoint(self.body, images, use_reentrant=self.reentrant).mean((2, 3)))


class OwnRelu(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        context.save_for_backward(values)
        return values.clamp(min=0)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return gradient * (context.saved_tensors[0] > 0)


class Custom(Plain):
    """A ReLU that autograd does not know."""

    def forward(self, images: Tensor) -> Tensor:
        convolution, norm, relu, pool, second, _ = self.body
        return self.fc(OwnRelu.apply(second(pool(relu(norm(convolution(images)))))).mean((2, 3)))


class Converted(Plain):
    """Logits are float64."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images).double()


def trained(kind: type[nn.Module] = Plain) -> nn.Module:
    """The same weights for every kind of network, by name."""
    network = kind()
    generator = torch.Generator().manual_seed(2)
    weights = {
        name: torch.randn(values.shape, generator=generator) / values[0].numel() ** 0.5
        for name, values in Plain().state_dict().items()
        if values.ndim
    }
    weights["body.1.running_var"] = weights["body.1.running_var"].abs() + 0.5
    network.load_state_dict(weights, strict=False)
    return network.eval()


def hooked(hook: Callable[..., Any]) -> nn.Module:
    network = trained()
    network.body[4].register_forward_hook(hook)
    return network


def root_hook() -> nn.Module:
    network = trained()
    network.register_forward_hook(lambda module, inputs, logits: -2 * logits)
    return network


def scripted_part() -> nn.Module:
    network = trained()
    network.body = torch.jit.script(network.body)
    return network


def backward_hooks() -> nn.Module:
    """Hooks that another package left behind."""
    network = trained()
    network.body[2].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0].clamp(min=0),))
    network.body[4].register_full_backward_pre_hook(lambda module, outputs: (-outputs[0],))
    return network


class Auxiliary(Plain):
    """A second head, called last, a layer that is never called, and a second name of the first layers."""

    def __init__(self) -> None:
        super().__init__()
        self.second, self.unused, self.first = nn.Linear(8, 5), nn.Linear(8, 8), self.body[:3]

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(images).mean((2, 3))
        return self.fc(features), self.second(features)


def normed_weights() -> nn.Module:
    """The older weight norm, which keeps the weight of the last pass as a result of operations."""
    network = trained()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for layer in (network.body[0], network.fc):
            nn.utils.weight_norm(layer)
    network(IMAGES).sum().backward()
    return network


def compiled_part() -> nn.Module:
    network = trained()
    network.body.compile(backend="aot_eager")
    return network


def exported() -> nn.Module:
    images = {"images": {0: torch.export.Dim("count")}}
    return torch.export.export(trained(), (IMAGES,), dynamic_shapes=images).module()


GRADIENTS = {method.name for method in METHODS if "gradients" in method.needs}
LAYERS = {method.name for method in METHODS if "layers" in method.needs}
CAM = {method.name for method in METHODS if "cam_layer" in method.needs}
ATTENTION = {method.name for method in METHODS if "attention" in method.needs}
DESIGNED = {record.name for record in (*METHODS, *contract.ON_MAPS) if "exact_importance" in record.needs}
GUIDED = {"guided_backprop", "guided_gradcam"}
OTHER_MODELS = {"randomized_model", "finetuned_model"}
RECOMPUTED = {metric.name for metric in contract.ON_MAPS if "explain" in metric.takes}


@dataclass(frozen=True)
class Network:
    """A network, the CAM layer, whether it computes the function of ``Plain``, and what refuses it for which reason."""

    build: Callable[[], nn.Module]
    cam_layer: str = "body.5"
    is_plain: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    same_weights: bool = True
    """Whether all weights are those of ``Plain``, so that a multiple of them is the same network, too."""


def network(build: Callable[[], nn.Module], refused: dict[str, str] | None = None, **fields: Any) -> Network:
    always = each(ATTENTION, "found no attention in") | each(DESIGNED, NOT_DESIGNED)
    return Network(build, refused=always | (refused or {}), **fields)


def each(names: set[str], reason: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


NEEDS_LAYER = each(CAM, r"needs saliency_assay.wrap\(…, cam_layer=…\)")
NOT_DESIGNED = "expected a designed network"
OTHER_HEAD = "the head of .* is not average pooling and one linear layer"


NETWORKS = {
    "plain": network(trained),
    "residual": network(
        lambda: resnet8(classes=CLASSES, channels=3, generator=torch.Generator(), width=4),
        cam_layer="layer3",
        is_plain=False,
    ),
    "transformer": Network(
        lambda: attention_classifier(dtype=torch.float32).network,
        cam_layer="blocks.-1.norm1",
        is_plain=False,
        refused={"cam": OTHER_HEAD, "fullgrad": "found 'cat'"}
        | each({"lrp_alpha_beta", "deep_taylor", *GUIDED}, "found no ReLU in")
        | each(DESIGNED, NOT_DESIGNED),
    ),
    "in-place ReLU of a view": network(partial(trained, InPlaceView)),
    "clamp and maximum": network(partial(trained, Clamped), NEEDS_LAYER, cam_layer=""),
    "changing hook": network(
        partial(hooked, lambda module, inputs, output: 2 * output),
        is_plain=False,
    ),
    "hook of the network": network(
        root_hook,
        {"cam": OTHER_HEAD},
        is_plain=False,
    ),
    "frozen backbone": network(
        partial(trained, FrozenBackbone),
        each((GRADIENTS - LAYERS) | RECOMPUTED | {"random_logit"}, "found no gradient of the logits"),
        is_plain=False,
    ),
    "scripted part": network(scripted_part, each(CAM, "found 'body' of TorchScript"), cam_layer="body"),
    "compiled": network(lambda: torch.compile(trained(), backend="aot_eager")),
    "compiled part": network(compiled_part),
    "exported": network(
        exported,
        NEEDS_LAYER | {"relative_stability": "the last layer with weights"},
        cam_layer="",
    ),
    "data parallel": network(lambda: nn.DataParallel(trained())),
    "checkpointed": network(partial(trained, Checkpointed)),
    "ReLU of its own": network(
        partial(trained, Custom),
        each(GUIDED, "found OwnReluBackward, which hides") | NEEDS_LAYER,
        cam_layer="",
    ),
    "backward hooks": network(backward_hooks),
    "auxiliary head": network(partial(trained, Auxiliary)),
    "weight norm": network(normed_weights, same_weights=False),
    "float64 logits": network(partial(trained, Converted)),
}
EVERYTHING = {"plain", "transformer"}
"""Networks on which ``make test-ci`` tries every method and metric, not only those of ``OWN_WAY``."""
OWN_WAY = {
    *(
        "gradient",
        "occlusion",
        "gradcam",
        "cam",
        "guided_backprop",
        "lrp_epsilon",
        "deeplift",
        "fullgrad",
        "attnlrp",
    ),
    *(
        "deletion",
        "infidelity_subset",
        "randomization",
        "relative_stability",
        "sensitivity_max",
        "random_logit",
    ),
}
"""One method or metric for each way to take a network apart; the others repeat them."""


def on_networks(records: Sequence[Method | Metric]) -> pytest.MarkDecorator:
    """Each method or metric on each network."""
    return pytest.mark.parametrize(
        ("name", "record"),
        [
            pytest.param(
                name,
                record,
                id=f"{record.name}-{name}",
                marks=() if name in EVERYTHING or record.name in OWN_WAY else pytest.mark.exhaustive,
            )
            for name in NETWORKS
            for record in records
        ],
    )


@cache
def model_of(name: str) -> Classifier:
    kind = NETWORKS[name]
    with warnings.catch_warnings():  # TorchScript is deprecated
        warnings.simplefilter("ignore")
        built = kind.build()
    parts: dict[str, Any] = {"classes": CLASSES, "mean": [0.5] * 3, "std": [0.5] * 3}
    return saliency_assay.wrap(built, cam_layer=kind.cam_layer, **parts)


def explain(name: str, method: Method, batch_size: int) -> Tensor:
    parameters: dict[str, Any] = few_passes(method)
    if method.name == "optimal_square":
        parameters["squares"] = 24
    if "background" in method.takes:
        parameters["background"] = BACKGROUND
    if "mask" in method.takes:
        parameters["mask"] = masks_of(IMAGES)
    return saliency_assay.attribute(
        method.name, model_of(name), IMAGES, TARGETS, batch_size=batch_size, **parameters
    )


@cache
def plain_maps(method: str) -> Tensor:
    return explain("plain", record_of(METHODS, method, "method"), COUNT)


@cache
def plain_scores(metric: str) -> dict[str, np.ndarray]:
    return scores_of("plain", record_of(METRICS, metric, "metric"), COUNT)


def close(values: Any, expected: Any) -> None:
    scale = np.nanmax(np.abs(expected), initial=0)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4 * scale)


def close_maps(method: str, maps: np.ndarray, expected: np.ndarray) -> None:
    if method == "guided_ig":
        # Its path follows the smallest gradients, so that rounding, which depends on the processor, leads it elsewhere.
        for one, other in zip(maps, expected, strict=True):
            assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.8
    else:
        close(maps, expected)


@pytest.mark.filterwarnings("ignore")
@on_networks(METHODS)
def test_maps(name: str, record: Method) -> None:
    if reason := NETWORKS[name].refused.get(record.name):
        with pytest.raises(ValueError, match=rf"^\w+: .*{reason}"):
            explain(name, record, COUNT)
        return
    maps = explain(name, record, COUNT)
    close_maps(record.name, explain(name, record, 1), maps)
    if NETWORKS[name].is_plain:
        close_maps(record.name, maps, plain_maps(record.name))


def scores_of(name: str, metric: Metric, batch_size: int) -> dict[str, np.ndarray]:
    kind, own = NETWORKS[name], declared(metric.function)
    parameters: dict[str, Any] = {k: v for k, v in contract.cheap(metric).items() if k in own}
    if metric.name == "irof":
        parameters["segments"] = 9
    if "mask" in metric.takes:
        parameters["mask"] = MASK
    if "explain" in metric.takes:
        parameters["method"] = "gradient"
    for key in OTHER_MODELS & set(metric.takes):
        other = kind.build()
        with torch.no_grad():
            for values in other.parameters():
                values.mul_(-1.3)
        parameters[key] = other
    inputs = model_of(name), IMAGES, TARGETS, MAPS
    return saliency_assay.score(metric.name, *inputs, batch_size=batch_size, **parameters)


@pytest.mark.filterwarnings("ignore")
@on_networks(contract.ON_MAPS)
def test_scores(name: str, record: Metric) -> None:
    if reason := NETWORKS[name].refused.get(record.name):
        with pytest.raises(ValueError, match=rf"^\w+: .*{reason}"):
            scores_of(name, record, COUNT)
        return
    scores = scores_of(name, record, COUNT)
    alone = scores_of(name, record, 1)
    is_plain = NETWORKS[name].is_plain and (NETWORKS[name].same_weights or not OTHER_MODELS & {*record.takes})
    expected = plain_scores(record.name) if is_plain else {}
    for key, values in scores.items():
        close(alone[key], values)
        if key in expected:
            close(values, expected[key])
    if expected and record.name not in ("randomization", "smprt"):  # the names of layers are in the variants
        assert scores.keys() == expected.keys()
