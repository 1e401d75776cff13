"""Expected gradients against linear models, integrated gradients in the limit, and captum with the same samples."""

import captum.attr
import numpy as np
import pytest
import torch
from scipy import stats
from support import (
    CLASSES,
    SmoothNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.expected_gradients import expected_gradients, sample_starts
from saliency_assay.methods.path import mean_gradient, quadrature

IMAGES, TARGETS = random_images(4, size=6), cyclic_targets(4)
BACKGROUND = random_images(3, size=6, seed=9)
PIXELS = IMAGES[0].numel()


def logits_of(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).gather(1, targets[:, None])[:, 0]


def expectation(model: nn.Module, background: Tensor) -> Tensor:
    """Integrated gradients from each background image by a rule of high order, averaged."""
    maps = []
    for start in background:
        starts = start.expand_as(IMAGES)
        slopes = mean_gradient(model, IMAGES, TARGETS, starts, *quadrature("gauss_legendre", 40))
        maps.append((IMAGES - starts) * slopes)
    return torch.stack(maps).mean(0)


def test_each_sample_of_a_linear_model_is_its_contributions() -> None:
    """Every sample is complete by itself: the gradient is the same everywhere."""
    model = with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, CLASSES)), seed=1)
    weights = model[1].weight.detach()[TARGETS].reshape(IMAGES.shape)
    maps = expected_gradients(model, IMAGES, TARGETS, generator=generator(), background=BACKGROUND, samples=1)
    sources = sample_starts(4, 1, 3, generator())[0][:, 0]
    assert len(set(sources.tolist())) > 1
    starts = BACKGROUND[sources]
    exact(maps, weights * (IMAGES - starts))
    change = logits_of(model, IMAGES, TARGETS) - logits_of(model, starts, TARGETS)
    exact(maps.sum((1, 2, 3)), change)


@pytest.mark.parametrize("backgrounds", [1, 3])
def test_maps_are_unbiased(backgrounds: int) -> None:
    """Their mean differs from the mean of integrated gradients by the standard error, which is small."""
    model, background = with_random_state(SmoothNet(PIXELS), seed=3), BACKGROUND[:backgrounds]
    state = generator(5)
    settings = {"generator": state, "background": background, "samples": 100}
    maps = torch.stack([expected_gradients(model, IMAGES, TARGETS, **settings) for _ in range(40)])
    expected = expectation(model, background)
    error = maps.std(0) / len(maps) ** 0.5
    assert ((maps.mean(0) - expected).abs() <= 5 * error + 1e-12).all()
    assert error.max() < 0.02 * expected.abs().max()
    change = logits_of(model, IMAGES, TARGETS)
    for start in background:
        change = change - logits_of(model, start.expand_as(IMAGES), TARGETS) / backgrounds
    sums = maps.sum((2, 3, 4))
    assert ((sums.mean(0) - change).abs() <= 5 * sums.std(0) / len(maps) ** 0.5).all()
    assert change.abs().min() > 20 * (sums.std(0) / len(maps) ** 0.5).min()


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


def test_samples_do_not_depend_on_the_split() -> None:
    state = generator(4)
    parts = [sample_starts(count, 6, 5, state) for count in (2, 1, 3)]
    whole = sample_starts(6, 6, 5, generator(4))
    for part, values in zip(zip(*parts, strict=True), whole, strict=True):
        assert torch.equal(torch.cat(part), values)


def test_no_sample_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^samples: found 0, expected at least 1$"):
        expected_gradients(
            conv_classifier(), IMAGES, TARGETS, generator=generator(), background=BACKGROUND, samples=0
        )


@pytest.mark.parametrize(
    ("background", "found"),
    [
        (BACKGROUND[:0], "float64 [0, 3, 6, 6]"),
        (BACKGROUND.float(), "float32 [3, 3, 6, 6]"),
        (BACKGROUND[..., :5], "float64 [3, 3, 6, 5]"),
        (BACKGROUND[0], "float64 [3, 6, 6]"),
    ],
    ids=["empty", "float32", "narrow", "one image"],
)
def test_a_background_that_does_not_fit_is_refused(background: Tensor, found: str) -> None:
    with pytest.raises(ValueError, match=r"^background: ") as error:
        expected_gradients(conv_classifier(), IMAGES, TARGETS, generator=generator(), background=background)
    expected = "expected float64 [B, 3, 6, 6] on cpu with B >= 1"
    assert str(error.value) == f"background: found {found} on cpu, {expected}"
