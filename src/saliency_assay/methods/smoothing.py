"""SmoothGrad, SmoothGrad² and VarGrad: statistics of a method's maps of noisy copies of the image."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import passes_of, per_row
from saliency_assay.methods.sampling import each_sample, sample_seeds, standard_normal, uniform
from saliency_assay.registry.limits import Distribution, NonNegativeFloat, PositiveInt

Method = Callable[..., Tensor]
DISTRIBUTIONS = {"gaussian": standard_normal, "uniform": uniform}


def smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: PositiveInt = 25,
    noise: NonNegativeFloat = 0.15,
    distribution: Distribution = "gaussian",
    times_input: bool = False,
) -> Tensor:
    """Compute SmoothGrad, the mean of ``base``'s maps of noisy copies, of their shape (Smilkov et al., 2017).

    Without a base, the gradient is smoothed. See ``noisy_maps`` for the noise and the parameters. With ``times_input``,
    the mean is multiplied by x, the image without noise.
    """
    maps = noisy_maps(model, base, images, targets, generator, samples, noise, distribution)
    mean = next(maps).clone()
    for number, sample in enumerate(maps, 2):
        mean.lerp_(sample, 1 / number)
    return mean * images.detach() if times_input else mean


def smoothgrad_squared(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: PositiveInt = 25,
    noise: NonNegativeFloat = 0.15,
    distribution: Distribution = "gaussian",
) -> Tensor:
    """Compute SmoothGrad², the mean of the squares of ``base``'s maps of noisy copies (Hooker et al., 2019)."""
    maps = noisy_maps(model, base, images, targets, generator, samples, noise, distribution)
    mean, variance = moments(maps)
    return variance + mean.square()  # E[M²] = Var M + (E M)²


def vargrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: PositiveInt = 25,
    noise: NonNegativeFloat = 0.15,
    distribution: Distribution = "gaussian",
) -> Tensor:
    """Compute VarGrad, the population variance of ``base``'s maps of noisy copies (Adebayo et al., 2018)."""
    maps = noisy_maps(model, base, images, targets, generator, samples, noise, distribution)
    _, variance = moments(maps)
    return variance


def moments(maps: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """Compute mean and population variance of at least one tensor, both of its shape.

    They are updated with each tensor (Welford, 1962): the mean of the squares minus the square of the mean would lose
    the digits of float32 if the noise is small.
    """
    mean, number = next(maps).clone(), 1
    deviation = torch.zeros_like(mean)
    for number, sample in enumerate(maps, 2):
        step = sample - mean
        mean.lerp_(sample, 1 / number)
        deviation.addcmul_(step, sample - mean)
    return mean, deviation / number


def noisy_maps(
    model: nn.Module,
    base: Method | None,
    images: Tensor,
    targets: Tensor,
    generator: torch.Generator,
    samples: int,
    noise: float,
    distribution: str,
) -> Iterator[Tensor]:
    """Yield the maps of ``base``, by default the gradient, of x + z for each of ``samples`` samples of z.

    z is N(0, σ²) for ``distribution`` gaussian and uniform in [−σ, σ] for uniform, with σ = ``noise`` · (max x − min x)
    of each image.

    Raises:
        ValueError: inputs that do not fit, or a ``base`` that samples random numbers.
    """
    check_inputs(images, targets)
    images = images.detach()
    explain = partial(base, model, generator=generator) if base else partial(input_gradient, model)
    # Per image, as in Smilkov et al. (2017): the noise level is a share of the range of the image's values.
    sigma = per_row(noise * (images.amax((1, 2, 3)) - images.amin((1, 2, 3))))
    seeds = sample_seeds(len(images), samples, generator)
    state = generator.get_state()
    noises = each_sample(DISTRIBUTIONS[distribution], seeds, samples, images)
    for _, sample_noise in zip(passes_of(images, samples), noises, strict=True):
        maps = explain(torch.addcmul(images, sigma, sample_noise), targets)
        # A base that advances the generator would make the noise of later images depend on the batch size.
        if len(maps) != len(images) or not torch.equal(generator.get_state(), state):
            raise ValueError(
                f"base: found maps {list(maps.shape)} of {len(images)} images, expected one map per image and no "
                f"random numbers sampled"
            )
        yield maps
