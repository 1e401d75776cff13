"""Expected gradients against linear models, integrated gradients in the limit, and captum with the same samples."""

import captum.attr
import numpy as np
import pytest
import torch
from scipy import stats
from support import (
    SmoothNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor

from saliency_assay.methods.expected_gradients import expected_gradients, sample_starts
from saliency_assay.methods.path import mean_gradient, quadrature

IMAGES, TARGETS = random_images(4, size=6), cyclic_targets(4)
BACKGROUND = random_images(3, size=6, seed=9)
PIXELS = IMAGES[0].numel()


def test_maps_are_unbiased() -> None:
    """Their mean differs from the mean of integrated gradients by the standard error, which is small."""
    model, state = with_random_state(SmoothNet(PIXELS), seed=3), generator(5)
    settings = {"generator": state, "background": BACKGROUND, "samples": 50}
    maps = torch.stack([expected_gradients(model, IMAGES, TARGETS, **settings) for _ in range(20)])
    expected = torch.zeros_like(IMAGES)
    for start in BACKGROUND:
        starts = start.expand_as(IMAGES)
        slopes = mean_gradient(model, IMAGES, TARGETS, starts, *quadrature("gauss_legendre", 20))
        expected += (IMAGES - starts) * slopes / len(BACKGROUND)
    error = maps.std(0) / len(maps) ** 0.5
    assert ((maps.mean(0) - expected).abs() <= 5 * error).all()
    assert error.max() < 0.04 * expected.abs().max()


def test_captum_agrees_on_the_same_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """captum samples from NumPy's global generator, which is replaced by ours."""
    model, samples = conv_classifier(), 7
    sources, positions = (values.flatten() for values in sample_starts(4, samples, 3, generator(2)))
    monkeypatch.setattr(np.random, "choice", lambda count, size: sources.numpy())
    monkeypatch.setattr(np.random, "uniform", lambda low, high, size: positions.numpy())
    expected = captum.attr.GradientShap(model).attribute(
        IMAGES, BACKGROUND, n_samples=samples, stdevs=0.0, target=TARGETS
    )
    maps = expected_gradients(
        model, IMAGES, TARGETS, generator=generator(2), background=BACKGROUND, samples=samples
    )
    exact(maps, expected.detach(), 1e-10)


def test_samples_are_uniform_and_independent() -> None:
    sources, positions = (values.flatten() for values in sample_starts(50, 40, 5, generator()))
    assert sources.shape == positions.shape == (2000,)
    assert stats.chisquare(torch.bincount(sources, minlength=5).numpy()).pvalue > 0.01
    assert stats.kstest(positions.numpy(), "uniform").pvalue > 0.01
    assert len(positions.unique()) == 2000
    assert abs(stats.spearmanr(sources, positions).statistic) < 0.06


@pytest.mark.parametrize(
    ("background", "kind"),
    [
        (BACKGROUND[:0], r"float64 \[0, 3, 6, 6\]"),
        (BACKGROUND.float(), r"float32 \[3, 3, 6, 6\]"),
        (BACKGROUND[..., :5], r"float64 \[3, 3, 6, 5\]"),
        (BACKGROUND[0], r"float64 \[3, 6, 6\]"),
    ],
    ids=["empty", "float32", "narrow", "one image"],
)
def test_a_background_that_does_not_fit_is_refused(background: Tensor, kind: str) -> None:
    with pytest.raises(ValueError, match=rf"^background: found {kind} .* float64 \[B, 3, 6, 6\]"):
        expected_gradients(conv_classifier(), IMAGES, TARGETS, generator=generator(), background=background)
