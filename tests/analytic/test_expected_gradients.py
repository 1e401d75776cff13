"""Expected gradients and GradientSHAP: linear models, integrated gradients in the limit, captum with equal samples."""

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
from torch import Tensor, nn

from saliency_assay.methods.expected_gradients import expected_gradients, gradient_shap, sample_starts
from saliency_assay.methods.path import mean_gradient, quadrature
from saliency_assay.methods.sampling import standard_normal

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


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_captum_agrees_on_the_same_samples(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """captum samples from the global generators of NumPy and PyTorch, which are replaced by ours."""
    model, samples = conv_classifier(), 7
    sources, positions, seeds = sample_starts(4, samples, 3, generator(2))
    monkeypatch.setattr(np.random, "choice", lambda count, size: sources.flatten().numpy())
    monkeypatch.setattr(np.random, "uniform", lambda low, high, size: positions.flatten().numpy())
    monkeypatch.setattr(torch, "normal", lambda mean, scales: scales * standard_normal(seeds, IMAGES))
    expected = captum.attr.GradientShap(model).attribute(
        IMAGES, BACKGROUND, n_samples=samples, stdevs=noise, target=TARGETS
    )
    settings = {"background": BACKGROUND, "samples": samples}
    maps = gradient_shap(model, IMAGES, TARGETS, generator=generator(2), noise=noise, **settings)
    exact(maps, expected.detach(), 1e-10)
    without_noise = expected_gradients(model, IMAGES, TARGETS, generator=generator(2), **settings)
    assert torch.equal(maps, without_noise) == (noise == 0)


def test_maps_of_a_linear_network_are_the_weighted_difference_of_the_means() -> None:
    """They sum to the mean logit of the noisy images minus that of their baselines."""
    layer = nn.Linear(PIXELS, 4)
    model, samples = with_random_state(nn.Sequential(nn.Flatten(), layer), seed=3), 6
    sources, _, seeds = sample_starts(4, samples, 3, generator(2))
    noisy = IMAGES[:, None] + 0.5 * standard_normal(seeds, IMAGES).unflatten(0, (4, samples))
    maps = gradient_shap(
        model, IMAGES, TARGETS, generator=generator(2), background=BACKGROUND, samples=samples, noise=0.5
    )
    exact(maps, layer.weight.detach()[TARGETS].view_as(maps) * (noisy - BACKGROUND[sources]).mean(1))
    with torch.no_grad():
        ends, starts = (
            model(batch.flatten(0, 1)).unflatten(0, (4, samples)).mean(1)
            for batch in (noisy, BACKGROUND[sources])
        )
    exact(maps.sum((1, 2, 3)), (ends - starts)[range(4), TARGETS])


def test_samples_are_uniform_and_independent() -> None:
    sources, positions = (values.flatten() for values in sample_starts(50, 40, 5, generator())[:2])
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
