"""SmoothGrad, SmoothGrad² and VarGrad: statistics of a method's maps of noisy copies of the image."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import chunks, per_row
from saliency_assay.methods.sampling import sample_seeds, standard_normal, uniform

Method = Callable[..., Tensor]
DISTRIBUTIONS = {"gaussian": standard_normal, "uniform": uniform}


def smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: int = 25,
    noise: float = 0.15,
    distribution: str = "gaussian",
    times_input: bool = False,
) -> Tensor:
    """Compute SmoothGrad, the mean of ``base``'s maps of noisy copies, of their shape (Smilkov et al., 2017).

    Without a base, the gradient is smoothed. See ``moments`` for the noise and the parameters. With ``times_input``,
    the mean is multiplied by x, the image without noise.
    """
    explain = _explainer(base, model, generator)
    mean, _ = moments(
        explain, images, targets, generator=generator, samples=samples, noise=noise, distribution=distribution
    )
    return mean * images.detach() if times_input else mean


def smoothgrad_squared(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: int = 25,
    noise: float = 0.15,
    distribution: str = "gaussian",
) -> Tensor:
    """Compute SmoothGrad², the mean of the squares of ``base``'s maps of noisy copies (Hooker et al., 2019)."""
    explain = _explainer(base, model, generator)
    mean, variance = moments(
        explain, images, targets, generator=generator, samples=samples, noise=noise, distribution=distribution
    )
    return variance + mean.square()  # E[M²] = Var M + (E M)²


def vargrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    base: Method | None = None,
    samples: int = 25,
    noise: float = 0.15,
    distribution: str = "gaussian",
) -> Tensor:
    """Compute VarGrad, the population variance of ``base``'s maps of noisy copies (Adebayo et al., 2018)."""
    explain = _explainer(base, model, generator)
    _, variance = moments(
        explain, images, targets, generator=generator, samples=samples, noise=noise, distribution=distribution
    )
    return variance


def moments(
    explain: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int,
    noise: float,
    distribution: str,
) -> tuple[Tensor, Tensor]:
    """Compute mean and population variance of ``explain(x + z, targets)`` over ``samples`` samples of z.

    Both have the shape of the maps. z is N(0, σ²) for ``distribution`` gaussian and uniform in [−σ, σ] for uniform,
    with σ = ``noise`` · (max x − min x) of each image.

    Raises:
        ValueError: a parameter out of range, inputs that do not fit, or an ``explain`` that samples random numbers.
    """
    check_inputs(images, targets)
    images = images.detach()
    if samples < 1 or noise < 0:
        raise ValueError(f"samples, noise: found {samples}, {noise}, expected at least 1 and 0")
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"distribution: found {distribution!r}, valid: {', '.join(DISTRIBUTIONS)}")
    sample_noise = DISTRIBUTIONS[distribution]
    # Per image, as in Smilkov et al. (2017): the noise level is a share of the range of the image's values.
    sigma = noise * (images.amax((1, 2, 3)) - images.amin((1, 2, 3)))
    seeds = sample_seeds(len(images), samples, generator)
    merged: Tensor | None = None
    for chunk in chunks(len(images), samples, images.device):
        noises = per_row(sigma[chunk.images]) * sample_noise(seeds[chunk.pairs], images)
        state = generator.get_state()
        maps = explain(images[chunk.images] + noises, targets[chunk.images])
        # A base that advances the generator would make the noise of later images depend on the batch size.
        if len(maps) != len(noises) or not torch.equal(generator.get_state(), state):
            raise ValueError(
                f"base: found maps {list(maps.shape)} of {len(noises)} images, expected one map per image and no "
                f"random numbers sampled"
            )
        if merged is None:
            merged = maps.new_zeros(2, len(images), *maps.shape[1:])
        # The samples of an image may be spread over several chunks, so its moments are updated with each.
        for run in chunk.runs:
            _merge(merged[:, run.image], run.first, maps[run.rows])
    assert merged is not None
    mean, deviation = merged.unbind()
    return mean, deviation / samples


def _explainer(
    base: Method | None, model: nn.Module, generator: torch.Generator
) -> Callable[[Tensor, Tensor], Tensor]:
    """Bind ``base``, by default the gradient, to the model."""
    if base is None:
        return partial(input_gradient, model)
    return partial(base, model, generator=generator)


def _merge(moments: Tensor, merged: int, new: Tensor) -> None:
    """Update the mean and the summed squared deviation of ``merged`` maps in place (Chan et al., 1979).

    The sum of squares minus the square of the sum would lose the digits of float32 if the noise is small.
    """
    mean, deviation = moments.unbind()
    count, new_mean = len(new), new.mean(0)
    step = new_mean - mean
    mean += step * (count / (merged + count))
    deviation += (new - new_mean).square().sum(0) + step.square() * (merged * count / (merged + count))
