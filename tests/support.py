"""Small classifiers, images and comparisons that several test files share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods import Method
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.designed import Designed
from saliency_assay.models.vit import vit
from saliency_assay.registry.records import resolve

CLASSES = 4


class ConvNet(nn.Module):
    """Two convolutions with BatchNorm, pooling and an unshared ReLU each, for RGB or gray images."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 5, 3, padding=1),
            nn.BatchNorm2d(5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(5, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(6, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images)


class SkipNet(nn.Module):
    """A residual connection that starts at the input of a ReLU, so that input has two consumers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        stem = self.first(images)
        return self.head(self.relu2(self.second(self.relu1(stem)) + stem).mean((2, 3)))


class SmoothNet(nn.Module):
    """Fully connected with tanh: no ReLU, no layer for CAM."""

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 8), nn.Tanh(), nn.Linear(8, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


def with_random_state(model: nn.Module, seed: int, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The model in evaluation mode, every parameter and running statistic drawn from ``seed``."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            values = torch.randn(tensor.shape, generator=generator) / max(1, tensor[0].numel()) ** 0.5
            tensor.copy_(values.abs() + 0.5 if name.endswith("running_var") else values)
    return model.to(dtype).eval()


def smooth_network(size: int = 6) -> nn.Module:
    """A network of random weights for RGB images, which every pixel moves."""
    return with_random_state(SmoothNet(3 * size**2), 3)


def hard_maps(size: int = 6) -> Tensor:
    """Maps of five images: plain, with ties, negative, constant, with a NaN."""
    maps = torch.randn(5, 3, size, size, generator=generator(7), dtype=torch.float64)
    maps[1] = maps[1].round()
    maps[2] = -maps[2].abs()
    maps[3] = 0.3
    maps[4, 1, 2, 2] = torch.nan
    return maps


def hard_case(size: int = 6) -> tuple[nn.Module, Tensor, Tensor, Tensor]:
    """A network that every pixel moves, five images, their targets and ``hard_maps``."""
    return smooth_network(size), random_images(5, size=size), cyclic_targets(5), hard_maps(size)


def output_of(model: nn.Module, image: Tensor, target: int, output: str = "probability") -> float:
    """The target's probability or logit, of one image."""
    with torch.no_grad():
        logits = model(image[None])[0]
    return float((logits if output == "logit" else logits.softmax(0))[target])


def classifier(
    network: nn.Module, cam_layer: str, channels: int = 3, dtype: torch.dtype = torch.float64
) -> Classifier:
    """A network that takes normalized images, as the project's classifier, in evaluation mode."""
    wrapped = Classifier(
        network,
        classes=CLASSES,
        mean=[0.45] * channels,
        std=[0.25] * channels,
        cam_layer=cam_layer,
        concept_layers=[],
    )
    return wrapped.to(dtype).eval()


def conv_classifier(seed: int = 1, channels: int = 3, dtype: torch.dtype = torch.float64) -> Classifier:
    return classifier(with_random_state(ConvNet(channels), seed), "body.6", channels, dtype)


class DesignedNet(ConvNet, Designed):
    """A network with an importance of pixels, which is 0 for some of them."""

    def importance(self, inputs: Tensor, targets: Tensor) -> Tensor:
        weights = next(self.parameters()).flatten()[: inputs.shape[1]].reshape(-1, 1, 1)
        values = (weights * inputs).sum(1, keepdim=True)
        return torch.where(values.abs() > 0.1, values, 0).detach()


def designed_classifier(seed: int = 1, channels: int = 3, dtype: torch.dtype = torch.float64) -> Classifier:
    return classifier(with_random_state(DesignedNet(channels), seed), "body.6", channels, dtype)


def skip_classifier(
    seed: int = 1, dtype: torch.dtype = torch.float64, cam_layer: str = "second"
) -> Classifier:
    return classifier(with_random_state(SkipNet(), seed), cam_layer, dtype=dtype)


def attention_classifier(
    seed: int = 1, channels: int = 3, pool: str = "class", dtype: torch.dtype = torch.float64
) -> Classifier:
    """A vision transformer of two layers, for images of 12 pixels, with a grid of 3 × 3 tokens."""
    size = {"image_size": 12, "patch": 4, "width": 8, "depth": 2, "heads": 2, "pool": pool}
    network = vit(classes=CLASSES, channels=channels, generator=generator(), **size)
    return classifier(with_random_state(network, seed), "blocks.-1.norm1", channels, dtype)


RESNET_SETTINGS: dict[str, Any] = {
    "architecture": "resnet20",
    "function": "saliency_assay.models.resnet:resnet20",
    "parameters": {"width": 2},
}
RESNET = Blueprint(**RESNET_SETTINGS)


def small_resnet(*, classes: int = 3, channels: int = 3, seed: int = 1) -> Classifier:
    """A registered network with random weights, as jobs of the workflow load it."""
    mean, std = [0.25] * channels, [0.5] * channels
    return build(RESNET, classes=classes, mean=mean, std=std, generator=generator(seed))


RESNET8 = Blueprint(
    architecture="resnet8",
    function="saliency_assay.models.resnet:resnet8",
    parameters={"width": 4, "stem_stride": 1},
    cam_layer="layer3",
    concept_layers=["layer1", "layer2"],
)


def small_resnet8(seed: int = 0, classes: int = 3) -> Classifier:
    mean, std = [0.1, 0.5, 0.9], [0.2, 0.3, 0.4]
    return build(RESNET8, classes=classes, mean=mean, std=std, generator=generator(seed))


def random_images(
    count: int, channels: int = 3, size: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Pixels in [0, 1], each image with a range of its own."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, channels, size, size, generator=generator)
    return (images * torch.linspace(0.4, 1, count)[:, None, None, None]).to(dtype)


def cyclic_targets(count: int) -> Tensor:
    return torch.arange(count) % CLASSES


FEW: dict[str, Any] = {"samples": 3, "steps": 4}
"""Parameters that keep tests of many methods fast; some methods need others."""
FEW_OF: dict[str, dict[str, Any]] = {
    "kernel_shap": {"segments": 6, "samples": 20},
    "lime": {"segments": 6, "samples": 20},
    "optimal_noisy_baseline": {"samples": 40},
    "occlusion": {"window": 0.4, "stride": 0.3},
    "optimal_square": {"largest": 2},
    "xrai": {"resolution": 32},
}


def few_passes(method: Method) -> dict[str, Any]:
    """Those of ``FEW`` that the method has, or its own."""
    few = {name: value for name, value in FEW.items() if name in method.parameters}
    return few | FEW_OF.get(method.name, {})


def explain(method: Method, model: nn.Module, images: Tensor, targets: Tensor, seed: int = 0) -> Tensor:
    """A registered method's maps, in few passes, with what it takes beside its parameters."""
    return bound(method, images)(model, images, targets, generator=generator(seed))


def bound(method: Method, images: Tensor, **parameters: Any) -> Callable[..., Tensor]:
    """The method's function with few passes, ``parameters``, a background of three images and masks."""
    keywords = {**few_passes(method), **parameters}
    if "background" in method.takes:
        keywords["background"] = random_images(
            3, images.shape[1], images.shape[2], seed=9, dtype=images.dtype
        )
    function = resolve(method.function)
    return partial(with_masks(function) if "mask" in method.takes else function, **keywords)


def with_masks(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method that takes masks, with those of ``masks_of``."""

    def method(model: nn.Module, images: Tensor, targets: Tensor, **keywords: Any) -> Tensor:
        return function(model, images, targets, mask=masks_of(images), **keywords)

    return method


def masks_of(images: Tensor) -> Tensor:
    """Masks that depend on nothing but the size of the images: their left half, bool ``[N, H, W]``."""
    count, _, height, width = images.shape
    return (torch.arange(width) < width // 2).expand(count, height, width)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@contextmanager
def seen_batches(model: nn.Module) -> Iterator[list[Tensor]]:
    """The batches that pass through the model while the context is open."""
    seen: list[Tensor] = []
    handle = model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().clone()))
    try:
        yield seen
    finally:
        handle.remove()


def state_of(model: nn.Module) -> dict[str, object]:
    """Everything a method must leave as it found it, in a form that ``==`` compares."""
    state: dict[str, object] = {}
    for name, module in model.named_modules():
        hooks = [getattr(module, kind) for kind in vars(module) if kind.endswith("hooks")]
        state[f"{name} training"] = module.training
        state[f"{name} hooks"] = [len(registered) for registered in hooks if registered is not None]
    for name, parameter in model.named_parameters():
        state[f"{name} requires_grad"] = parameter.requires_grad
        state[f"{name} grad"] = parameter.grad
    state |= {f"{name} value": tensor.tolist() for name, tensor in model.state_dict().items()}
    return state


def exact(
    values: Tensor | np.ndarray, expected: Tensor | np.ndarray, tolerance: float = 1e-8, floor: float = 1e-12
) -> None:
    """Assert equality to ``tolerance`` relative to each value, and to ``floor`` where values are near 0."""
    np.testing.assert_allclose(np.asarray(values), np.asarray(expected), rtol=tolerance, atol=floor)
