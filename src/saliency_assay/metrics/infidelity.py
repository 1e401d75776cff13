"""Infidelity of an explanation under five kinds of perturbation (Yeh et al., 2019, definition 2.1).

INFD(Φ, f, x) = E_I[(IᵀΦ − (f(x) − f(x − I)))²], f the target's logit, the mean over the sampled perturbations.
``predicted`` is IᵀΦ, ``drop`` is f(x) − f(x − I): no map decides it, so that a probe finds it once for all methods.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from saliency_assay.methods.optimal import BLOCK, PROTOCOLS, Baselines, all_logits, choose, covered, each_half
from saliency_assay.methods.passes import reported
from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.perturbation import Predict, original, subject, under
from saliency_assay.metrics.scored import Scored, where_defined
from saliency_assay.metrics.subsets import draw_subsets, drop_of, drops, shared, sums

EXPLANATIONS = ("global", "local")
SQUARES = 16_384  # squares whose sums are looked up at a time


def infidelity(predicted: Tensor, drop: Tensor) -> Tensor:
    """E_I[(IᵀΦ − (f(x) − f(x − I)))²], float64 ``[N]``, of float64 ``[N, S]`` both. Equation 1."""
    return (predicted - drop).square().mean(1)


def optimal_scale(predicted: Tensor, drop: Tensor) -> Tensor:
    """β, float64 ``[N]``, for which βΦ has the least infidelity: E[IᵀΦ (f(x) − f(x − I))] / E[(IᵀΦ)²].

    It may be negative. 0 where IᵀΦ is 0 throughout, as any other would do. Not in the paper; the released code.
    """
    power = predicted.square().mean(1)
    return torch.where(power > 0, (predicted * drop).mean(1) / power, 0)


def score(maps: Tensor, predicted: Tensor, drop: Tensor, rescale: bool) -> Scored:
    """The infidelity of ``maps [N, …]``, of βΦ if ``rescale``; NaN for a map with a value that is not finite."""
    if rescale:
        predicted = optimal_scale(predicted, drop)[:, None] * predicted
    defined = maps.isfinite().flatten(1).all(1)
    return Scored({("infidelity", ""): where_defined(defined, infidelity(predicted, drop))})


def contributions(maps: Tensor, images: Tensor, explanation: str) -> Tensor:
    """What each pixel adds to IᵀΦ when it turns black, float64 ``[N, H·W]``.

    ``global`` explanations Φ ``[N, C or 1, H, W]`` say it themselves: Σ_c Φ_c. For ``local`` ones I holds the removed
    pixels, and it is Σ_c x_c Φ_c, where a map of one channel has that value in all. Section 2.5, with x_0 = 0.

    Raises:
        ValueError: another ``explanation``, or maps that do not fit the images.
    """
    check_maps(maps, images)
    if explanation not in EXPLANATIONS:
        raise ValueError(f"explanation: found {explanation!r}, valid: {', '.join(EXPLANATIONS)}")
    values = maps.double()
    return (values * images if explanation == "local" else values).sum(1).flatten(1)


def check_maps(maps: Tensor, images: Tensor) -> None:
    """Refuse maps that are not ``[N, C or 1, H, W]`` for images ``[N, C, H, W]``.

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
    smallest: int = 1,
    largest: int = 10,
    squares: int = 0,
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a square black), in logits, float64 ``[N, S]``; see ``infidelity_square``.

    Raises:
        ValueError: sides or a number of squares that do not fit the images, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    chosen = _chosen(images, smallest, largest, squares, generator)

    def cover(image: Tensor, number: Tensor) -> Tensor:
        return covered(chosen[number], examined.height, examined.width).flatten(1)

    return {"drop": original(examined)[:, None] - under(examined, len(chosen), cover)}


def infidelity_square(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    smallest: int = 1,
    largest: int = 10,
    squares: int = 0,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image inside a square: of sides ``smallest`` to ``largest`` at stride 1, all or a sample.

    A sample of ``squares`` hangs on the generator's first seed alone, so that all images and the probe share it. Yeh et
    al. (2019), equation 1 and section 2.4; ``explanation`` as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: as ``removed_squares``; maps or ``probed`` that do not fit the images and squares.
    """
    values = contributions(maps, images, explanation).reshape(-1, *images.shape[2:])
    chosen = _chosen(images, smallest, largest, squares, generator)
    drop = drop_of(probed, maps, len(chosen))
    return score(maps, square_sums(values, chosen), drop, rescale)


def square_sums(values: Tensor, squares: Tensor) -> Tensor:
    """The sum of ``values``, float64 ``[N, H, W]``, over each of ``squares [S, 3]``: ``[N, S]``.

    With t(r, c) the sum above row r and left of column c, it is t(bottom, right) − t(top, right) − t(bottom, left) +
    t(top, left).
    """
    count, height, width = values.shape
    table = values.new_zeros(count, height + 1, width + 1)
    table[:, 1:, 1:] = values.cumsum(1).cumsum(2)
    found = values.new_empty(count, len(squares))
    for first in range(0, len(squares), SQUARES):
        part = slice(first, first + SQUARES)
        top, left, side = squares[part].unbind(1)
        bottom, right = top + side, left + side
        lower = table[:, bottom, right] - table[:, bottom, left]
        found[:, part] = lower - (table[:, top, right] - table[:, top, left])
    return found


def _chosen(images: Tensor, smallest: int, largest: int, squares: int, generator: torch.Generator) -> Tensor:
    seed = generator.initial_seed() if squares else None
    height, width = images.shape[2:]
    return choose(height, width, smallest, largest, squares, seed).to(images.device)


# ---- difference to a noisy black baseline (section 2.4)


def noisy_baselines(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 10_000,
    noise: float = 0.2,
    protocol: str = "printed",
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(z), in logits, float64 ``[N, samples]``; see ``infidelity_noisy_baseline``.

    A pass for each baseline z serves all images of the batch.

    Raises:
        ValueError: a parameter out of range, logits of another shape, or one that is not finite.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    before = original(examined)[:, None]
    portions = _baselines(images, samples, noise, protocol, generator, examined.rows)
    # As the engine hands images out.
    shown = (z.contiguous(memory_format=torch.channels_last) for z in portions)
    after = torch.cat([all_logits(predict, z)[:, targets] for z in shown]).T
    broken = int((~after.isfinite()).sum())
    if broken:
        raise ValueError(
            f"predict: the logit of {broken} of {after.numel()} noisy baselines is NaN or infinite, "
            f"expected finite values"
        )
    return {"drop": before - after}


def infidelity_noisy_baseline(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 10_000,
    noise: float = 0.2,
    protocol: str = "printed",
    rescale: bool = False,
) -> Scored:
    """INFD where I = x − z: ``samples`` draws z ~ N(0, ``noise``²) of pixels in [0, 1], the same for all images.

    Under ``protocol`` ``released`` z is clipped to [0, 1], which is the released I = clip(x + noise, x − 1, x). Maps
    are local explanations; one of a single channel has that value in all. Yeh et al. (2019), equation 1 and section
    2.4. Squared logits, lower is better.

    Raises:
        ValueError: a parameter out of range; maps or ``probed`` that do not fit the images and samples.
    """
    check_maps(maps, images)
    portions = _baselines(images, samples, noise, protocol, generator, BLOCK)
    local = maps.double().expand(images.shape).flatten(1)
    whole = (images.flatten(1) * local).sum(1, keepdim=True)
    predicted = torch.cat([whole - local @ z.flatten(1).double().T for z in portions], dim=1)
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def _baselines(
    images: Tensor, samples: int, noise: float, protocol: str, generator: torch.Generator, rows: int
) -> Iterator[Tensor]:
    """The baselines, at most ``rows`` at a time, ``[rows, C, H, W]``.

    They are drawn on the CPU, so that the metric and its probe see the same wherever each of them runs.
    """
    if samples < 1 or noise < 0:
        raise ValueError(f"samples, noise: found {samples}, {noise}, expected at least 1 and 0")
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol: found {protocol!r}, valid: {', '.join(PROTOCOLS)}")
    seed, shape, clipped = generator.initial_seed(), tuple(images.shape[1:]), protocol == "released"
    draws = Baselines(seed, shape, images.dtype, torch.device("cpu"), float(noise), clipped).portions(rows)
    return (
        next(draws)[: samples - first].to(images.device)
        for first in reported(samples, rows, "noisy baselines")
    )


# ---- removal of random pixels: subsets of one size, or of the Shapley kernel


def removed_subsets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 1000,
    share: float = 0.1,
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a subset black), in logits, float64 ``[N, samples]``; see ``infidelity_subset``.

    Raises:
        ValueError: a parameter out of range, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(examined, _subsets(images, samples, share, generator))}


def infidelity_subset(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 1000,
    share: float = 0.1,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image at random pixels: ``samples`` subsets of a ``share`` of them, the same for all images.

    Yeh et al. (2019), equation 1 and section 2.1, "subset of difference to baseline"; ``explanation`` as in
    ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: a parameter out of range; maps or ``probed`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _subsets(images, samples, share, generator))
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def removed_coalitions(
    predict: Predict, images: Tensor, targets: Tensor, *, generator: torch.Generator, samples: int = 1000
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a coalition black), in logits, float64 ``[N, samples]``; see ``infidelity_shap``.

    Raises:
        ValueError: fewer than one sample or two pixels, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(examined, _coalitions(images, samples, generator))}


def infidelity_shap(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 1000,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image at ``samples`` coalitions of pixels drawn by the Shapley kernel, shared by all images.

    P(Z = z) ∝ (d − 1) / (C(d, |z|) |z| (d − |z|)) over the d pixels, I = x ⊙ Z: the coalition's pixels turn black. Yeh
    et al. (2019), proposition 2.5; ``explanation`` as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: fewer than one sample or two pixels; maps or ``probed`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _coalitions(images, samples, generator))
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def subset_size(share: float, pixels: int) -> int:
    """A ``share`` of the pixels, rounded, and at least one."""
    return max(1, round(share * pixels))


def coalition_sizes(samples: int, pixels: int, generator: torch.Generator) -> Tensor:
    """|Z| of each sample, int64 ``[samples]``: there are C(d, s) coalitions of s, so P(|Z| = s) ∝ 1 / (s (d − s))."""
    size = torch.arange(1, pixels, dtype=torch.float64)
    return torch.multinomial(1 / (size * (pixels - size)), samples, replacement=True, generator=generator) + 1


def _subsets(images: Tensor, samples: int, share: float, generator: torch.Generator) -> Iterator[Tensor]:
    pixels = images[0, 0].numel()
    if samples < 1 or not 0 <= share <= 1:
        raise ValueError(
            f"samples, share: found {samples}, {share}, expected at least 1 and a share in [0, 1]"
        )
    sizes = torch.full((samples,), subset_size(share, pixels))
    return draw_subsets(sizes, pixels, shared(generator), images.device)


def _coalitions(images: Tensor, samples: int, generator: torch.Generator) -> Iterator[Tensor]:
    pixels, child = images[0, 0].numel(), shared(generator)
    if samples < 1 or pixels < 2:
        raise ValueError(f"samples, pixels: found {samples}, {pixels}, expected at least 1 and 2")
    return draw_subsets(coalition_sizes(samples, pixels, child), pixels, child, images.device)


# ---- removal of the left or the right half (section 5)


def removed_halves(
    predict: Predict, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with the left, with the right half black), in logits, float64 ``[N, 2]``.

    Raises:
        ValueError: images of fewer than two columns, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    sides = _sides(images)
    after = under(examined, len(sides), lambda image, number: sides[number])
    return {"drop": original(examined)[:, None] - after}


def infidelity_halves(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the left or the right half of the image, each with probability ½: a picture and its caption.

    Yeh et al. (2019), equation 1 and section 5, "Human Evaluation" (Table 3); the left half has the columns below
    W // 2, ``explanation`` is as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: images of fewer than two columns; maps or ``probed`` that do not fit the images.
    """
    values = contributions(maps, images, explanation)
    predicted = values @ _sides(images).T.double()
    return score(maps, predicted, drop_of(probed, maps, 2), rescale)


def _sides(images: Tensor) -> Tensor:
    """The pixels of each half, bool ``[2, H·W]``, on the images' device."""
    height, width = images.shape[2:]
    return each_half(height, width).flatten(1).to(images.device)
