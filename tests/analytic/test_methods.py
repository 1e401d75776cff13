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
    SmoothNet,
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

from saliency_assay.methods.baselines import baseline
from saliency_assay.methods.cam import gradcam
from saliency_assay.methods.gradient import gradient, gradient_x_input, sensitivity
from saliency_assay.methods.guided import guided_backprop
from saliency_assay.methods.model_free import constant, edge, random
from saliency_assay.methods.path import (
    integrated_gradients,
    integrated_gradients_smoothgrad,
    mean_gradient,
    quadrature,
)
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.methods.smoothing import smoothgrad, smoothgrad_squared, vargrad

RULES = ("middle", "trapezoid", "left", "right", "gauss_legendre")

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


def test_gradient_x_input_sums_to_the_logit_without_biases() -> None:
    model = with_random_state(SkipNet(), seed=1)
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.zeros_(module.bias)
    with torch.no_grad():
        logits = model(IMAGES)[range(6), TARGETS] - model(torch.zeros_like(IMAGES))[range(6), TARGETS]
    maps = gradient_x_input(model, IMAGES, TARGETS, generator=generator())
    exact(maps.sum((1, 2, 3)), logits)


def test_sensitivity_is_the_largest_slope_of_the_channels() -> None:
    model = skip_classifier()
    slopes = gradient(model, IMAGES, TARGETS, generator=generator()).numpy()
    maps = sensitivity(model, IMAGES, TARGETS, generator=generator())
    exact(maps, np.max(np.abs(slopes), axis=1, keepdims=True))


def test_baselines_are_black_and_the_training_mean() -> None:
    model = skip_classifier()
    exact(baseline(model, IMAGES, "black"), torch.zeros(1, 3, 1, 1))
    exact(baseline(model, IMAGES, "mean"), torch.full((1, 3, 1, 1), 0.45), tolerance=1e-6)
    for function in (gradient_x_input, integrated_gradients):
        run = partial(function, model, IMAGES, TARGETS, generator=generator())
        black, mean = run(), run(baseline="mean")
        assert not torch.equal(black, mean)
        with pytest.raises(ValueError, match=r"^baseline: found 'white', valid: black, mean$"):
            run(baseline="white")
    exact(
        gradient_x_input(model, IMAGES, TARGETS, generator=generator(), baseline="mean"),
        (IMAGES - model.mean) * gradient(model, IMAGES, TARGETS, generator=generator()),
    )
    line = "baseline: found 'mean' with a SkipNet, expected a Classifier, which stores a mean, or 'black'"
    with pytest.raises(ValueError, match=f"^{line}$"):
        baseline(SkipNet(), IMAGES, "mean")


# ---------------------------------------------------------------------------------- integrated gradients


class Kinked(nn.Module):
    """f_t(x) = max(Σ x − c, 0), whose slope is 0 on the way from black until c is reached, and 1 from there on."""

    def __init__(self, threshold: Tensor) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, images: Tensor) -> Tensor:
        rise = (images.sum((1, 2, 3)) - self.threshold).clamp(min=0)
        return rise[:, None].expand(-1, CLASSES)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_integrated_gradients_of_a_kink_are_known(share: float) -> None:
    """The kink lies where two of the middle rule's parts meet, so the rule is exact: x ⊙ (1 − share)."""
    image = IMAGES[:1]
    model = Kinked(share * image.sum())
    maps = integrated_gradients(model, image, TARGETS[:1], generator=generator(), steps=8, rule="middle")
    exact(maps, (1 - share) * image, tolerance=1e-14)
    exact(maps.sum(), (image.sum() - model.threshold), tolerance=1e-13)


def test_integrated_gradients_without_the_input_are_the_mean_slope() -> None:
    model = skip_classifier()
    run = partial(integrated_gradients, model, IMAGES, TARGETS, generator=generator())
    exact(run(times_input=False) * IMAGES, run())
    slopes = gradient(model, IMAGES, TARGETS, generator=generator())
    exact(run(times_input=False, steps=1, rule="right"), slopes)


def test_smoothgrad_times_input_is_that_of_the_noiseless_image() -> None:
    run = partial(smoothgrad, skip_classifier(), IMAGES, TARGETS, samples=3)
    exact(run(generator=generator(), times_input=True), IMAGES * run(generator=generator()))


def test_a_base_that_draws_or_loses_images_is_refused() -> None:
    def drawing(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        return images * torch.rand(1, generator=generator)

    def losing(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        return images[:1]

    for base, found in ((drawing, "[6, 3, 6, 6]"), (losing, "[1, 3, 6, 6]")):
        with pytest.raises(ValueError, match=r"^base: found maps") as error:
            smoothgrad(skip_classifier(), IMAGES, TARGETS, generator=generator(), base=base)
        assert str(error.value) == (
            f"base: found maps {found} of 6 images, expected one map per image and no random numbers sampled"
        )


def test_integrated_gradients_from_the_mean_are_complete() -> None:
    model = skip_classifier()
    maps = integrated_gradients(
        model, IMAGES, TARGETS, generator=generator(), steps=2000, rule="middle", baseline="mean"
    )
    with torch.no_grad():
        gray = model(model.mean.expand_as(IMAGES))
        expected = (model(IMAGES) - gray)[range(6), TARGETS]
    np.testing.assert_allclose(maps.sum((1, 2, 3)), expected, rtol=1e-3, atol=1e-3)


def test_integrated_gradients_are_complete() -> None:
    model = with_random_state(SmoothNet(PIXELS), seed=1)
    with torch.no_grad():
        change = (model(IMAGES) - model(torch.zeros_like(IMAGES)))[range(6), TARGETS]
    for rule, steps, error in (
        ("trapezoid", 1500, 1e-6),
        ("middle", 1500, 1e-6),
        ("gauss_legendre", 200, 1e-10),
    ):
        maps = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=steps, rule=rule)
        exact(maps.sum((1, 2, 3)), change, error)
    one_sided = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=1500, rule="left")
    assert ((one_sided.sum((1, 2, 3)) - change).abs() > 1e-6 * change.abs()).all()


@pytest.mark.parametrize(
    ("rule", "factor"),
    [("trapezoid", 1), ("middle", 1), ("gauss_legendre", 1), ("left", 4 / 5), ("right", 6 / 5)],
)
def test_integrated_gradients_of_a_quadratic_are_known(rule: str, factor: float) -> None:
    """The gradient grows linearly along the path: 5 steps of a Riemann sum give (5 ∓ 1) / 5 of the integral."""
    model = Quadratic()
    maps = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=5, rule=rule)
    exact(maps, factor * IMAGES * model.half_slopes(IMAGES, TARGETS))


def test_integrated_gradients_start_at_the_baseline() -> None:
    model, baseline = Quadratic(), random_images(6, size=6, seed=9)
    slopes = mean_gradient(model, IMAGES, TARGETS, baseline, *quadrature("trapezoid", 2))
    maps = (IMAGES - baseline) * slopes
    slopes = model.half_slopes(IMAGES, TARGETS) + model.half_slopes(baseline, TARGETS)
    exact(maps, (IMAGES - baseline) * slopes)


@pytest.mark.parametrize(
    ("rule", "captum_rule", "share"),
    [
        ("left", "riemann_left", 1),
        ("right", "riemann_right", 1),
        ("middle", "riemann_middle", 1),
        ("gauss_legendre", "gausslegendre", 1),
        ("trapezoid", "riemann_trapezoid", 6 / 7),  # captum's trapezoid weights sum to (n − 1) / n
    ],
)
def test_integrated_gradients_equal_captum(rule: str, captum_rule: str, share: float) -> None:
    model = skip_classifier()
    expected = captum.attr.IntegratedGradients(model).attribute(
        IMAGES, 0.0, TARGETS, n_steps=7, method=captum_rule
    )
    maps = integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=7, rule=rule)
    exact(share * maps, expected, 1e-6, floor=1e-8)  # captum's weights are float32


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("steps", [2, 7, 25])
def test_weights_sum_to_one(rule: str, steps: int) -> None:
    nodes, weights = quadrature(rule, steps)
    assert nodes.shape == weights.shape == (steps,)
    assert weights.sum().item() == pytest.approx(1, abs=1e-13)
    assert 0 <= nodes.min() < nodes.max() <= 1


def test_quadrature_refuses_too_few_steps() -> None:
    with pytest.raises(ValueError, match=r"^steps: found 1, expected at least 2 with rule 'trapezoid'$"):
        quadrature("trapezoid", 1)
    with pytest.raises(ValueError, match=r"^steps: found 0, expected at least 1 with rule 'middle'$"):
        quadrature("middle", 0)


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


def test_smoothgrad_noise_is_normal_and_relative_to_each_image() -> None:
    model = conv_classifier()
    with seen_batches(model) as seen:
        smoothgrad(model, IMAGES, TARGETS, generator=generator(), samples=100, noise=0.15)
    noise = torch.stack(seen, 1).reshape(6, 100, -1) - IMAGES.reshape(6, 1, -1)
    spans = np.ptp(IMAGES.flatten(1).numpy(), axis=1)
    assert spans.max() > 2 * spans.min()
    for values, span in zip(noise, spans, strict=True):
        assert stats.kstest(values.flatten().numpy() / (0.15 * span), "norm").pvalue > 1e-3
    assert len(noise.flatten(0, 1).unique(dim=0)) == 600


def test_uniform_noise_fills_its_range_and_no_more() -> None:
    model = conv_classifier()
    with seen_batches(model) as seen:
        smoothgrad(
            model, IMAGES, TARGETS, generator=generator(), samples=100, noise=0.2, distribution="uniform"
        )
    noise = torch.stack(seen, 1).reshape(6, 100, -1) - IMAGES.reshape(6, 1, -1)
    spans = np.ptp(IMAGES.flatten(1).numpy(), axis=1)
    for values, span in zip(noise, spans, strict=True):
        scaled = values.flatten().numpy() / (0.2 * span)
        assert stats.kstest(scaled, "uniform", args=(-1, 2)).pvalue > 1e-3


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


def test_ig_smoothgrad_without_noise_is_ig() -> None:
    model = skip_classifier()
    smoothed = integrated_gradients_smoothgrad(
        model, IMAGES, TARGETS, generator=generator(), steps=3, samples=2, noise=0
    )
    exact(smoothed, integrated_gradients(model, IMAGES, TARGETS, generator=generator(), steps=3))


@pytest.mark.parametrize("setting", [{"samples": 0, "noise": 0.1}, {"samples": 2, "noise": -0.1}])
def test_smoothing_refuses_no_sample_and_negative_noise(setting: dict[str, float]) -> None:
    found = ", ".join(map(str, setting.values()))
    with pytest.raises(ValueError, match=f"^samples, noise: found {found}, expected at least 1 and 0$"):
        smoothgrad(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)


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
