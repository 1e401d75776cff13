"""Integrated gradients, and IG-SG, integrated gradients smoothed by SmoothGrad."""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import check_inputs, input_gradient
from saliency_assay.methods.passes import passes_of
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.registry.limits import Baseline, Distribution, NonNegativeFloat, PathRule, PositiveInt


def integrated_gradients(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: PositiveInt = 25,
    rule: PathRule = "middle",
    baseline: Baseline = "black",
    times_input: bool = True,
) -> Tensor:
    """Compute (x − x′) ⊙ ∫₀¹ ∂f_t(x′ + α(x − x′)) / ∂x dα, x′ the baseline, ``[N, C, H, W]``.

    The integral is approximated by ``steps`` points of quadrature ``rule``, one pass each. Completeness: a map sums to
    f_t(x) − f_t(x′), up to the quadrature error. ``trapezoid`` and ``left`` have a point at the baseline, where all
    values under a max pooling window may be equal, so that rounding decides which of them gets the gradient. Without
    ``times_input``, the integral alone, a local explanation in the sense of Yeh et al. (2019), section 2.5.
    Sundararajan et al. (2017).

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    check_inputs(images, targets)
    start = baseline_color(model, images, baseline).expand_as(images)
    slopes = mean_gradient(model, images, targets, start, *quadrature(rule, steps))
    return (images.detach() - start) * slopes if times_input else slopes


def integrated_gradients_smoothgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: PositiveInt = 25,
    rule: PathRule = "middle",
    baseline: Baseline = "black",
    times_input: bool = True,
    samples: PositiveInt = 25,
    noise: NonNegativeFloat = 0.15,
    distribution: Distribution = "gaussian",
) -> Tensor:
    """Compute SmoothGrad over integrated gradients, ``[N, C, H, W]``: IG of x + z, with x + z as end point and factor.

    ``steps * samples`` passes for each image. BAM appendix E; Smilkov et al. (2017), section 3.
    """
    base = partial(integrated_gradients, steps=steps, rule=rule, baseline=baseline, times_input=times_input)
    smoothed = partial(smoothgrad, samples=samples, noise=noise, distribution=distribution)
    return smoothed(model, images, targets, generator=generator, base=base)


def mean_gradient(
    model: nn.Module, images: Tensor, targets: Tensor, baseline: Tensor, nodes: Tensor, weights: Tensor
) -> Tensor:
    """Compute ∫₀¹ ∂f_t / ∂x dα from ``baseline [N, C, H, W]`` to ``images`` with nodes and weights ``[steps]``."""
    images = images.detach()
    total, span = torch.zeros_like(images), images - baseline
    for number in passes_of(images, len(nodes)):
        # Computed from the end point, whose memory format (channels_last or not) the result takes over; the start is
        # an expanded color without one.
        points = torch.sub(images, span, alpha=1 - float(nodes[number]))
        total.add_(input_gradient(model, points, targets), alpha=float(weights[number]))
    return total


def quadrature(rule: str, steps: int) -> tuple[Tensor, Tensor]:
    """Return the nodes in [0, 1] and the weights, which sum to 1, of a rule for ∫₀¹, float64 ``[steps]`` each.

    ``middle``, ``left`` and ``right`` are Riemann sums of equal intervals; ``trapezoid`` has a node at both ends.
    """
    if rule == "gauss_legendre":
        roots, weights = np.polynomial.legendre.leggauss(steps)
        # From [−1, 1], where numpy defines the rule, to [0, 1].
        return torch.from_numpy((roots + 1) / 2), torch.from_numpy(weights / 2)
    if rule == "trapezoid":
        node_weights = torch.full((steps,), 1 / (steps - 1), dtype=torch.float64)
        node_weights[[0, -1]] /= 2  # both ends belong to one interval, all other nodes to two
        return torch.linspace(0, 1, steps, dtype=torch.float64), node_weights
    offset = {"left": 0.0, "middle": 0.5, "right": 1.0}[rule]
    indices = torch.arange(steps, dtype=torch.float64)
    return (indices + offset) / steps, torch.full((steps,), 1 / steps, dtype=torch.float64)
