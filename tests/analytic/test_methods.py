"""Attribution methods against closed forms, plain NumPy derivations, and captum and scipy where they agree."""

from functools import partial
from itertools import product
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from support import (
    CLASSES,
    SkipNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    seen_batches,
    skip_classifier,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods import METHODS
from saliency_assay.methods.baselines import baseline
from saliency_assay.methods.cam import gradcam
from saliency_assay.methods.gradient import gradient, gradient_x_input, sensitivity
from saliency_assay.methods.guided import guided_backprop
from saliency_assay.methods.model_free import constant, edge, object_mask, random
from saliency_assay.methods.path import (
    integrated_gradients,
    integrated_gradients_smoothgrad,
)
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.methods.smoothing import smoothgrad, smoothgrad_squared, vargrad
from saliency_assay.metrics import METRICS
from saliency_assay.registry.records import record_of, resolve

IMAGES, TARGETS = random_images(6, size=6), cyclic_targets(6)
PIXELS = IMAGES[0].numel()


class Quadratic(nn.Module):
    """f_t(x) = xᵀ A_t x, which weighs every pair of pixels."""

    def __init__(self) -> None:
        super().__init__()
        values = torch.randn(CLASSES, PIXELS, PIXELS, generator=generator(3), dtype=torch.float64)
        self.weights = nn.Parameter(values)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        return torch.einsum("ni,kij,nj->nk", flat, self.weights, flat)

    def half_slopes(self, images: Tensor, targets: Tensor) -> Tensor:
        """½ (A + Aᵀ) x, half of the gradient."""
        symmetric = (self.weights + self.weights.mT).detach()[targets] / 2
        return (symmetric @ images.flatten(1)[:, :, None]).reshape(images.shape)


# ---------------------------------------------------------------------------------------------- gradient


def test_gradient_of_a_linear_model_is_its_weights() -> None:
    model = with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES)), seed=1)
    weights = model[1].weight.detach()[TARGETS].reshape(IMAGES.shape)
    exact(gradient(model, IMAGES, TARGETS, generator=generator()), weights)
    exact(gradient_x_input(model, IMAGES, TARGETS, generator=generator()), weights * IMAGES)


def test_gradient_equals_captum() -> None:
    model = skip_classifier()
    pixels = IMAGES.clone().requires_grad_()
    expected = captum.attr.Saliency(model).attribute(pixels, TARGETS, abs=False)
    exact(gradient(model, IMAGES, TARGETS, generator=generator()), expected.detach())


def test_sensitivity_is_the_largest_slope_of_the_channels() -> None:
    model = skip_classifier()
    slopes = gradient(model, IMAGES, TARGETS, generator=generator()).numpy()
    maps = sensitivity(model, IMAGES, TARGETS, generator=generator())
    exact(maps, np.max(np.abs(slopes), axis=1, keepdims=True))


def test_baselines_are_black_and_the_training_mean() -> None:
    model = skip_classifier()
    exact(baseline(model, IMAGES, "black"), torch.zeros(1, 3, 1, 1))
    exact(baseline(model, IMAGES, "mean"), torch.full((1, 3, 1, 1), 0.45), tolerance=1e-6)
    exact(
        gradient_x_input(model, IMAGES, TARGETS, generator=generator(), baseline="mean"),
        (IMAGES - model.mean) * gradient(model, IMAGES, TARGETS, generator=generator()),
    )
    with pytest.raises(ValueError, match=r"^baseline: found 'mean' with a SkipNet\b.* black, gray$"):
        baseline(SkipNet(), IMAGES, "mean")


# ---------------------------------------------------------------------------------- integrated gradients


def test_integrated_gradients_without_the_input_are_the_mean_slope() -> None:
    model = skip_classifier()
    run = partial(integrated_gradients, model, IMAGES, TARGETS, generator=generator())
    exact(run(times_input=False) * IMAGES, run())
    slopes = gradient(model, IMAGES, TARGETS, generator=generator())
    exact(run(times_input=False, steps=1, rule="right"), slopes)


def test_smoothgrad_times_input_is_that_of_the_noiseless_image() -> None:
    run = partial(smoothgrad, skip_classifier(), IMAGES, TARGETS, samples=3)
    exact(run(generator=generator(), times_input=True), IMAGES * run(generator=generator()))


def test_a_base_that_samples_or_loses_images_is_refused() -> None:
    def sampling(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        return images * torch.rand(1, generator=generator)

    def losing(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        return images[:1]

    for base, shape in ((sampling, r"\[6, 3, 6, 6\]"), (losing, r"\[1, 3, 6, 6\]")):
        with pytest.raises(ValueError, match=rf"^base: found maps {shape} of 6 images\b"):
            smoothgrad(skip_classifier(), IMAGES, TARGETS, generator=generator(), base=base)


@pytest.mark.parametrize(
    ("rule", "factor"),
    [("trapezoid", 1), ("middle", 1), ("gauss_legendre", 1), ("left", 4 / 5), ("right", 6 / 5)],
)
def test_integrated_gradients_of_a_quadratic_are_known(rule: str, factor: float) -> None:
    """The gradient grows linearly along the path: 5 steps of a Riemann sum give (5 ∓ 1) / 5 of the integral."""
    model = Quadratic()
    maps = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=5, rule=rule)
    exact(maps, factor * IMAGES * model.half_slopes(IMAGES, TARGETS))


@pytest.mark.parametrize(
    ("rule", "captum_rule", "share", "baseline"),
    [
        ("left", "riemann_left", 1, "black"),
        ("right", "riemann_right", 1, "mean"),
        ("middle", "riemann_middle", 1, "mean"),
        ("gauss_legendre", "gausslegendre", 1, "black"),
        ("trapezoid", "riemann_trapezoid", 6 / 7, "black"),  # captum's weights sum to (n − 1) / n
    ],
)
def test_integrated_gradients_equal_captum(rule: str, captum_rule: str, share: float, baseline: str) -> None:
    model = skip_classifier()
    start = model.mean.expand(1, 3, 6, 6) if baseline == "mean" else 0.0
    expected = captum.attr.IntegratedGradients(model).attribute(
        IMAGES, start, TARGETS, n_steps=7, method=captum_rule
    )
    maps = integrated_gradients(
        model, IMAGES, TARGETS, generator=generator(), steps=7, rule=rule, baseline=baseline
    )
    exact(share * maps, expected, 1e-6, floor=1e-8)  # captum's weights are float32


# -------------------------------------------------------------------------------------------- smoothing


def test_smoothgrad_without_noise_is_the_gradient() -> None:
    model = skip_classifier()
    slopes = gradient(model, IMAGES, TARGETS, generator=generator())
    for samples in (1, 4):
        settings = {"generator": generator(), "samples": samples, "noise": 0.0}
        exact(smoothgrad(model, IMAGES, TARGETS, **settings), slopes)
        exact(smoothgrad_squared(model, IMAGES, TARGETS, **settings), slopes**2)
        assert vargrad(model, IMAGES, TARGETS, **settings).abs().max() < 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_smoothgrad_statistics_are_those_of_the_samples_seen(dtype: torch.dtype) -> None:
    """Small noise, so that in float32 mean of squares − square of mean would be rounding error alone."""
    model, images = Quadratic().to(dtype), IMAGES.to(dtype)
    settings = {"samples": 5, "noise": 1e-3}
    with seen_batches(model) as seen:
        maps = {
            method: method(model, images, TARGETS, generator=generator(), **settings)
            for method in (smoothgrad, smoothgrad_squared, vargrad)
        }
    noisy = torch.stack(seen, 1).reshape(6, 3, 5, *images.shape[1:]).transpose(0, 1)
    assert torch.equal(noisy[0], noisy[1])  # the three statistics are of the same samples
    assert torch.equal(noisy[0], noisy[2])
    samples = np.stack([2 * model.half_slopes(noisy[0, :, i], TARGETS).numpy() for i in range(5)]).astype(
        float
    )
    tolerance = 1e-8 if dtype is torch.float64 else 1e-4
    exact(maps[smoothgrad], samples.mean(0), tolerance, floor=tolerance)
    exact(maps[smoothgrad_squared], (samples**2).mean(0), tolerance, floor=tolerance)
    largest = samples.var(0).max()
    np.testing.assert_allclose(maps[vargrad] / largest, samples.var(0) / largest, atol=100 * tolerance)


@pytest.mark.parametrize(
    ("distribution", "reference", "arguments"), [("gaussian", "norm", ()), ("uniform", "uniform", (-1, 2))]
)
def test_noise_of_smoothgrad_is_relative_to_each_image(
    distribution: str, reference: str, arguments: tuple[float, ...]
) -> None:
    settings = {"samples": 100, "noise": 0.15, "distribution": distribution}
    with seen_batches(model := conv_classifier()) as seen:
        smoothgrad(model, IMAGES, TARGETS, generator=generator(), **settings)
    noise = torch.stack(seen, 1).reshape(6, 100, -1) - IMAGES.reshape(6, 1, -1)
    spans = np.ptp(IMAGES.flatten(1).numpy(), axis=1)
    assert spans.max() > 2 * spans.min()
    for values, span in zip(noise, spans, strict=True):
        scaled = values.flatten().numpy() / (0.15 * span)
        assert stats.kstest(scaled, reference, args=arguments).pvalue > 1e-3
    assert len(noise.flatten(0, 1).unique(dim=0)) == 600


@pytest.mark.parametrize("base", [gradient, guided_backprop, partial(gradcam, relu=False)])
def test_any_base_is_smoothed_by_its_own_maps(base: Any) -> None:
    model, samples = conv_classifier(), 4
    settings = {"samples": samples, "noise": 0.2, "base": base}
    with seen_batches(model) as seen:
        smoothed = smoothgrad(model, IMAGES, TARGETS, generator=generator(), **settings)
    noisy = torch.stack(seen, 1).reshape(6, samples, *IMAGES.shape[1:])
    each = torch.stack([base(model, noisy[:, i], TARGETS, generator=generator()) for i in range(samples)])
    exact(smoothed, each.mean(0))
    exact(vargrad(model, IMAGES, TARGETS, generator=generator(), **settings), each.var(0, unbiased=False))


def test_ig_smoothgrad_is_the_mean_of_ig_of_the_noisy_images() -> None:
    model = Quadratic()
    with seen_batches(model) as seen:
        maps = integrated_gradients_smoothgrad(
            model, IMAGES, TARGETS, generator=generator(), steps=2, samples=3, noise=0.3
        )
    # A noisy copy of each image at a time, at both nodes of the middle rule: a quarter and three quarters of the path.
    noisy = torch.stack(seen[1::2], 1) / 0.75
    assert (noisy - IMAGES[:, None]).std() > 0.05
    expected = sum(noisy[:, i] * model.half_slopes(noisy[:, i], TARGETS) for i in range(3)) / 3
    exact(maps, expected)


# -------------------------------------------------------------------------------- passes and random numbers


def test_noise_does_not_depend_on_the_split() -> None:
    sizes, whole, serial = (1, 16, 3, 100), generator(4), generator(4)
    seeds = sample_seeds(120, 3, whole)
    assert [seed for size in sizes for seed in sample_seeds(size, 3, serial)] == seeds
    assert len(set(seeds)) == 360
    assert max(seeds) > 2**62
    images = torch.zeros(120, 3, 5, 5)
    noise = standard_normal(seeds[:40], images)
    assert torch.equal(torch.cat([standard_normal(seeds[i : i + 1], images) for i in range(40)]), noise)


# --------------------------------------------------------------------------------------------- baselines


def test_edge_is_the_sobel_magnitude_of_scipy() -> None:
    images = random_images(3, size=9)
    maps = edge(nn.Identity(), images, cyclic_targets(3), generator=generator())
    for i, c in product(range(3), range(3)):
        plane = images[i, c].numpy()
        expected = np.hypot(ndimage.sobel(plane, axis=0), ndimage.sobel(plane, axis=1))
        exact(maps[i, c], expected)


def test_random_is_uniform_and_different_for_each_image() -> None:
    images = random_images(5, size=40)
    maps = random(nn.Identity(), images, cyclic_targets(5), generator=generator())
    assert stats.kstest(maps.flatten().numpy(), "uniform").pvalue > 1e-3
    assert len(maps.flatten(1).unique(dim=0)) == 5


def test_constant_is_one_everywhere() -> None:
    maps = constant(nn.Identity(), IMAGES, TARGETS, generator=generator())
    assert torch.equal(maps, torch.ones(6, 1, 6, 6, dtype=torch.float64))


def test_the_object_mask_is_1_on_the_object() -> None:
    mask = torch.rand(6, 6, 6, generator=generator()) > 0.5
    maps = object_mask(nn.Identity(), IMAGES, TARGETS, generator=generator(), mask=mask)
    assert maps.dtype == IMAGES.dtype
    assert torch.equal(maps[:, 0] == 1, mask)
    assert torch.equal(maps[:, 0] == 0, ~mask)
    for wrong in (None, mask[:3], mask.double()):
        with pytest.raises(ValueError, match=r"^mask: found .*, expected torch\.bool \[6, 6, 6\]"):
            object_mask(nn.Identity(), IMAGES, TARGETS, generator=generator(), mask=wrong)


@pytest.mark.parametrize("name", record_of(METHODS, "object_mask", "method").best_for)
def test_no_map_localizes_better_than_the_object_mask(name: str) -> None:
    """Scores of random maps of random objects are at most those of the mask, which are the best of the range."""
    metric = record_of(METRICS, name, "metric")
    mask = torch.rand(6, 6, 6, generator=generator(3)) > 0.7
    keywords = {"generator": generator(), "mask": mask}
    best, other = (
        resolve(metric.function)(None, IMAGES, TARGETS, maps, **keywords).scores
        for maps in (mask[:, None].double(), random(nn.Identity(), IMAGES, TARGETS, generator=generator()))
    )
    for score in metric.scores:
        assert best[score.name, ""].tolist() == [score.range[1]] * 6
        assert (other[score.name, ""] <= best[score.name, ""]).all()
