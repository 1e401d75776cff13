"""Scores of degraded maps, changed models and changed images: what is explained, and what is scored."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from support import conv_classifier, cyclic_targets, random_images
from torch import Tensor

from saliency_assay.methods.gradient import gradient
from saliency_assay.metrics.engine import Explainer, MetricInputs
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.studies.validity.degrade import degrade
from saliency_assay.studies.validity.perturb import perturbed_images, perturbed_model
from saliency_assay.studies.validity.rescoring import Rescoring, rescored

COUNT = 5
TESTS: dict[str, Any] = {
    "degradations": ["noise", "blur"],
    "levels": 2,
    "iterations": 2,
    "perturbations": 2,
    "model_noise": [0.001, 2.0],
    "input_noise": [0.001, 5.0],
}


class Recorded:
    """A metric that scores each map by its mean, and records its arguments."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(
        self,
        predict: Classifier,
        images: Tensor,
        targets: Tensor,
        maps: Tensor,
        *,
        generator: torch.Generator,
        explain: Callable[..., Tensor],
        responses: dict[str, Tensor],
    ) -> Scored:
        self.calls.append(
            {"model": predict, "images": images, "maps": maps, "again": explain(images, targets), **responses}
        )
        return Scored({("mean", ""): maps.double().mean((1, 2, 3))})


def logits_of(predict: Classifier, images: Tensor, targets: Tensor, *, generator: Any) -> dict[str, Tensor]:
    return {"logits": predict(images)}


@pytest.fixture(scope="module")
def model() -> Classifier:
    return conv_classifier(dtype=torch.float32)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return random_images(COUNT, dtype=torch.float32).numpy()


def run(model: Classifier, images: np.ndarray, **changed: Any) -> tuple[pd.DataFrame, Recorded]:
    metric = Recorded()
    rescoring = Rescoring(
        metric,
        {},
        ["mean"],
        logits_of,
        {},
        0,
        Explainer(gradient, {}, 0),
        True,
        MetricInputs(),
        COUNT,
        "entry",
    )
    targets = cyclic_targets(COUNT).numpy()
    return pd.concat(rescored(rescoring, model, images, targets, **{**TESTS, **changed}, seed=0)), metric


def test_the_rows_of_all_tests(model: Classifier, images: np.ndarray) -> None:
    table, metric = run(model, images)
    counts = table.groupby(["test", "level"]).size() / COUNT
    expected = {
        ("original", 0.0): 1,
        ("noise", 0.5): 1,
        ("noise", 1.0): 1,
        ("blur", 0.5): 1,
        ("blur", 1.0): 1,
    }
    expected |= {(test, noise): 4 for test in ("model", "input") for noise in TESTS[f"{test}_noise"]}
    assert counts.to_dict() == expected
    assert len(metric.calls) == sum(expected.values())


def test_a_metric_that_explains_gets_the_degraded_map_again(model: Classifier, images: np.ndarray) -> None:
    _, metric = run(model, images, iterations=0)
    original, *degraded = metric.calls
    torch.testing.assert_close(original["again"], original["maps"])
    assert len(degraded) == 4
    for call in degraded:
        assert not torch.equal(call["maps"], original["maps"])
        torch.testing.assert_close(call["again"], call["maps"])


def test_a_changed_model_is_explained_and_evaluated(model: Classifier, images: np.ndarray) -> None:
    table, metric = run(model, images, degradations=[], iterations=1, perturbations=1)
    original, small, large, *_ = metric.calls
    for call in (small, large):
        assert call["model"] is not original["model"]
        torch.testing.assert_close(call["again"], call["maps"])
        torch.testing.assert_close(call["logits"], call["model"](call["images"]))
    assert (small["maps"] - original["maps"]).norm() < 0.1 * original["maps"].norm()
    assert (large["maps"] - original["maps"]).norm() > 0.1 * original["maps"].norm()
    kept = original["logits"].argmax(1) == large["logits"].argmax(1)
    rows = table[(table["test"] == "model") & (table["level"] == 2.0)].sort_values("image")
    assert rows["kept"].tolist() == kept.tolist()


def test_a_changed_image_is_scored_with_the_original_map(model: Classifier, images: np.ndarray) -> None:
    _, metric = run(model, images, degradations=[], iterations=1, perturbations=1)
    original, _, _, small, large = metric.calls
    for call, noise in ((small, 0.001), (large, 5.0)):
        assert torch.equal(call["maps"], original["maps"])
        change = (call["images"] - original["images"]).abs()
        assert 0.5 * min(noise, 1) < change.max() <= noise + 1e-6
        assert 0 <= call["images"].min() <= call["images"].max() <= 1


def test_the_original_model_stays_unchanged(model: Classifier, images: np.ndarray) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first, _ = run(model, images)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    second, _ = run(model, images)
    pd.testing.assert_frame_equal(first, second)


def test_every_sample_has_another_change_that_all_metrics_share(
    model: Classifier, images: np.ndarray
) -> None:
    _, metric = run(model, images, degradations=[])
    inputs = [
        call["images"] for call in metric.calls if not torch.equal(call["images"], metric.calls[0]["images"])
    ]
    assert all(not torch.equal(one, other) for one, other in pairwise(inputs))


def test_factors_of_weights_have_mean_one_and_the_given_deviation(model: Classifier) -> None:
    changed = perturbed_model(model, 0.3, torch.Generator().manual_seed(0))
    pairs = zip(changed.parameters(), model.parameters(), strict=True)
    factors = torch.cat([(after / before).flatten() for after, before in pairs if (before != 0).all()])
    assert factors.mean().item() == pytest.approx(1, abs=0.05)
    assert factors.std().item() == pytest.approx(0.3, rel=0.1)


def test_noise_of_images_is_uniform_and_clipped() -> None:
    gray = torch.full((1, 1, 100, 100), 0.5)
    small = perturbed_images(gray, 0.1, torch.Generator().manual_seed(0)) - gray
    assert small.abs().max() <= 0.1
    assert small.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.02)
    large = perturbed_images(gray, 5.0, torch.Generator().manual_seed(0))
    assert ((large == 0) | (large == 1)).float().mean() > 0.85


def test_degraded_maps_are_those_of_degrade(model: Classifier, images: np.ndarray) -> None:
    table, metric = run(model, images, iterations=0)
    original, first, *_ = metric.calls
    scores = table[(table["test"] == "noise") & (table["level"] == 0.5)]["score"].to_numpy()
    np.testing.assert_allclose(scores, first["maps"].double().mean((1, 2, 3)))
    # Half of the values are in other places, so that the sum stays.
    torch.testing.assert_close(first["maps"].sum((2, 3)), original["maps"].sum((2, 3)), rtol=1e-3, atol=1e-4)
    assert not torch.equal(degrade(original["maps"], "noise", 0.5, seed=1), first["maps"])
