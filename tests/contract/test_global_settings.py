"""PyTorch's global settings change neither maps nor scores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pytest
import test_metrics_contract as contract
import torch
from support import few_passes, masks_of, random_images
from test_simulated_device import classifier_for
from torch import nn

import saliency_assay
from saliency_assay.methods import METHODS, Method
from saliency_assay.metrics import Metric
from saliency_assay.registry.signatures import declared

IMAGES, TARGETS = random_images(3, dtype=torch.float32), [0, 1, 2]
BACKGROUND = random_images(3, seed=9, dtype=torch.float32)
USUAL: dict[str, Any] = {}
"""Maps and scores without the settings, by method and metric."""


def autocast(stack: ExitStack) -> None:
    stack.enter_context(torch.autocast("cpu", torch.bfloat16))


def float64(stack: ExitStack) -> None:
    stack.callback(torch.set_default_dtype, torch.get_default_dtype())
    torch.set_default_dtype(torch.float64)


def other_device(stack: ExitStack) -> None:
    """``meta`` stands for a GPU: a tensor that is created there by mistake has no values."""
    stack.callback(torch.set_default_device, None)
    torch.set_default_device("meta")


def no_gradients(stack: ExitStack) -> None:
    stack.enter_context(torch.no_grad())


@pytest.fixture(params=[autocast, float64, other_device, no_gradients], ids=lambda setting: setting.__name__)
def setting(request: pytest.FixtureRequest) -> Iterator[Callable[[ExitStack], None]]:
    return request.param


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_maps(method: Method, setting: Callable[[ExitStack], None]) -> None:
    parameters: dict[str, Any] = few_passes(method)
    if "background" in method.takes:
        parameters["background"] = BACKGROUND
    if "mask" in method.takes:
        parameters["mask"] = masks_of(IMAGES)
    model = classifier_for(method, torch.float32)
    call = partial(saliency_assay.attribute, method.name, model, IMAGES, TARGETS, **parameters)
    if method.name not in USUAL:
        USUAL[method.name] = call()
    with ExitStack() as stack:
        setting(stack)
        maps = call()
    assert maps.dtype == torch.float32
    assert torch.equal(maps, USUAL[method.name])


def scores_of(metric: Metric, model: nn.Module, other: nn.Module) -> dict[str, np.ndarray]:
    own = declared(metric.function)  # the others are of baselines that only the workflow computes
    parameters = {key: value for key, value in contract.cheap(metric).items() if key in own}
    offered = {
        "mask": ("mask", contract.MASK),
        "explain": ("method", {"method": "smoothgrad", "samples": 2}),
        "randomized_model": ("randomized_model", other),
        "finetuned_model": ("finetuned_model", other),
    }
    inputs = dict(offered[key] for key in metric.takes if key in offered)
    return saliency_assay.score(
        metric.name, model, contract.IMAGES, contract.TARGETS, contract.MAPS, **inputs, **parameters
    )


@pytest.mark.parametrize("metric", contract.ON_MAPS, ids=lambda metric: metric.name)
def test_scores(metric: Metric, setting: Callable[[ExitStack], None]) -> None:
    models = contract.small_classifier(), contract.small_classifier(seed=5)
    if metric.name not in USUAL:
        USUAL[metric.name] = scores_of(metric, *models)
    with ExitStack() as stack:
        setting(stack)
        scores = scores_of(metric, *models)
    expected = USUAL[metric.name]
    assert scores.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(scores[name], values, err_msg=name)
