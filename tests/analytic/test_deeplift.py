"""DeepLIFT and DeepSHAP against hand-worked values, plain NumPy multipliers, and captum where it is right."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import captum.attr
import numpy as np
import pytest
import timm
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

from saliency_assay.methods.canonical import normalized
from saliency_assay.methods.deeplift import contributions, deep_shap, deeplift, fit_network
from saliency_assay.methods.gradient import gradient
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.resnet import BasicBlock, resnet8

RULES = ("rescale", "reveal_cancel")

IMAGES, TARGETS = random_images(5), cyclic_targets(5)
BACKGROUND = random_images(3, seed=8)
ROWS = range(5)


def residual_classifier() -> Classifier:
    return classifier(
        with_random_state(resnet8(classes=4, channels=3, width=4, generator=generator()), 1), "layer3"
    )


def imagenet_stem() -> Classifier:
    """A residual network whose stem pools over windows that overlap and reach beyond the border."""
    layers: dict[str, nn.Module] = {
        "conv1": nn.Conv2d(3, 4, 7, padding=3, bias=False),
        "bn1": nn.BatchNorm2d(4),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, stride=2, padding=1),
        "layer1": BasicBlock(4, 4, 1),
        "layer2": BasicBlock(4, 8, 2),
        "avgpool": nn.AdaptiveAvgPool2d(1),
        "flatten": nn.Flatten(),
        "fc": nn.Linear(8, CLASSES),
    }
    return classifier(with_random_state(nn.Sequential(OrderedDict(layers)), 1), "layer2")


def chain(*layers: nn.Module, features: int) -> nn.Sequential:
    """Layers, then a linear one over all their values."""
    return with_random_state(nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, CLASSES)), 1)


def two_pools() -> nn.Sequential:
    """Pools that do not overlap, and a linear layer between any two others: what captum (0.9) gets right."""
    first = nn.Conv2d(3, 5, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(5, 5, 1), nn.ReLU()
    second = nn.Conv2d(5, 6, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(6, 6, 1), nn.ELU()
    return chain(*first, *second, features=6 * 9)


def logits(model: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images)


# ------------------------------------------------------------------------------------------- sum to delta


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("network", "baseline"), [(skip_classifier, "black"), (imagenet_stem, "mean")])
def test_sums_to_the_difference_from_the_baseline(
    network: Callable[[], Classifier], baseline: str, rule: str
) -> None:
    model = network()
    reference = model.mean.expand_as(IMAGES) * (baseline == "mean")
    delta = (logits(model, IMAGES) - logits(model, reference))[ROWS, TARGETS]
    assert delta.abs().min() > 1e-4
    maps = deeplift(model, IMAGES, TARGETS, generator=generator(), rule=rule, baseline=baseline)
    exact(maps.sum((1, 2, 3)), delta, tolerance=1e-8, floor=0)


ACTIVATIONS = [
    *(nn.LeakyReLU(0.2), nn.PReLU(5), nn.ReLU6(), nn.Hardtanh(), nn.ELU(inplace=True), nn.CELU(0.5)),
    *(nn.SELU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.Tanh(), nn.Sigmoid(), nn.Softplus()),
    *(nn.Softsign(), nn.Hardswish(), nn.Hardsigmoid()),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda layer: type(layer).__name__)
def test_sums_to_the_difference_through_every_activation(activation: nn.Module) -> None:
    layers = nn.Conv2d(3, 5, 3), activation, nn.ZeroPad2d(1), nn.AvgPool2d(3, 2, 1), nn.Conv2d(5, 5, 3)
    model = chain(*layers, nn.ReLU(), features=5 * 16)
    delta = (logits(model, IMAGES) - logits(model, torch.zeros_like(IMAGES)))[ROWS, TARGETS]
    maps = deeplift(model, IMAGES, TARGETS, generator=generator())
    exact(maps.sum((1, 2, 3)), delta, tolerance=1e-8, floor=0)


# -------------------------------------------------------------------------------- hand-worked RevealCancel


class Pair(nn.Module):
    """x₁ and x₂ to a (x₁, x₂) + b relu(c (x₁, x₂) + d): one logit of two pixels."""

    def __init__(self, a: tuple[float, float], b: float, c: tuple[float, float], d: float = 0.0) -> None:
        super().__init__()
        self.flat, self.relu = nn.Flatten(), nn.ReLU()
        self.around, self.inner, self.outer = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(1, 1)
        for layer, weight, bias in ((self.around, [a], 0.0), (self.inner, [c], d), (self.outer, [[b]], 0.0)):
            layer.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64))
            layer.bias = nn.Parameter(torch.tensor([bias], dtype=torch.float64))
        self.double().eval()

    def forward(self, images: Tensor) -> Tensor:
        pixels = self.flat(images)
        return self.around(pixels) + self.outer(self.relu(self.inner(pixels)))


def of_pixels(model: nn.Module, values: list[float], rule: str) -> Tensor:
    pixels = torch.tensor(values, dtype=torch.float64).reshape(1, 1, 1, -1)
    return deeplift(model, pixels, torch.zeros(1).long(), generator=generator(), rule=rule).flatten()


@pytest.mark.parametrize(("x1", "x2"), [(0.75, 0.5), (0.5, 0.75), (0.5, 0.5)])
def test_minimum(x1: float, x2: float) -> None:
    """min(x₁, x₂) = x₁ − relu(h), h = x₁ − x₂, baseline 0: Δh⁺ = x₁ and Δh⁻ = −x₂.

    Let r = relu(h). x₁ ≥ x₂: Δr⁺ = ½ [x₁ − 0] + ½ [(x₁ − x₂) − 0] = x₁ − ½ x₂,
                              Δr⁻ = ½ [0 − 0] + ½ [(x₁ − x₂) − x₁] = −½ x₂.
    So x₁ makes x₁ − Δr⁺ = ½ x₂, and x₂ makes −Δr⁻ = ½ x₂.
    x₁ < x₂: Δr⁺ = ½ [x₁ − 0] + ½ [0 − 0] = ½ x₁, Δr⁻ = ½ [0 − 0] + ½ [0 − x₁] = −½ x₁: ½ x₁ each. Half of the
    minimum is each one's in both cases, while Rescale gives it all to the smaller.
    """
    model, half = Pair(a=(1, 0), b=-1, c=(1, -1)), min(x1, x2) / 2
    exact(of_pixels(model, [x1, x2], "reveal_cancel"), torch.tensor([half, half]))
    exact(of_pixels(model, [x1, x2], "rescale"), torch.tensor([0, x2] if x1 > x2 else [x1, 0]))


def test_saturation() -> None:
    """y = −relu(h), h = 1 − x₁ − x₂, baseline 0, at which y is −1. From x₁ + x₂ = 1 on, y is 0 and its gradient, too.

    x₁ = x₂ = 1: Δh⁻ = −2, Δh⁺ = 0, Δrelu⁻ = −1: both rules have m = ½, ½ for each pixel.
    x₁ = 2, x₂ = −½: Δh⁻ = −2 by x₁, Δh⁺ = ½ by x₂, relu is 1 at first and relu(−½) = 0 at last.
    Δrelu⁺ = ½ [relu(1½) − 1] + ½ [0 − relu(−1)] = ¼, Δrelu⁻ = ½ [relu(−1) − 1] + ½ [0 − relu(1½)] = −1¼.
    So x₁ makes 1¼ and x₂ makes −¼; by Rescale, with m = −1 / −1½ = ⅔, they make 4/3 and −1/3.
    """
    model = Pair(a=(0, 0), b=-1, c=(-1, -1), d=1)
    for rule in RULES:
        exact(of_pixels(model, [1, 1], rule), torch.tensor([0.5, 0.5]))
    exact(of_pixels(model, [2, -0.5], "reveal_cancel"), torch.tensor([1.25, -0.25]))
    exact(of_pixels(model, [2, -0.5], "rescale"), torch.tensor([4, -1]).double() / 3)
    pixels = torch.tensor([2, -0.5], dtype=torch.float64).reshape(1, 1, 1, 2)
    assert not gradient(model, pixels, torch.zeros(1).long(), generator=generator()).any()


def relu_chain(*layers: tuple[list[list[float]], list[float]]) -> nn.Module:
    """Linear layers of given weights and biases with a ReLU between any two."""
    modules: list[nn.Module] = [nn.Flatten()]
    for weight, bias in layers:
        linear = nn.Linear(len(weight[0]), len(weight))
        linear.weight, linear.bias = nn.Parameter(torch.tensor(weight)), nn.Parameter(torch.tensor(bias))
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1]).double().eval()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_part_that_is_zero_has_its_limit(sign: int) -> None:
    """y = relu(u), u = d − ½ + x₃ or d + ½ − x₃, d = relu(x₁ − x₂), at x₁ = ½, x₂ = x₃ = 1.

    Δh⁺ = ½ and Δh⁻ = −1 of h = x₁ − x₂ make Δd⁺ = ¼ and Δd⁻ = −¼, with the multipliers ½ and ¼.

    u = d − ½ + x₃: Δu⁺ = 1, Δy⁺ = ½, m⁺ = ½; Δu⁻ = 0, and m⁻ goes to ½ [g′(−½) + g′(−½ + 1)] = ½. d has the mean of
    both, ½: x₁ makes ½ · ½ · ½ = ⅛, x₂ makes −1 · ¼ · ½ = −⅛, x₃ makes ½. The other u is its mirror image.
    """
    model = relu_chain(
        ([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]], [0.0, 0.0]), ([[1.0, sign]], [-sign / 2]), ([[1.0]], [0.0])
    )
    exact(of_pixels(model, [0.5, 1, 1], "reveal_cancel"), torch.tensor([0.125, -0.125, sign / 2]))


@pytest.mark.parametrize("bias", [1.0, -1.0])
def test_rescale_is_the_gradient_where_nothing_changes(bias: float) -> None:
    """relu(x₁ − x₂ + b) at x₁ = x₂: Δy / Δx is 0 / 0, and the gradient 1 or 0."""
    model, slope = Pair(a=(0, 0), b=1, c=(1, -1), d=bias), float(bias > 0)
    exact(of_pixels(model, [0.5, 0.5], "rescale"), torch.tensor([slope / 2, -slope / 2]))


# ------------------------------------------------------------------- RevealCancel as plain matrices, backwards


def convolution_matrix(weight: np.ndarray, size: int) -> np.ndarray:
    """A 3 × 3 convolution with zero padding as a dense matrix ``[out · size², in · size²]``."""
    outputs, inputs = weight.shape[:2]
    matrix = np.zeros((outputs, size, size, inputs, size, size))
    for row, column, down, right in product(range(size), range(size), range(3), range(3)):
        i, j = row + down - 1, column + right - 1
        if 0 <= i < size and 0 <= j < size:
            matrix[:, row, column, :, i, j] += weight[:, :, down, right]
    return matrix.reshape(outputs * size**2, inputs * size**2)


def windows(channels: int, size: int) -> Iterator[np.ndarray]:
    """The four places of each 2 × 2 window in a flattened ``[channels, size, size]``."""
    index = np.arange(channels * size**2).reshape(channels, size, size)
    for k, row, column in product(range(channels), range(0, size, 2), range(0, size, 2)):
        yield index[k, row : row + 2, column : column + 2].ravel()


class Plain:
    """Values, baseline values and Δ± from layer to layer, and what each layer does to multipliers on the way back."""

    def __init__(self, image: np.ndarray) -> None:
        self.x, self.x0 = image.ravel(), np.zeros(image.size)
        self.plus, self.minus = np.maximum(self.x, 0), np.minimum(self.x, 0)
        self.back: list[Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = []
        self.fallen = 0

    def linear(self, weight: np.ndarray, bias: np.ndarray) -> None:
        delta = self.x - self.x0
        z = weight * delta
        upper = np.where(z > 0, weight, 0) + np.where(delta == 0, weight / 2, 0)
        lower = np.where(z < 0, weight, 0) + np.where(delta == 0, weight / 2, 0)
        self.x, self.x0 = weight @ self.x + bias, weight @ self.x0 + bias
        self.plus, self.minus = upper @ delta, lower @ delta

        def back(m_plus: np.ndarray, m_minus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            both = upper.T @ m_plus + lower.T @ m_minus
            return both, both

        self.back.append(back)

    def relu(self) -> None:
        def relu(values: np.ndarray) -> np.ndarray:
            return np.maximum(values, 0)

        x0, plus, minus = self.x0, self.plus, self.minus
        up = (relu(x0 + plus) - relu(x0) + relu(self.x) - relu(x0 + minus)) / 2
        down = (relu(x0 + minus) - relu(x0) + relu(self.x) - relu(x0 + plus)) / 2
        some, other = np.abs(plus) > 1e-10, np.abs(minus) > 1e-10
        m_up = np.where(some, up / np.where(some, plus, 1), ((x0 > 0) * 1.0 + (x0 + minus > 0)) / 2)
        m_down = np.where(other, down / np.where(other, minus, 1), ((x0 > 0) * 1.0 + (x0 + plus > 0)) / 2)
        self.x, self.x0, self.plus, self.minus = relu(self.x), relu(x0), up, down
        self.back.append(lambda m_plus, m_minus: (m_plus * m_up, m_minus * m_down))

    def max_pool(self, channels: int, size: int) -> None:
        pool = np.zeros((channels * size**2 // 4, channels * size**2))
        top, top0 = np.empty(len(pool)), np.empty(len(pool))
        for i, places in enumerate(windows(channels, size)):
            x, x0 = self.x[places], self.x0[places]
            top[i], top0[i] = x.max(), x0.max()
            winner = int(x.argmax())
            if top[i] < top0[i] and x0[winner] < top0[i] - 1e-10:
                winner, self.fallen = int(x0.argmax()), self.fallen + 1
            step = x[winner] - x0[winner]
            pool[i, places[winner]] = (top[i] - top0[i]) / step if abs(step) > 1e-10 else 1
        self.x, self.x0, self.plus, self.minus = top, top0, pool @ self.plus, pool @ self.minus
        self.back.append(lambda m_plus, m_minus: (pool.T @ m_plus, pool.T @ m_minus))

    def mean(self, channels: int) -> None:
        area = len(self.x) // channels
        matrix = np.kron(np.eye(channels), np.full(area, 1 / area))
        self.x, self.x0, self.plus, self.minus = (
            matrix @ v for v in (self.x, self.x0, self.plus, self.minus)
        )
        self.back.append(lambda m_plus, m_minus: (matrix.T @ m_plus, matrix.T @ m_minus))

    def contributions(self, target: int) -> np.ndarray:
        """To x − x′ of a logit, whose m⁺ and m⁻ are 1."""
        multipliers = (np.eye(len(self.x))[target],) * 2
        for back in reversed(self.back):
            multipliers = back(*multipliers)
        return multipliers[0]


def test_reveal_cancel_equals_plain_multipliers() -> None:
    first = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(4, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
    network = chain(*first, *second, features=5)
    weights = [layer.weight.detach().numpy() for layer in network if hasattr(layer, "weight")]
    biases = [layer.bias.detach().numpy() for layer in network if hasattr(layer, "bias")]
    images = random_images(6, size=8) - 0.3  # differences of both signs
    targets = cyclic_targets(6)
    maps, fallen, idle = deeplift(network, images, targets, generator=generator()), 0, 0
    for image, target, values in zip(images.numpy(), targets.tolist(), maps, strict=True):
        plain = Plain(image)
        plain.linear(convolution_matrix(weights[0], 8), np.repeat(biases[0], 64))
        plain.relu()
        idle += int(((plain.x == plain.x0) & (plain.plus > 1e-6)).sum())
        plain.max_pool(4, 8)
        plain.linear(convolution_matrix(weights[1], 4), np.repeat(biases[1], 16))
        plain.relu()
        plain.max_pool(5, 4)
        plain.mean(5)
        plain.linear(weights[2], biases[2])
        expected = plain.contributions(target) * image.ravel()
        exact(values, expected.reshape(image.shape), tolerance=1e-8, floor=1e-12)
        fallen += plain.fallen
    assert fallen > 0  # the baseline's winners had their part
    assert idle > 0  # and so had parts that cancel


# ------------------------------------------------------------------------------------------ max pooling


def test_pooling_before_a_plain_baseline_is_the_gradient() -> None:
    """All of a window's values tie at the baseline up to rounding, so the image's winner is the baseline's, too."""
    model = chain(nn.Conv2d(3, 5, 3), nn.MaxPool2d(3, 2, 1), features=125)
    wrapped = classifier(model, "0")
    black = logits(model[0], -IMAGES.new_ones(1, 3, 12, 12) * 0.45 / 0.25)
    assert black.std((2, 3)).max() < 1e-12
    slopes = gradient(wrapped, IMAGES, TARGETS, generator=generator())
    for rule in RULES:
        exact(deeplift(wrapped, IMAGES, TARGETS, generator=generator(), rule=rule), slopes * IMAGES)


@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 2, 1), (3, 1, 0)])
def test_pooling_gives_each_windows_difference_to_its_winner(size: int, stride: int, padding: int) -> None:
    """Window by window: a rise to the image's largest value, a fall to the baseline's, in proportion."""
    outputs = (12 + 2 * padding - size) // stride + 1
    model = chain(nn.MaxPool2d(size, stride, padding), features=3 * outputs**2)
    maps = deep_shap(model, IMAGES, TARGETS, generator=generator(), background=BACKGROUND[:1])
    weights = model[2].weight.detach().numpy().reshape(CLASSES, 3, outputs, outputs)
    outside, reference = ((0, 0), (padding,) * 2, (padding,) * 2), BACKGROUND[0].numpy()
    falls = 0
    for image, target, values in zip(IMAGES.numpy(), TARGETS.tolist(), maps, strict=True):
        x, x0 = (np.pad(values, outside, constant_values=-np.inf) for values in (image, reference))
        expected = np.zeros_like(x)
        for k, row, column in product(range(3), range(outputs), range(outputs)):
            place = np.s_[k, row * stride : row * stride + size, column * stride : column * stride + size]
            change = x[place].max() - x0[place].max()
            winner = (x if change >= 0 else x0)[place].argmax()
            expected[place].flat[winner] += change * weights[target, k, row, column]
            falls += int(change < 0)
        exact(values, expected[:, padding : padding + 12, padding : padding + 12])
    assert 10 < falls < 5 * 3 * outputs**2 - 10


def tanh_and_average() -> nn.Sequential:
    return chain(
        nn.Conv2d(3, 5, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(5, 6, 3), nn.Sigmoid(), features=54
    )


# ---------------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("rule", RULES)
def test_rounding_decides_nothing(rule: str) -> None:
    """Plain baselines and shut ReLUs make ties and zeros everywhere, where the rules jump; 1e-13 must not."""
    model = imagenet_stem()
    fit, pixels, black = (
        fit_network("deeplift", model, IMAGES),
        normalized(model, IMAGES),
        torch.zeros_like(IMAGES[:1]),
    )
    maps = contributions(fit, pixels, normalized(model, black), TARGETS, rule)[0]
    for seed in range(3):
        noise = torch.randn(6, 3, 12, 12, generator=generator(seed), dtype=torch.float64) * 1e-13
        shaken, _ = contributions(
            fit, pixels + noise[:5], normalized(model, black) + noise[5:], TARGETS, rule
        )
        assert not torch.equal(shaken, maps)
        assert (shaken - maps).abs().max() < 1e-9 * maps.abs().max()


def smooth_images(count: int, seed: int = 0) -> Tensor:
    """Colors that fade into each other, so that neighbors are nearly equal, ``[count, 3, 24, 24]``."""
    return functional.interpolate(random_images(count, size=6, seed=seed), size=(24, 24), mode="bilinear")


def overlapping() -> nn.Sequential:
    first = nn.Conv2d(3, 8, 5, padding=2), nn.MaxPool2d(3, 2, 1), nn.ReLU()
    second = nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(8, 8, 1), nn.ReLU()
    return chain(*first, *second, features=8 * 25)


SMOOTH, FADES = smooth_images(8), smooth_images(3, seed=8)
WAYS: Mapping[str, Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    **{rule: partial(deeplift, generator=generator(), rule=rule) for rule in RULES},
    "deep_shap": lambda model, images, targets: deep_shap(
        model, images, targets, generator=generator(), background=FADES.to(images)
    ),
}


@pytest.mark.parametrize(
    ("network", "way"),
    [(imagenet_stem, "rescale"), (overlapping, "reveal_cancel"), (overlapping, "deep_shap")],
)
def test_float32_is_near_float64(network: Callable[[], nn.Module], way: str) -> None:
    """Neighbors are nearly equal in smooth images; the largest must win all the same."""
    model, targets = network(), cyclic_targets(8)
    expected = WAYS[way](model, SMOOTH, targets)
    maps = WAYS[way](model.float(), SMOOTH.float(), targets).double()
    largest = expected.abs().amax((1, 2, 3), keepdim=True)
    assert largest.min() > 1e-4
    exact(maps / largest, expected / largest, tolerance=0, floor=1e-3)


def test_a_larger_channel_does_not_decide_who_wins() -> None:
    """The values of one channel differ by far less than float32 resolves in the other."""
    images = torch.zeros(1, 2, 2, 2)
    images[0, 0], images[0, 1] = 1.0, torch.tensor([[0.999e-6, 0.0], [0.0, 1e-6]])
    network = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 1, bias=False)).eval()
    nn.init.ones_(network[2].weight)
    for rule in RULES:
        maps = deeplift(network, images, torch.zeros(1).long(), generator=generator(), rule=rule)
        exact(maps[0, 1], torch.tensor([[0.0, 0.0], [0.0, 1e-6]]), floor=0)


def test_the_last_place_of_a_large_window_wins_by_a_small_lead() -> None:
    images = torch.zeros(1, 1, 32, 32)
    images[0, 0, 0, 0], images[0, 0, -1, -1] = 1 - 1e-5, 1.0
    network = nn.Sequential(nn.MaxPool2d(32), nn.Flatten(), nn.Linear(1, 1, bias=False)).eval()
    nn.init.ones_(network[2].weight)
    for rule in RULES:
        maps = deeplift(network, images, torch.zeros(1).long(), generator=generator(), rule=rule)
        assert maps.nonzero().tolist() == [[0, 0, 31, 31]]


@pytest.mark.parametrize(
    ("dtype", "way", "exponent"),
    [
        (torch.float32, "reveal_cancel", -20),
        (torch.float32, "rescale", 20),
        (torch.float64, "reveal_cancel", 20),
    ],
)
def test_the_scale_of_activations_is_of_no_matter(dtype: torch.dtype, way: str, exponent: int) -> None:
    """All activations times a power of two, and the last layer divided by it: the same bits."""
    model, scale = overlapping().to(dtype), 2.0**exponent
    expected = WAYS[way](model, SMOOTH.to(dtype), cyclic_targets(8))
    first, *between, last = [layer for layer in model if isinstance(layer, nn.Conv2d | nn.Linear)]
    with torch.no_grad():
        first.weight.mul_(scale)
        last.weight.div_(scale)
        for layer in (first, *between):
            layer.bias.mul_(scale)
    assert torch.equal(WAYS[way](model, SMOOTH.to(dtype), cyclic_targets(8)), expected)


# ---------------------------------------------------------------------------------------------- DeepSHAP


def test_deep_shap_is_the_mean_over_baselines() -> None:
    model = conv_classifier()
    colors = torch.cat([torch.zeros(1, 3, 12, 12).double(), model.mean.expand(1, 3, 12, 12)])
    black, mean = (
        deeplift(model, IMAGES, TARGETS, generator=generator(), rule="rescale", baseline=name)
        for name in ("black", "mean")
    )
    maps = deep_shap(model, IMAGES, TARGETS, generator=generator(), background=colors)
    exact(maps, (black + mean) / 2)


@pytest.mark.filterwarnings("ignore")  # captum warns that it will add hooks
@pytest.mark.parametrize("network", [residual_classifier, tanh_and_average, two_pools])
def test_deep_shap_equals_captum(network: Callable[[], nn.Module]) -> None:
    model = network()
    expected = captum.attr.DeepLiftShap(model).attribute(IMAGES.clone(), BACKGROUND, target=TARGETS)
    exact(deep_shap(model, IMAGES, TARGETS, generator=generator(), background=BACKGROUND), expected.detach())


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "method"), [("deeplift", deeplift), ("deep_shap", partial(deep_shap, background=BACKGROUND))]
)
def test_a_layer_without_a_rule_is_refused(name: str, method: Callable[..., Tensor]) -> None:
    network = chain(nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 4, 1), nn.ReLU(), features=400)
    message = (
        rf"^{name}: Sequential: found the operation 'conv_transpose2d' \('1'\).* use integrated_gradients$"
    )
    with pytest.raises(ValueError, match=message):
        method(network, IMAGES, TARGETS, generator=generator())


def test_a_baseline_or_background_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^baseline: found 'mean' with a Sequential"):
        deeplift(two_pools(), IMAGES, TARGETS, generator=generator(), baseline="mean")
    with pytest.raises(ValueError, match=r"^background: found float32 \[3, 3, 12, 12\]"):
        deep_shap(two_pools(), IMAGES, TARGETS, generator=generator(), background=BACKGROUND.float())


def test_contributions_that_do_not_sum_to_the_difference_are_refused() -> None:
    """Norms without variance at the black baseline: rounding errors are larger than the logits."""
    torch.manual_seed(0)
    model = classifier(timm.create_model("test_mambaout", num_classes=CLASSES), "", dtype=torch.float32)
    model.mean.zero_()
    images = random_images(3, size=32, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"^deeplift: found contributions that sum to .* baseline"):
        deeplift(model, images, cyclic_targets(3), generator=generator())


class Pooling(nn.Module):
    """A layer of a constant: the queries of an attention pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, CLASSES)
        self.query, self.project = nn.Parameter(torch.zeros(1, 1, 4)), nn.Linear(4, 4)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.features(images).flatten(2).transpose(1, 2)
        weights = (self.project(self.query) @ tokens.transpose(1, 2)).softmax(-1)
        return self.head((weights @ tokens).mean(1))


def test_layers_of_constants() -> None:
    model = classifier(with_random_state(Pooling(), 1), "")
    maps = deeplift(model, IMAGES, TARGETS, generator=generator())
    with torch.no_grad():
        change = (model(IMAGES) - model(0 * IMAGES)).gather(1, TARGETS[:, None])[:, 0]
    exact(maps.sum((1, 2, 3)), change, 1e-8)


def test_equal_values_of_flat_areas_do_not_depend_on_the_batch() -> None:
    """Sums of a second convolution that are equal but for rounding, under max pooling."""
    torch.manual_seed(0)
    first = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    network = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, CLASSES))
    model = classifier(network, "", dtype=torch.float32)
    images, targets = torch.rand(4, 3, 16, 16), cyclic_targets(4)
    images[0], images[1, :, :, :10] = 0, 1
    inputs: dict[str, Any] = {"background": torch.rand(3, 3, 16, 16), "generator": generator()}
    together = deep_shap(model, images, targets, **inputs)
    alone = torch.cat([deep_shap(model, images[i : i + 1], targets[i : i + 1], **inputs) for i in range(4)])
    assert (alone - together).abs().max() < 5e-3 * together.abs().max()
