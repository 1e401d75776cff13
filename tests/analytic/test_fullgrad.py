"""FullGrad: its terms sum to the logit and are the gradients of the biases; its map against plain NumPy."""

import weakref
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    classifier,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    skip_classifier,
    with_random_state,
)
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.canonical import canonical, normalized
from saliency_assay.methods.feature_maps import rescaled
from saliency_assay.methods.fullgrad import RESCALINGS, full_gradient, fullgrad
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.cnn import vgg16_bn
from saliency_assay.models.resnet import resnet8

IMAGES, TARGETS = random_images(5, size=8), cyclic_targets(5)
SIZES = {"classes": CLASSES, "channels": 3, "generator": generator()}


class Joined(nn.Module):
    """Activations that are joined, rearranged and padded, leaky ReLUs, and a constant that is added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
        self.position = nn.Parameter(torch.zeros(1, 4, 8, 8))
        self.leaky, self.learned, self.pad = nn.LeakyReLU(0.1), nn.PReLU(4), nn.ZeroPad2d(1)
        self.second = nn.Conv2d(8, 5, 3, stride=2)
        self.pool, self.head = nn.AdaptiveMaxPool2d(2), nn.Linear(20, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = self.first(self.norm(images)) + self.position
        both = torch.cat([self.leaky(features), self.learned(features).roll(1, 3)], 1)
        return self.head(self.pool(self.second(self.pad(both))).flatten(1))


def wrapped(network: nn.Module, seed: int = 1) -> Classifier:
    """Random weights, biases and statistics behind a normalization that differs between channels."""
    model = classifier(with_random_state(network, seed), "")
    model.mean.copy_(torch.tensor([0.3, 0.45, 0.6]).reshape(1, 3, 1, 1))
    model.std.copy_(torch.tensor([0.2, 0.25, 0.3]).reshape(1, 3, 1, 1))
    return model


def plain_net(*layers: nn.Module, biases: bool = True) -> nn.Sequential:
    """A convolution of the image's size, one of half its size and ``layers`` behind it, and pooling."""
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1, bias=biases),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(5, 6, 3, padding=1, bias=biases),
        *(layers or (nn.ReLU(),)),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 7, bias=biases),
        nn.ReLU(),
        nn.Linear(7, CLASSES, bias=biases),
    )


NETS: dict[str, Callable[[], Classifier]] = {
    "plain": lambda: wrapped(plain_net()),
    "without biases": lambda: wrapped(plain_net(biases=False)),
    "joined": lambda: wrapped(Joined()),
    "batchnorm": conv_classifier,
    "skip connection": skip_classifier,
    "resnet8": lambda: wrapped(resnet8(**SIZES, width=3)),
    "vgg16_bn": lambda: wrapped(vgg16_bn(**SIZES, width=2, hidden=8, pooled=1)),
}


def terms(model: Classifier, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The term of the input, and those of the biases from the first layer to the last."""
    received: list[tuple[str, Tensor]] = []
    of_input, _ = full_gradient(
        canonical(model, images), normalized(model, images), TARGETS, lambda *term: received.append(term)
    )
    assert len({name for name, _ in received}) == len(received)
    return of_input, dict(reversed(received))


@pytest.mark.parametrize("net", NETS)
def test_all_terms_of_an_image_sum_to_its_logit(net: str) -> None:
    model = NETS[net]()
    images = random_images(5, size=32 if "vgg" in net else 8)
    of_input, of_biases = terms(model, images)
    total = of_input.flatten(1).sum(1) + sum(term.flatten(1).sum(1) for term in of_biases.values())
    with torch.no_grad():
        exact(total, model(images)[range(5), TARGETS], 1e-9)
    assert of_input.shape == images.shape
    assert not any(term.requires_grad for term in (of_input, *of_biases.values()))
    assert bool(of_biases) == (net != "without biases")
    assert sum(bool(term.any()) for term in of_biases.values()) == len(of_biases)


def test_a_term_is_the_bias_times_its_gradient() -> None:
    """Summed over positions, the gradient is that of the bias, which autograd computes on the network itself."""
    model = wrapped(plain_net())
    _, of_biases = terms(model, IMAGES)
    biases = {name: layer.bias for name, layer in model.network.named_children() if hasattr(layer, "bias")}
    assert list(of_biases) == list(biases)
    for image, target in enumerate(TARGETS):
        gradients = torch.autograd.grad(model(IMAGES[image : image + 1])[0, target], biases.values())
        for term, bias, gradient in zip(of_biases.values(), biases.values(), gradients, strict=True):
            by_channel = term[image].sum((1, 2)) if term.ndim == 4 else term[image]
            exact(by_channel, bias.detach() * gradient)


def test_the_gradients_are_released() -> None:
    """Hooks in the autograd graph refer to the function, which is alive as long as the graph is."""
    model = conv_classifier()

    def receive(name: str, term: Tensor) -> None:
        pass

    alive = weakref.ref(receive)
    full_gradient(canonical(model, IMAGES), normalized(model, IMAGES), TARGETS, receive)
    del receive
    assert alive() is None


def resized(values: np.ndarray, size: int) -> np.ndarray:
    """Bilinear interpolation of ``[h, w]`` between centers of pixels, one axis after the other."""
    for axis in (0, 1):
        count = values.shape[axis]
        centers = (np.arange(size) + 0.5) * count / size - 0.5
        interpolated = partial(np.interp, centers, np.arange(count))
        values = np.apply_along_axis(interpolated, axis, values)
    return values


@pytest.mark.parametrize("rescale", RESCALINGS)
def test_map_equals_plain_loops(rescale: str) -> None:
    model = wrapped(plain_net())
    of_input, of_biases = terms(model, IMAGES)
    assert [term.shape[2:] for term in of_biases.values()] == [(8, 8), (4, 4), (), ()]
    maps = fullgrad(model, IMAGES, TARGETS, generator=generator(), rescale=rescale)
    for image in range(5):
        expected = np.zeros((8, 8))
        for term in (of_input, *list(of_biases.values())[:2]):  # without the linear layers
            values = np.abs(term[image].numpy())
            for channel in values:
                around = channel if rescale == "channel" else values
                # A channel of inactive neurons is 0 everywhere.
                expected += resized((channel - around.min()) / (np.ptp(around) or 1), 8)
        exact(maps[image, 0], expected)


IMPLICIT: dict[str, tuple[nn.Module, Callable[[Tensor], Tensor]]] = {
    "ReLU6": (nn.ReLU6(), lambda z: 6.0 * (z > 6)),
    "Hardtanh": (nn.Hardtanh(-0.5, 0.25), lambda z: 0.25 * (z > 0.25) - 0.5 * (z < -0.5)),
    "ELU": (nn.ELU(), lambda z: torch.where(z > 0, 0, torch.exp(z) * (1 - z) - 1)),
    "Sigmoid": (nn.Sigmoid(), lambda z: z.sigmoid() * (1 - z * (1 - z.sigmoid()))),
    "Hardswish": (nn.Hardswish(), lambda z: torch.where(z.abs() < 3, -(z**2) / 6, 0)),
}


@pytest.mark.parametrize("name", IMPLICIT)
def test_the_implicit_bias_of_an_activation_is_the_offset_of_its_tangent(name: str) -> None:
    activation, offset = IMPLICIT[name]
    model = wrapped(plain_net(activation))
    for layer in (model.network[0], model.network[3]):
        layer.weight.data *= 6
    _, of_biases = terms(model, IMAGES)
    z = model.network[:4](normalized(model, IMAGES)).detach()
    y = activation(z).requires_grad_()
    gradient = torch.autograd.grad(model.network[5:](y)[range(5), TARGETS].sum(), y)[0]
    exact(of_biases["4"], offset(z) * gradient, 1e-9, floor=1e-12)
    assert of_biases["4"].any()


def test_a_channel_that_is_constant_up_to_rounding_is_0() -> None:
    """With a linear layer over the mean, all positions of a channel have the same gradient."""
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = wrapped(network.append(nn.Linear(6, CLASSES)))
    of_input, of_biases = terms(model, IMAGES)
    noise = torch.rand(5, 6, 8, 8, generator=generator(), dtype=torch.float64)
    rough = next(iter(of_biases.values())) * (1 + 1e-15 * noise)
    assert (rough.amax((2, 3)) > rough.amin((2, 3))).all()
    assert not rescaled(rough, (2, 3)).any()
    expected = rescaled(of_input.abs(), (2, 3)).sum(1, keepdim=True)
    exact(fullgrad(model, IMAGES, TARGETS, generator=generator(), rescale="channel"), expected)


def test_values_that_are_not_finite_show_in_their_map_alone() -> None:
    images = IMAGES.clone()
    images[2, 0, 0, 0] = torch.nan
    maps = fullgrad(conv_classifier(), images, TARGETS, generator=generator())
    assert maps.flatten(1).isnan().any(1).tolist() == [False, False, True, False, False]


class Product(nn.Module):
    def forward(self, features: Tensor) -> Tensor:
        return features * features


class Token(nn.Module):
    """Joins a constant column to the activations."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 6, 4, 1))

    def forward(self, features: Tensor) -> Tensor:
        column = self.token.expand(features.shape[0], -1, -1, -1)
        return torch.cat([features[:, :, :, 1:], column], 3)


OFFSETS = {
    "LayerNorm": nn.LayerNorm([4, 4]),
    "Softmax": nn.Softmax(1),
    "Multiply": Product(),
}


@pytest.mark.parametrize("kind", OFFSETS)
def test_a_layer_with_an_offset_of_its_own_is_refused(kind: str) -> None:
    model = wrapped(plain_net(OFFSETS[kind]))
    with pytest.raises(ValueError, match=r"^fullgrad: ") as error:
        fullgrad(model, IMAGES, TARGETS, generator=generator())
    message = str(error.value)
    assert message.startswith(f"fullgrad: found {kind} ('4') in Sequential")
    assert "Conv2d" in message


def test_a_constant_that_is_joined_is_refused() -> None:
    model = wrapped(plain_net(Token()))
    with pytest.raises(ValueError, match=r"^fullgrad: found 'cat' in Sequential, which joins a constant to"):
        fullgrad(model, IMAGES, TARGETS, generator=generator())


class Positions(nn.Module):
    """A network that adds a constant to channels-last activations, or applies its last layer to every position."""

    def __init__(self, case: str) -> None:
        super().__init__()
        self.stem, self.head, self.case = nn.Conv2d(3, 4, 3), nn.Linear(4, CLASSES), case
        self.constant = nn.Parameter(torch.ones(1, 1, 1, 4))

    def forward(self, images: Tensor) -> Tensor:
        if self.case == "GELU of vectors":
            return self.head(functional.gelu(self.stem(images).flatten(2)).mean(2))
        features = self.stem(images).relu().permute(0, 2, 3, 1)
        if self.case == "GELU":
            return self.head(functional.gelu(features).mean((1, 2)))
        if self.case == "head":
            return self.head(features).mean((1, 2))
        return self.head((features + self.constant).mean((1, 2)))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("constant", "found 'permute' in Positions"),
        ("GELU", "found 'permute' in Positions"),
        ("head", r"found Linear .* \[5, 6, 6, 4\]"),
        ("GELU of vectors", r"found GELU .* \[5, 4, 36\]"),
    ],
)
def test_biases_of_unknown_layout_are_refused(case: str, message: str) -> None:
    network = Positions(case).double()
    with pytest.raises(ValueError, match=rf"^fullgrad: {message}"):
        fullgrad(classifier(network, ""), IMAGES, TARGETS, generator=generator())
