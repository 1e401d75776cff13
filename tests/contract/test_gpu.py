"""CPU and GPU compute the same maps, scores, ranks and weights, up to rounding in float32."""

import os
import signal
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, random_images

import saliency_assay
from saliency_assay.methods import sampling
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import exact_float32
from saliency_assay.training.loop import train
from saliency_assay.training.settings import training_from

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use"),
]

DEVICE = "cuda"
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
    return model, deepcopy(model).to(DEVICE)


def check_close(values: np.ndarray, expected: np.ndarray) -> None:
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("method", METHODS)
def test_maps_agree(
    method: str, models: tuple[Classifier, Classifier], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ROW_BY_ROW", set())  # the same noise on both
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


def test_methods_have_the_same_ranks(models: tuple[Classifier, Classifier]) -> None:
    orders = []
    for model in models:
        scores = {}
        for method in ("gradient", "guided_backprop", "gradcam", "integrated_gradients"):
            maps = saliency_assay.attribute(method, model, IMAGES, TARGETS)
            scores[method] = saliency_assay.score("deletion", model, IMAGES, TARGETS, maps)
        orders.append(saliency_assay.assess(scores).order)
    assert list(orders[0].index) == list(orders[1].index)
    np.testing.assert_allclose(orders[0]["mean"], orders[1]["mean"], rtol=1e-3)


def test_products_are_not_rounded_to_tf32() -> None:
    """TF32 has ten bits: its relative error is near 1e-3."""
    torch.manual_seed(0)
    left, right = torch.rand(2, 512, 512, device=DEVICE)
    images, weights = torch.rand(4, 16, 32, 32, device=DEVICE), torch.rand(16, 16, 3, 3, device=DEVICE)
    with exact_float32():
        pairs = [
            (left @ right, left.double() @ right.double()),
            (torch.conv2d(images, weights), torch.conv2d(images.double(), weights.double())),
        ]
    for single, double in pairs:
        assert ((single - double) / double).abs().max() < 2e-5


def trained(state_path: Path, stop_after: int = 0) -> dict[str, np.ndarray]:
    """Return the weights of a training, which a signal ends after ``stop_after`` steps."""
    model, steps = conv_classifier(dtype=torch.float32).to(DEVICE), 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += model.training
        if steps == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    model.register_forward_hook(count)
    images = (random_images(24, dtype=torch.float32) * 255).to(torch.uint8)
    settings = training_from(
        {"epochs": 3, "batch_size": 4, "learning_rate": 0.01, "precision": "float32", "evaluate": "end"}
    )
    train(
        model, images, cyclic_targets(24), torch.arange(20), torch.arange(20, 24), settings,
        seed=1, state_path=state_path, fingerprint="same",
    )  # fmt: skip
    return {name: values.cpu().numpy() for name, values in model.state_dict().items()}


def test_a_training_that_is_killed_resumes(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole.pt")
    with pytest.raises(SystemExit) as ended:
        trained(tmp_path / "state.pt", stop_after=7)
    assert ended.value.code == 143
    resumed = trained(tmp_path / "state.pt")
    for name, values in resumed.items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-2, atol=1e-3)
