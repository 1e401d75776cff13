"""CAM methods in plain loops, from activations, weights of the head and masked images; those that coincide with CAM."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    ConvNet,
    classifier,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    seen_batches,
    skip_classifier,
    state_of,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.cam import (
    cam,
    eigencam,
    gradcam,
    gradcam_plus_plus,
    hirescam,
    layercam,
    scorecam,
    xgradcam,
)
from saliency_assay.methods.feature_maps import cam_layers
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.resnet import resnet8
from saliency_assay.models.vit import vit

IMAGES, TARGETS = random_images(6, size=6), cyclic_targets(6)


def small_resnet() -> Classifier:
    network = resnet8(classes=CLASSES, channels=3, generator=generator(3), width=4)
    return classifier(network.double(), "layer3")


def headed(*head: nn.Module, cam_layer: str = "1", in_place: bool = False) -> Classifier:
    """A convolution and a ReLU to 6 feature maps, and then ``head``."""
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(in_place), *head)
    return classifier(with_random_state(network, seed=1), cam_layer)


POOLED = (nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize("relu", [False, True])
def test_cam_equals_plain_loops(relu: bool) -> None:
    network = with_random_state(ConvNet(3), seed=2)
    model = classifier(network, "body.6")
    maps = cam(model, IMAGES, TARGETS, generator=generator(), relu=relu, upsampling="nearest")
    with torch.no_grad():
        activations = network.body[:7]((IMAGES - model.mean) / model.std).numpy()
    weights = network.body[10].weight.detach().numpy()
    for features, target, values in zip(activations, TARGETS.tolist(), maps, strict=True):
        expected = np.zeros((3, 3))
        for k, i, j in product(range(6), range(3), range(3)):
            expected[i, j] += weights[target, k] * features[k, i, j]
        exact(values[0], np.kron(np.maximum(expected, 0) if relu else expected, np.ones((2, 2))))
    assert (maps < 0).any() != relu
    assert (maps > 0).any()


@pytest.mark.parametrize("method", [gradcam, hirescam, xgradcam])
@pytest.mark.parametrize(("upsampling", "relu"), [("bilinear", True), ("bicubic", False), ("nearest", True)])
def test_maps_behind_a_mean_and_a_linear_layer_are_cam_divided_by_the_positions(
    method: Callable[..., Tensor], upsampling: str, relu: bool
) -> None:
    model, settings = small_resnet(), {"generator": generator(), "relu": relu, "upsampling": upsampling}
    maps = cam(model, IMAGES, TARGETS, **settings)
    exact(method(model, IMAGES, TARGETS, **settings), maps / 4)
    assert maps.abs().max() > 1e-3


def flattened(layer: nn.Module | None = None, seed: int = 1) -> Classifier:
    """Features ``[6, 6, 6]`` behind ``layer``, and a linear head, whose weights are their gradients."""
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), layer or nn.ReLU(), nn.Flatten())
    return classifier(with_random_state(network.append(nn.Linear(216, CLASSES)), seed), "1")


def features_of(model: Classifier, images: Tensor) -> np.ndarray:
    with torch.no_grad():
        features: np.ndarray = model.network[:2](model.network_input(images)).numpy()
    return features


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layer", [nn.ReLU(), nn.Identity()], ids=["positive", "of both signs"])
def test_maps_of_positive_gradients_equal_plain_loops(layer: nn.Module, relu: bool) -> None:
    model = flattened(layer)
    plus_plus, layer_maps = (
        method(model, IMAGES, TARGETS, generator=generator(), relu=relu)[:, 0].numpy()
        for method in (gradcam_plus_plus, layercam)
    )
    weights = model.network[3].weight.detach().reshape(CLASSES, 6, 6, 6).numpy()
    for image, (features, target) in enumerate(zip(features_of(model, IMAGES), TARGETS, strict=True)):
        expected, expected_layer = np.zeros((6, 6)), np.zeros((6, 6))
        for channel, gradients in zip(features, weights[target], strict=True):
            weight = 0.0
            for i, j in product(range(6), range(6)):
                g = gradients[i, j]
                alpha = g**2 / (2 * g**2 + channel.sum() * g**3)
                weight += alpha * max(g, 0)
                expected_layer[i, j] += max(g, 0) * channel[i, j]
            expected += weight * channel
        for values, total in ((plus_plus[image], expected), (layer_maps[image], expected_layer)):
            exact(values, np.maximum(total, 0) if relu else total)
    if isinstance(layer, nn.Identity) and not relu:
        assert (plus_plus < 0).any()
        assert (layer_maps < 0).any()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layer", [nn.ReLU(), nn.Identity()], ids=["positive", "of both signs"])
def test_maps_of_gradients_times_activations_equal_plain_loops(layer: nn.Module, relu: bool) -> None:
    model = flattened(layer)
    high, axiomatic = (
        method(model, IMAGES, TARGETS, generator=generator(), relu=relu)[:, 0].numpy()
        for method in (hirescam, xgradcam)
    )
    weights = model.network[3].weight.detach().reshape(CLASSES, 6, 6, 6).numpy()
    for image, (features, target) in enumerate(zip(features_of(model, IMAGES), TARGETS, strict=True)):
        expected, expected_axiomatic = np.zeros((6, 6)), np.zeros((6, 6))
        for channel, gradients in zip(features, weights[target], strict=True):
            weight = 0.0
            for i, j in product(range(6), range(6)):
                expected[i, j] += channel[i, j] * gradients[i, j]
                weight += channel[i, j] / (channel.sum() or 1) * gradients[i, j]
            expected_axiomatic += weight * channel
        for values, total in ((high[image], expected), (axiomatic[image], expected_axiomatic)):
            exact(values, np.maximum(total, 0) if relu else total)
    for maps in (high, axiomatic):
        assert (maps < 0).any() != relu
        assert (maps > 0).any()


@pytest.mark.parametrize("method", [hirescam, xgradcam])
def test_signed_maps_before_a_linear_layer_sum_to_the_logit_without_its_bias(
    method: Callable[..., Tensor],
) -> None:
    model = flattened()
    with torch.no_grad():
        logits = (model(IMAGES) - model.network[3].bias)[range(6), TARGETS]
    maps = method(model, IMAGES, TARGETS, generator=generator(), relu=False)
    exact(maps.sum((1, 2, 3)), logits)


class Fixed(nn.Module):
    """Features ``[3, 6, 6]`` of any image."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        return self.features.expand_as(images)


def fixed(features: Tensor) -> Classifier:
    head = with_random_state(nn.Linear(features.numel(), CLASSES), seed=1)
    return classifier(nn.Sequential(Fixed(features), nn.Flatten(), head), "0")


def test_xgradcam_of_channels_whose_sum_is_zero() -> None:
    """A channel of zeros contributes nothing; another one has no weight, so that the map is not finite."""
    features = torch.ones(3, 6, 6, dtype=torch.float64)
    features[1] = 0
    model = fixed(features)
    maps = xgradcam(model, IMAGES, TARGETS, generator=generator(), relu=False)
    means = model.network[2].weight.detach().reshape(CLASSES, 3, 36).mean(2)[TARGETS]
    exact(maps, (means[:, 0] + means[:, 2])[:, None, None, None].expand_as(maps))
    features[1, :, :3], features[1, :, 3:] = 0.1, -0.1
    assert not xgradcam(model, IMAGES, TARGETS, generator=generator(), relu=False).isfinite().any()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("layer", [nn.ReLU(), nn.Identity()], ids=["positive", "of both signs"])
def test_eigencam_equals_numpys_decomposition(layer: nn.Module, relu: bool) -> None:
    model, settings = flattened(layer), {"generator": generator(), "relu": relu}
    with torch.no_grad():
        model.network[0].bias.zero_()
    maps = eigencam(model, IMAGES, TARGETS, **settings)
    for features, values in zip(features_of(model, IMAGES), maps, strict=True):
        matrix = features.reshape(6, 36).T
        expected = matrix @ np.linalg.svd(matrix)[2][0]
        expected *= np.sign(expected.sum())
        exact(values.flatten(), np.maximum(expected, 0) if relu else expected, floor=1e-10)
    assert bool((maps < -1e-10).any()) == (isinstance(layer, nn.Identity) and not relu)
    assert torch.equal(eigencam(model, IMAGES, TARGETS.flip(0), **settings), maps)


def test_eigencam_of_one_pattern_is_the_pattern_times_the_length_of_its_factors() -> None:
    pattern = torch.linspace(-2, 3, 36, dtype=torch.float64).reshape(6, 6)  # of mean 1/2
    for factors in ([2.0, 3.0, 6.0], [-2.0, -3.0, 6.0], [0.0, 0.0, 0.0]):
        features = torch.tensor(factors, dtype=torch.float64)[:, None, None] * pattern
        maps = eigencam(fixed(features), IMAGES, TARGETS, generator=generator(), relu=False)
        exact(maps, (pattern * (7 if any(factors) else 0)).expand_as(maps))


@pytest.mark.parametrize("method", [hirescam, xgradcam, eigencam])
def test_maps_without_values_have_their_shape(method: Callable[..., Tensor]) -> None:
    model = conv_classifier().to("meta")
    assert method(model, IMAGES.to("meta"), TARGETS.to("meta"), generator=generator()).shape == (6, 1, 6, 6)


def test_gradcam_plus_plus_does_not_depend_on_the_unit_of_the_activations() -> None:
    """In float32, with gradients whose cubes are 0."""
    models = [flattened().float() for _ in range(2)]
    with torch.no_grad():
        for parameter in models[1].network[0].parameters():
            parameter *= 2.0**60
        models[1].network[3].weight *= 2.0**-60
    expected, maps = (
        gradcam_plus_plus(model, IMAGES.float(), TARGETS, generator=generator()) for model in models
    )
    assert torch.equal(maps, expected)
    assert (expected.amax((1, 2, 3)) > 1e-2).all()


def test_gradcam_plus_plus_has_no_weight_where_the_denominator_is_zero() -> None:
    model = flattened(nn.Identity())
    with torch.no_grad():
        model.network[0].weight.zero_()
        model.network[0].bias.fill_(-1 / 8).index_fill_(0, torch.tensor(5), 1)
        model.network[3].weight.fill_(4 / 9)  # times 36 positions of −1/8 each: −2
    settings = {"generator": generator(), "relu": False}
    maps = gradcam_plus_plus(model, IMAGES, TARGETS, **settings)
    exact(maps, torch.full_like(maps, 36 * (4 / 9) / (2 + 36 * 4 / 9)))


@pytest.mark.parametrize(("baseline", "relu"), [("black", False), ("mean", True)])
def test_scorecam_equals_plain_loops(baseline: str, relu: bool) -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Tanh(), *POOLED, nn.Linear(6, CLASSES)
    )
    model = classifier(with_random_state(network, seed=2), "1")
    with torch.no_grad():
        network[0].weight[4].zero_()  # a constant channel
        network[4].weight.mul_(20)  # so that the weights of channels differ
    settings = {"generator": generator(), "baseline": baseline, "relu": relu, "upsampling": "nearest"}
    maps = scorecam(model, IMAGES, TARGETS, **settings)[:, 0]
    color = 0.0 if baseline == "black" else model.mean[0, 0].item()
    for image, features, target, values in zip(
        IMAGES, features_of(model, IMAGES), TARGETS, maps, strict=True
    ):
        scores = []
        for channel in features:
            mask = np.kron((channel - channel.min()) / (np.ptp(channel) or 1), np.ones((2, 2)))
            masked = image.numpy() * mask + color * (1 - mask)
            with torch.no_grad():
                scores.append(model(torch.from_numpy(masked)[None])[0, target].item())
        weights = np.exp(scores) / np.exp(scores).sum()
        assert np.ptp(weights) > 0.05
        total = sum(weight * channel for weight, channel in zip(weights, features, strict=True))
        exact(values, np.kron(np.maximum(total, 0) if relu else total, np.ones((2, 2))))
    assert (maps < 0).any() != relu


def test_masks_range_from_0_to_1_and_that_of_a_constant_channel_is_0() -> None:
    """A white image, masked, is the mask; zeros around it make the activations differ between positions."""
    network = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.AvgPool2d(3), *POOLED, nn.Linear(6, CLASSES))
    model = classifier(with_random_state(network, seed=1), "1")
    with torch.no_grad():
        network[0].weight[3].zero_()
        network[0].bias[3] = 0.7  # with a rounding error in bicubic interpolation
    white = torch.ones(1, 3, 15, 15, dtype=torch.float64)
    with seen_batches(model) as seen:
        scorecam(model, white, TARGETS[:1], generator=generator(), baseline="black", upsampling="bicubic")
    masks = torch.cat(seen[1:])
    assert masks.amin((1, 2, 3)).tolist() == [0] * 6
    assert masks.amax((1, 2, 3)).tolist() == [1, 1, 1, 0, 1, 1]


class RowsFirst(nn.Module):
    """The spatial mean, summed in another order than ``mean`` sums it."""

    def forward(self, features: Tensor) -> Tensor:
        return features.flip(2, 3).mean(3).mean(2)


@pytest.mark.parametrize("seed", range(2))
def test_rounding_is_no_other_head(seed: int) -> None:
    """In float32, with a bias that leaves nothing but rounding of one image's logits."""
    layers = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), RowsFirst(), nn.Linear(6, CLASSES)
    model = classifier(with_random_state(nn.Sequential(*layers), seed), "1", dtype=torch.float32)
    images, head = IMAGES.float(), model.network[3]
    with torch.no_grad():
        head.bias.zero_()
        head.bias.copy_(-model(images)[0])
        logits = model(images)
    pooled = cam(model, images, TARGETS, generator=generator(), upsampling="nearest").mean((1, 2, 3))
    assert logits[0].abs().max() < 1e-6 < 1e-3 < logits[1:].abs().max()
    exact(pooled, (logits - head.bias.detach())[range(6), TARGETS], 1e-4, floor=1e-5)


OTHER_HEADS = {
    "activations go past a ReLU": (skip_classifier, "second"),
    "no linear layer": (lambda: headed(nn.Conv2d(6, CLASSES, 1), *POOLED), "1"),
    "two linear layers": (lambda: headed(*POOLED, nn.Linear(6, 6), nn.Linear(6, CLASSES)), "1"),
    "maximum": (lambda: headed(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(6, CLASSES)), "1"),
    "flattened": (lambda: headed(nn.Flatten(), nn.Linear(6 * 36, CLASSES)), "1"),
    "something after it": (lambda: headed(*POOLED, nn.Linear(6, CLASSES), nn.LogSoftmax(1)), "1"),
    "an earlier layer": (lambda: headed(*POOLED, nn.Linear(6, CLASSES), cam_layer="0"), "0"),
    "an earlier layer and in place": (
        lambda: headed(*POOLED, nn.Linear(6, CLASSES), cam_layer="0", in_place=True),
        "0",
    ),
}


@pytest.mark.parametrize(("model", "layer"), OTHER_HEADS.values(), ids=OTHER_HEADS)
def test_other_heads_are_refused(model: Callable[[], Classifier], layer: str) -> None:
    net = model()
    before = state_of(net)
    name = "SkipNet" if model is skip_classifier else "Sequential"
    with pytest.raises(ValueError, match=f"^cam: the head of {name} .* cam_layer '{layer}'; .* gradcam$"):
        cam(net, IMAGES, TARGETS, generator=generator())
    assert state_of(net) == before


@pytest.mark.parametrize("method", [cam, gradcam_plus_plus, layercam, hirescam, xgradcam, eigencam, scorecam])
def test_values_that_are_not_finite_show_in_their_map_alone(method: Callable[..., Tensor]) -> None:
    images = IMAGES.clone()
    images[2, 0, 0, 0] = torch.nan
    maps = method(conv_classifier(), images, TARGETS, generator=generator())
    assert maps.flatten(1).isnan().any(1).tolist() == [False, False, True, False, False, False]


class Spare(nn.Module):
    """A layer that no pass goes through, beside those that do."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Sequential(nn.Flatten(), nn.Linear(108, CLASSES))
        self.unused = nn.Conv2d(3, 3, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.used(images)


@pytest.mark.parametrize(
    ("network", "layer"), [(ConvNet(3), "body.10"), (Spare(), "unused")], ids=["vector", "not called"]
)
def test_a_layer_without_feature_maps_is_refused(network: nn.Module, layer: str) -> None:
    model = classifier(with_random_state(network, seed=1), layer)
    for method in (cam, gradcam, gradcam_plus_plus, layercam, hirescam, xgradcam, eigencam, scorecam):
        with pytest.raises(ValueError, match=f"cam_layer: '{layer}' .*returns "):
            method(model, IMAGES, TARGETS, generator=generator())


class Tokens(nn.Module):
    """A layer that returns feature maps as tokens behind ``extra`` others, or with their channels last."""

    def __init__(self, form: str, extra: int = 0) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU())
        self.form, self.extra, self.tokens = form, extra, nn.Identity()
        self.head = nn.Linear(5, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.features(images)
        if self.form == "maps":
            return self.head(self.tokens(maps).sum((2, 3)))
        if self.form == "channels last":
            return self.head(self.tokens(maps.permute(0, 2, 3, 1)).sum((1, 2)))
        first = images.new_full((len(images), self.extra, 5), 0.5)
        tokens = torch.cat([first, maps.flatten(2).transpose(1, 2)], 1)
        return self.head(self.tokens(tokens).sum(1))


@pytest.mark.parametrize("method", [gradcam, hirescam, xgradcam, eigencam, scorecam])
@pytest.mark.parametrize(("form", "extra"), [("tokens", 0), ("tokens", 2), ("channels last", 0)])
def test_maps_of_tokens_are_those_of_the_feature_maps(
    form: str, extra: int, method: Callable[..., Tensor]
) -> None:
    images = torch.rand(6, 3, 6, 9, generator=generator(3), dtype=torch.float64)
    maps, expected = (
        method(
            classifier(with_random_state(network, seed=1), "tokens"), images, TARGETS, generator=generator()
        )
        for network in (Tokens(form, extra), Tokens("maps"))
    )
    # The gradient at a class token is that at every other token, because the head sums them.
    exact(maps, expected)
    assert expected.abs().max() > 0


def test_token_grid_selects_the_last_tokens() -> None:
    model = classifier(with_random_state(Tokens("tokens", 4), seed=1), "tokens")
    model.token_grid = (5, 8)
    assert gradcam(model, IMAGES, TARGETS, generator=generator()).shape == (6, 1, 6, 6)
    model.token_grid = (6, 8)
    with pytest.raises(ValueError, match="token_grid: found 6 × 8 for 40 tokens"):
        gradcam(model, IMAGES, TARGETS, generator=generator())


def test_a_layer_behind_which_nothing_reads_the_grid_is_refused() -> None:
    network = Tokens("tokens", 1)
    network.forward = lambda images: network.head(
        network.tokens(network.features(images)).detach().sum((2, 3))
    )
    model = classifier(with_random_state(network, seed=1), "tokens")
    with pytest.raises(ValueError, match=r"^cam_layer: found no gradient .* 'tokens'"):
        gradcam(model, IMAGES, TARGETS, generator=generator())


def test_a_layer_of_which_only_the_class_token_is_read_is_refused() -> None:
    size = {"image_size": 6, "patch": 2, "width": 8, "depth": 2, "heads": 2}
    network = vit(classes=CLASSES, channels=3, generator=generator(), **size)
    model = classifier(network.double(), "blocks.-1")
    with pytest.raises(
        ValueError, match=r"^cam_layer: of the output of 'blocks.-1', the logits depend only on"
    ):
        gradcam(model, IMAGES, TARGETS, generator=generator())
    layers = cam_layers(model, IMAGES)
    assert layers[-3:] == ["blocks.0", "blocks.1.norm1", "blocks.1.attention.qkv"]
    for layer in layers:
        model.cam_layer = layer
        assert gradcam(model, IMAGES, TARGETS, generator=generator(), relu=False).any()


class Pair(NamedTuple):
    maps: Tensor
    size: int


class Kept(nn.Module):
    """Feature maps in an output of any form, which is read once or, by another path, from where a hook stored it."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.features, self.head, self.form = nn.Conv2d(3, 5, 3, padding=1), nn.Linear(5, CLASSES), form
        self.layer = Inner(form)
        self.stored: list[Tensor] = []
        if form == "stored by a hook":
            self.layer.register_forward_hook(lambda layer, inputs, output: self.stored.append(output))

    def forward(self, images: Tensor) -> Tensor:
        output = self.layer(self.features(images))
        if self.form == "stored by a hook":
            output = self.stored.pop()
        maps = output[0] if isinstance(output, tuple) else output
        return self.head((maps**2).mean((2, 3)))


class Inner(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def forward(self, maps: Tensor) -> Any:
        maps = maps.tanh()
        return {"tuple": (maps, 1), "named tuple": Pair(maps, 1)}.get(self.form, maps)


@pytest.mark.parametrize("method", [gradcam, scorecam])
@pytest.mark.parametrize("form", ["tuple", "named tuple", "stored by a hook"])
def test_features_in_any_output_have_the_same_map(form: str, method: Callable[..., Tensor]) -> None:
    maps, expected = (
        method(
            classifier(with_random_state(Kept(kind), seed=1), "layer"), IMAGES, TARGETS, generator=generator()
        )
        for kind in (form, "tensor")
    )
    exact(maps, expected)
    assert expected.abs().max() > 0
