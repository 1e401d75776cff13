"""Networks whose logits are no function of an image alone, and networks that only keep books."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support import cyclic_targets, random_images, state_of, with_random_state
from torch import Tensor, nn
from torch.nn import functional

import saliency_assay
from saliency_assay.models.independence import differ

IMAGES, TARGETS = random_images(5, size=8, dtype=torch.float32), cyclic_targets(5)
MAPS = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """A convolution and a head, with ``between`` applied to the features ``[N, 4]``."""

    def __init__(self, between: Callable[[Any, Tensor], Tensor], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), norm or nn.Identity(), nn.ReLU())
        self.head = nn.Linear(4, 4)
        self.between = between
        self.register_buffer("passes", torch.ones(1))
        self.register_buffer("inputs", torch.zeros(1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.between(self, self.features(images).mean((2, 3))))


def net(between: Callable[[Any, Tensor], Tensor], norm: nn.Module | None = None) -> nn.Module:
    return with_random_state(Net(between, norm), 1, torch.float32)


def forget(network: Any, features: Tensor) -> Tensor:
    """The result depends on the number of passes before this one."""
    network.passes += 1
    return features * network.passes


def count(network: Any, features: Tensor) -> Tensor:
    """Write buffers that the logits do not depend on."""
    network.passes += len(features)
    network.inputs = features.detach().mean((0, 1))[None]
    return features


NEIGHBORS = {
    "batch statistics": net(lambda _, x: x, nn.BatchNorm2d(4, track_running_stats=False)),
    "roll": net(lambda _, x: torch.roll(x, 1, 0)),
    "softmax over images": net(lambda _, x: x.softmax(0)),
    "mean over images": net(lambda _, x: x - x.mean(0)),
    "attention over images": net(lambda _, x: (x @ x.T).softmax(1) @ x),
    "least over images": net(lambda _, x: x - x.amin(0)),
    "greatest over images": net(lambda _, x: x / (1 + x.amax(0))),
}
PASSES = {
    "dropout": net(lambda _, x: 100 * x * functional.dropout(torch.rand_like(x), 0.1)),
    "noise": net(lambda _, x: x + torch.rand_like(x)),
    "state": net(forget),
}


@pytest.mark.parametrize("name", [*NEIGHBORS, *PASSES])
def test_other_images_and_passes_must_not_matter(name: str) -> None:
    network = {**NEIGHBORS, **PASSES}[name]
    match = "depend on the other images" if name in NEIGHBORS else "second pass of the same image"
    before = state_of(network)
    with pytest.raises(ValueError, match=f"^Net: .*{match}"):
        saliency_assay.attribute("gradient", network, IMAGES, TARGETS, batch_size=1)
    with pytest.raises(ValueError, match=f"^Net: .*{match}"):
        saliency_assay.score("deletion", network, IMAGES, TARGETS, MAPS, batch_size=5)
    assert state_of(network) == before
    if name in NEIGHBORS:
        for level in (0.0, 0.5):  # images of one color
            with pytest.raises(ValueError, match=match):
                saliency_assay.attribute("gradient", network, torch.full((2, 3, 8, 8), level), [0, 1])


class Single(Net):
    """A network that takes one image at a time."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.reshape(1, 3, 8, 8))


@pytest.mark.filterwarnings("ignore")
def test_dynamic_quantization_rounds_by_batch_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 4)).eval()
    quantized = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear})
    assert saliency_assay.attribute("occlusion", quantized, IMAGES, TARGETS).shape == (5, 1, 8, 8)
    (message,) = caplog.messages
    assert message.startswith("Sequential: dynamically quantized layers round by the range of a batch")
    mixing = torch.ao.quantization.quantize_dynamic(net(lambda _, x: 100 * (x - x.mean(0))), {nn.Linear})
    with pytest.raises(ValueError, match="depend on the other images"):
        saliency_assay.attribute("occlusion", mixing, IMAGES, TARGETS)


def test_a_network_of_single_images() -> None:
    network = with_random_state(Single(lambda _, x: x), 1, torch.float32)
    for method in ("gradient", "gradient_x_input"):
        maps = saliency_assay.attribute(method, network, IMAGES[:1], TARGETS[:1])
        expected = saliency_assay.attribute(method, net(lambda _, x: x), IMAGES[:1], TARGETS[:1])
        torch.testing.assert_close(maps, expected)
    with pytest.raises(ValueError, match=r"^Single: does not take images \[2, 3, 8, 8\]"):
        saliency_assay.attribute("gradient", network, IMAGES, TARGETS)


def test_a_maximum_over_all_passes_is_refused() -> None:
    """The logits of these images would change only after an image with greater features."""

    def scale(network: Any, features: Tensor) -> Tensor:
        network.passes = torch.maximum(network.passes, features.detach().amax())
        return features / network.passes

    network = net(scale)
    with torch.no_grad():
        network(10 * IMAGES)
    with pytest.raises(ValueError, match=r"^Net: .* depend on passes, which each pass writes"):
        saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    assert network.passes > 1


def test_a_mean_in_an_attribute_is_refused() -> None:
    """A tensor that is no buffer, and changes so slowly that two passes hardly differ."""

    def centered(network: Any, features: Tensor) -> Tensor:
        mean = getattr(network, "mean", torch.zeros(4))
        network.mean = 0.9999 * mean + 0.0001 * features.detach().mean(0)
        return features - network.mean

    network = net(centered)
    with pytest.raises(ValueError, match="depend on mean, which each pass writes"):
        saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    assert network.mean.abs().max() < 1


def test_an_attribute_that_a_pass_stores_is_no_state() -> None:
    def stored(network: Any, features: Tensor) -> Tensor:
        network.features_of_last_pass = features
        return network.features_of_last_pass

    maps = saliency_assay.attribute("gradient", net(stored), IMAGES, TARGETS)
    assert torch.equal(maps, saliency_assay.attribute("gradient", net(lambda _, x: x), IMAGES, TARGETS))


def test_a_setting_in_a_dictionary_is_noticed() -> None:
    settings = {"over": False}
    network = net(lambda network, x: x - x.mean(0) if network.settings["over"] else x)
    network.settings = settings
    saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    settings["over"] = True
    with pytest.raises(ValueError, match="depend on the other images"):
        saliency_assay.attribute("gradient", network, IMAGES, TARGETS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "parameters"), [("gradient", {}), ("rise", {"samples": 20})])
def test_observers_write_other_buffers_for_other_images(method: str, parameters: dict[str, int]) -> None:
    network = net(lambda _, x: x)
    network.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    observed = torch.ao.quantization.prepare(network)
    maps, expected = (
        saliency_assay.attribute(method, each, IMAGES, TARGETS, **parameters)
        for each in (observed, net(lambda _, x: x))
    )
    assert torch.equal(maps, expected)


def test_a_network_changed_after_a_call_is_checked_again() -> None:
    network = net(lambda _, x: x, nn.BatchNorm2d(4))
    model = saliency_assay.wrap(network, classes=4, mean=[0.5] * 3, std=[0.5] * 3)
    saliency_assay.attribute("gradient", model, IMAGES, TARGETS)
    norm = network.features[1]
    norm.running_mean = norm.running_var = None
    with pytest.raises(ValueError, match="depend on the other images"):
        saliency_assay.attribute("gradient", model, IMAGES, TARGETS)


def test_buffers_that_a_pass_writes_are_not_the_methods_fault() -> None:
    counting, plain = net(count), net(lambda _, x: x)
    maps = saliency_assay.attribute("gradient", counting, IMAGES, TARGETS, batch_size=2)
    assert torch.equal(maps, saliency_assay.attribute("gradient", plain, IMAGES, TARGETS, batch_size=2))

    def writes(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        model.network.head.bias.data += 1
        return images.clone()

    with pytest.raises(ValueError, match=r"writes: changed network\.head\.bias in place"):
        saliency_assay.attribute(writes, counting, IMAGES, TARGETS)


class Extra(nn.Sequential):
    """A state dict with an entry that is no tensor."""

    def get_extra_state(self) -> dict[str, int]:
        return {"version": 1}

    def set_extra_state(self, state: dict[str, int]) -> None:
        assert state == {"version": 1}


def test_state_that_is_no_tensor() -> None:
    layers = nn.Sequential(nn.Flatten(), nn.Linear(192, 4)).eval()
    expected = saliency_assay.attribute("gradient", layers, IMAGES, TARGETS)
    assert torch.equal(saliency_assay.attribute("gradient", Extra(*layers), IMAGES, TARGETS), expected)


def test_rounding_and_nan_do_not_differ() -> None:
    logits = torch.tensor([[1000.0, 0.5], [torch.nan, 1.0], [torch.inf, 2.0]])
    assert not differ(logits, logits + torch.tensor([0.5, 0.0]))
    assert differ(logits[:1], logits[:1] + torch.tensor([0.0, 5.0]))
    assert differ(logits[1:2], torch.ones(1, 2))
    assert differ(torch.zeros(1, 2), torch.full((1, 2), 1e-9))
    assert not differ(torch.zeros(1, 2), torch.zeros(1, 2))
