"""The memory format in which networks are given images, and that finding it leaves no trace."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support import CLASSES, ConvNet, state_of
from torch import Tensor, nn

import saliency_assay
from saliency_assay.models import layout
from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.inference import logits
from saliency_assay.models.layout import adapt, leaves_unused, place
from saliency_assay.models.resnet import resnet8

SIZE = (8, 8)
CPU = torch.device("cpu")
LAST, FIRST = torch.channels_last, torch.contiguous_format


class Flat(nn.Module):
    """A convolution whose output ``flatten`` flattens, in training, evaluation or both."""

    def __init__(
        self,
        flatten: Callable[[Tensor], Tensor],
        modes: tuple[bool, ...] = (False, True),
        channels: int = 3,
        counts: bool = False,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6 * 8 * 8, CLASSES)
        self.flatten, self.modes, self.counts = flatten, modes, counts
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))

    def forward(self, images: Tensor) -> Tensor:
        self.passes = self.passes + self.counts
        features = self.drop(self.norm(self.conv(images)))
        flatten = self.flatten if self.training in self.modes else nn.Flatten()
        return self.head(flatten(features))


def viewed(features: Tensor) -> Tensor:
    return features.view(features.size(0), -1)


def viewed_last(features: Tensor) -> Tensor:
    """The same for channels-last activations alone."""
    return features.permute(0, 2, 3, 1).view(features.size(0), -1)


class Backward(torch.autograd.Function):
    """Refuses channels-last gradients."""

    @staticmethod
    def forward(context: Any, features: Tensor) -> Tensor:
        context.last = not features.is_contiguous()
        return features.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        if context.last:
            raise RuntimeError("expected contiguous gradients")
        return gradient


def derived(features: Tensor) -> Tensor:
    return Backward.apply(features).flatten(1)


def refused(features: Tensor) -> Tensor:
    raise RuntimeError("no")


def wrapped(network: nn.Module, channels: int = 3) -> Classifier:
    parts = {"mean": [0.5] * channels, "std": [0.25] * channels, "cam_layer": "", "concept_layers": ()}
    return Classifier(network, classes=CLASSES, **parts).eval()


def stored(count: int, channels: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *SIZE), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize(
    ("flatten", "modes", "training", "expected"),
    [
        (nn.Flatten(), (False, True), True, LAST),
        (viewed, (False, True), False, FIRST),
        (viewed, (False, True), True, FIRST),
        (viewed, (True,), False, LAST),
        (viewed, (True,), True, FIRST),
        (viewed, (False,), True, FIRST),
        (viewed_last, (False, True), True, LAST),
        (derived, (False, True), False, FIRST),
        (refused, (False, True), True, LAST),
    ],
)
def test_format(
    flatten: Callable[[Tensor], Tensor],
    modes: tuple[bool, ...],
    training: bool,
    expected: torch.memory_format,
) -> None:
    model = place(wrapped(Flat(flatten, modes)), CPU, SIZE, training=training)
    assert model.memory_format == expected
    assert model.network.conv.weight.is_contiguous(memory_format=expected)


@pytest.mark.parametrize(
    ("width", "training", "capability", "expected"),
    [
        (4, True, "AVX2", FIRST),
        (8, True, "AVX2", LAST),
        (4, False, "AVX2", LAST),
        (4, True, "AVX512", LAST),
    ],
)
def test_narrow_shortcuts_are_trained_in_the_format_that_onednn_supports(
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    training: bool,
    capability: str,
    expected: torch.memory_format,
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(layout, "_trial_error", lambda *_: None)  # it may crash in the last case
    network = resnet8(classes=CLASSES, channels=3, generator=torch.Generator(), width=width)
    model = place(wrapped(network), CPU, SIZE, training=training)
    assert model.memory_format == expected


@pytest.mark.parametrize("channels", [1, 3])
def test_gray_images_are_tried_with_the_weights_that_are_used(channels: int) -> None:
    """One channel is in both formats at once; then the weights decide what a convolution gives."""
    network = Flat(viewed, channels=channels).eval()
    expected = network((stored(5, channels) / 255 - 0.5) / 0.25).detach()
    model = place(wrapped(network, channels), CPU, SIZE)
    result = logits(model, stored(5, channels), batch_size=2)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flatten", [viewed, refused])
def test_a_trial_leaves_no_trace(flatten: Callable[[Tensor], Tensor]) -> None:
    model = wrapped(Flat(flatten, counts=True)).train()
    model.network.norm.eval()
    model.network.norm.running_mean.fill_(3.0)
    kept = model.network.passes
    before, random = state_of(model), torch.random.get_rng_state()
    adapt(model, SIZE, training=True)
    leaves_unused(model, SIZE)
    assert state_of(model) == before
    assert model.network.passes is kept
    assert torch.equal(torch.random.get_rng_state(), random)


def test_results_in_channels_last_are_bit_for_bit_the_same() -> None:
    """Against the plain way: weights and images in channels-last, and no trial."""
    plain = wrapped(ConvNet(3)).to(memory_format=LAST)
    tried = wrapped(ConvNet(3))
    tried.load_state_dict(plain.state_dict())
    place(tried, CPU, SIZE)
    expected = [plain((part / 255).contiguous(memory_format=LAST)) for part in stored(7).split(3)]
    assert torch.equal(logits(tried, stored(7), batch_size=3), torch.cat(expected).detach())


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_a_network_with_view_in_python(is_wrapped: bool) -> None:
    network = Flat(viewed).eval()
    model = wrapped(network) if is_wrapped else network
    maps = saliency_assay.attribute("smoothgrad", model, stored(3), [0, 1, 2], samples=2, batch_size=2)
    assert maps.shape == (3, 3, *SIZE)
    scores = saliency_assay.score("deletion", model, stored(3), [0, 1, 2], maps, steps=4, batch_size=2)
    assert bool(np.isfinite(scores["deletion"]).all())


# --- what a network returns ---------------------------------------------------------------------------------


class Unused(nn.Module):
    """A head that is called in training, in evaluation, never, or frozen."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.head, self.other = nn.Linear(3, CLASSES), nn.Linear(3, CLASSES)
        self.when = when
        self.other.requires_grad_(when != "frozen")

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        features = images.mean((2, 3))
        if self.when == "beside":
            return self.head(features), self.other(features)
        called = self.when == "always" or self.when == ("training" if self.training else "evaluation")
        return self.head(features) + (self.other(features) if called else 0)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("always", False),
        ("training", False),
        ("frozen", False),
        ("evaluation", True),
        ("never", True),
        ("beside", True),
    ],
)
def test_unused_parameters(when: str, expected: bool) -> None:
    assert leaves_unused(wrapped(Unused(when)), SIZE) == expected


class Output:
    """As Hugging Face's networks return it."""

    def __init__(self, logits: Tensor) -> None:
        self.loss, self.logits = None, logits


@pytest.mark.parametrize(
    "give",
    [lambda x: (x, None), lambda x: [x], Output, lambda x: x],
    ids=["tuple", "list", "attribute", "tensor"],
)
def test_logits_beside_other_outputs(give: Callable[[Tensor], object]) -> None:
    class Giving(nn.Module):
        def forward(self, images: Tensor) -> object:
            return give(images.mean((2, 3)).repeat(1, 2)[:, :CLASSES])

    result = wrapped(Giving())(torch.rand(2, 3, *SIZE))
    assert result.shape == (2, CLASSES)
    assert main_output(give(result)) is result


def test_an_output_without_logits() -> None:
    class Named(nn.Module):
        def forward(self, images: Tensor) -> dict[str, Tensor]:
            return {"out": images.mean((2, 3))}

    with pytest.raises(ValueError, match=r"^network: returned dict, expected logits \[N, 4\]"):
        wrapped(Named())(torch.rand(2, 3, *SIZE))
