"""Networks with one output, an activation at the end, or several labels, against equal networks of two logits."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.metrics.perturbation import read
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.outputs import final_activation
from saliency_assay.models.weights import load_classifier, load_initial, save
from saliency_assay.training.evaluation import accuracies, predict

CHANNELS = 6


class Binary(nn.Module):
    """A network of one output, at whose end is ``end``."""

    def __init__(self, end: Callable[[Any, Tensor], Any] = lambda network, z: z, outputs: int = 1) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.features = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc, self.act, self.end = nn.Linear(CHANNELS, outputs), nn.Sigmoid(), end
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) / 2

    def forward(self, x: Tensor) -> Any:
        return self.end(self, self.fc(self.features(x).mean((2, 3))))


ENDS: dict[str, tuple[str, Callable[[Any, Tensor], Any]]] = {
    "column": ("logit", lambda network, z: z),
    "vector": ("logit", lambda network, z: z.squeeze(1)),
    "module": ("sigmoid", lambda network, z: network.act(z)),
    "function": ("sigmoid", lambda network, z: torch.sigmoid(z)),
    "method": ("sigmoid", lambda network, z: z.squeeze(1).sigmoid()),
    "reshaped": ("sigmoid", lambda network, z: torch.sigmoid(z).squeeze(1)),
    "in place": ("sigmoid", lambda network, z: z.sigmoid_()),
    "tuple": ("sigmoid", lambda network, z: (torch.sigmoid(z), z)),
    "indexed": ("sigmoid", lambda network, z: torch.sigmoid(z[:, 0])),
    "squeezed": ("sigmoid", lambda network, z: torch.sigmoid(z).squeeze()),
}
METHODS = [
    *("gradient", "integrated_gradients", "gradcam", "cam", "fullgrad", "guided_backprop", "occlusion"),
    *("lrp_epsilon", "lrp_alpha_beta", "deep_taylor", "deeplift"),
]


def wrapped(network: nn.Module, **options: Any) -> Classifier:
    return saliency_assay.wrap(network, classes=2, mean=[0.0], std=[1.0], cam_layer="features.2", **options)


def two_logits() -> Classifier:
    """The network of logits (−z/2, z/2)."""
    network, one = Binary(outputs=2), Binary()
    network.features = one.features
    weight, bias = one.fc.weight.data, one.fc.bias.data
    network.fc.weight.data, network.fc.bias.data = (
        torch.cat([-weight, weight]) / 2,
        torch.cat([-bias, bias]) / 2,
    )
    return wrapped(network)


@pytest.fixture
def images() -> Tensor:
    return torch.rand(3, 1, 8, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("end", ENDS)
def test_a_network_of_one_output_is_explained_as_that_of_two_logits(end: str, images: Tensor) -> None:
    output, function = ENDS[end]
    model, expected = wrapped(Binary(function), output=output), two_logits()
    torch.testing.assert_close(model(images), expected(images))
    targets = torch.tensor([0, 1, 1])
    for method in METHODS:
        maps, expected_maps = (
            saliency_assay.attribute(method, each, images, targets, seed=0) for each in (model, expected)
        )
        torch.testing.assert_close(maps, expected_maps, msg=lambda text, method=method: f"{method}: {text}")


class Convolutional(nn.Module):
    """A network whose head is a convolution before the pooling."""

    def __init__(self, linear_head: Binary) -> None:
        super().__init__()
        self.features, fc = linear_head.features, linear_head.fc
        self.head = nn.Conv2d(CHANNELS, fc.out_features, 1)
        self.head.weight.data, self.head.bias.data = fc.weight.data[:, :, None, None], fc.bias.data
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.head(self.features(x))).flatten(1)


class Pool(nn.Module):
    """A function of ``[N, 1, H, W]`` that returns ``[N]``, as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)[:, None]


def test_a_convolution_at_the_end_is_explained_as_that_of_two_channels(images: Tensor) -> None:
    expected_network = Convolutional(two_logits().network)
    model, expected = wrapped(Convolutional(Binary()), output="logit"), wrapped(expected_network)
    torch.testing.assert_close(model(images), expected(images))
    for method in ("lrp_epsilon", "lrp_alpha_beta", "deep_taylor", "deeplift"):
        maps = [
            saliency_assay.attribute(method, each, images, [0, 1, 1], seed=0) for each in (model, expected)
        ]
        torch.testing.assert_close(*maps, msg=lambda text, method=method: f"{method}: {text}")


@pytest.mark.parametrize(
    "pool", [lambda z: z.mean((1, 2, 3)), lambda z: z.flatten(1).mean(1), lambda z: z[:, 0].mean((1, 2))]
)
def test_other_pooling_of_a_convolution_stays_behind_the_pair(
    images: Tensor, pool: Callable[[Tensor], Tensor]
) -> None:
    network, expected = Convolutional(Binary()), wrapped(Convolutional(two_logits().network))
    network.pool = Pool(pool)
    model = wrapped(network, output="logit")
    torch.testing.assert_close(model(images), expected(images))
    maps = [
        saliency_assay.attribute("lrp_epsilon", each, images, [0, 1, 1], seed=0) for each in (model, expected)
    ]
    torch.testing.assert_close(*maps)
    with pytest.raises(ValueError, match="lrp_alpha_beta: found a network with one output"):
        saliency_assay.attribute("lrp_alpha_beta", model, images, [0, 1, 1], seed=0)


def test_methods_of_signs_refuse_an_output_that_no_linear_layer_computes(images: Tensor) -> None:
    model = wrapped(Binary(lambda network, z: 2 * z), output="logit")
    saliency_assay.attribute("lrp_epsilon", model, images, [0, 1, 1], seed=0)
    for method in ("lrp_alpha_beta", "deep_taylor"):
        with pytest.raises(
            ValueError, match=f"{method}: found a network with one output that is not computed by"
        ):
            saliency_assay.attribute(method, model, images, [0, 1, 1], seed=0)


def test_one_image_is_a_batch(images: Tensor) -> None:
    model = wrapped(Binary(ENDS["squeezed"][1]), output="sigmoid")
    torch.testing.assert_close(model(images[:1]), two_logits()(images[:1]))


def test_the_logit_is_exact_where_the_probability_is_rounded_to_one(images: Tensor) -> None:
    network = Binary(lambda network, z: torch.sigmoid(100 + z))
    logits = wrapped(network, output="sigmoid")(images)
    assert (network(images) == 1).all()
    torch.testing.assert_close(2 * logits[:, 1:], 100 + network.fc(network.features(images).mean((2, 3))))


def test_a_softmax_at_the_end_is_left_out(images: Tensor) -> None:
    network = Binary(lambda network, z: z.softmax(1), outputs=2)
    expected = network.fc(network.features(images).mean((2, 3)))
    torch.testing.assert_close(wrapped(network, output="softmax")(images), expected)


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        (
            Binary(lambda network, z: 1 - torch.sigmoid(z)),
            {"output": "sigmoid"},
            "not return the result of torch.sigm",
        ),
        (Binary(), {"output": "sigmoid"}, "does not return the result"),
        (
            Binary(lambda network, z: torch.sigmoid(z).mul_(0.5)),
            {"output": "sigmoid"},
            "does not return the result",
        ),
        (
            Binary(lambda network, z: z.softmax(0), outputs=2),
            {"output": "softmax"},
            "does not return the result",
        ),
        (Binary(outputs=2), {"output": "logit"}, r"found \[3, 2\] for a batch of 3"),
        (Binary(), {"output": "logits"}, r"logits \[3, 1\] of 3 images: expected \[N, 2\]"),
        (Binary(), {"output": "probability"}, "valid: logit, logits, sigmoid, softmax"),
        (Binary(outputs=2), {"output": "softmax", "multi_label": True}, "'logits' or 'sigmoid'"),
    ],
)
def test_an_output_that_is_none_of_the_kind_is_refused(
    network: nn.Module, options: dict[str, Any], message: str, images: Tensor
) -> None:
    with pytest.raises(ValueError, match=message):
        wrapped(network, **options)(images)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("end", "activation"),
    [
        *((end, "" if output == "logit" else output) for output, end in ENDS.values()),
        (lambda network, z: z.softmax(1), "softmax"),
        (lambda network, z: z.log_softmax(1), ""),
        (lambda network, z: z * torch.sigmoid(z), ""),
    ],
)
def test_the_final_activation_of_a_network_is_known(
    end: Callable[[Any, Tensor], Any], activation: str, device: str, images: Tensor
) -> None:
    with torch.no_grad():
        assert final_activation(Binary(end).to(device), images.to(device)) == activation


def test_a_binary_network_has_two_classes() -> None:
    with pytest.raises(ValueError, match="'logit' with 3 classes, expected two"):
        saliency_assay.wrap(Binary(), classes=3, mean=[0.5], std=[0.5], output="logit")


def test_a_multi_label_model_has_a_probability_of_its_own_for_each_class(images: Tensor) -> None:
    network = Binary(lambda network, z: torch.sigmoid(z), outputs=2)
    model = wrapped(network, output="sigmoid", multi_label=True)
    targets = torch.tensor([0, 1, 1])
    logits = network.fc(network.features(images).mean((2, 3)))
    torch.testing.assert_close(model(images), logits)
    own = logits.gather(1, targets[:, None])[:, 0].double()
    torch.testing.assert_close(read(model, logits, targets, "probability"), own.sigmoid())
    assert read(model, logits, targets, "accuracy").tolist() == (own > 0).tolist()
    # RISE weights masks by the probability of the target: with one class of the two left out, it is the same.
    single = saliency_assay.wrap(
        Binary(lambda network, z: torch.sigmoid(z[:, 1]), outputs=2),
        classes=2,
        mean=[0.0],
        std=[1.0],
        output="sigmoid",
    )
    maps = [
        saliency_assay.attribute("rise", each, images, [1, 1, 1], seed=0, samples=8, output="probability")
        for each in (model, single)
    ]
    torch.testing.assert_close(*maps)


def test_predictions_of_a_multi_label_model_are_right_above_one_half(images: Tensor) -> None:
    network = Binary(lambda network, z: torch.sigmoid(z), outputs=2)
    model = wrapped(network, output="sigmoid", multi_label=True)
    pixels, labels = (255 * images).byte(), torch.tensor([0, 1, 1]).numpy()
    probabilities = network(model.network_input(pixels / 255))[range(3), labels]
    table = predict(model, pixels, labels, torch.ones(3, dtype=torch.uint8).numpy(), batch_size=2)
    assert table["probability"].to_numpy() == pytest.approx(probabilities.tolist())
    right = (probabilities > 0.5).tolist()
    assert table["predicted"].tolist() == [
        label if each else -1 for label, each in zip(labels, right, strict=True)
    ]
    evaluation = accuracies(table.assign(data="set"), ["a", "b"], chance=0.5)["set"]["test"]
    assert (evaluation["accuracy"], evaluation["chance"]) == (sum(right) / 3, 0.5)


def built(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """A builder whose network has ``classes`` outputs and ends with a sigmoid."""
    return Binary(lambda network, z: torch.sigmoid(z), outputs=classes)


def test_weights_of_a_wrapped_network_are_those_of_the_network_alone(tmp_path: Any, images: Tensor) -> None:
    blueprint = Blueprint("built", f"{__name__}:built", {}, output="sigmoid")
    model = build(blueprint, classes=2, mean=[0.5], std=[0.5], generator=torch.Generator())
    other = {f"module.{name}": tensor + 1 for name, tensor in Binary().state_dict().items()}
    torch.save(other, tmp_path / "initial.pt")
    load_initial(model, tmp_path / "initial.pt", "built", head_may_start_anew=False)
    network = Binary()
    network.load_state_dict({name.removeprefix("module."): tensor for name, tensor in other.items()})
    torch.testing.assert_close(2 * model(images)[:, 1:], network(model.network_input(images)))
    save(tmp_path / "weights.pt", model, blueprint)
    torch.testing.assert_close(load_classifier(tmp_path / "weights.pt", blueprint)(images), model(images))
    with pytest.raises(ValueError, match="output: found 'sigmoid', expected 'logits'"):
        load_classifier(tmp_path / "weights.pt", Blueprint("built", f"{__name__}:built", {}))
