"""Networks that return one number per image, or of whose output a function is explained."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.api.scores import SINGLE
from saliency_assay.methods import METHODS, Method
from saliency_assay.metrics import Metric
from saliency_assay.models.classifier import Classifier

SIZE, COUNT, CLASSES, TARGET = 8, 4, 3, 2
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.random((COUNT, 3, SIZE, SIZE)).astype(np.float32)
MAPS = RANDOM.normal(size=IMAGES.shape).astype(np.float32)
MASK = RANDOM.random((COUNT, SIZE, SIZE)) < 0.5
NORMALIZATION: dict[str, Any] = {"mean": [0.5] * 3, "std": [0.25] * 3}
REFUSED = {"average_drop", "irof", "random_logit"}
"""Metrics that need several classes."""
FEW = {
    "pixels": 20,
    "steps": 5,
    "every": 5,
    "points": 3,
    "subsets": 5,
    "samples": 5,
    "squares": 20,
    "stages": 2,
    "regions": 3,
}
PREDICTED_CLASS = "relative_stability"  # leaves out neighbors of another predicted class


def new_network(seed: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * SIZE * SIZE, CLASSES)]
        return nn.Sequential(*layers)


def difference(logits: Tensor) -> Tensor:
    return logits[:, TARGET] - 2 * logits[:, 0]


def of_target(logits: Tensor) -> Tensor:
    return logits[:, TARGET : TARGET + 1]


def scalar(function: Callable[[Tensor], Tensor] = of_target, seed: int = 0) -> Classifier:
    return saliency_assay.wrap(new_network(seed), output=function, cam_layer="1", **NORMALIZATION)


def few(record: Method | Metric) -> dict[str, int]:
    return {key: value for key, value in FEW.items() if key in record.parameters}


@pytest.mark.parametrize(
    "metric",
    [metric for metric in SINGLE if "exact_importance" not in metric.needs],
    ids=lambda metric: metric.name,
)
def test_scores_are_those_of_the_logit_or_refused(metric: Metric) -> None:
    options: dict[str, Any] = {"mask": MASK} if "mask" in metric.takes else {}
    if "explain" in metric.takes:
        options["method"] = "gradient"
    options |= {key: new_network(1) for key in ("randomized_model", "finetuned_model") if key in metric.takes}
    options |= few(metric)
    maps = saliency_assay.attribute("gradient", scalar(), IMAGES, 0)
    if metric.name in REFUSED:
        with pytest.raises(ValueError, match=f"^{metric.name}: .*single logit, expected several classes"):
            saliency_assay.score(metric.name, scalar(), IMAGES, 0, maps, **options)
        return
    if (output := metric.parameters.get("output")) and output.default != "logit":
        with pytest.raises(
            ValueError, match=f"^{metric.name}: output: .*single logit.*; expected output='logit'"
        ):
            saliency_assay.score(metric.name, scalar(), IMAGES, 0, maps, **options)
    options |= {"output": "logit"} if output else {}
    classifier = saliency_assay.wrap(new_network(0), classes=CLASSES, **NORMALIZATION)
    scores, expected = (
        saliency_assay.score(metric.name, model, IMAGES, target, maps, **options)
        for model, target in ((scalar(), 0), (classifier, TARGET))
    )
    assert [name.replace("module.", "") for name in scores] == list(expected)
    for values, of_logit in zip(scores.values(), expected.values(), strict=True):
        assert np.isfinite(values).any()
        if metric.name != PREDICTED_CLASS:
            np.testing.assert_allclose(values, of_logit, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "method",
    [method for method in METHODS if not {"attention", "exact_importance"} & {*method.needs}],
    ids=lambda method: method.name,
)
def test_maps_are_those_of_the_logit_or_refused(method: Method) -> None:
    options: dict[str, Any] = {"background": IMAGES[:2]} if "background" in method.takes else {}
    options |= {"mask": MASK} if "mask" in method.takes else {}
    options |= {**few(method), **({"samples": 40} if method.name == "kernel_shap" else {})}
    if "output" in method.parameters:
        with pytest.raises(ValueError, match=f"^{method.name}: output: .*; expected output='logit'"):
            saliency_assay.attribute(method.name, scalar(), IMAGES, 0, **options)
        options["output"] = "logit"
    if method.name == "cam":
        with pytest.raises(ValueError, match=r"^cam: the head of Sequential is not average pooling"):
            saliency_assay.attribute(method.name, scalar(), IMAGES, 0, **options)
        return
    classifier = saliency_assay.wrap(new_network(0), classes=CLASSES, cam_layer="1", **NORMALIZATION)
    maps, expected = (
        saliency_assay.attribute(method.name, model, IMAGES, target, **options)
        for model, target in ((scalar(), 0), (classifier, TARGET))
    )
    np.testing.assert_allclose(maps, expected, rtol=1e-4, atol=1e-5)


def test_the_gradient_is_that_of_the_function() -> None:
    pixels = torch.tensor(IMAGES, requires_grad=True)
    difference(new_network(0)((pixels - 0.5) / 0.25)).sum().backward()
    maps = saliency_assay.attribute("gradient", scalar(difference), IMAGES, 0)
    np.testing.assert_allclose(maps, pixels.grad, rtol=1e-4, atol=1e-6)


def test_relevance_sums_to_the_number() -> None:
    network = new_network(0)
    for layer in (network[0], network[3]):
        nn.init.zeros_(layer.bias)
    model = saliency_assay.wrap(network, output=difference, mean=[0.0] * 3, std=[1.0] * 3)
    values = difference(network(torch.tensor(IMAGES))).detach().numpy()
    black = difference(network(torch.zeros(1, 3, SIZE, SIZE))).detach().numpy()
    for method, expected in (("lrp_epsilon", values), ("deeplift", values - black)):
        options: dict[str, Any] = {"epsilon": 1e-7} if method == "lrp_epsilon" else {"baseline": "black"}
        maps = saliency_assay.attribute(method, model, IMAGES, 0, **options)
        np.testing.assert_allclose(maps.sum((1, 2, 3)), expected, rtol=1e-3, atol=1e-4)


def test_a_network_of_one_output_explains_it() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 1), nn.Flatten(0))
    model = saliency_assay.wrap(network, output=lambda values: values, mean=[0.0] * 3, std=[1.0] * 3)
    maps = saliency_assay.attribute("gradient", model, IMAGES, 0)
    np.testing.assert_allclose(maps[0].ravel(), network[1].weight.detach().numpy()[0], rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"^model: returned .* saliency_assay.wrap\(network, output=function"
    ):
        saliency_assay.attribute("gradient", network, IMAGES, 0)


def test_the_function_takes_any_output() -> None:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = new_network(0)

        def forward(self, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            values = self.body(images)
            return values, {"age": values.mean(1)}

    model = saliency_assay.wrap(TwoHeads(), output=lambda outputs: outputs[1]["age"], **NORMALIZATION)
    maps = saliency_assay.attribute("gradient", model, IMAGES, 0)
    mean = saliency_assay.attribute("gradient", scalar(lambda logits: logits.mean(1)), IMAGES, 0)
    np.testing.assert_allclose(maps, mean, rtol=1e-5, atol=1e-7)


def test_a_plain_network_of_random_weights_has_the_output_of_the_model() -> None:
    """Also that of a network with a sigmoid, of which two logits are explained."""
    networks = [
        nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 1), nn.Sigmoid()).requires_grad_(False)
        for _ in range(2)
    ]
    model, other = (
        saliency_assay.wrap(each, classes=2, output="sigmoid", **NORMALIZATION) for each in networks
    )
    maps = saliency_assay.attribute("gradient", model, IMAGES, 1)
    scores = [
        saliency_assay.score("emprt", model, IMAGES, 1, maps, method="gradient", randomized_model=each)[
            "emprt"
        ]
        for each in (networks[1], other)
    ]
    np.testing.assert_array_equal(*scores)
    assert scores[0].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "classes: missing, expected the number of classes, or a function as output"),
        ({"output": difference, "classes": 3}, "output: found a function and classes=3"),
        ({"output": difference, "multi_label": True}, "output: found a function and multi_label"),
        ({"output": nn.Softmax(1)}, r"output: found Softmax, .* nn\.Sequential\(network, module\)"),
        (
            {"output": 3, "classes": 3},
            "output: found 3, valid: logits, logit, sigmoid, softmax, or a function",
        ),
    ],
    ids=map(str, range(5)),  # a text of a function has its address
)
def test_errors_of_wrap(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        saliency_assay.wrap(new_network(0), **NORMALIZATION, **changes)


def test_the_function_returns_one_number_per_image() -> None:
    for function, found in ((lambda logits: logits, r"\[1, 3\]"), (lambda logits: 3.0, "float")):
        with pytest.raises(
            ValueError, match=f"output: the function returned {found} for a batch of 1, expected"
        ):
            saliency_assay.attribute("gradient", scalar(function), IMAGES, 0)
    with pytest.raises(ValueError, match=r"^targets: found class 1, expected 0"):
        saliency_assay.attribute("gradient", scalar(), IMAGES, 1)
