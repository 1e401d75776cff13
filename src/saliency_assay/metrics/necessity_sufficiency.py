"""Necessity and sufficiency of positive pixels, by order and by proportion (Wang et al., 2020, section 3).

π⁺ are the M pixels of positive relevance, the largest first. R is the output with some of them removed, R′ the output
with only some of them inserted into the fill; y_0 is the output for the image and y_b for the fill.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.deletion import EXACT, block_ends
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, evaluate_order, perturbation_batch, ranks_of
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, Limits, ScoredOutput, Steps

LEAST = 1e-6  # ε, the lower bound of r and r′
NOTHING = 1e-12  # largest denominator for which r and r′ are set to 1, since 0/0 would be decided by rounding
ROUNDING = 1e-9  # how far below k a share may be and still count as reaching it
GRID = 100  # intervals of the stored curves if steps is exact


@dataclass(frozen=True)
class Shares:
    """Share of the positive relevance in the first and in the last n pixels of π⁺, n = 0 … H·W."""

    first: Tensor  # float64 [N, H·W + 1], from 0; 1 from n = M on
    last: Tensor
    positive: Tensor  # M, int64 [N]


@dataclass(frozen=True)
class Points:
    """Points at which the outputs are evaluated, ``[N, S]`` each."""

    number: Tensor  # m, the number of pixels removed or inserted, ascending from 0 to M; values may repeat
    share: Tensor  # k, ascending from 0 to 1
    first: Tensor  # n_1(k)
    last: Tensor  # n_2(k)


class Curves(NamedTuple):
    """Outputs at ``Points``, float64 ``[N, S]`` each, by the score that is computed from them."""

    n_ord: Tensor  # R_m(π⁺)
    s_ord: Tensor  # R′_m(π⁺)
    tpn_first: Tensor  # R_{n_1}(π⁺)
    tps_first: Tensor  # R′_{n_1}(π⁺)
    tpn_last: Tensor  # R_{n_2} of π⁺ reversed
    tps_last: Tensor  # R′_{n_2} of π⁺ reversed


def necessity_sufficiency(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: Steps = 100,
    fill: Fill = "black",
    protocol: Annotated[str, Limits(choices=("corrected", "printed"))] = "corrected",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute N-Ord, S-Ord, TPN and TPS of raw maps ``[N, C or 1, H, W]`` for images ``[N, C, H, W]`` in [0, 1].

    ``steps`` is a number of equal blocks of pixels and of shares, or ``exact``: every number of pixels, and every share
    at which a pixel is added. ``curves`` are the outputs on ``steps`` (``exact``: 100) equal intervals, by the names of
    ``Curves``. NaN where a map is NaN or has no positive pixel; N-Ord and S-Ord also where it is constant, since a
    constant map has shares but no order; TPN and TPS also where y_0 ≤ 0, or too small for a finite ratio.

    Raises:
        ValueError: a fill without its ``mean``.
    """
    saliency = reduce(maps, "sum")
    shares = positive_shares(saliency)
    score_points = points(shares, steps)
    curve_points = points(shares, GRID) if steps == EXACT else score_points
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    spans = [*_spans(score_points, shares.positive), *_spans(curve_points, shares.positive)]
    outputs = evaluate_order(batch, ranks_of(saliency), spans)
    scored_outputs, curves = Curves(*outputs[:6]), Curves(*outputs[6:])
    has_positive = shares.positive > 0
    has_order, has_ratio = (
        has_positive & is_rankable(saliency),
        has_positive & (scored_outputs.n_ord[:, 0] > 0),
    )

    def masked(name: str, values: Tensor) -> Tensor:
        return nan_unless(has_order if name in ("n_ord", "s_ord") else has_ratio, values)

    scores = {
        (name, ""): nan_unless(values.isfinite(), masked(name, values))
        for name, values in _scores(scored_outputs, score_points, protocol).items()
    }
    return Scored(scores, {name: masked(name, values) for name, values in curves._asdict().items()})


def n_ord(removed: Tensor, y_b: Tensor, counted: Tensor) -> Tensor:
    """Return N-Ord (Eq. 3): the mean of max(R_m − y_b, 0) over ``counted`` m, ``[N]``, of R_m ``[N, S]``, in [0, 1]."""
    return _mean((removed - y_b[:, None]).clamp(min=0), counted)


def s_ord(retained: Tensor, y_0: Tensor, y_b: Tensor, counted: Tensor) -> Tensor:
    """Return S-Ord, the mean of min(R′_m, y_0) − y_b over the ``counted`` m, ``[N]``, of R′_m ``[N, S]``; in [−1, 1].

    This follows the text of Eq. 4, "scores above the original output" being clipped, and Fig. 5.
    """
    return _mean(retained.minimum(y_0[:, None]) - y_b[:, None], counted)


def s_ord_printed(retained: Tensor, all_retained: Tensor, y_0: Tensor, counted: Tensor) -> Tensor:
    """Return S-Ord by Eq. 4 as printed, the mean of min(R′_m, R′_M) − y_0; ``all_retained`` is R′_M."""
    return _mean(retained.minimum(all_retained[:, None]) - y_0[:, None], counted)


def total_proportionality(first: Tensor, last: Tensor, share: Tensor, r: Tensor, y_0: Tensor) -> Tensor:
    """Return TPN or TPS (Eqs. 6 and 8): 1/(r y_0) ∫₀¹ |first − last| dk, ``[N]``, by the trapezoid rule.

    ``first`` and ``last`` are outputs at k = ``share``, ``[N, S]`` each.
    """
    return torch.trapezoid((first - last).abs(), share) / (r * y_0)


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return r = min(y_b / R_M, 1) or r′ = min(R′_M / y_0, 1), ``[N]``, at least ε; 1 if the denominator is ≤ 1e-12."""
    return torch.where(denominator > NOTHING, (numerator / denominator).clamp(LEAST, 1), 1)


def positive_shares(saliency: Tensor) -> Shares:
    """Return the cumulative shares of the positive pixels of ``[N, H, W]``, both divided by the same total."""
    flat = saliency.flatten(1).double()
    positive = flat > 0  # False for NaN
    descending = flat.where(positive, 0).sort(1, descending=True).values
    # Not 1 − the share of the others: the smallest values would be lost in the rounding error of the large ones.
    ascending = flat.where(positive, torch.inf).sort(1).values.nan_to_num(posinf=0)
    sums = descending.cumsum(1)
    total = sums[:, -1:].where(positive.any(1, keepdim=True), 1)
    zero = torch.zeros_like(total)
    first, last = torch.cat([zero, sums], 1) / total, torch.cat([zero, ascending.cumsum(1)], 1) / total
    # The two sums have different rounding errors, so the last share could exceed 1.
    return Shares(first, last.clamp(max=1), positive.sum(1))


def fewest(shares: Tensor, share: Tensor, positive: Tensor) -> Tensor:
    """Return n(k), the fewest pixels whose share reaches k up to ``ROUNDING``, int64 ``[N, S]``.

    ``shares`` is ``[N, H·W + 1]``, ``share`` is k, ``[N, S]``. n(1) = M, however small the smallest values are.
    """
    # A share of exactly k may be slightly below k after rounding, which would add a pixel.
    number = torch.searchsorted(shares, share - ROUNDING).minimum(positive[:, None])
    return torch.where(share == 1, positive[:, None], number)


def points(shares: Shares, steps: int | str) -> Points:
    """Return the ends of ``steps`` equal blocks of pixels and of shares, or all points for ``exact``.

    All points are every m, and every k at which n_1 or n_2 changes.
    """
    positive = shares.positive
    if isinstance(steps, str):
        share = torch.cat([shares.first, shares.last], 1).sort(1).values
        number = torch.arange(shares.first.shape[1], device=positive.device).minimum(positive[:, None])
    else:
        share = (torch.arange(steps + 1, device=positive.device).double() / steps).repeat(len(positive), 1)
        number = block_ends(positive, steps)
    first, last = (fewest(each, share, positive) for each in (shares.first, shares.last))
    return Points(number, share, first, last)


def _spans(evaluated: Points, positive: Tensor) -> list[Span]:
    """Return the removed and inserted pixels at the points, in the order of ``Curves``."""
    start, end = torch.zeros_like(evaluated.number), positive[:, None].expand_as(evaluated.share)
    last_start, zero = end - evaluated.last, torch.zeros_like(evaluated.first)
    return [
        *(Span(start, evaluated.number, kept) for kept in (False, True)),
        *(Span(zero, evaluated.first, kept) for kept in (False, True)),
        *(Span(last_start, end, kept) for kept in (False, True)),
    ]


def _scores(outputs: Curves, evaluated: Points, protocol: str) -> dict[str, Tensor]:
    """Compute the four scores, ``[N]`` each, from the outputs at the evaluated points."""
    counted = torch.ones_like(evaluated.number, dtype=torch.bool)  # False where m repeats the previous one
    counted[:, 1:] = evaluated.number[:, 1:] > evaluated.number[:, :-1]
    y_0, y_b = outputs.n_ord[:, 0], outputs.s_ord[:, 0]
    all_removed, all_retained = outputs.n_ord[:, -1], outputs.s_ord[:, -1]  # R_M and R′_M
    if protocol == "printed":  # Eq. 4 as printed; it contradicts the paper's text and Fig. 5
        sufficiency = s_ord_printed(outputs.s_ord, all_retained, y_0, counted)
    else:
        sufficiency = s_ord(outputs.s_ord, y_0, y_b, counted)
    tpn = total_proportionality(
        outputs.tpn_first, outputs.tpn_last, evaluated.share, ratio(y_b, all_removed), y_0
    )
    tps = total_proportionality(
        outputs.tps_first, outputs.tps_last, evaluated.share, ratio(all_retained, y_0), y_0
    )
    return {"n_ord": n_ord(outputs.n_ord, y_b, counted), "s_ord": sufficiency, "tpn": tpn, "tps": tps}


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return (values * counted).sum(1) / counted.sum(1)
