"""Builders of networks whose weights are hard to read back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

KEPT = {"version": 3}


class Net(nn.Module):
    """A linear network below an attribute of any name."""

    def __init__(self, attribute: str = "body", classes: int = 3) -> None:
        super().__init__()
        self.attribute = attribute
        setattr(self, attribute, nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)))
        self(torch.zeros(1, 3, 8, 8))

    def forward(self, images: Tensor) -> Tensor:
        return getattr(self, self.attribute)(images)


class Complex(Net):
    """A buffer of complex numbers, as of a Fourier filter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("waves", torch.randn(4, dtype=torch.complex64))


class Extra(Net):
    """State that is no tensor."""

    def get_extra_state(self) -> Any:
        return KEPT

    def set_extra_state(self, state: Any) -> None:
        assert state == KEPT


class Prototypes(nn.Module):
    """No stored tensor has the number of classes as its length."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(7))
        prototypes = torch.randn(classes, 7, generator=torch.Generator().manual_seed(0))
        self.register_buffer("prototypes", prototypes, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return (images.flatten(1)[:, :7] * self.scale) @ self.prototypes.T


class Growing(Net):
    """The state of a trained network does not fit a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(int(torch.randint(1, 10**6, ()))))


class Opaque(Net):
    """Extra state that cannot be stored."""

    def get_extra_state(self) -> Any:
        return {"function": print}


class Permuted(Net):
    """Random values that are not in the state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.randperm(8), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images[..., getattr(self, "order", slice(None))])


class Mixing(Net):
    """Logits depend on the other images of the batch."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean(0))


def builder(make: Callable[[int], nn.Module]) -> Callable[..., nn.Module]:
    """A builder as the project calls it, of a network for a number of classes."""

    def build(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
        return make(classes)

    return build


permuted = builder(lambda classes: Permuted())
lazy = builder(lambda classes: nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)))
module = builder(lambda classes: Net("module"))
orig_mod = builder(lambda classes: Net("_orig_mod"))
parallel = builder(lambda classes: nn.DataParallel(Net("module")))
compiled = builder(lambda classes: torch.compile(Net("module"), backend="eager"))
averaged = builder(lambda classes: torch.optim.swa_utils.AveragedModel(Net("_orig_mod")))
waves = builder(lambda classes: Complex())
extra = builder(lambda classes: Extra())
prototypes = builder(Prototypes)
growing = builder(lambda classes: Growing())
opaque = builder(lambda classes: Opaque())
over_images = builder(lambda classes: Mixing())
