"""CPU and GPU compute the same maps, scores, ranks and weights, up to rounding in float32."""

import os
import signal
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import test_metrics_contract as contract
import torch
from support import conv_classifier, cyclic_targets, generator, random_images
from test_simulated_device import classifier_for, like_a_gpu, maps_of, scored  # noqa: F401

import saliency_assay
from saliency_assay.methods import METHODS, Method, optimal
from saliency_assay.metrics import Metric
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import exact_float32
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use"),
]

DEVICE = "cuda"
COUNT = 5
IMAGES = random_images(COUNT, dtype=torch.float32).numpy()
TARGETS = cyclic_targets(COUNT).numpy()


@pytest.fixture(scope="module")
def models() -> tuple[Classifier, Classifier]:
    """The same classifier on the CPU and on the GPU."""
    model = conv_classifier(dtype=torch.float32)
    return model, deepcopy(model).to(DEVICE)


@pytest.fixture
def equal_noise(like_a_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """The same noise on both devices."""

    def block(baselines: optimal.Baselines, _: torch.Generator) -> torch.Tensor:
        values = torch.randn(optimal.BLOCK, *baselines.shape, generator=generator(baselines.seed))
        return values.to(baselines.device, baselines.dtype) * baselines.noise

    monkeypatch.setattr(optimal.Baselines, "_block", block)


@pytest.mark.usefixtures("equal_noise")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_maps_agree(method: Method) -> None:
    """In float64, so that rounding changes no order of pixels or segments."""
    model, images, targets = (
        classifier_for(method, torch.float64),
        random_images(COUNT),
        cyclic_targets(COUNT),
    )
    expected = maps_of(method, model, images, targets)
    maps = maps_of(method, deepcopy(model).to(DEVICE), images.to(DEVICE), targets.to(DEVICE))
    assert maps.device.type == DEVICE
    torch.testing.assert_close(maps.cpu(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("like_a_gpu")
@pytest.mark.parametrize("metric", contract.ON_MAPS, ids=lambda metric: metric.name)
def test_scores_agree(metric: Metric) -> None:
    models = contract.model(), contract.other_model()
    expected, _ = scored(metric, *models, contract.MEAN, None)
    moved = [deepcopy(each).to(DEVICE) for each in models]
    scores, _ = scored(metric, *moved, contract.MEAN.to(DEVICE), None)
    assert scores.keys() == expected.keys()
    for key, values in expected.items():
        scale = np.nanmax(np.abs(values), initial=0)
        np.testing.assert_allclose(scores[key], values, rtol=1e-3, atol=1e-4 * scale)


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
