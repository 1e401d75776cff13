"""The notebook API returns the same numbers as the functions that it calls, and one-line errors for invalid input."""

import doctest
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from packaging.requirements import Requirement
from pipelines import TINY
from support import (
    CLASSES,
    ConvNet,
    conv_classifier,
    cyclic_targets,
    random_images,
    state_of,
    with_random_state,
)
from torch import Tensor, nn

import saliency_assay
from saliency_assay import assess
from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.labels import labels_of
from saliency_assay.methods import engine
from saliency_assay.methods.engine import pixels_of
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.metrics.aopc import aopc
from saliency_assay.metrics.engine import Explainer, MetricInputs, model_responses
from saliency_assay.metrics.engine import score as score_batches
from saliency_assay.metrics.faithfulness import faithfulness, single_pixels
from saliency_assay.metrics.sensitivity_max import sensitivity_max
from saliency_assay.models.classifier import Classifier
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.reliability_tables import reliability_table
from saliency_assay.runtime.environment import DISTRIBUTIONS
from saliency_assay.runtime.provenance import SOURCE

RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (6, 3, 8, 8), dtype=np.uint8)
TARGETS = np.arange(6) % CLASSES
MAPS = RNG.normal(size=(6, 3, 8, 8)).astype(np.float32)
MASK = RNG.random((6, 8, 8)) < 0.3


@pytest.fixture
def model() -> Classifier:
    return conv_classifier(dtype=torch.float32)


@pytest.fixture
def network() -> nn.Module:
    return with_random_state(ConvNet(3), 1, torch.float32)


def attribute(method: Any, model: Any, **options: Any) -> Any:
    return saliency_assay.attribute(method, model, IMAGES, TARGETS, **options)


def score(metric: Any, model: Any, maps: Any, **options: Any) -> Any:
    return saliency_assay.score(metric, model, IMAGES, TARGETS, maps, **options)


def workflow_maps(
    method: Callable[..., Tensor], model: Classifier, seed: int = 0, **parameters: Any
) -> np.ndarray:
    """Maps by the workflow's own caller."""
    blocks = engine.attribute(method, parameters, model, IMAGES, TARGETS, seed=seed, batch_size=64)
    return np.concatenate([block["map"] for block in blocks])


# ---- maps


def test_maps_are_those_of_the_workflows_caller(model: Classifier) -> None:
    maps = attribute("smoothgrad", model, seed=7, samples=3)
    assert maps.dtype == np.float32
    np.testing.assert_array_equal(maps, workflow_maps(smoothgrad, model, seed=7, samples=3))
    other = attribute("smoothgrad", model, seed=8, samples=3)
    assert not np.array_equal(maps, other)


def test_an_alias_is_the_method(model: Classifier) -> None:
    np.testing.assert_array_equal(
        attribute("ig", model, steps=3), attribute("integrated_gradients", model, steps=3)
    )
    smoothed = attribute("sg", model, base={"method": "gxi"}, samples=2, seed=4)
    np.testing.assert_array_equal(
        smoothed, attribute("smoothgrad", model, base="gradient_x_input", samples=2, seed=4)
    )
    names = {"model": "m", "data": "d"}
    assert saliency_assay.workflow_seed(0, method="sg", **names) == saliency_assay.workflow_seed(
        0, method="vargrad", **names
    )
    by_alias, by_name = (
        score("random_logit", model, MAPS, method=method)["random_logit"]
        for method in ("gbp", "guided_backprop")
    )
    np.testing.assert_array_equal(by_alias, by_name)
    with pytest.raises(ValueError, match=r"^guided_backprop: unknown parameter"):
        attribute("gbp", model, steps=3)
    with pytest.raises(ValueError, match=r"^metric: found the method 'ig'"):
        score("ig", model, MAPS)
    with pytest.raises(ValueError, match="unknown method 'ig'; did you mean 'integrated_gradients'"):
        read({**TINY, "methods": {"ig": {}}}, catalog=CATALOG, source="some.yaml")


@pytest.mark.parametrize("target", [3, np.int32(3), torch.tensor(3), np.uint8(3)])
def test_a_single_class_is_that_of_all_images(model: Classifier, target: Any) -> None:
    each = [3] * len(IMAGES)
    maps = saliency_assay.attribute("gradient", model, IMAGES, target)
    np.testing.assert_array_equal(maps, saliency_assay.attribute("gradient", model, IMAGES, each))
    scores, expected = (
        saliency_assay.score("deletion", model, IMAGES, targets, MAPS) for targets in (target, each)
    )
    np.testing.assert_array_equal(scores["deletion"], expected["deletion"])


def test_a_network_is_taken_as_it_is(network: nn.Module) -> None:
    before = state_of(network)
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS.tolist())
    assert state_of(network) == before
    pixels = torch.tensor(IMAGES) / 255
    expected = gradient(network, pixels, torch.tensor(TARGETS), generator=torch.Generator())
    np.testing.assert_allclose(maps, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64, torch.float32, torch.uint8])
def test_images_may_be_arrays_or_tensors(model: Classifier, kind: Any) -> None:
    shown = IMAGES if kind is torch.uint8 else IMAGES.astype(np.float64) / 255
    images = torch.tensor(shown).to(kind) if isinstance(kind, torch.dtype) else shown.astype(kind)
    maps = saliency_assay.attribute("gradient", model, images, TARGETS)
    assert isinstance(maps, Tensor if isinstance(kind, torch.dtype) else np.ndarray)
    np.testing.assert_array_equal(maps, workflow_maps(gradient, model))


def test_a_method_takes_another_one_with_its_parameters(model: Classifier) -> None:
    few = {"samples": 2, "seed": 3}
    named = attribute("smoothgrad", model, base="gradcam", **few)
    assert named.shape == (6, 1, 8, 8)
    entry = {"method": "integrated_gradients", "steps": 4}
    maps = attribute("smoothgrad", model, base=entry, **few)

    def base(*inputs: Any, generator: torch.Generator) -> Tensor:
        return integrated_gradients(*inputs, generator=generator, steps=4, baseline="black", times_input=True)

    np.testing.assert_array_equal(maps, workflow_maps(smoothgrad, model, seed=3, samples=2, base=base))


def test_a_method_takes_a_background(model: Classifier) -> None:
    maps = attribute("deep_shap", model, background=IMAGES[:2] / 255)
    inputs = pixels_of(IMAGES[:2], torch.device("cpu"))
    shap = import_module("saliency_assay.methods.deeplift").deep_shap
    np.testing.assert_array_equal(maps, workflow_maps(shap, model, background=inputs))


def own(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, level: float
) -> Tensor:
    return images * level


def test_a_method_of_ones_own(network: nn.Module) -> None:
    maps = attribute(own, network, level=2.0)
    np.testing.assert_array_equal(maps, IMAGES / np.float32(255) * 2)


def test_a_method_that_only_predicts_takes_a_function(network: nn.Module) -> None:
    def predict(images: Tensor) -> np.ndarray:
        with torch.no_grad():
            return network(images).double().numpy()

    maps = attribute("occlusion", predict)
    expected = attribute("occlusion", network)
    np.testing.assert_allclose(maps, expected, rtol=1e-3, atol=1e-6)


# ---- scores


def workflow_scores(
    function: Callable[..., Any], model: Classifier, maps: np.ndarray = MAPS, **options: Any
) -> dict[str, Any]:
    """Scores by the workflow's own caller."""
    options = {"batch_size": 64, "inputs": MetricInputs(), **options}
    parameters = options.pop("parameters")
    [block] = score_batches(function, parameters, model, IMAGES, TARGETS, maps, **options)
    return {" ".join(key).strip(): values.numpy() for key, values in block.scores.items()}


def test_scores_are_those_of_the_workflows_caller(model: Classifier) -> None:
    scores = score("aopc", model, MAPS, seed=5, steps=20, every=10)
    parameters = {"steps": 20, "every": 10, "fill": "mean", "output": "probability"}
    names = ["aopc_morf", "aopc_lerf"]
    expected = workflow_scores(aopc, model, parameters=parameters, names=names, seed=5)
    assert list(scores) == list(expected) == [f"{name} L={at}" for name in names for at in (10, 20)]
    for key, values in expected.items():
        np.testing.assert_array_equal(scores[key], values)
    assert scores.directions["aopc_lerf L=20"] == "lower"
    assert scores.ranges["aopc_morf L=10"] == (-1, 1)
    assert scores.reduction == "sum"
    assert scores.parameters == parameters | {"every": 10}
    assert scores.curves["morf"].shape == (6, 21)
    assert pd.DataFrame(scores).shape == (6, 4)
    table = scores.table()
    assert list(table.columns) == ["image", "metric", "variant", "score"]
    chosen = table[(table["metric"] == "aopc_lerf") & (table["variant"] == "aopc L=20")]
    np.testing.assert_array_equal(chosen["score"], expected["aopc_lerf L=20"])


def test_model_responses_are_computed_first(model: Classifier) -> None:
    parameters = {"pixels": 10, "fill": "black", "output": "logit"}
    scores = score("faithfulness", model, MAPS, seed=5, **parameters)
    [responses] = model_responses(single_pixels, parameters, model, IMAGES, TARGETS, seed=5, batch_size=64)
    inputs, names = MetricInputs({"responses": responses}), ["faithfulness"]
    expected = workflow_scores(faithfulness, model, parameters=parameters, names=names, seed=5, inputs=inputs)
    np.testing.assert_array_equal(scores["faithfulness"], expected["faithfulness"])


def test_maps_are_computed_again_by_their_method(model: Classifier) -> None:
    method, few = {"method": "smoothgrad", "samples": 2}, {"samples": 2}
    maps = attribute("smoothgrad", model, seed=9, samples=2)
    inputs = MetricInputs(explainer=Explainer(smoothgrad, few, 9))
    options = {"parameters": few, "names": ["sensitivity_max"], "seed": 1, "inputs": inputs}
    expected = workflow_scores(sensitivity_max, model, maps, **options)["sensitivity_max"]
    for seed in (9, 8):
        scores = score("sensitivity_max", model, maps, method=method, method_seed=seed, seed=1, samples=2)
        assert np.array_equal(scores["sensitivity_max"], expected) == (seed == 9)


def almost(model: Classifier) -> Classifier:
    """A copy of the model with nearly its weights."""
    copy = deepcopy(model)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.mul_(1 + 1e-6)
    return copy


@pytest.mark.parametrize(
    ("metric", "options"),
    [("randomization", {"method": "gradient", "stages": 1}), ("f_fidelity", {"samples": 2, "points": 3})],
)
def test_another_model_of_equal_weights_is_refused(
    metric: str, options: dict[str, Any], model: Classifier
) -> None:
    name = "randomized_model" if metric == "randomization" else "finetuned_model"
    maps = attribute("gradient", model)
    with pytest.raises(ValueError, match=rf"{name}: .*saliency_assay\.{name[:8]}"):
        score(metric, model, maps, **options, **{name: deepcopy(model)})
    assert score(metric, model, maps, **options, **{name: almost(model)})


def test_a_model_of_new_weights_may_be_a_plain_network(model: Classifier) -> None:
    maps = attribute("gradient", model)
    new = with_random_state(ConvNet(3), 8, torch.float32)
    inputs = {"method": "gradient", "stages": 1}
    scores = score("randomization", model, maps, randomized_model=new, **inputs)
    same = score("randomization", model, maps, randomized_model=almost(model), **inputs)
    key = next(key for key in same if key.startswith("randomization_spearman cascading"))
    np.testing.assert_allclose(same[key], 1, atol=1e-3)
    assert scores[key].max() < 1


def test_a_fine_tuned_model_is_evaluated_in_place_of_the_model(model: Classifier) -> None:
    maps = attribute("gradient", model)
    tuned = with_random_state(ConvNet(3), 8, torch.float32)
    mean, std = (values.flatten().tolist() for values in (model.mean, model.std))
    options = {"samples": 2, "points": 3, "output": "probability"}
    scores, wrapped, same = (
        score("f_fidelity", model, maps, finetuned_model=other, **options)
        for other in (tuned, saliency_assay.wrap(tuned, classes=4, mean=mean, std=std), almost(model))
    )
    for name, values in scores.items():
        np.testing.assert_array_equal(wrapped[name], values)
        assert not np.array_equal(same[name], values)


@pytest.mark.parametrize("method", ["lrp_epsilon", "deeplift", "fullgrad"])
def test_weights_written_through_data_count(method: str) -> None:
    network = with_random_state(ConvNet(3), 8, torch.float32)
    before = attribute(method, network)
    rows = torch.arange(len(network.body[0].weight)).flip(0)
    network.body[0].weight.data.copy_(network.body[0].weight.data[rows])  # which keeps the sum of the weights
    after = attribute(method, network)
    fresh = ConvNet(3)
    fresh.load_state_dict(network.state_dict())
    np.testing.assert_array_equal(after, saliency_assay.attribute(method, fresh.eval(), IMAGES, TARGETS))
    assert not np.allclose(after, before)


def test_a_mask_and_maps_of_one_value_a_pixel(network: nn.Module) -> None:
    flat = MAPS.sum(1)
    scores = score("mask_attribution", network, flat, mask=torch.tensor(MASK))
    positive = flat.clip(min=0).astype(np.float64)
    np.testing.assert_allclose(
        scores["relevance_mass_accuracy"], (positive * MASK).sum((1, 2)) / positive.sum((1, 2))
    )


def test_what_is_undefined_is_nan(network: nn.Module) -> None:
    maps = MAPS.copy()
    maps[1], maps[2, 0, 0, 0] = 1, np.nan
    scores = score("deletion", network, maps)["deletion"]
    assert np.isnan(scores).tolist() == [False, True, True, False, False, False]


def sparse(
    predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: torch.Generator, mean: Tensor
) -> Tensor:
    return maps.double().abs().mean((1, 2, 3)) * mean.double().sum()


def test_a_metric_of_ones_own(network: nn.Module) -> None:
    scores = score(sparse, network, MAPS, mean=[0.5, 0.25, 0.25])
    np.testing.assert_allclose(scores["sparse"], np.abs(MAPS.astype(np.float64)).mean((1, 2, 3)))
    assert (scores.directions, scores.reduction) == ({}, "")


def test_optional_inputs_of_a_custom_metric_may_be_absent(network: nn.Module) -> None:
    def area(
        predict: Any,
        images: Tensor,
        targets: Tensor,
        maps: Tensor,
        *,
        generator: torch.Generator,
        mean: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return torch.full((len(images),), (mean is not None) + 2.0 * (mask is not None))

    for inputs, expected in (({}, 0), ({"mean": [0.5] * 3}, 1), ({"mask": MASK}, 2)):
        assert set(score(area, network, MAPS, **inputs)["area"]) == {expected}


def test_images_may_require_gradients_or_be_a_reversed_view(network: nn.Module) -> None:
    pixels = torch.tensor(IMAGES) / 255
    expected = saliency_assay.score("road", network, pixels, TARGETS, MAPS)
    for images in (pixels.clone().requires_grad_(), pixels.numpy()[:, ::-1].copy()[:, ::-1]):
        scores = saliency_assay.score("road", network, images, TARGETS, MAPS)
        np.testing.assert_array_equal(scores["road_morf"], expected["road_morf"])


def test_gradients_in_inference_mode_are_one_line(network: nn.Module) -> None:
    with (
        torch.inference_mode(),
        pytest.raises(
            ValueError, match=r"^gradient: needs gradients, which torch\.inference_mode\(\) excludes"
        ),
    ):
        attribute("gradient", network)


@pytest.mark.parametrize(
    ("metric", "output"), [("deletion", "probability"), ("region_perturbation", "accuracy")]
)
def test_a_single_logit_has_no_probability(metric: str, output: str) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 1))
    with pytest.raises(ValueError, match=f"^{metric}: output: found '{output}' of a single logit"):
        saliency_assay.score(metric, model, IMAGES, [0] * 6, MAPS, fill="black", output=output)
    scores = saliency_assay.score(metric, model, IMAGES, [0] * 6, MAPS, fill="black", output="logit")
    assert all(np.isfinite(values).all() for values in scores.values())


def test_the_mean_of_the_images_is_an_argument_or_the_classifiers(
    network: nn.Module, model: Classifier
) -> None:
    options = {"steps": 10, "fill": "mean"}
    one = score("deletion", network, MAPS, mean=[0.0] * 3, **options)
    black = score("deletion", network, MAPS, steps=10, fill="black")
    np.testing.assert_array_equal(one["deletion"], black["deletion"])
    other = score("deletion", model, MAPS, **options)
    inputs = score("deletion", model, MAPS, mean=[0.45] * 3, **options)
    np.testing.assert_array_equal(other["deletion"], inputs["deletion"])


# ---- models


def test_wrapping_normalizes_and_shares_the_weights(network: nn.Module) -> None:
    model = saliency_assay.wrap(network, classes=CLASSES, mean=[0.45] * 3, std=[0.25] * 3, cam_layer="body.6")
    assert next(model.parameters()) is next(network.parameters())
    pixels = torch.tensor(IMAGES) / 255
    torch.testing.assert_close(model(pixels), network((pixels - 0.45) / 0.25))
    assert attribute("gradcam", model).shape == (6, 1, 8, 8)


# ---- errors


BAD: list[tuple[dict[str, Any], str]] = [
    ({"method": "gradeint"}, r"unknown method 'gradeint'; did you mean 'gradient'\? valid: atte"),
    ({"method": 3}, "method: found int, expected the name of a method, a function"),
    ({"method": "torch:nothing"}, "'torch:nothing': module 'torch' has no attribute 'nothing'"),
    ({"method": "smoothgrad", "samples": 0}, "smoothgrad: samples: found 0, expected at least 1"),
    (
        {"method": "integrated_gradients", "rule": "trapezoid", "steps": 1},
        "integrated_gradients: steps: found 1, ",
    ),
    ({"base": "gradcam"}, "base: gradient takes none; valid: smoothgrad, smoothgrad_squared, vargrad"),
    ({"method": "smoothgrad", "base": "random"}, "base: found random, .* expected one such as gradient"),
    ({"method": "deep_shap"}, r"deep_shap: background: missing, expected images \[B, C, H, W\]"),
    ({"method": "gradcam"}, "gradcam: needs .*cam_layer=.* valid: body"),
    ({"method": "gradient_x_input", "baseline": "mean"}, ".*: baseline: found 'mean', .*: black, gray$"),
    ({"method": own}, "own: missing a required argument: 'level'; expected"),
    ({"images": IMAGES.transpose(0, 2, 3, 1)}, r"images: found \[6, 8, 8, 3\], channels last"),
    ({"images": IMAGES.astype(np.int64)}, r"images: found int64 \[6, 3, 8, 8\], expected uint8"),
    ({"images": IMAGES / 100.0}, r"images: found values from 0 to 2\.55, expected within \[0, 1\]"),
    ({"images": np.full((1, 3, 8, 8), np.nan), "targets": [0]}, "images: found values from nan"),
    ({"images": [["a"]]}, "images: found list of <U1, expected an array or a tensor"),
    ({"images": torch.rand(1, 3, 8, 8).to_sparse()}, "images: found a tensor of torch.sparse_coo on cpu"),
    ({"targets": TARGETS[:5]}, r"targets: found int64 \[5\], expected an integer class for each of 6 images"),
    ({"targets": TARGETS + 1}, "targets: found class 4, expected 0 to 3"),
    ({"targets": np.array([0] * 5 + [2**63], np.uint64)}, "targets: found class 9223372036854775808"),
    ({"model": 3}, "model: found int, expected a torch.nn.Module or a function"),
    ({"model": nn.Linear(3, 2)}, r"model: does not take images \[1, 3, 8, 8\]: "),
    ({"model": nn.Linear(8, 2).double()}, "network: found weights of torch.float64, expected torch.float32"),
    ({"model": lambda images: np.zeros((len(images), CLASSES))}, "gradient: found a function as the model"),
    ({"batch_size": 0}, "batch_size: found 0, expected at least 1"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:60] for _, message in BAD])
def test_errors_of_attribute_are_one_line(network: nn.Module, changes: dict[str, Any], message: str) -> None:
    arguments = {"method": "gradient", "model": network, "images": IMAGES, "targets": TARGETS, **changes}
    with pytest.raises(ValueError, match=f"^{message}") as error:
        saliency_assay.attribute(**arguments)
    assert "\n" not in str(error.value)


BAD_SCORES: list[tuple[dict[str, Any], str]] = [
    ({"metric": "deletoin"}, r"unknown metric 'deletoin'; did you mean 'deletion'\? valid: "),
    ({"fill": "grey"}, "deletion: fill: found 'grey', valid: black, gray, mean, image_mean, random, blur"),
    (
        {"fill": "mean"},
        "deletion: fill: found 'mean', but .* or choose: black, gray, image_mean, random, blur",
    ),
    ({"mean": [0.5, 0.5, 124]}, r"mean: found \[0\.5, 0\.5, 124\.0\], expected 3 values in \[0, 1\]"),
    (
        {"mask": MASK},
        "mask: deletion takes none; valid: pointing_game, mask_attribution, mask_overlap, mask_ranking, "
        "block_attribution",
    ),
    ({"method_seed": 3}, "method_seed: deletion computes no maps"),
    ({"metric": "aopc", "random_orders": 7}, "aopc: random_orders: only for the workflow"),
    ({"metric": "pointing_game"}, "pointing_game: mask: missing, expected the object's pixels, bool"),
    ({"metric": "pointing_game", "mask": MASK.astype(np.uint8)}, r"mask: found uint8 .*, expected bool "),
    ({"metric": "randomization", "method": "gradient"}, "randomization: randomized_model: missing"),
    ({"metric": "randomization", "method": "gradient", "randomized_model": 3}, "randomized_model: found int"),
    ({"maps": MAPS[:, :2]}, r"maps: found float32 \[6, 2, 8, 8\], expected numbers \[6, 3 or 1, 8, 8\]"),
    ({"maps": MASK}, r"maps: found bool \[6, 8, 8\], expected numbers"),
    ({"metric": sparse}, r"sparse: mean: missing, expected the data set's mean \[3\]"),
    ({"metric": len}, "len: too many positional arguments; expected "),
]


@pytest.mark.parametrize(("changes", "message"), BAD_SCORES, ids=[message[:60] for _, message in BAD_SCORES])
def test_errors_of_score_are_one_line(network: nn.Module, changes: dict[str, Any], message: str) -> None:
    arguments = {"metric": "deletion", "model": network, "images": IMAGES, "targets": TARGETS, "maps": MAPS}
    with pytest.raises(ValueError, match=f"^{message}") as error:
        saliency_assay.score(**{**arguments, **changes})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["methods", "metrics", "models", "reliability.statistics"])
def test_a_package_offers_no_other_names(name: str) -> None:
    module = import_module(f"saliency_assay.{name}")
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'atribute'$"):
        module.atribute  # noqa: B018


# ---- reliability


@pytest.mark.parametrize(
    ("direction", "clusters"), [("lower", {}), ("target 0.5", {"patients": np.arange(40) // 3})]
)
def test_reliability_is_that_of_the_tables(direction: str, clusters: dict[str, np.ndarray]) -> None:
    scores = {"a": RNG.normal(1, 1, 40), "b": RNG.normal(0, 1, 40), "c": RNG.normal(0, 1, 40)}
    scores["c"][:3] = np.nan
    assessed = assess(pd.DataFrame(scores), direction=direction, clusters=clusters, resamples=200)
    parts = [pd.DataFrame({"method": name, "score": of_one}) for name, of_one in scores.items()]
    table = pd.concat(parts).reset_index(names="image")
    table = table.assign(study="s", data="d", model="m", seed=0, metric="aopc", variant="aopc")
    directions = {"aopc": direction}
    reliability = reliability_table(table, directions, (), resamples=200, level=0.999, clusters=clusters)
    [row] = reliability.to_dict("records")
    for name in ("alpha", "correlation", "concordance"):
        estimate = getattr(assessed, name)
        ends = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert [estimate.value, estimate.low, estimate.high] == ends
    assert (assessed.alpha.images, assessed.correlation.images) == (40, 37)
    order, pairs = order_tables(table, directions, clusters=clusters)
    order = order.set_index("method")
    columns = ["images", "mean", "low", "high", "win_rate", "rank_low", "rank_high"]
    pd.testing.assert_frame_equal(assessed.order[columns], order[columns], check_dtype=False)
    pd.testing.assert_frame_equal(assessed.pairs, pairs[assessed.pairs.columns])
    assert assessed.order["rank"].between(order["rank_low"], order["rank_high"]).all()


def test_an_assessment_ranks_by_means_and_calls_methods_equivalent_within_a_margin() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 300))
    skewed = {"a": np.exp(2 * noise[0]), "b": 1.5 * np.exp(2 * noise[0] + 0.1 * noise[1])}
    assert assess(skewed, direction="lower").pairs["finding"].tolist() == ["better"]
    by_means = assess(skewed, direction="lower", ranks="means").pairs
    assert by_means["finding"].tolist() == ["not tested"]
    assert by_means["skew_images"].item() > 300
    similar = {"a": noise[0], "b": noise[1] + 0.01}
    for options, finding in (({}, "not distinguishable"), ({"margin": 0.3}, "equivalent")):
        assessed = assess(similar, direction="higher", **options)  # type: ignore[arg-type]
        assert assessed.pairs["finding"].tolist() == [finding]


def test_results_of_score_are_assessed_as_they_are(network: nn.Module) -> None:
    """The direction and the label are those of the score, and numbers are those of bare arrays."""
    maps = {"gradient": MAPS, "edge": -MAPS, "random": MAPS[::-1].copy()}
    deletion, aopc_scores = (
        {name: score(metric, network, of_method, **options) for name, of_method in maps.items()}
        for metric, options in (
            ("deletion", {"steps": 8}),
            ("aopc", {"steps": 8, "every": 4, "fill": "black"}),
        )
    )
    bare = {name: scores["deletion"] for name, scores in deletion.items()}
    expected = assess(bare, direction="lower", resamples=50)
    assert expected.label == ""
    frames = {name: pd.DataFrame(scores) for name, scores in deletion.items()}
    frame = pd.concat(frames, axis=1)
    for scores, direction in ((deletion, ""), (deletion, "lower"), (frame, "lower"), (frames, "lower")):
        assessed = assess(scores, direction=direction, resamples=50)
        pd.testing.assert_frame_equal(assessed.order, expected.order)
        assert assessed.alpha == expected.alpha
        assert assessed.label == "Deletion"
    name = "aopc_lerf L=4"
    selected = assess(aopc_scores, score=name, resamples=50)
    lerf = {method: scores[name] for method, scores in aopc_scores.items()}
    expected = assess(lerf, direction="lower", resamples=50)
    pd.testing.assert_frame_equal(selected.order, expected.order)
    assert selected.label == "AOPC (LeRF, L = 4)"
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (
            aopc_scores,
            {},
            "score: missing, .*; valid: aopc_morf L=4, aopc_morf L=8, aopc_lerf L=4, aopc_lerf L=8",
        ),
        (aopc_scores, {"score": "aopc"}, "gradient: unknown score 'aopc'; "),
        (aopc_scores, {"score": name, "direction": "higher"}, "direction: found 'higher', but that of AOPC"),
        (bare, {}, "direction: missing, .*; valid: higher, "),
        (bare, {"score": "deletion", "direction": "lower"}, "score: found 'deletion', but .* have no name"),
        (
            {**deletion, "edge": bare["edge"]},
            {"direction": "lower"},
            "scores: found {'gradient': 'deletion', 'edge': 'no metric', 'random': 'deletion'}, expected",
        ),
    ]
    for scores, options, message in wrong:
        with pytest.raises(ValueError, match=f"^{message}"):
            assess(scores, **options)


def test_scores_of_several_metrics_are_selected_by_name(network: nn.Module) -> None:
    maps = {"gradient": MAPS, "edge": -MAPS, "random": MAPS[::-1].copy()}
    nested = {
        method: {
            "deletion": score("deletion", network, of_method, steps=8),
            "road": score("road", network, of_method, points=2),
            "black": score("aopc", network, of_method, steps=4, every=4, fill="black"),
            "blur": score("aopc", network, of_method, steps=4, every=4, fill="blur"),
            "mine": of_method.mean((1, 2, 3)),
            "frame": pd.DataFrame({"first": of_method.max((1, 2, 3)), "second": of_method.min((1, 2, 3))}),
        }
        for method, of_method in maps.items()
    }
    selections: dict[str, tuple[tuple[str, ...], str]] = {
        "deletion": (("deletion", "deletion"), "Deletion"),
        "deletion deletion": (("deletion", "deletion"), "Deletion"),
        "road_lerf": (("road", "road_lerf"), "ROAD (LeRF)"),
        "road road_lerf": (("road", "road_lerf"), "ROAD (LeRF)"),
        "blur aopc_morf L=4": (("blur", "aopc_morf L=4"), "AOPC (MoRF, L = 4)"),
        "mine": (("mine",), "Mine"),
        "second": (("frame", "second"), "Second"),
    }
    for name, (path, label) in selections.items():
        direction = "" if len(path) == 2 and path[0] != "frame" else "higher"
        assessed = assess(nested, score=name, direction=direction, resamples=20)
        assert assessed.label == label
        for method in maps:
            values: Any = nested[method]
            for key in path:
                values = values[key]
            assert assessed.order.loc[method, "mean"] == pytest.approx(np.mean(values))
    valid = (
        "deletion, road_morf, road_lerf, black aopc_morf L=4, black aopc_lerf L=4, "
        "blur aopc_morf L=4, blur aopc_lerf L=4, mine, first, second"
    )
    with pytest.raises(ValueError, match=f"^score: missing, gradient has several scores; valid: {valid}$"):
        assess(nested)
    with pytest.raises(
        ValueError, match=r"^gradient: unknown score 'aopc_morf L=4'; did you mean '.* aopc_morf"
    ):
        assess(nested, score="aopc_morf L=4")
    single = {method: {"deletion": scores["deletion"]} for method, scores in nested.items()}
    pd.testing.assert_frame_equal(assess(single).order, assess(nested, score="deletion").order)


def test_correlations_of_an_assessment_are_those_of_pairs_of_methods() -> None:
    first = RNG.normal(size=30)
    scores = {"a": first, "b": 2 * first + 1, "c": -first}
    assessed = assess(scores, direction="higher", resamples=10)
    expected = pd.DataFrame([[1, 1, -1], [1, 1, -1], [-1, -1, 1]], list("abc"), list("abc"))
    pd.testing.assert_frame_equal(assessed.correlations, expected.astype(float), check_names=False)
    assert assessed.correlation.value == pytest.approx(
        assessed.correlations.to_numpy()[[0, 0, 1], [1, 2, 2]].mean()
    )


def test_scores_have_the_labels_of_the_report(network: nn.Module) -> None:
    """Those of an entry of the configuration that has the metric's name and no label."""
    names: dict[str, dict[str, Any]] = {
        "aopc": {"fill": "black", "steps": 8},
        "infidelity_shap": {},
        "deletion": {},
    }
    configuration = {**TINY, "metrics": {**TINY["metrics"], **{name: {} for name in names}}}
    labels = labels_of(read(configuration, catalog=CATALOG, source="some.yaml"))
    for metric, options in names.items():
        scores = score(metric, network, MAPS, **options)
        rows = scores.table()[["metric", "variant"]].drop_duplicates().itertuples(index=False)
        assert list(scores.labels.values()) == [labels.score(*row) for row in rows]

    def ink_left(predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: Any) -> Tensor:
        return maps.sum((1, 2, 3))

    assert score(ink_left, network, MAPS).labels == {"ink_left": "Ink left"}


def test_clusters_have_any_labels_and_infinite_scores_are_missing() -> None:
    scores = {name: RNG.normal(size=40) for name in "abc"}
    named, numbered = (
        assess(scores, direction="higher", clusters=clusters, resamples=50)
        for clusters in ({"seeds": [f"p{i % 8}" for i in range(40)]}, {"c": np.arange(40) % 8})
    )
    assert named.alpha == numbered.alpha
    pd.testing.assert_frame_equal(named.order, numbered.order)
    infinite, missing = (
        assess(
            {**scores, "a": np.where(np.arange(40) == 0, value, scores["a"])},
            direction="higher",
            resamples=10,
        )
        for value in (-np.inf, np.nan)
    )
    pd.testing.assert_frame_equal(infinite.order, missing.order)
    assert infinite.order["images"].tolist() == [39, 40, 40]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"direction": "up"}, "direction: found 'up', valid: higher, lower, target"),
        ({"scores": {"a": [1, 2]}}, r"scores: found {'a': \[2\]}, expected \[N\] of at least two methods"),
        ({"scores": {1: [1, 2], "1": [3, 4]}}, "scores: found the method '1' twice"),
        ({"scores": {"a": [1, 2], "b": [3]}}, r"scores: found {'a': \[2\], 'b': \[1\]}, expected"),
        ({"clusters": {"patients": [0, 1, 2]}}, r"clusters: patients: found \[3\], expected \[2\]"),
        ({"clusters": {"patients": ["p", None]}}, "clusters: patients: found images without a cluster"),
        ({"level": 1}, r"level: found 1, expected a share in \(0, 1\)"),
        ({"ranks": "median"}, "ranks: found 'median', expected wins or means"),
        ({"margin": 0}, "margin: found 0, expected a positive number"),
        ({"margin": 1, "margin_unit": "mm"}, "margin_unit: found 'mm', expected sd or score"),
    ],
)
def test_what_cannot_be_compared(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": {"a": [1, 2], "b": [3, 4]}, "direction": "lower", **changes}
    with pytest.raises(ValueError, match=f"^{message}"):
        assess(**arguments)


# ---- the whole


@pytest.mark.parametrize("name", ["maps", "scores", "networks", "agreement", "choices", "tables", "derived"])
def test_examples_in_docstrings(name: str) -> None:
    module = import_module(f"saliency_assay.api.{name}")
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS, extraglobs={"torch": torch})
    assert results.attempted > 0
    assert results.failed == 0


def test_it_needs_only_the_packages_of_the_plain_installation() -> None:
    """Optional packages are named on use; imports and first scores take no packages that they do not use."""
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    names = {Requirement(line).name for line in extras}
    names -= {Requirement(line).name for line in project["dependencies"]}
    names -= {"pillow", project["name"]}  # Pillow is a dependency of matplotlib
    module_of = {distribution: module for module, distribution in DISTRIBUTIONS.items()}
    modules = sorted(module_of.get(name, name.replace("-", "_")) for name in names)
    assert {"skimage", "snakemake", "torchvision", "yaml", "zarr"} <= {*modules}
    code = f"""
import sys
for name in {modules}:
    sys.modules[name] = None
import saliency_assay
from saliency_assay import methods, metrics, models
assert not {{"torch", "numpy", "pandas"}} & set(sys.modules), sorted(sys.modules)
import numpy as np
import torch
network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 3))
images = np.random.default_rng(0).random((4, 1, 10, 10))
first = saliency_assay.attribute("gradient", network, images, [0, 1, 2, 0])
saliency_assay.score("deletion", network, images, [0, 1, 2, 0], first)
assert not [name for name in ("matplotlib", "pandas", "scipy", "sklearn") if sys.modules.get(name)]
model = saliency_assay.wrap(network, classes=3, mean=[0.5], std=[0.5], cam_layer="1")
explained = ("gradcam", "random", "deeplift", "lrp_epsilon")
maps = {{name: saliency_assay.attribute(name, model, images, [0, 1, 2, 0]) for name in explained}}
for metric in ("deletion", "aopc", "faithfulness", "road"):
    scores = {{name: saliency_assay.score(metric, model, images, [0, 1, 2, 0], map) for name, map in maps.items()}}
assessed = saliency_assay.assess(scores, score="road_lerf", resamples=10)
saliency_assay.plot.ranks(assessed)
saliency_assay.plot.curves(scores)
saliency_assay.plot.agreement(assessed)
saliency_assay.plot.maps(images, maps)
for method, options in (("lime", {{"features": "superpixels"}}), ("xrai", {{}})):
    try:
        saliency_assay.attribute(method, model, images, [0, 1, 2, 0], **options)
    except (ImportError, ValueError) as error:
        print(error)
try:
    from saliency_assay.storage.zarr_store import open_store
except ImportError as error:
    print(error)
from saliency_assay.cli import main
assert main(["run"]) == 1
"""
    # Of the calls of one package by another, of which the lowest versions warn.
    warnings = ("-W", "error", "-W", "ignore::DeprecationWarning")
    run = subprocess.run(
        [sys.executable, *warnings, "-c", code], capture_output=True, text=True, cwd=SOURCE, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.endswith("pip install 'saliency-assay[workflow]'\n")
    assert [line.rpartition(": ")[0].rpartition(": ")[2] for line in run.stdout.splitlines()] == [
        "scikit-image is not installed",
        "scikit-image is not installed",
        "zarr is not installed",
    ]
    assert re.findall(r"\[(\w+)\]'$", run.stdout, re.MULTILINE) == ["methods"] * 2 + ["workflow"]


def test_trial_passes_of_a_classifier_are_not_repeated() -> None:
    network, passes = conv_classifier().network.float(), []
    model = saliency_assay.wrap(network, classes=CLASSES, mean=[0.5] * 3, std=[0.2] * 3)
    network.register_forward_hook(lambda module, images, logits: passes.append(len(logits)))
    images, targets, counts = random_images(3, dtype=torch.float32), cyclic_targets(3), []
    for size in (8, 8, 6):
        passes.clear()
        saliency_assay.attribute("gradient", model, images[:, :, :size, :size], targets)
        counts.append(list(passes))
    assert counts == [[2, 1, 1, 1, 1, 2, 3], [3], [2, 1, 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": 0.5}, r"mean: found 0\.5, expected a number for each channel"),
        (
            {"mean": ["0.5"] * 3},
            r"mean: found \['0\.5', '0\.5', '0\.5'\], expected a number for each channel",
        ),
        ({"mean": [123.7, 116, 104]}, r".*\[123\.7, 116\.0, 104\.0\] .*mean in \[0, 1\]"),
        ({"std": [1e-46] * 3}, r"normalization: found .* std \[1e-46, 1e-46, 1e-46\], expected"),
        ({"classes": 0}, "classes: found 0, expected at least 1"),
    ],
    ids=str,
)
def test_errors_of_wrap_are_one_line(change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"classes": CLASSES, "mean": [0.5] * 3, "std": [0.5] * 3}
    with pytest.raises(ValueError, match=f"^{message}"):
        saliency_assay.wrap(nn.Flatten(), **{**settings, **change})


def test_equal_seeds_of_any_type_are_equal(model: Classifier) -> None:
    maps = attribute("smoothgrad", model, seed=1, samples=2)
    names = {"model": "m", "data": "d", "metric": "road"}
    for seed in (True, np.int64(1), torch.tensor(1)):
        same = attribute("smoothgrad", model, seed=seed, samples=2)
        np.testing.assert_array_equal(same, maps)
        assert saliency_assay.workflow_seed(seed, **names) == saliency_assay.workflow_seed(1, **names)
    method = {"method": "smoothgrad", "samples": 2}
    one, other = (
        score("sensitivity_max", model, maps, method=method, samples=2, seed=seed, method_seed=seed)
        for seed in (1, np.int64(1))
    )
    np.testing.assert_array_equal(one["sensitivity_max"], other["sensitivity_max"])
    with pytest.raises(ValueError, match=r"^method_seed: found '1', expected an integer"):
        score("sensitivity_max", model, maps, method=method, method_seed="1")
