"""Ten networks of torchvision and five hand-written ones, small enough to be trained within a test.

Each stands for something that users' networks do and the project's own do not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models
from torchvision.models.convnext import CNBlockConfig

from saliency_assay.models.classifier import Classifier
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import train

CLASSES, SIZE = 3, 32
SETTINGS = training_from({"epochs": 1, "batch_size": 4, "learning_rate": 0.01, "momentum": 0.5})


class View(nn.Module):
    """Flattens by ``view``, which refuses channels-last activations."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4 * 8 * 8, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = self.features(images)
        return self.head(features.view(features.size(0), -1))


class Auxiliary(nn.Module):
    """Has a head whose logits stand second in training mode, and one that nothing calls."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU())
        self.head, self.second, self.idle = (nn.Linear(4, CLASSES) for _ in range(3))

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        features = self.features(images).mean((2, 3))
        return (self.head(features), self.second(features)) if self.training else self.head(features)


class Frozen(nn.Module):
    """Keeps its BatchNorm in evaluation mode, as is usual when pretrained weights are trained further."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, CLASSES)
        norm = self.features[1].requires_grad_(False)
        norm.running_mean.fill_(0.5)
        norm.running_var.fill_(2.0)

    def train(self, mode: bool = True) -> "Frozen":
        super().train(mode)
        self.features[1].eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images).mean((2, 3)))


class AlwaysDropout(nn.Dropout):
    """Dropout in evaluation, too (Monte Carlo dropout)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, training=True)


class Uncertain(nn.Sequential):
    """Gives other logits in each pass."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), AlwaysDropout(0.2))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


class Counting(nn.Module):
    """Has buffers of whole numbers and of truth values, one written to and one replaced in training."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU())
        self.head = nn.Linear(4, CLASSES)
        self.register_buffer("order", torch.tensor([2, 0, 3, 1]))
        self.register_buffer("kept", torch.tensor([True, True, False, True]))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.register_buffer("replaced", torch.zeros(2, dtype=torch.int32))

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            self.written.add_(1)
            self.replaced = self.replaced + 2
        features = self.features(images).mean((2, 3))[:, self.order]
        return self.head(features.where(self.kept, 0))


@dataclass(frozen=True)
class Kind:
    """A network and what methods can be expected to do with it."""

    build: Callable[[], nn.Module]
    cam_layer: str
    activations: str = "ReLU"
    repeats: bool = True
    """True if two passes in evaluation mode return the same logits."""


def _resnet() -> nn.Module:
    return models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)


def _convnext() -> nn.Module:
    blocks = [CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)]
    return models.ConvNeXt(blocks, layer_scale=1.0, num_classes=CLASSES)


def _swin() -> nn.Module:
    return models.SwinTransformer(
        [4, 4], 16, [1, 1], [2, 2], [4, 4], stochastic_depth_prob=0.0, num_classes=CLASSES
    )


def _vit() -> nn.Module:
    network = models.VisionTransformer(SIZE, 16, 2, 2, 32, 64, num_classes=CLASSES)
    nn.init.normal_(network.heads.head.weight)  # torchvision starts it at 0, where no pixel counts
    return network


KINDS = {
    "ResNet": Kind(_resnet, "layer4"),
    "DenseNet": Kind(lambda: models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=CLASSES), "features"),
    "googlenet": Kind(
        lambda: models.googlenet(num_classes=CLASSES, aux_logits=True, init_weights=False), "inception5b"
    ),
    "mobilenet_v3_small": Kind(
        lambda: models.mobilenet_v3_small(num_classes=CLASSES), "features", activations="ReLU and Hardswish"
    ),
    "efficientnet_b0": Kind(
        # Without stochastic depth, here and below: it is not torch's dropout, and each process draws its own.
        lambda: models.efficientnet_b0(num_classes=CLASSES, stochastic_depth_prob=0.0),
        "features",
        activations="no ReLU",
    ),
    "shufflenet_v2_x0_5": Kind(lambda: models.shufflenet_v2_x0_5(num_classes=CLASSES), "conv5"),
    "squeezenet1_1": Kind(lambda: models.squeezenet1_1(num_classes=CLASSES), "features"),
    "ConvNeXt": Kind(_convnext, "features", activations="no ReLU"),
    "SwinTransformer": Kind(_swin, "permute", activations="no ReLU"),
    "VisionTransformer": Kind(_vit, "encoder.layers.-1.ln_1", activations="no ReLU"),
    "view": Kind(View, "features"),
    "auxiliary head": Kind(Auxiliary, "features"),
    "frozen BatchNorm": Kind(Frozen, "features"),
    "dropout in evaluation": Kind(Uncertain, "features", repeats=False),
    "buffers of integers": Kind(Counting, "features"),
}


def network(name: str) -> nn.Module:
    """One of ``KINDS``, of the same weights each time, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return KINDS[name].build().eval()


def images(count: int) -> Tensor:
    """Images uint8 ``[count, 3, 32, 32]``."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator)


def trained(name: str, folder: Path) -> tuple[Classifier, list[dict[str, float]]]:
    """A network after two steps in float64, in which processes differ by the order of sums alone."""
    parts = {"mean": [0.5] * 3, "std": [0.25] * 3, "cam_layer": "", "concept_layers": ()}
    model = Classifier(network(name), classes=CLASSES, **parts).double()
    model.register_forward_pre_hook(lambda model, inputs: (inputs[0].double(),))
    rows = train(
        model,
        images(11),
        torch.arange(11) % CLASSES,
        torch.arange(8),
        torch.arange(8, 11),
        SETTINGS,
        seed=3,
        state_path=folder / f"{name}.state",
        fingerprint="one",
    )
    return model, rows


def marks(model: nn.Module) -> dict[str, list[float]]:
    """Of each tensor of the state, its sum, its norm and its product with a fixed vector."""
    results = {}
    for name, tensor in model.state_dict().items():
        values = tensor.double().flatten()
        fixed = torch.arange(len(values), dtype=torch.float64).cos()
        results[name] = [float(values.sum()), float(values.norm()), float(values @ fixed)]
    return results


def train_networks(folder: Path) -> dict[str, Any]:
    """The marks and the loss of each of ``KINDS`` after training."""
    results = {}
    for name in KINDS:
        model, rows = trained(name, folder)
        results[name] = {"marks": marks(model), "loss": rows[0]["train_loss"]}
    return results
