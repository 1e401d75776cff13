"""Necessity and sufficiency of positive pixels, by order and by proportion (Wang et al., 2020, section 3).

π⁺ are the M pixels of positive relevance, greatest first. R is the output with some of them removed, R′ with only some
of them shown on the fill; y_0 is the output for the image and y_b for the fill.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.deletion import EXACT, block_ends, check_steps
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, evaluate_order, perturbation_batch, ranks_of
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless

LEAST = 1e-6  # ε, the least r and r′
NOTHING = 1e-12  # an output up to which r and r′ are 1, whatever rounding made of 0/0
ROUNDING = 1e-9  # by how much a share may miss k and still reach it
GRID = 100  # intervals of the curves where steps is exact
PROTOCOLS = ("corrected", "printed")


@dataclass(frozen=True)
class Shares:
    """The share of the positive relevance that the first and the last n pixels of π⁺ hold, n = 0 … H·W."""

    first: Tensor  # float64 [N, H·W + 1], from 0; 1 from n = M on
    last: Tensor
    positive: Tensor  # M, int64 [N]


@dataclass(frozen=True)
class Points:
    """Points at which the outputs are evaluated, ``[N, S]`` each."""

    number: Tensor  # m, the pixels removed or shown, from 0 to M; in some places repeated
    share: Tensor  # k, ascending from 0 to 1
    first: Tensor  # n_1(k)
    last: Tensor  # n_2(k)


class Curves(NamedTuple):
    """Outputs at ``Points``, float64 ``[N, S]`` each, by the score that is made of them."""

    n_ord: Tensor  # R_m(π⁺)
    s_ord: Tensor  # R′_m(π⁺)
    tpn_first: Tensor  # R_{n_1}(π⁺)
    tps_first: Tensor  # R′_{n_1}(π⁺)
    tpn_last: Tensor  # R_{n_2} of π⁺ reversed
    tps_last: Tensor  # R′_{n_2} of π⁺ reversed


def criteria(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: int | str = 100,
    fill: str = "black",
    protocol: str = "corrected",
    output: str = "probability",
) -> Scored:
    """N-Ord, S-Ord, TPN and TPS of raw maps ``[N, C or 1, H, W]``, of images ``[N, C, H, W]`` in [0, 1].

    ``steps`` equal blocks of pixels and of shares, or ``exact``: every pixel, and every share at which one comes in.
    ``curves`` hold the outputs on ``steps`` (``exact``: 100) equal intervals, by the names of ``Curves``. NaN where a
    map is NaN or has no positive pixel; N-Ord and S-Ord also where it is constant, which has shares and no order;
    TPN and TPS also where y_0 ≤ 0, which no probability is.

    Raises:
        ValueError: an unknown protocol, fill or output, steps out of range, a fill without its ``mean``.
    """
    check_steps(steps)
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol: found {protocol!r}, valid: {', '.join(PROTOCOLS)}")
    saliency = reduce(maps, "sum")
    shares = positive_shares(saliency)
    asked = points(shares, steps)
    drawn = points(shares, GRID) if steps == EXACT else asked
    shown = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, shown, output=output)
    spans = [*_spans(asked, shares.positive), *_spans(drawn, shares.positive)]
    outputs = evaluate_order(batch, ranks_of(saliency), spans)
    found, curves = Curves(*outputs[:6]), Curves(*outputs[6:])
    some = shares.positive > 0
    ordered, proportioned = some & is_rankable(saliency), some & (found.n_ord[:, 0] > 0)

    def masked(name: str, values: Tensor) -> Tensor:
        return nan_unless(ordered if name in ("n_ord", "s_ord") else proportioned, values)

    scores = {(name, ""): masked(name, values) for name, values in _scores(found, asked, protocol).items()}
    return Scored(scores, {name: masked(name, values) for name, values in curves._asdict().items()})


def n_ord(removed: Tensor, y_b: Tensor, counted: Tensor) -> Tensor:
    """Eq. 3: the mean of max(R_m − y_b, 0) over the ``counted`` m, ``[N]``, of R_m ``[N, S]``; in [0, 1]."""
    return _mean((removed - y_b[:, None]).clamp(min=0), counted)


def s_ord(shown: Tensor, y_0: Tensor, y_b: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of min(R′_m, y_0) − y_b over the ``counted`` m, ``[N]``, of R′_m ``[N, S]``; in [−1, 1].

    What Eq. 4 says in words, "scores above the original output" clipped, and Fig. 5 shows.
    """
    return _mean(shown.minimum(y_0[:, None]) - y_b[:, None], counted)


def s_ord_printed(shown: Tensor, whole: Tensor, y_0: Tensor, counted: Tensor) -> Tensor:
    """Eq. 4 as printed: the mean of min(R′_m, R′_M) − y_0, ``whole`` being R′_M."""
    return _mean(shown.minimum(whole[:, None]) - y_0[:, None], counted)


def total_proportionality(first: Tensor, last: Tensor, share: Tensor, r: Tensor, y_0: Tensor) -> Tensor:
    """Eqs. 6 and 8: 1/(r y_0) ∫₀¹ |first − last| dk, ``[N]``, of outputs at k = ``share``, ``[N, S]`` each.

    By the trapezoid rule.
    """
    return torch.trapezoid((first - last).abs(), share) / (r * y_0)


def ratio(part: Tensor, whole: Tensor) -> Tensor:
    """r = min(y_b / R_M, 1) or r′ = min(R′_M / y_0, 1), ``[N]``, at least ε; 1 where the denominator is nothing."""
    return torch.where(whole > NOTHING, (part / whole).clamp(LEAST, 1), 1)


def positive_shares(saliency: Tensor) -> Shares:
    """Return the cumulative shares of the positive pixels of ``[N, H, W]``, both divided by one total."""
    flat = saliency.flatten(1).double()
    positive = flat > 0  # NaN is not
    greatest = flat.where(positive, 0).sort(1, descending=True).values
    least = flat.where(positive, torch.inf).sort(1).values.nan_to_num(posinf=0)
    sums = greatest.cumsum(1)
    total = sums[:, -1:].where(positive.any(1, keepdim=True), 1)
    nothing = torch.zeros_like(total)
    first, last = torch.cat([nothing, sums], 1) / total, torch.cat([nothing, least.cumsum(1)], 1) / total
    return Shares(first, last.clamp(max=1), positive.sum(1))


def fewest(shares: Tensor, share: Tensor, positive: Tensor) -> Tensor:
    """n(k): the fewest pixels whose share, of ``[N, H·W + 1]``, reaches k up to ``ROUNDING``, int64 ``[N, S]``.

    n(1) = M, whatever the least pixels hold.
    """
    number = torch.searchsorted(shares, share - ROUNDING).minimum(positive[:, None])
    return torch.where(share == 1, positive[:, None], number)


def points(shares: Shares, steps: int | str) -> Points:
    """Return ``steps`` equal blocks of pixels and of shares; for ``exact``, every m and k at which n_1 or n_2
    changes."""
    positive = shares.positive
    if isinstance(steps, str):
        share = torch.cat([shares.first, shares.last], 1).sort(1).values
        number = torch.arange(shares.first.shape[1], device=positive.device).minimum(positive[:, None])
    else:
        share = (torch.arange(steps + 1, device=positive.device).double() / steps).repeat(len(positive), 1)
        number = block_ends(positive, steps)
    first, last = (fewest(each, share, positive) for each in (shares.first, shares.last))
    return Points(number, share, first, last)


def _spans(asked: Points, positive: Tensor) -> list[Span]:
    """In the order of ``Curves``."""
    none, end = torch.zeros_like(asked.number), positive[:, None].expand_as(asked.share)
    least, zero = end - asked.last, torch.zeros_like(asked.first)
    return [
        *(Span(none, asked.number, kept) for kept in (False, True)),
        *(Span(zero, asked.first, kept) for kept in (False, True)),
        *(Span(least, end, kept) for kept in (False, True)),
    ]


def _scores(found: Curves, asked: Points, protocol: str) -> dict[str, Tensor]:
    counted = torch.ones_like(asked.number, dtype=torch.bool)  # each m once
    counted[:, 1:] = asked.number[:, 1:] > asked.number[:, :-1]
    y_0, y_b = found.n_ord[:, 0], found.s_ord[:, 0]
    remaining, whole = found.n_ord[:, -1], found.s_ord[:, -1]  # R_M and R′_M
    if protocol == "printed":
        sufficiency = s_ord_printed(found.s_ord, whole, y_0, counted)
    else:
        sufficiency = s_ord(found.s_ord, y_0, y_b, counted)
    tpn = total_proportionality(found.tpn_first, found.tpn_last, asked.share, ratio(y_b, remaining), y_0)
    tps = total_proportionality(found.tps_first, found.tps_last, asked.share, ratio(whole, y_0), y_0)
    return {"n_ord": n_ord(found.n_ord, y_b, counted), "s_ord": sufficiency, "tpn": tpn, "tps": tps}


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return (values * counted).sum(1) / counted.sum(1)
