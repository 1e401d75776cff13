"""CAM, from the activations and the head's weights in plain loops, and as GradCAM without its 1 / (h w)."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    ConvNet,
    SmoothNet,
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

from saliency_assay.methods.cam import UPSAMPLINGS, cam, cam_layers, gradcam
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
    for features, target, found in zip(activations, TARGETS.tolist(), maps, strict=True):
        expected = np.zeros((3, 3))
        for k, i, j in product(range(6), range(3), range(3)):
            expected[i, j] += weights[target, k] * features[k, i, j]
        exact(found[0], np.kron(np.maximum(expected, 0) if relu else expected, np.ones((2, 2))))
    assert (maps < 0).any() != relu
    assert (maps > 0).any()


@pytest.mark.parametrize("model", [conv_classifier, small_resnet])
def test_mean_of_the_map_and_the_bias_are_the_logit(model: Callable[[], Classifier]) -> None:
    net = model()
    maps = cam(net, IMAGES, TARGETS, generator=generator(), upsampling="nearest")
    bias = [part for part in net.modules() if isinstance(part, nn.Linear)][-1].bias.detach()
    if model is small_resnet:  # 6 × 6 pixels over 2 × 2 positions: each has 9 pixels
        assert maps[0, 0].unique().numel() == 4
    with torch.no_grad():
        exact(maps.mean((1, 2, 3)) + bias[TARGETS], net(IMAGES)[range(6), TARGETS])


@pytest.mark.parametrize("upsampling", UPSAMPLINGS)
@pytest.mark.parametrize(("model", "positions"), [(conv_classifier, 9), (small_resnet, 4)])
def test_gradcam_is_cam_divided_by_the_positions(
    model: Callable[[], Classifier], positions: int, upsampling: str
) -> None:
    net = model()
    for relu in (False, True):
        settings = {"generator": generator(), "relu": relu, "upsampling": upsampling}
        maps = cam(net, IMAGES, TARGETS, **settings)
        exact(gradcam(net, IMAGES, TARGETS, **settings), maps / positions)
        assert maps.abs().max() > 1e-3


def test_one_forward_pass_without_gradients() -> None:
    model, recording = conv_classifier(), []
    model.network.register_forward_pre_hook(lambda *_: recording.append(torch.is_grad_enabled()))
    with seen_batches(model) as seen:
        cam(model, IMAGES, TARGETS, generator=generator())
    assert [len(batch) for batch in seen] == [6]
    assert recording == [False]


class RowsFirst(nn.Module):
    """The spatial mean, summed in another order than ``mean`` sums it."""

    def forward(self, features: Tensor) -> Tensor:
        return features.flip(2, 3).mean(3).mean(2)


@pytest.mark.parametrize("seed", range(5))
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


def test_a_head_without_bias_is_one_too() -> None:
    model = headed(*POOLED, nn.Linear(6, CLASSES, bias=False))
    maps = cam(model, IMAGES, TARGETS, generator=generator())
    with torch.no_grad():
        exact(maps.mean((1, 2, 3)), model(IMAGES)[range(6), TARGETS])


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
    with pytest.raises(ValueError, match="cam: ") as error:
        cam(net, IMAGES, TARGETS, generator=generator())
    name = "SkipNet" if model is skip_classifier else "Sequential"
    assert str(error.value) == (
        f"cam: the head of {name} is not average pooling and one linear layer over cam_layer '{layer}'; "
        f"expected that, or use gradcam"
    )
    assert state_of(net) == before
    assert gradcam(net, IMAGES, TARGETS, generator=generator()).shape == (6, 1, 6, 6)


def test_hook_is_gone_when_the_pass_fails() -> None:
    model = conv_classifier()
    before = state_of(model)
    with pytest.raises(ValueError, match=r"expected \[N, 3, H, W\]$"):
        cam(model, IMAGES[:, :2], TARGETS, generator=generator())
    assert state_of(model) == before


def test_values_that_are_not_finite_show_in_their_map_alone() -> None:
    images = IMAGES.clone()
    images[2, 0, 0, 0] = torch.nan
    maps = cam(conv_classifier(), images, TARGETS, generator=generator())
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
    for method in (cam, gradcam):
        with pytest.raises(ValueError, match=f"cam_layer: '{layer}' returns "):
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


@pytest.mark.parametrize("size", [(6, 6), (6, 9)], ids=["square", "wide"])
@pytest.mark.parametrize(
    ("form", "extra"), [("tokens", 0), ("tokens", 1), ("tokens", 2), ("channels last", 0)]
)
def test_gradcam_of_tokens_is_that_of_the_feature_maps(form: str, extra: int, size: tuple[int, int]) -> None:
    images = torch.rand(6, 3, *size, generator=generator(3), dtype=torch.float64)
    maps, expected = (
        gradcam(
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
    maps = gradcam(model, IMAGES, TARGETS, generator=generator(), upsampling="nearest")
    model.token_grid = (6, 8)
    with pytest.raises(ValueError, match="token_grid: found 6 × 8 for 40 tokens of 'tokens'"):
        gradcam(model, IMAGES, TARGETS, generator=generator())
    assert maps.shape == (6, 1, 6, 6)


def test_a_layer_behind_which_nothing_reads_the_grid_is_refused() -> None:
    network = Tokens("tokens", 1)
    network.forward = lambda images: network.head(
        network.tokens(network.features(images)).detach().sum((2, 3))
    )
    model = classifier(with_random_state(network, seed=1), "tokens")
    with pytest.raises((ValueError, RuntimeError), match=r"does not require grad|do not depend"):
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


def test_a_model_without_a_cam_layer_is_refused() -> None:
    model = with_random_state(SmoothNet(108), seed=1)
    with pytest.raises(
        ValueError, match=r"^model: found SmoothNet, expected a Classifier, which has a cam_layer$"
    ):
        cam(model, IMAGES, TARGETS, generator=generator())
