"""Infidelity of an explanation under five kinds of perturbation (Yeh et al., 2019, definition 2.1).

INFD(Φ, f, x) = E_I[(IᵀΦ − (f(x) − f(x − I)))²], where f is the target's logit and E the mean over the sampled
perturbations. ``predicted`` is IᵀΦ. ``drop`` is f(x) − f(x − I), which does not depend on the map and is therefore
computed once for all methods.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import torch
from torch import Tensor

from saliency_assay.methods.optimal import (
    BLOCK,
    Baselines,
    all_logits,
    covered,
    each_half,
    sample_squares,
)
from saliency_assay.methods.passes import reported
from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.perturbation import Predict, evaluate_masks, original, perturbation_batch
from saliency_assay.metrics.scored import Scored, nan_unless
from saliency_assay.metrics.subsets import drop_of, drops, sample_subsets, shared, sums
from saliency_assay.registry.limits import (
    Explanation,
    Limits,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Share,
)
from saliency_assay.runtime.transfer import to_device

SQUARES = 16_384  # squares whose sums are computed at a time


def infidelity(predicted: Tensor, drop: Tensor) -> Tensor:
    """Compute E_I[(IᵀΦ − (f(x) − f(x − I)))²], float64 ``[N]``, from two float64 tensors ``[N, S]``. Equation 1."""
    # Not from moments: expanding the square would subtract nearly equal numbers for good maps.
    return (predicted - drop).square().mean(1)


def optimal_scale(predicted: Tensor, drop: Tensor) -> Tensor:
    """Return the β, float64 ``[N]``, that minimizes the infidelity of βΦ: E[IᵀΦ (f(x) − f(x − I))] / E[(IᵀΦ)²].

    It may be negative. It is 0 where IᵀΦ is always 0, since every β then gives the same infidelity. The released code
    multiplies maps by it; the paper does not mention it.
    """
    power = predicted.square().mean(1)
    return torch.where(power > 0, (predicted * drop).mean(1) / power, 0)


def score(maps: Tensor, predicted: Tensor, drop: Tensor, rescale: bool) -> Scored:
    """Return the infidelity of ``maps [N, …]``, of βΦ if ``rescale``; NaN for a map with values that are not finite."""
    if rescale:
        predicted = optimal_scale(predicted, drop)[:, None] * predicted
    defined = maps.isfinite().flatten(1).all(1)
    return Scored({("infidelity", ""): nan_unless(defined, infidelity(predicted, drop))})


def contributions(maps: Tensor, images: Tensor, explanation: str) -> Tensor:
    """Return the contribution of each pixel to IᵀΦ when it turns black, float64 ``[N, H·W]``.

    For ``global`` explanations Φ ``[N, C or 1, H, W]`` it is Σ_c Φ_c. For ``local`` ones, I contains the values of the
    removed pixels, and it is Σ_c x_c Φ_c, where a map of one channel has the same value in all channels. Section 2.5,
    with x_0 = 0.

    Raises:
        ValueError: maps that do not fit the images.
    """
    check_maps(maps, images)
    values = maps.double()
    return (values * images if explanation == "local" else values).sum(1).flatten(1)


def check_maps(maps: Tensor, images: Tensor) -> None:
    """Check that maps are ``[N, C or 1, H, W]`` for images ``[N, C, H, W]``.

    Raises:
        ValueError: they are not.
    """
    count, channels, height, width = images.shape
    if maps.shape not in (images.shape, (count, 1, height, width)):
        raise ValueError(
            f"maps: found {list(maps.shape)}, expected [{count}, {channels} or 1, {height}, {width}] like the images"
        )


# ---- removal of squares (section 2.4)


def removed_squares(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    smallest: PositiveInt = 1,
    largest: PositiveInt = 10,
    squares: NonNegativeInt = 0,
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x with a square black), in logits, float64 ``[N, S]``; see ``infidelity_square``.

    Raises:
        ValueError: sides or a number of squares that do not fit the images, or an error of ``perturbation``.
    """
    batch = perturbation_batch(predict, images, targets, fill("black", images), output="logit")
    selected = _sample_squares(images, smallest, largest, squares, generator)

    def cover(image: Tensor, number: Tensor) -> Tensor:
        return covered(selected[number], batch.height, batch.width).flatten(1)

    return {"drop": original(batch)[:, None] - evaluate_masks(batch, len(selected), cover)}


def infidelity_square(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    smallest: PositiveInt = 1,
    largest: PositiveInt = 10,
    squares: NonNegativeInt = 0,
    explanation: Explanation = "global",
    rescale: bool = False,
) -> Scored:
    """Compute INFD with I the image inside a square, with sides ``smallest`` to ``largest``, at stride 1.

    All squares, or a sample of ``squares``, which depends only on the generator's initial seed, so that all images and
    the model responses share it. Yeh et al. (2019), equation 1 and section 2.4; ``explanation`` as in
    ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: as ``removed_squares``; maps or ``responses`` that do not fit the images and squares.
    """
    values = contributions(maps, images, explanation).reshape(-1, *images.shape[2:])
    selected = _sample_squares(images, smallest, largest, squares, generator)
    drop = drop_of(responses, maps, len(selected))
    return score(maps, square_sums(values, selected), drop, rescale)


def square_sums(values: Tensor, squares: Tensor) -> Tensor:
    """Return the sum of ``values``, float64 ``[N, H, W]``, over each of ``squares [S, 3]``: ``[N, S]``.

    With the summed-area table t(r, c), the sum above row r and left of column c, it is t(bottom, right) −
    t(top, right) − t(bottom, left) + t(top, left).
    """
    count, height, width = values.shape
    # Four lookups per square of any area. float64, since the table's sums exceed those of small squares by far.
    table = values.new_zeros(count, height + 1, width + 1)
    table[:, 1:, 1:] = values.cumsum(1).cumsum(2)
    totals = values.new_empty(count, len(squares))
    for first in range(0, len(squares), SQUARES):
        block = slice(first, first + SQUARES)
        top, left, side = squares[block].unbind(1)
        bottom, right = top + side, left + side
        lower = table[:, bottom, right] - table[:, bottom, left]
        totals[:, block] = lower - (table[:, top, right] - table[:, top, left])
    return totals


def _sample_squares(
    images: Tensor, smallest: int, largest: int, squares: int, generator: torch.Generator
) -> Tensor:
    """Return the top row, left column and side of each square, int64 ``[S, 3]``, on the images' device."""
    seed = generator.initial_seed() if squares else None
    height, width = images.shape[2:]
    return to_device(sample_squares(height, width, smallest, largest, squares, seed), images.device)


# ---- difference to a noisy black baseline (section 2.4)


def noisy_baselines(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: PositiveInt = 10_000,
    noise: NonNegativeFloat = 0.2,
    protocol: Annotated[str, Limits(choices=("printed", "released"))] = "printed",
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(z), in logits, float64 ``[N, samples]``; see ``infidelity_noisy_baseline``.

    One pass for each baseline z serves all images of the batch.

    Raises:
        ValueError: logits of a wrong shape, or logits that are not finite.
    """
    batch = perturbation_batch(predict, images, targets, fill("black", images), output="logit")
    original_logits = original(batch)[:, None]
    portions = _baselines(images, samples, noise, protocol, generator, batch.rows)
    # In the memory format of the images in f(x), so that both terms of the drop use the same convolution algorithm.
    reformatted = (z.contiguous(memory_format=torch.channels_last) for z in portions)
    baseline_logits = torch.cat([all_logits(predict, z)[:, targets] for z in reformatted]).T
    non_finite = int((~baseline_logits.isfinite()).sum())
    if non_finite:
        raise ValueError(
            f"predict: the logit of {non_finite} of {baseline_logits.numel()} noisy baselines is NaN or infinite, "
            f"expected finite values"
        )
    return {"drop": original_logits - baseline_logits}


def infidelity_noisy_baseline(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    samples: PositiveInt = 10_000,
    noise: NonNegativeFloat = 0.2,
    protocol: Annotated[str, Limits(choices=("printed", "released"))] = "printed",
    rescale: bool = False,
) -> Scored:
    """Compute INFD with I = x − z for ``samples`` baselines z ~ N(0, ``noise``²), the same for all images.

    ``noise`` is in units of pixels in [0, 1]. With ``protocol`` ``released``, z is clipped to [0, 1], which is the
    released I = clip(x + noise, x − 1, x). Maps are local explanations; a map of one channel has the same value in all
    channels. Yeh et al. (2019), equation 1 and section 2.4. Squared logits, lower is better.

    Raises:
        ValueError: maps or ``responses`` that do not fit the images and samples.
    """
    check_maps(maps, images)
    portions = _baselines(images, samples, noise, protocol, generator, BLOCK)
    local = maps.double().expand(images.shape).flatten(1)
    # IᵀΦ = xᵀΦ − zᵀΦ: the perturbations I themselves, one image for each pair of x and z, are never computed.
    image_term = (images.flatten(1) * local).sum(1, keepdim=True)
    predicted = torch.cat([image_term - local @ z.flatten(1).double().T for z in portions], dim=1)
    return score(maps, predicted, drop_of(responses, maps, samples), rescale)


def _baselines(
    images: Tensor, samples: int, noise: float, protocol: str, generator: torch.Generator, rows: int
) -> Iterator[Tensor]:
    """Return an iterator of the baselines, at most ``rows`` at a time, ``[rows, C, H, W]``.

    They are sampled on the CPU, so that the metric and its model responses use the same ones on different devices.
    """
    seed, shape, clipped = generator.initial_seed(), tuple(images.shape[1:]), protocol == "released"
    blocks = Baselines(seed, shape, images.dtype, torch.device("cpu"), float(noise), clipped).portions(rows)
    return (
        to_device(next(blocks)[: samples - first], images.device)
        for first in reported(samples, rows, "noisy baselines")
    )


# ---- removal of random pixels: subsets of one size, or sampled by the Shapley kernel


def removed_subsets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: PositiveInt = 1000,
    share: Share = 0.1,
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x with a subset black), in logits, float64 ``[N, samples]``.

    Raises:
        ValueError: an error of ``perturbation``.
    """
    batch = perturbation_batch(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(batch, _subsets(images, samples, share, generator))}


def infidelity_subset(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    samples: PositiveInt = 1000,
    share: Share = 0.1,
    explanation: Explanation = "global",
    rescale: bool = False,
) -> Scored:
    """Compute INFD with I the image at random pixels: ``samples`` subsets of a ``share`` of the pixels.

    The subsets are the same for all images. Yeh et al. (2019), equation 1 and section 2.1, "subset of difference to
    baseline"; ``explanation`` as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: maps or ``responses`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _subsets(images, samples, share, generator))
    return score(maps, predicted, drop_of(responses, maps, samples), rescale)


def removed_coalitions(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: PositiveInt = 1000,
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x with a coalition black), in logits, float64 ``[N, samples]``.

    Raises:
        ValueError: fewer than one sample or two pixels, or an error of ``perturbation``.
    """
    batch = perturbation_batch(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(batch, _coalitions(images, samples, generator))}


def infidelity_shap(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    samples: PositiveInt = 1000,
    explanation: Explanation = "global",
    rescale: bool = False,
) -> Scored:
    """Compute INFD with I the image at ``samples`` coalitions of pixels, sampled by the Shapley kernel.

    P(Z = z) ∝ (d − 1) / (C(d, |z|) |z| (d − |z|)) over the d pixels, I = x ⊙ Z: the coalition's pixels turn black. The
    coalitions are the same for all images. Yeh et al. (2019), proposition 2.5; ``explanation`` as in ``contributions``.
    Squared logits, lower is better.

    Raises:
        ValueError: fewer than one sample or two pixels; maps or ``responses`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _coalitions(images, samples, generator))
    return score(maps, predicted, drop_of(responses, maps, samples), rescale)


def subset_size(share: float, pixels: int) -> int:
    """Return the number of pixels in a ``share`` of ``pixels``, rounded, at least 1."""
    return max(1, round(share * pixels))


def coalition_sizes(samples: int, pixels: int, generator: torch.Generator) -> Tensor:
    """Sample |Z|, int64 ``[samples]``: there are C(d, s) coalitions of s pixels, so P(|Z| = s) ∝ 1 / (s (d − s))."""
    size = torch.arange(1, pixels, dtype=torch.float64)
    return torch.multinomial(1 / (size * (pixels - size)), samples, replacement=True, generator=generator) + 1


def _subsets(images: Tensor, samples: int, share: float, generator: torch.Generator) -> Iterator[Tensor]:
    pixels = images[0, 0].numel()
    sizes = torch.full((samples,), subset_size(share, pixels))
    return sample_subsets(sizes, pixels, shared(generator), images.device)


def _coalitions(images: Tensor, samples: int, generator: torch.Generator) -> Iterator[Tensor]:
    pixels, child = images[0, 0].numel(), shared(generator)
    if pixels < 2:
        raise ValueError(f"images: found {pixels} pixel, expected at least 2")
    return sample_subsets(coalition_sizes(samples, pixels, child), pixels, child, images.device)


# ---- removal of the left or the right half (section 5)


def removed_halves(
    predict: Predict, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> dict[str, Tensor]:
    """Compute ``drop``: f(x) − f(x with the left or the right half black), in logits, float64 ``[N, 2]``.

    Raises:
        ValueError: images of fewer than two columns, or an error of ``perturbation``.
    """
    batch = perturbation_batch(predict, images, targets, fill("black", images), output="logit")
    sides = _sides(images)
    perturbed = evaluate_masks(batch, len(sides), lambda image, number: sides[number])
    return {"drop": original(batch)[:, None] - perturbed}


def infidelity_halves(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
    explanation: Explanation = "global",
    rescale: bool = False,
) -> Scored:
    """Compute INFD with I the left or the right half of the image, each with probability ½.

    Yeh et al. (2019), equation 1 and section 5, "Human Evaluation" (Table 3), where the halves are a picture and its
    caption. The left half has the columns below W // 2; ``explanation`` is as in ``contributions``. Squared logits,
    lower is better.

    Raises:
        ValueError: images of fewer than two columns; maps or ``responses`` that do not fit the images.
    """
    values = contributions(maps, images, explanation)
    predicted = values @ _sides(images).T.double()
    return score(maps, predicted, drop_of(responses, maps, 2), rescale)


def _sides(images: Tensor) -> Tensor:
    """Return the pixels of each half, bool ``[2, H·W]``, on the images' device."""
    height, width = images.shape[2:]
    return to_device(each_half(height, width).flatten(1), images.device)
