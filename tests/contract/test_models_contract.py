"""Contract of every registered architecture: layers, ReLUs that can be hooked, weights from one seed."""

import inspect
import json
from collections import Counter

import pytest
import torch
from torch import nn

from saliency_assay.methods.cam import gradcam
from saliency_assay.models import ARCHITECTURES, Architecture
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.registry.records import resolve, with_defaults

CLASSES, CHANNELS, SIZE = 5, 3, 64
# Networks for tests are small; an architecture without an entry has its defaults.
SMALL = {
    "resnet20": {"width": 8},
    "vgg16": {"width": 4, "hidden": 16, "pooled": 2},
    "vgg16_bn": {"width": 4, "hidden": 16, "pooled": 2},
    "reliability_cnn": {"width": 8},
    "mnist_cnn": {"width": 8, "hidden": 16},
    "vit": {"image_size": 64, "patch": 8, "width": 12, "depth": 2, "heads": 2},
    "convnext": {"width": 8, "depth": 1, "kernel": 3},
}


# Designed networks have tests of their own, since they have two classes and no random weights.
@pytest.fixture(
    params=[each for each in ARCHITECTURES if not each.is_designed],
    ids=lambda architecture: architecture.name,
)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return request.param


def built(architecture: Architecture, seed: int = 0, channels: int = CHANNELS) -> Classifier:
    blueprint = Blueprint(
        architecture=architecture.name,
        function=architecture.function,
        parameters=with_defaults(architecture.parameters, SMALL.get(architecture.name, {})),
        cam_layer=architecture.cam_layer,
        concept_layers=architecture.concept_layers,
    )
    generator = torch.Generator().manual_seed(seed)
    mean, std = [0.4] * channels, [0.25] * channels
    return build(blueprint, classes=CLASSES, mean=mean, std=std, generator=generator).eval()


def outputs(classifier: Classifier, names: list[str], pixels: torch.Tensor) -> list[torch.Tensor]:
    """Return the outputs of the named layers, in the order in which they ran."""
    seen: list[torch.Tensor] = []
    for name in names:
        classifier.layer(name).register_forward_hook(lambda layer, inputs, out: seen.append(out))
    with torch.no_grad():
        classifier(pixels)
    return seen


def test_record_says_what_the_builder_takes(architecture: Architecture) -> None:
    signature = inspect.signature(resolve(architecture.function)).parameters
    defaults = {name: one.default for name, one in signature.items() if one.default is not one.empty}
    assert {name: parameter.default for name, parameter in architecture.parameters.items()} == defaults
    assert set(signature) - set(defaults) == {"classes", "channels", "generator"}
    assert json.loads(json.dumps(defaults)) == defaults
    assert [other.name for other in ARCHITECTURES].count(architecture.name) == 1


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_to_logits(architecture: Architecture, channels: int) -> None:
    classifier = built(architecture, channels=channels)
    with torch.no_grad():
        logits = classifier(torch.rand(2, channels, SIZE, SIZE))
    assert logits.shape == (2, CLASSES)
    assert logits.dtype == torch.float32
    assert logits.isfinite().all()
    with pytest.raises(ValueError, match=rf"images \[2, 4, 64, 64\]: expected \[N, {channels}, H, W\]"):
        classifier(torch.rand(2, 4, SIZE, SIZE))


def test_each_relu_is_a_module_used_once_and_out_of_place(architecture: Architecture) -> None:
    classifier = built(architecture)
    relus = {name: module for name, module in classifier.named_modules() if isinstance(module, nn.ReLU)}
    assert not [name for name, relu in relus.items() if relu.inplace]
    used: Counter[str] = Counter()
    for name, relu in relus.items():
        relu.register_forward_hook(lambda layer, inputs, out, name=name: used.update([name]))
    with torch.profiler.profile() as profile, torch.no_grad():
        classifier(torch.rand(1, CHANNELS, SIZE, SIZE))
    assert dict(used) == dict.fromkeys(relus, 1)
    # A functional ReLU would show as a call that no module made.
    calls = {event.key: event.count for event in profile.key_averages()}
    assert calls.get("aten::relu", 0) == len(relus)
    assert bool(relus) == architecture.has_relu
    assert not {"aten::relu_", "aten::clamp_min_", "aten::threshold_"} & set(calls)


def test_weights_come_from_the_generator_alone(architecture: Architecture) -> None:
    torch.manual_seed(1)
    first, state = digest(built(architecture, seed=7).state_dict()), torch.random.get_rng_state()
    torch.manual_seed(2)
    assert digest(built(architecture, seed=7).state_dict()) == first
    assert digest(built(architecture, seed=8).state_dict()) != first
    torch.manual_seed(1)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_first_weights_are_he_normal(architecture: Architecture) -> None:
    convolutions = [module for module in built(architecture).modules() if isinstance(module, nn.Conv2d)]
    for convolution in convolutions:
        expected = (2 / (convolution.out_channels * convolution.kernel_size[0] ** 2)) ** 0.5
        error = 5 / convolution.weight.numel() ** 0.5  # five standard errors of the mean
        assert convolution.weight.std().item() == pytest.approx(expected, rel=error / 2**0.5)
        assert abs(convolution.weight.mean().item()) < error * expected
    biases = [convolution.bias for convolution in convolutions if convolution.bias is not None]
    assert not any(bias.any() for bias in biases)


def test_first_linear_weights_are_uniform(architecture: Architecture) -> None:
    for linear in (module for module in built(architecture).modules() if isinstance(module, nn.Linear)):
        bound = linear.in_features**-0.5
        assert 0.8 * bound < linear.weight.abs().max().item() <= bound


def test_declared_layers(architecture: Architecture) -> None:
    classifier = built(architecture)
    pixels = torch.rand(2, CHANNELS, SIZE, SIZE)
    (features,) = outputs(classifier, [architecture.cam_layer], pixels)
    targets = torch.tensor([0, 1])
    maps = gradcam(classifier, pixels, targets, generator=torch.Generator(), relu=False)
    assert features.ndim == (3 if architecture.name == "vit" else 4)
    assert maps.flatten(1).std(1).min() > 0
    # Hooks fire in the order of the forward, so the last concept layer must be the logits.
    concepts = outputs(built(architecture), list(architecture.concept_layers), pixels)
    assert len(concepts) == len(architecture.concept_layers)
    assert torch.equal(concepts[-1], classifier(pixels))
    reversed_names = outputs(built(architecture), list(reversed(architecture.concept_layers)), pixels)
    assert [tuple(out.shape) for out in reversed_names] == [tuple(out.shape) for out in concepts]


def test_head_is_linear_over_the_mean_where_declared(architecture: Architecture) -> None:
    classifier = built(architecture)
    pixels = torch.rand(2, CHANNELS, SIZE, SIZE)
    (features,) = outputs(classifier, [architecture.cam_layer], pixels)
    head = [module for module in classifier.modules() if isinstance(module, nn.Linear)][-1]
    mean = features.mean((2, 3) if features.ndim == 4 else 1)
    with torch.no_grad():
        fits = mean.shape[1] == head.in_features
        same = fits and torch.allclose(head(mean), classifier(pixels), atol=1e-4)
    assert same == architecture.head_is_pool_linear
