"""CPU and GPU compute the same maps and scores, up to rounding in float32."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, random_images

import saliency_assay
from saliency_assay.models.classifier import Classifier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use"),
]

METHODS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "guided_backprop": {},
    "gradcam": {},
    "smoothgrad": {"samples": 3},
    "integrated_gradients": {"steps": 4},
    "lrp_epsilon": {},
    "occlusion": {"window": 0.4, "stride": 0.3},
}
METRICS: dict[str, dict[str, Any]] = {
    "aopc": {"steps": 6, "random_orders": 2},
    "deletion": {"steps": 5},
    "faithfulness": {"pixels": 12},
    "infidelity_square": {"largest": 2},
    "sensitivity_n": {"points": 3, "subsets": 10},
}
COUNT = 5
IMAGES = random_images(COUNT, dtype=torch.float32).numpy()
TARGETS = cyclic_targets(COUNT).numpy()


@pytest.fixture(scope="module")
def models() -> tuple[Classifier, Classifier]:
    """The same classifier on the CPU and on the GPU."""
    model = conv_classifier(dtype=torch.float32)
    return model, deepcopy(model).to("cuda")


def check_close(values: np.ndarray, expected: np.ndarray) -> None:
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("method", METHODS)
def test_maps_agree(method: str, models: tuple[Classifier, Classifier]) -> None:
    expected, maps = (
        saliency_assay.attribute(method, model, IMAGES, TARGETS, seed=3, **METHODS[method])
        for model in models
    )
    check_close(maps, expected)


@pytest.mark.parametrize("metric", METRICS)
def test_scores_agree(metric: str, models: tuple[Classifier, Classifier]) -> None:
    maps = saliency_assay.attribute("gradient", models[0], IMAGES, TARGETS)
    expected, scores = (
        saliency_assay.score(metric, model, IMAGES, TARGETS, maps, seed=3, **METRICS[metric])
        for model in models
    )
    assert set(scores) == set(expected)
    for name, values in expected.items():
        check_close(np.asarray(scores[name]), np.asarray(values))
