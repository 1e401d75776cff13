"""LRP-αβ, LRP-ε and deep Taylor against conservation, hand-worked examples and plain matrix form in NumPy."""

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    SmoothNet,
    classifier,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    skip_classifier,
    state_of,
    with_random_state,
)
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from saliency_assay.methods.canonical import normalized
from saliency_assay.methods.gradient import gradient_x_input
from saliency_assay.methods.relevance import deep_taylor, lrp_alpha_beta, lrp_epsilon
from saliency_assay.models.classifier import Classifier

INPUT_RULES = ("z_box", "w_squared", "same")

Array = np.ndarray
Method = Callable[..., Tensor]

METHODS = [
    partial(lrp_alpha_beta, biases="ignored"),
    partial(lrp_alpha_beta, biases="counted"),
    partial(lrp_epsilon, epsilon=1e-6),
    partial(deep_taylor, rule="z_plus"),
    partial(deep_taylor, rule="w_squared"),
]
ALPHA_1 = partial(lrp_alpha_beta, alpha=1.0, beta=0.0)
TINY = partial(lrp_epsilon, epsilon=1e-14)
EVERY_METHOD = pytest.mark.parametrize(
    "method",
    METHODS,
    ids=lambda method: "-".join(map(str, (method.func.__name__, *method.keywords.values()))),
)
EVERY_INPUT_RULE = pytest.mark.parametrize("input_rule", INPUT_RULES)


class ResidualNet(nn.Module):
    """Three kinds of addition (identity, projected, of the network's first features) and two averages."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=bias), nn.ReLU())
        self.inner = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, bias=bias), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, bias=bias)
        )
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.pool = nn.AvgPool2d(2)
        self.down = nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=bias)
        self.shortcut = nn.Conv2d(8, 12, 1, stride=2, bias=bias)
        self.head = nn.Linear(12, CLASSES, bias=bias)

    def forward(self, images: Tensor) -> Tensor:
        features = self.stem(images)
        features = self.pool(self.relu1(self.inner(features) + features))
        features = self.relu2(self.down(features) + self.shortcut(features))
        return self.head(features.mean((2, 3)))


def plain_net(bias: bool, width: int = 8) -> nn.Sequential:
    """Pooling of both kinds, a stride, and enough channels that each neuron has inputs of both signs."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=bias),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, width, 3, stride=2, padding=1, bias=bias),
        nn.ReLU(),
        nn.AvgPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(width * 4, CLASSES, bias=bias),
    )


def after(first: Callable[[], nn.Module], bias: bool) -> nn.Sequential:
    return nn.Sequential(first(), plain_net(bias))


class DoubledNet(nn.Module):
    """Additions of pixels with themselves, of which one has zeros around them, before the first convolution."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.pad, self.average = nn.ZeroPad2d(1), nn.AvgPool2d(3, stride=1)
        self.body = plain_net(bias)

    def forward(self, images: Tensor) -> Tensor:
        return self.body(self.average(self.pad(images)) + self.norm(images))


NETS = {
    "plain": plain_net,
    "residual": ResidualNet,
    "batchnorm first": partial(after, partial(nn.BatchNorm2d, 3)),
    "average first": partial(after, partial(nn.AvgPool2d, 3, stride=1, padding=1)),
    "addition first": DoubledNet,
}
IMAGES, TARGETS = random_images(6), cyclic_targets(6)
DARK = IMAGES.clone()
DARK[0], DARK[1, :, :6] = 0, 0


def wrapped(network: nn.Module, seed: int = 1) -> Classifier:
    """Random weights behind a normalization that differs between channels."""
    model = classifier(with_random_state(network, seed), "")
    model.mean.copy_(torch.tensor([0.3, 0.45, 0.6]).reshape(1, 3, 1, 1))
    model.std.copy_(torch.tensor([0.2, 0.25, 0.3]).reshape(1, 3, 1, 1))
    return model


def unbiased(net: str) -> Classifier:
    """One of ``NETS`` without any bias, those that BatchNorm hides among them."""
    model = wrapped(NETS[net](bias=False))
    with torch.no_grad():
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.running_mean.zero_()
                norm.bias.zero_()
    return model


def explain(
    method: Method, model: nn.Module, images: Tensor, targets: Tensor, **parameters: object
) -> Tensor:
    return method(model, images, targets, generator=generator(), **parameters)


def target_logits(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    return model(images).detach().gather(1, targets[:, None])[:, 0]


# ------------------------------------------------------------------------------------------ conservation


@pytest.mark.parametrize("net", NETS)
@EVERY_INPUT_RULE
@pytest.mark.parametrize(
    "method",
    [
        partial(lrp_alpha_beta, alpha=2.0, beta=1.0),
        partial(lrp_alpha_beta, alpha=2.2, beta=1.2),  # whose difference is 1 up to rounding
        partial(lrp_epsilon, epsilon=1e-14),
        deep_taylor,
    ],
    ids=["α2β1", "α2.2β1.2", "ε", "z+"],
)
def test_relevance_sums_to_the_logit_without_biases(method: Method, input_rule: str, net: str) -> None:
    model = unbiased(net)
    logits = target_logits(model, DARK, TARGETS)
    assert logits.min() < 0 < logits.max()
    maps = explain(method, model, DARK, TARGETS, input_rule=input_rule)
    exact(maps.sum((1, 2, 3)), logits, tolerance=1e-6, floor=0)


@pytest.mark.parametrize(
    ("method", "net"),
    [(lrp_alpha_beta, "plain"), (lrp_alpha_beta, "batchnorm first"), *((deep_taylor, net) for net in NETS)],
)
@EVERY_INPUT_RULE
def test_ignored_biases_receive_nothing(method: Method, input_rule: str, net: str) -> None:
    model = wrapped(NETS[net](bias=True))
    maps = explain(method, model, DARK, TARGETS, input_rule=input_rule)
    exact(maps.sum((1, 2, 3)), target_logits(model, DARK, TARGETS), tolerance=1e-6, floor=0)


# Logits of 1e-91 and 1e-28. The scale does not matter until a type's smallest numbers are near: 1e-308 and 1e-38.
@pytest.mark.parametrize(
    ("dtype", "scale", "tolerance"), [(torch.float64, 1e-30, 1e-6), (torch.float32, 1e-9, 1e-4)]
)
@pytest.mark.parametrize(
    ("method", "net"), [(lrp_alpha_beta, "plain"), (deep_taylor, "plain"), (deep_taylor, "residual")]
)
def test_small_activations_keep_their_relevance(
    method: Method, net: str, dtype: torch.dtype, scale: float, tolerance: float
) -> None:
    model = unbiased(net)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    model, images = model.to(dtype), IMAGES.to(dtype)
    maps = explain(method, model, images, TARGETS).double()
    logits = target_logits(model, images, TARGETS).double()
    assert 0 < logits.abs().max() < 1e-25
    exact(maps.sum((1, 2, 3)), logits, tolerance=tolerance, floor=0)


# -------------------------------------------------------------- the same in plain matrix form, with NumPy

CHANNELS, SIDE = 3, 6


def small_conv_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 5, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(20, CLASSES),
    )


def small_dense_net() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE**2, 12), nn.ReLU(), nn.Linear(12, CLASSES))


def unrolled(layer: nn.Module, shape: tuple[int, ...]) -> tuple[Array, Array, tuple[int, ...]]:
    """A layer as weights [outputs, inputs] and biases [outputs], and the shape of what it returns."""
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    if isinstance(layer, nn.Linear):
        return weight, bias, (len(weight),)
    (channels, height, width), (outputs, _, size, _) = shape, weight.shape
    stride, padding = layer.stride[0], layer.padding[0]
    rows, columns = ((side + 2 * padding - size) // stride + 1 for side in (height, width))
    matrix = np.zeros((outputs, rows, columns, channels, height, width))
    for row in range(rows):
        for column in range(columns):
            for i in range(size):
                for j in range(size):
                    y, x = row * stride + i - padding, column * stride + j - padding
                    if 0 <= y < height and 0 <= x < width:
                        matrix[:, row, column, :, y, x] = weight[:, :, i, j]
    biases = np.repeat(bias, rows * columns)
    return matrix.reshape(len(biases), -1), biases, (outputs, rows, columns)


def winners(values: Array, shape: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """2 × 2 max pooling as a matrix of zeros and ones [outputs, inputs]."""
    channels, height, width = shape
    numbers = np.arange(values.size).reshape(shape)
    rows = []
    for c in range(channels):
        for y in range(0, height, 2):
            for x in range(0, width, 2):
                window = numbers[c, y : y + 2, x : x + 2].ravel()
                best = max(window, key=lambda number: values[number])
                rows.append(numbers.ravel() == best)
    return np.array(rows, dtype=float), (channels, height // 2, width // 2)


def divided(shares: Array, totals: Array) -> Array:
    """shares [outputs, inputs] by totals [outputs]; nothing where there is nothing to share."""
    return np.divide(shares, totals[:, None], out=np.zeros_like(shares), where=totals[:, None] != 0)


def by_alpha_beta(weights: Array, bias: Array, x: Array, alpha: float = 2.0, counted: bool = False) -> Array:
    z, bias = weights * x, bias * counted
    positive, negative = z.clip(min=0), z.clip(max=0)
    return alpha * divided(positive, positive.sum(1) + bias.clip(min=0)) - (alpha - 1) * divided(
        negative, negative.sum(1) + bias.clip(max=0)
    )


def by_epsilon(weights: Array, bias: Array, x: Array, epsilon: float = 1e-6) -> Array:
    z = weights * x
    totals = z.sum(1) + bias
    return divided(z, totals + epsilon * np.where(totals >= 0, 1, -1))


def by_z_plus(weights: Array, bias: Array, x: Array) -> Array:
    positive = (weights * x).clip(min=0)
    return divided(positive, positive.sum(1))


def by_w_squared(weights: Array, bias: Array, x: Array) -> Array:
    return divided(weights**2, (weights**2).sum(1))


def by_z_box(weights: Array, bias: Array, x: Array, model: Classifier) -> Array:
    mean, std = (np.repeat(color.numpy(), SIDE**2) for color in (model.mean, model.std))
    low, high = (0 - mean) / std, (1 - mean) / std
    z = weights * x - weights.clip(min=0) * low - weights.clip(max=0) * high
    return divided(z, z.sum(1))


def derived(
    model: Classifier, image: Tensor, target: int, rule: Callable[..., Array], first: Callable[..., Array]
) -> Array:
    """Relevance of one image: at a layer's input, the layer's shares [outputs, inputs] turned, times that above."""
    x, shape = normalized(model, image[None]).numpy().ravel(), tuple(image.shape)
    shares: list[Array] = []
    for layer in model.network:
        if isinstance(layer, nn.ReLU):
            shares.append(np.diag(x > 0).astype(float))
            x = x.clip(min=0)
        elif isinstance(layer, nn.MaxPool2d):
            matrix, shape = winners(x, shape)
            shares.append(matrix)
            x = matrix @ x
        elif not isinstance(layer, nn.Flatten):
            weights, bias, shape = unrolled(layer, shape)
            shares.append((rule if shares else first)(weights, bias, x))
            x = weights @ x + bias
    relevance = np.where(np.arange(CLASSES) == target, x, 0)
    for matrix in reversed(shares):
        relevance = matrix.T @ relevance
    return relevance.reshape(image.shape)


@EVERY_INPUT_RULE
@pytest.mark.parametrize("net", [small_conv_net, small_dense_net])
@pytest.mark.parametrize(
    ("method", "rule"),
    [
        (lrp_alpha_beta, by_alpha_beta),
        (partial(lrp_alpha_beta, biases="counted"), partial(by_alpha_beta, counted=True)),
        (partial(lrp_alpha_beta, alpha=1.7, beta=0.7), partial(by_alpha_beta, alpha=1.7)),
        (lrp_epsilon, by_epsilon),
        (partial(lrp_epsilon, epsilon=0.3), partial(by_epsilon, epsilon=0.3)),
        (deep_taylor, by_z_plus),
        (partial(deep_taylor, rule="w_squared"), by_w_squared),
    ],
    ids=["α2β1", "α2β1 with biases", "α1.7β0.7", "ε", "ε0.3", "z+", "w²"],
)
def test_plain_matrix_form(
    method: Method, rule: Callable[..., Array], net: Callable[[], nn.Sequential], input_rule: str
) -> None:
    images = random_images(4, size=SIDE)
    model = wrapped(net())
    first = {"same": rule, "w_squared": by_w_squared, "z_box": partial(by_z_box, model=model)}[input_rule]
    maps = explain(method, model, images, cyclic_targets(4), input_rule=input_rule)
    expected = [derived(model, images[i], i, rule, first) for i in range(4)]
    assert np.abs(expected).max(axis=(1, 2, 3)).min() > 1e-4
    exact(maps, np.array(expected), tolerance=1e-8)


# ------------------------------------------------------------------------------------- special cases


@pytest.mark.parametrize("net", [conv_classifier, skip_classifier, partial(wrapped, ResidualNet(bias=True))])
def test_epsilon_tends_to_gradient_x_normalized_input(net: Callable[[], Classifier]) -> None:
    model = net()
    expected = explain(gradient_x_input, model, IMAGES, TARGETS, baseline="mean")
    maps = explain(lrp_epsilon, model, IMAGES, TARGETS, epsilon=1e-13)
    exact(maps, expected, tolerance=1e-6, floor=1e-9)


def test_z_box_survives_pixels_at_their_bounds() -> None:
    # The first kernel is given its darkest input, so nothing can be shared; the others keep what is theirs.
    model = wrapped(nn.Sequential(nn.Conv2d(3, 3, 12), nn.ReLU(), nn.Flatten(), nn.Linear(3, CLASSES)))
    first, last = model.network[0], model.network[3]
    with torch.no_grad():
        first.bias.fill_(100.0)  # and still it is on
        last.weight.abs_()
    image = (first.weight[:1] < 0).double()
    parts = (last.weight[0] * first(normalized(model, image))[0, :, 0, 0]).detach()
    assert parts.min() > 0
    shared = float(target_logits(model, image, TARGETS[:1])) * float(parts[1:].sum() / parts.sum())
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        maps = explain(deep_taylor, model.to(dtype), image.to(dtype), TARGETS[:1])
        assert float(maps.sum()) == pytest.approx(shared, rel=tolerance)


class Rounded(torch.autograd.Function):
    """A value that passes, and its gradient too, with the rounding of a convolution by Fourier transform."""

    @staticmethod
    def forward(context: object, values: Tensor) -> Tensor:
        noise = torch.randn(values.shape, generator=generator())
        return values + 3e-8 * values.abs().amax((2, 3), keepdim=True) * noise

    @staticmethod
    def backward(context: object, gradients: Tensor) -> Tensor:
        return Rounded.forward(context, gradients)


@pytest.mark.parametrize("method", [lrp_alpha_beta, deep_taylor])
def test_zeros_that_are_rounding_take_no_relevance(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, CLASSES),
    )
    network = with_random_state(network, seed=1).float()
    with torch.no_grad():
        network[2].bias.abs_()  # on, though in the dark half it sees nothing
    images, targets = DARK[1:].float(), TARGETS[1:]
    assert (network[:2](images)[0, :, :4] == 0).all()
    assert (network[:4](images)[0, :, :2] > 0).all()
    expected = explain(method, network, images, targets)
    convolve = nn.functional.conv2d
    monkeypatch.setattr(
        nn.functional,
        "conv2d",
        lambda images, *rest: Rounded.apply(convolve(Rounded.apply(images), *rest)),
    )
    maps = explain(method, network, images, targets)
    assert not torch.equal(maps, expected)
    scale = expected.abs().amax((1, 2, 3), keepdim=True)
    exact(maps / scale, expected / scale, tolerance=0, floor=1e-3)


@pytest.mark.parametrize("method", [lrp_alpha_beta, lrp_epsilon, deep_taylor])
def test_z_box_does_not_see_a_batchnorm_before_the_first_convolution(method: Method) -> None:
    network = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, CLASSES)
    )
    model = wrapped(network)
    norm, convolution = network[0], network[1]
    with torch.no_grad():
        norm.weight[1] *= -1
    assert norm.weight[0] > 0 > norm.weight[1]
    scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()
    maps = explain(method, model, DARK, TARGETS, input_rule="z_box")
    with torch.no_grad():
        shift = norm.bias - norm.running_mean * scale
        convolution.bias += (convolution.weight * shift[:, None, None]).sum((1, 2, 3))
        convolution.weight *= scale[:, None, None]
    network[0] = nn.Identity()
    exact(maps, explain(method, model, DARK, TARGETS, input_rule="z_box"))


@pytest.mark.parametrize(
    ("method", "expected"),
    [(deep_taylor, [10.0, 0.0]), (ALPHA_1, [10.0, 0.0]), (TINY, [15.0, -5.0])],
)
def test_terms_of_a_sums_own_sign_take_its_relevance(method: Method, expected: list[float]) -> None:
    # The mean of -3 and 1 is -1, a neuron is 2 and the logit 10.
    network = nn.Sequential(
        nn.AvgPool2d((1, 2)),
        nn.Flatten(),
        nn.Linear(1, 1, bias=False),
        nn.ReLU(),
        nn.Linear(1, 1, bias=False),
    )
    with torch.no_grad():
        network[2].weight.fill_(-2.0)
        network[4].weight.fill_(5.0)
    image = torch.tensor([-3.0, 1.0], dtype=torch.float64).reshape(1, 1, 1, 2)
    maps = explain(method, network.double().eval(), image, torch.tensor([0]), input_rule="same")
    exact(maps.flatten(), torch.tensor(expected))


@pytest.mark.parametrize("settings", [{"stride": 2}, {"padding": 1}])
def test_a_convolution_of_single_pixels_may_change_the_size(settings: dict[str, int]) -> None:
    first = nn.Conv2d(3, 3, 1, groups=3, bias=False, **settings)
    features = first(torch.zeros(1, 3, 12, 12)).numel()
    model = wrapped(
        nn.Sequential(first, nn.ReLU(), nn.Flatten(), nn.Linear(features, CLASSES, bias=False)), seed=3
    )
    logits = target_logits(model, IMAGES, TARGETS)
    exact(explain(deep_taylor, model, IMAGES, TARGETS, input_rule="same").sum((1, 2, 3)), logits)


def test_batchnorm_after_no_convolution_passes_relevance() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.ReLU(),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, CLASSES),
    )
    model = wrapped(network)
    logits = target_logits(model, IMAGES, TARGETS)
    for method in (deep_taylor, lrp_alpha_beta):
        exact(explain(method, model, IMAGES, TARGETS).sum((1, 2, 3)), logits)
    expected = explain(gradient_x_input, model, IMAGES, TARGETS, baseline="mean")
    exact(explain(lrp_epsilon, model, IMAGES, TARGETS, epsilon=1e-13), expected, tolerance=1e-6, floor=1e-9)


class TwoTerms(nn.Module):
    """f = 3 max(2 x_1 + w x_2, 0), an addition of two branches that see one pixel each."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.left, self.right = (nn.Conv2d(2, 1, 1, bias=False) for _ in range(2))
        self.relu, self.flatten, self.head = nn.ReLU(), nn.Flatten(), nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            self.left.weight.copy_(torch.tensor([2.0, 0.0]).reshape(1, 2, 1, 1))
            self.right.weight.copy_(torch.tensor([0.0, weight]).reshape(1, 2, 1, 1))
            self.head.weight.fill_(3.0)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.flatten(self.relu(self.left(images) + self.right(images))))


@pytest.mark.parametrize(
    ("method", "weight", "expected"),
    [  # x = (1, 0.5): terms of 2 and 3 and a logit of 15, or of 2 and -0.5 and a logit of 4.5
        (TINY, 6.0, [6.0, 9.0]),
        (ALPHA_1, 6.0, [6.0, 9.0]),
        (deep_taylor, 6.0, [6.0, 9.0]),
        (partial(deep_taylor, rule="w_squared"), 6.0, [7.5, 7.5]),
        (TINY, -1.0, [6.0, -1.5]),
        (ALPHA_1, -1.0, [4.5, 0.0]),
        (deep_taylor, -1.0, [4.5, 0.0]),
        (partial(deep_taylor, rule="w_squared"), -1.0, [2.25, 2.25]),
    ],
)
def test_an_addition_shares_relevance_in_proportion(
    method: Method, weight: float, expected: list[float]
) -> None:
    image = torch.tensor([1.0, 0.5], dtype=torch.float64).reshape(1, 2, 1, 1)
    maps = explain(method, TwoTerms(weight).double().eval(), image, torch.tensor([0]), input_rule="same")
    exact(maps.flatten(), torch.tensor(expected))


class Bottleneck(nn.Module):
    """Two convolutions without an activation between them, the first of which has the name of an operation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.project = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 4, 3, stride=2)
        self.relu, self.flatten, self.head = nn.ReLU(), nn.Flatten(), nn.Linear(100, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.flatten(self.relu(self.project(self.expand(self.relu(images))))))


@pytest.mark.parametrize("method", [lrp_alpha_beta, deep_taylor])
def test_inputs_of_both_signs_are_determined_by_the_layers_before(method: Method) -> None:
    named = with_random_state(Bottleneck(), seed=1)
    relu, flatten = nn.ReLU(), nn.Flatten()
    plain = nn.Sequential(relu, named.expand, named.project, nn.ReLU(), flatten, named.head)
    maps = [explain(method, network, IMAGES, TARGETS) for network in (named, plain.eval())]
    exact(*maps)


@pytest.mark.parametrize(("method", "products"), [(lrp_epsilon, 1), (deep_taylor, 2), (lrp_alpha_beta, 2)])
def test_number_of_products_of_a_convolution_after_a_relu(
    method: Method, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, shapes = wrapped(plain_net(bias=True)), []
    convolve = nn.functional.conv2d

    def count(images: Tensor, *rest: object) -> Tensor:
        shapes.append(images.shape)
        return convolve(images, *rest)

    explain(method, model, IMAGES, TARGETS)
    monkeypatch.setattr(nn.functional, "conv2d", count)
    model(IMAGES)
    passes = shapes.count((6, 8, 6, 6))
    explain(method, model, IMAGES, TARGETS)
    assert passes == 1
    assert shapes.count((6, 8, 6, 6)) == passes + products


class TwoEyes(nn.Module):
    """Two convolutions that both see the pixels, one of them behind pooling, and one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(1)  # changes nothing
        self.left, self.right = (nn.Conv2d(1, 1, (1, 2), bias=False) for _ in range(2))
        self.inner = nn.Conv2d(1, 1, 1, bias=False)
        self.relu, self.flatten = nn.ReLU(), nn.Flatten()
        with torch.no_grad():
            self.left.weight.copy_(torch.tensor([1.0, -1.0]).reshape(1, 1, 1, 2))
            self.right.weight.copy_(torch.tensor([2.0, -1.0]).reshape(1, 1, 1, 2))
            self.inner.weight.fill_(4.0)

    def forward(self, images: Tensor) -> Tensor:
        return self.flatten(self.inner(self.relu(self.left(images) + self.right(self.pool(images)))))


def test_every_layer_that_sees_pixels_takes_the_input_rule() -> None:
    image = torch.tensor([0.75, 0.25], dtype=torch.float64).reshape(1, 1, 1, 2)
    # z^B: left is 0.5, shared as 0.75 and 0.75; right is 1.25, shared as 1.5 and 0.75. Relevance of 2 and of 5.
    maps = explain(deep_taylor, TwoEyes().double().eval(), image, torch.tensor([0]))
    exact(maps.flatten(), torch.tensor([1 + 10 / 3, 1 + 5 / 3], dtype=torch.float64))


@EVERY_METHOD
def test_float32_is_near_float64(method: Method) -> None:
    images = IMAGES.clone()
    images[0], images[1] = 0, 1
    single, double = (
        explain(
            method, wrapped(ResidualNet(bias=True)).to(dtype), images.to(dtype), TARGETS, input_rule="z_box"
        )
        for dtype in (torch.float32, torch.float64)
    )
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    scale = double.abs().amax((1, 2, 3), keepdim=True)
    exact(single.double() / scale, double / scale, tolerance=0, floor=1e-3)


# ------------------------------------------------------------------------- what a call leaves behind


@pytest.mark.parametrize("method", [lrp_epsilon, lrp_alpha_beta, deep_taylor])
def test_leaves_a_network_as_it_was_when_it_fails(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    model = wrapped(ResidualNet(bias=True))
    before, parameters = state_of(model), dict(model.named_parameters())

    def fail(*arguments: object, **settings: object) -> object:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torch.autograd, "grad", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        explain(method, model, IMAGES, TARGETS)
    assert state_of(model) == before
    assert all(parameter is parameters[name] for name, parameter in model.named_parameters())


# ------------------------------------------------------------------------------------------------ errors


NEED_RELU = pytest.mark.parametrize("method", [lrp_alpha_beta, deep_taylor])


@NEED_RELU
def test_refuses_a_network_without_relu(method: Method) -> None:
    model = with_random_state(SmoothNet(IMAGES[0].numel()), seed=1)
    for each in (model, classifier(model, "")):
        with pytest.raises(ValueError, match=r"no ReLU in SmoothNet.* or lrp_epsilon"):
            explain(method, each, IMAGES, TARGETS)


@NEED_RELU
@pytest.mark.parametrize("layer", [nn.GELU(), nn.Hardtanh()])
def test_refuses_activations_other_than_relu(method: Method, layer: nn.Module) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), layer, nn.Flatten(), nn.Linear(400, CLASSES))
    kind = type(layer).__name__
    with pytest.raises(ValueError, match=f"found {kind} .'2'. in Sequential, .*or use lrp_epsilon"):
        explain(method, network.double().eval(), IMAGES, TARGETS)


def test_w_squared_refuses_a_relu_with_a_maximum() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6(), nn.Flatten(), nn.Linear(400, CLASSES))
    with pytest.raises(
        ValueError, match=r"^deep_taylor: found ReLU6 .'1'. in Sequential, .*or use lrp_epsilon"
    ):
        explain(partial(deep_taylor, rule="w_squared"), network.double().eval(), IMAGES, TARGETS)


@EVERY_METHOD
def test_refuses_layers_without_a_rule(method: Method) -> None:
    layer = nn.ConvTranspose2d(4, 4, 1)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), layer, nn.Flatten(), nn.Linear(400, CLASSES))
    with pytest.raises(
        ValueError,
        match=rf"^{method.func.__name__}: Sequential: found the operation 'conv_transpose2d' \('2'\)",
    ):
        explain(method, network.double().eval(), IMAGES, TARGETS)


@pytest.mark.parametrize("input_rule", ["z_box", "w_squared"])
@pytest.mark.parametrize("first", [nn.LayerNorm(192), nn.GELU()])
def test_bounds_of_inputs_need_monotonic_operations(input_rule: str, first: nn.Module) -> None:
    network = with_random_state(nn.Sequential(nn.Flatten(), first, nn.Linear(192, CLASSES)), seed=1)
    kind = type(first).__name__
    images, targets = random_images(2, size=8), cyclic_targets(2)
    with pytest.raises(ValueError, match=rf"^input_rule: found {kind} \('1'\) before the first convolution"):
        lrp_epsilon(network, images, targets, generator=generator(), input_rule=input_rule)
    lrp_epsilon(network, images, targets, generator=generator())


PARAMETRIZATIONS: dict[str, Callable[[nn.Module], object]] = {
    "weight norm": parametrizations.weight_norm,
    "spectral norm": parametrizations.spectral_norm,
    "weight norm by hook": torch.nn.utils.weight_norm,
    "spectral norm by hook": torch.nn.utils.spectral_norm,
    "pruning": partial(prune.l1_unstructured, name="weight", amount=0.5),
    "pruned biases": partial(prune.l1_unstructured, name="bias", amount=0.5),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.*deprecated:FutureWarning")
@pytest.mark.parametrize("method", [lrp_alpha_beta, lrp_epsilon])
@pytest.mark.parametrize("norm", [nn.Identity, partial(nn.BatchNorm2d, 6)])
@pytest.mark.parametrize("kind", PARAMETRIZATIONS)
def test_computed_weights_are_those_of_a_plain_layer(
    method: Method, norm: Callable[[], nn.Module], kind: str
) -> None:
    def network() -> nn.Sequential:
        layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1, groups=2), norm(), nn.ReLU()
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(216, CLASSES))

    plain = with_random_state(network(), seed=1)
    computed = copy.deepcopy(plain)
    for i in (2, 6):
        PARAMETRIZATIONS[kind](computed[i])
    with torch.no_grad():  # the weights of a hook are out of date until the next pass
        for name, parameter in computed.named_parameters():
            if name.endswith(("_g", "original0", "_orig")):
                parameter.mul_(1.5)
    computed.eval()
    images, targets = random_images(2, size=8), cyclic_targets(2)
    maps = method(computed, images, targets, generator=generator())
    computed(images)
    for i in (2, 6):
        for name in ("weight", "bias"):
            getattr(plain[i], name).data = getattr(computed[i], name).detach()
    with torch.no_grad():
        exact(plain(images), computed(images))
    exact(maps, method(plain, images, targets, generator=generator()))


@EVERY_METHOD
def test_refuses_a_network_that_returns_no_logits(method: Method) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).double().eval()
    before = state_of(network)
    with pytest.raises(ValueError, match=r"^model: returned float64 \[6, 4, 10, 10\]"):
        explain(method, network, IMAGES, TARGETS)
    assert state_of(network) == before


class Negated(nn.Module):
    """Features that are multiplied by −1 in ``forward``, or by negated weights of the head."""

    def __init__(self, in_forward: bool) -> None:
        super().__init__()
        self.convolution, self.head = nn.Conv2d(3, 4, 3, bias=False), nn.Linear(4, CLASSES, bias=False)
        self.in_forward = in_forward

    def forward(self, images: Tensor) -> Tensor:
        features = nn.functional.relu(self.convolution(images))
        if self.in_forward:
            return self.head((-1 * features).mean((2, 3)))
        return nn.functional.linear(features.mean((2, 3)), -self.head.weight)


@pytest.mark.parametrize("rule", ["z_plus", "w_squared"])
def test_a_negative_factor_is_that_of_the_weights_behind_it(rule: str) -> None:
    first, second = (with_random_state(Negated(in_forward), 3) for in_forward in (True, False))
    maps = [
        deep_taylor(network, IMAGES, TARGETS, generator=generator(), rule=rule) for network in (first, second)
    ]
    assert maps[0].abs().sum((1, 2, 3)).min() > 0
    exact(maps[0], maps[1], tolerance=1e-8, floor=1e-12)
