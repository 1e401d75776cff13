"""Rules of relevance propagation, as hooks for zennit and as layers whose backward pass is the rule."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.layers import Add, Sum
from saliency_assay.runtime.environment import optional

with optional("zennit", "methods"):
    from zennit.core import BasicHook, Hook
    from zennit.rules import ClampMod, NoMod, WSquare


def w_squared() -> Hook:
    """Return the w² rule."""
    return WSquare(divisor, zero_params="bias")


def z_box(low: Tensor, high: Tensor) -> Hook:
    """Return z^B computed as (x − l) w⁺ + (x − h) w⁻, whose terms are never negative.

    zennit's ``ZBox`` is x w − l w⁺ − h w⁻. If all inputs of a neuron are at their bounds, this is only the rounding
    error of a difference of large numbers, and dividing by it destroys the relevance of the neighborhood. For the same
    reason, distances within rounding error count as 0, and so do those of pixels outside the bounds, which noise can
    cause.
    """
    least = _rounding(high) * (high - low)
    return BasicHook(
        input_modifiers=[
            lambda pixels: torch.where(pixels - low > least, pixels - low, 0),
            lambda pixels: torch.where(high - pixels > least, pixels - high, 0),
        ],
        param_modifiers=[ClampMod(min=0.0, zero_params="bias"), ClampMod(max=0.0, zero_params="bias")],
        output_modifiers=[_unchanged] * 2,
        gradient_mapper=lambda relevance, sums: [relevance / divisor(sums[0] + sums[1])] * 2,
        reducer=lambda inputs, shares: inputs[0] * shares[0] + inputs[1] * shares[1],
    )


def share_by_range(ranges: Tensor) -> Hook:
    """Return the rule of an average or an addition of pixels: shares in proportion to the range of each term.

    The shares are equal, except that padded zeros get none. They are not in proportion to x − l, since black pixels
    carry information, too.
    """
    return BasicHook(
        input_modifiers=[lambda terms: ranges.expand_as(terms).clone()],
        param_modifiers=[NoMod(param_keys=[])],
        output_modifiers=[_unchanged],
        gradient_mapper=lambda relevance, sums: [relevance / divisor(sums[0])],
        reducer=lambda inputs, shares: inputs[0] * shares[0],
    )


def share_of_its_sign() -> Hook:
    """Return z⁺ for a layer without weights: shares in proportion to the terms that have the sign of their sum.

    zennit's ``ZPlus`` cannot be used, because it pairs negative inputs with negative weights and clamps the weights.
    """

    def shares(relevance: Tensor, sums: list[Tensor]) -> list[Tensor]:
        positive = sums[0] + sums[1] >= 0
        return [relevance * positive / divisor(sums[0]), relevance * ~positive / divisor(sums[1])]

    return BasicHook(
        input_modifiers=[lambda terms: terms.clamp(min=0), lambda terms: terms.clamp(max=0)],
        param_modifiers=[NoMod(param_keys=[])] * 2,
        output_modifiers=[_unchanged] * 2,
        gradient_mapper=shares,
        reducer=lambda terms, shares: terms[0] * shares[0] + terms[1] * shares[1],
    )


def by_total() -> Hook:
    """Return the rule of an addition that scales the relevance of both terms of an image to their shares in its total.

    For terms a and b that receive A and B by the rule ``Norm``, A is scaled to |ΣA| / (|ΣA| + |ΣB|) of A's and B's sum
    over the whole image. Otherwise, terms of opposite signs could get large relevance that cancels (Chefer et al.,
    CVPR 2021, equation 9).
    """

    def scaled(terms: list[Tensor], shares: list[Tensor]) -> Tensor:
        relevance = terms[0] * shares[0]
        sums = relevance.flatten(1, -2).sum(1)  # [N, 2]
        factors = (
            sums.abs()
            / not_zero(sums.abs().sum(1, keepdim=True))
            * sums.sum(1, keepdim=True)
            / not_zero(sums)
        )
        return relevance * factors.reshape(len(sums), *[1] * (relevance.ndim - 2), 2)

    return BasicHook(
        input_modifiers=[_unchanged],
        param_modifiers=[NoMod(param_keys=[])],
        output_modifiers=[_unchanged],
        gradient_mapper=lambda relevance, sums: [relevance / not_zero(sums[0])],
        reducer=scaled,
    )


class LinearNorm(nn.Module):
    """LayerNorm whose standard deviation counts as a constant (Ali et al. 2022, section 3.2)."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.axes, self.eps = tuple(range(-len(norm.normalized_shape), 0)), norm.eps
        self.weight, self.bias = norm.weight, norm.bias

    def forward(self, values: Tensor) -> Tensor:
        """Normalize values over their last dimensions."""
        centered = values - values.mean(self.axes, keepdim=True)
        scale = ((centered.detach() ** 2).mean(self.axes, keepdim=True) + self.eps).rsqrt()
        normalized = centered * scale if self.weight is None else centered * scale * self.weight
        return normalized if self.bias is None else normalized + self.bias


class StackedAdd(Add):
    """Addition as a sum over the last dimension, to which a hook can attach."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = Sum()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Add two tensors of shapes that can be broadcast."""
        total: Tensor = self.sum(self.stacked(a, b))
        return total

    @staticmethod
    def stacked(a: Tensor, b: Tensor) -> Tensor:
        """Return the input of ``sum``: two tensors, broadcast and stacked along a new last dimension."""
        shape = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]  # torch lacks its types
        return torch.stack([a.expand(shape), b.expand(shape)], -1)


class PassOn(nn.Module):
    """A layer of one input that passes relevance on unchanged."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        output: Tensor = _PassOn.apply(values, self.layer)
        return output


class Proportional(nn.Module):
    """A layer z(x) with the rule 0 or ε: x_i receives x_i Σ_j ∂z_j/∂x_i R_j / z_j, divided by ``shares``.

    For a linear layer, x_i ∂z_j/∂x_i is the contribution of x_i to z_j. Inputs whose entry of ``vary`` is False count
    as constants.
    """

    def __init__(
        self,
        layer: nn.Module,
        stabilize: Callable[[Tensor], Tensor],
        vary: Sequence[bool] = (),
        shares: int = 1,
    ) -> None:
        super().__init__()
        self.layer, self.stabilize, self.vary, self.shares = layer, stabilize, vary, shares

    def forward(self, *inputs: Any) -> Tensor:
        """Return the layer's output."""
        vary = self.vary or [True] * len(inputs)
        inputs = tuple(
            values
            if not isinstance(values, Tensor)
            else _TimesInput.apply(values)
            if varies
            else values.detach()
            for values, varies in zip(inputs, vary, strict=True)
        )
        output: Tensor = _OverOutput.apply(self.layer(*inputs), self.stabilize, self.shares)
        return output


def by_contribution(epsilon: float = 0.0) -> Callable[[nn.Module], Proportional]:
    """Return the function that wraps a layer in the rule ε, or in the rule 0."""
    return partial(Proportional, stabilize=stabilizer(epsilon))


class GammaRule(nn.Module):
    """A linear layer or convolution with the rule γ for contributions of both signs, as in zennit's ``Gamma``.

    Contributions z_ij of the sign s_j of the output z_j are weighted by 1 + γ: x_i receives Σ_j (z_ij + γ z_ij^±) R_j /
    d_j, where z_ij^± is the part of z_ij with this sign. d_j is the sum of the numerators and of the bias, which is
    weighted in the same way. With z_ij^± = (z_ij + s_j |z_ij|) / 2, this takes one more product in each direction, and
    d_j = (1 + γ / 2) z_j + γ / 2 s_j (Σ_i |z_ij| + |b_j|).
    """

    def __init__(self, layer: nn.Module, gamma: float, epsilon: float) -> None:
        super().__init__()
        self.layer, self.gamma, self.stabilize = layer, gamma, stabilizer(epsilon)

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        values, sums = _products(self.layer, values, with_bias=True)
        output: Tensor = _OverWeighted.apply(self, values, sums)
        return output


class PositiveRule(nn.Module):
    """A linear layer or convolution with the rule z⁺: x_i receives Σ_j z_ij⁺ R_j / Σ_i z_ij⁺, without the bias.

    As in ``GammaRule``, z_ij⁺ = (z_ij + |z_ij|) / 2.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        layer: Any = self.layer
        bias: Any = 0.0 if layer.bias is None else layer.bias
        if isinstance(layer, nn.Conv2d) and layer.bias is not None:
            bias = bias.reshape(-1, 1, 1)
        output: Tensor = _OverPositive.apply(*_products(layer, values, with_bias=False), bias)
        return output


def _products(layer: Any, values: Tensor, *, with_bias: bool) -> tuple[Tensor, Tensor]:
    """Return the layer's output and Σ_i |z_ij|, plus |b_j| ``with_bias``; gradients are multiplied by x_i."""
    weight = layer.weight.detach().abs()
    bias = layer.bias.detach().abs() if with_bias and layer.bias is not None else None
    absolute = _TimesInput.apply(_PassOn.apply(values, torch.abs))
    sums = (
        layer._conv_forward(absolute, weight, bias)
        if isinstance(layer, nn.Conv2d)
        else functional.linear(absolute, weight, bias)
    )
    return layer(_TimesInput.apply(values)), sums


class _OverPositive(torch.autograd.Function):
    """The output of ``PositiveRule``, which divides relevance by Σ z⁺ and distributes it to both products."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: Tensor, bias: Tensor | float) -> Tensor:
        ctx.save_for_backward((values - bias).add_(sums).div_(2))
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, Tensor, None]:
        (positive,) = ctx.saved_tensors
        share = (relevance / divisor(positive)).div_(2)
        return share, share, None


class _OverWeighted(torch.autograd.Function):
    """The output of ``GammaRule``, which divides relevance by d and distributes it to both products."""

    @staticmethod
    def forward(ctx: Any, rule: GammaRule, values: Tensor, sums: Tensor) -> Tensor:
        half, signs = rule.gamma / 2, values.sign()
        ctx.save_for_backward((signs * sums).mul_(half).add_(values, alpha=1 + half), signs)
        ctx.rule = rule
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[None, Tensor, Tensor]:
        divisors, signs = ctx.saved_tensors
        share = relevance / ctx.rule.stabilize(divisors)
        half = ctx.rule.gamma / 2
        return None, share * (1 + half), share * signs * half


class _PassOn(torch.autograd.Function):
    """The rule of ``PassOn``."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        output: Tensor = function(values)
        return output

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, None]:
        return relevance, None


class _TimesInput(torch.autograd.Function):
    """Identity that multiplies the gradient by the values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        values: Tensor = ctx.saved_tensors[0]
        # A score that a mask sets to −∞ has no relevance, and 0 · −∞ would be NaN.
        return values.clamp(min=torch.finfo(values.dtype).min).mul_(gradient)


class _OverOutput(torch.autograd.Function):
    """Identity that divides relevance by the stabilized values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, stabilize: Callable[[Tensor], Tensor], shares: int) -> Tensor:
        ctx.save_for_backward(values)
        ctx.stabilize, ctx.shares = stabilize, shares
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, None, None]:
        (values,) = ctx.saved_tensors
        share = relevance / ctx.stabilize(values)
        return share if ctx.shares == 1 else share.div_(ctx.shares), None, None


def _unchanged(output: Tensor) -> Tensor:
    """Return the output."""
    return output


def stabilizer(epsilon: float) -> Callable[[Tensor], Tensor]:
    """Return the function from sums to divisors: z + ε sign z, where the sign of 0 is 1, or ``not_zero`` if ε is 0."""
    return partial(away_from_zero, epsilon=epsilon) if epsilon else not_zero


def away_from_zero(sums: Tensor, epsilon: float) -> Tensor:
    """Return z + ε sign z, where the sign of 0 is 1; equals zennit's ``Stabilizer``, which compares and selects."""
    positive_zeros = sums + 0.0
    return torch.copysign(sums.new_full((), epsilon), positive_zeros).add_(positive_zeros)


def not_zero(sums: Tensor) -> Tensor:
    """Return the divisor for terms of both signs, whose small sums are significant: infinity only for 0."""
    return torch.where(sums == 0, torch.inf, sums)


def divisor(sums: Tensor) -> Tensor:
    """Return the divisor for terms of one sign, ``[N, channels, ...]``: infinity where a sum is only rounding error.

    No relevance is distributed there. A small divisor would make the quotient huge, and convolutions that work in tiles
    or by Fourier transform (as in cuDNN) would spread its rounding error to adjacent positions. The threshold is
    relative to the channel's largest sum in the image, so that it depends neither on the scale of a network nor on
    other images.
    """
    largest = sums.abs().reshape(*sums.shape[:2], -1).amax(-1)
    least = _rounding(sums) * largest.reshape(*sums.shape[:2], *[1] * (sums.ndim - 2))
    return torch.where(sums.abs() > least, sums, torch.inf)


def _rounding(values: Tensor) -> float:
    """Return a bound on the relative error of a sum in the type of ``values``, with a margin for fast convolutions."""
    return 64 * float(torch.finfo(values.dtype).eps)
