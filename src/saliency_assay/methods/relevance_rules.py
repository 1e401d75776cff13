"""Rules of relevance propagation: layers that wrap a layer of a network, and distribute relevance in the backward pass.

The forward pass returns the output of the layer. The backward pass receives the relevance of the output in place of a
gradient, and returns that of the inputs. It reuses the memory of what it saved, so that it can run once only.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WEIGHTED = (nn.Conv2d, nn.Linear)


class Rule(nn.Module):
    """A layer with a rule."""

    def __init__(self, layer: nn.Module, is_positive: bool = False) -> None:
        super().__init__()
        self.layer: Any = layer
        self.is_positive = is_positive
        """True if no input of the layer is negative."""

    def product(self, values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the output of the layer, a linear layer or convolution, with other weights."""
        apply = self.layer._conv_forward if isinstance(self.layer, nn.Conv2d) else functional.linear
        output: Tensor = apply(values, weight, bias)
        return output


class PixelRule(Rule):
    """A layer with a rule for pixels, which depends on their range."""

    bounds: Sequence[tuple[Tensor, Tensor]] = ()
    """The smallest and the largest values of each input, ``[1, ...]``, set before each pass."""


class PassOn(Rule):
    """A layer of one input that passes relevance on unchanged."""

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        output: Tensor = _PassOn.apply(values, self.layer)
        return output


class Proportional(Rule):
    """A layer z(x) with the rule 0 or ε: x_i receives x_i Σ_j ∂z_j/∂x_i R_j / z_j, divided by ``shares``.

    For a linear layer, x_i ∂z_j/∂x_i is the contribution of x_i to z_j. Inputs whose entry of ``vary`` is False count
    as constants.
    """

    def __init__(
        self,
        layer: nn.Module,
        is_positive: bool = False,
        *,
        stabilize: Callable[[Tensor], Tensor],
        vary: Sequence[bool] = (),
        shares: int = 1,
    ) -> None:
        super().__init__(layer, is_positive)
        self.stabilize, self.vary, self.shares = stabilize, vary, shares

    def forward(self, *inputs: Any) -> Tensor:
        """Return the layer's output."""
        vary = self.vary or [True] * len(inputs)
        is_product = isinstance(self.layer, WEIGHTED)
        inputs = tuple(
            values
            if not isinstance(values, Tensor)
            else _Terms.apply(values, values, is_product)
            if varies
            else values.detach()
            for values, varies in zip(inputs, vary, strict=True)
        )
        output: Tensor = _OverOutput.apply(self.layer(*inputs), self.stabilize, self.shares)
        return output


def by_contribution(epsilon: float = 0.0) -> Callable[..., Proportional]:
    """Return the function that wraps a layer in the rule ε, or in the rule 0."""
    return partial(Proportional, stabilize=stabilizer(epsilon))


class AlphaBeta(Rule):
    """A linear layer or convolution with the rule αβ, or z⁺ if α is 1, where β = α − 1.

    x_i receives Σ_j (α z_ij⁺ / Σ_i z_ij⁺ − β z_ij⁻ / Σ_i z_ij⁻) R_j. If biases are counted, they are terms of the sums.
    """

    def __init__(
        self, layer: nn.Module, is_positive: bool = False, *, alpha: float = 1.0, counts_bias: bool = False
    ) -> None:
        super().__init__(layer, is_positive)
        self.factors = (alpha, 1 - alpha) if alpha != 1 else (alpha,)
        self.counts_bias = counts_bias
        clamps: tuple[dict[str, float], ...] = ({"min": 0.0}, {"max": 0.0})
        weight, bias = self.layer.weight.detach(), self.layer.bias
        # The sums of both signs are separate products, since their difference would lose the smaller one to rounding.
        needed = clamps if not is_positive or alpha != 1 else clamps[:1]
        self.weights = [weight.clamp(**clamp) for clamp in needed]
        self.biases = [bias.detach().clamp(**clamp) if self._has_terms(bias) else None for clamp in clamps]

    def _has_terms(self, bias: Tensor | None) -> bool:
        return self.counts_bias and bias is not None

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        signs = range(len(self.factors))
        if self.is_positive:
            terms = _Terms.apply(values, values, True)
            sums = [self.product(terms, self.weights[sign], self.biases[sign]) for sign in signs]
        else:
            positive = _Terms.apply(values, values.clamp(min=0), True)
            negative = _Terms.apply(values, values.clamp(max=0), True)
            sums = [
                self.product(positive, self.weights[sign], self.biases[sign])
                + self.product(negative, self.weights[1 - sign])
                for sign in signs
            ]
        output: Tensor
        if len(sums) == 1:
            output = self.layer(values.detach())
        else:
            output = sums[0].detach() + sums[1].detach()
            if not self.counts_bias:
                output += _bias_of(self.layer)
        output = _Distribute.apply(output, self.factors, *sums)
        return output


class GammaRule(Rule):
    """A linear layer or convolution with the rule γ for contributions of both signs, as in zennit's ``Gamma``.

    Contributions z_ij of the sign s_j of the output z_j are weighted by 1 + γ: x_i receives Σ_j (z_ij + γ z_ij^±) R_j /
    d_j, where z_ij^± is the part of z_ij with this sign. d_j is the sum of the numerators and of the bias, which is
    weighted in the same way. With z_ij^± = (z_ij + s_j |z_ij|) / 2, this takes one more product in each direction, and
    d_j = (1 + γ / 2) z_j + γ / 2 s_j (Σ_i |z_ij| + |b_j|).
    """

    def __init__(self, layer: nn.Module, is_positive: bool = False, *, gamma: float, epsilon: float) -> None:
        super().__init__(layer, is_positive)
        self.gamma, self.stabilize = gamma, stabilizer(epsilon)
        self.weight = self.layer.weight.detach().abs()
        self.bias = None if self.layer.bias is None else self.layer.bias.detach().abs()

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        terms, sizes = _with_sizes(values, self.is_positive)
        sums = self.product(sizes, self.weight, self.bias)
        output: Tensor = _OverWeighted.apply(self, self.layer(terms), sums)
        return output


class PositiveRule(Rule):
    """A linear layer or convolution with the rule z⁺: x_i receives Σ_j z_ij⁺ R_j / Σ_i z_ij⁺, without the bias.

    As in ``GammaRule``, z_ij⁺ = (z_ij + |z_ij|) / 2. ``AlphaBeta`` is exact even where most of the sum cancels, but
    takes one more product for inputs of both signs.
    """

    def __init__(self, layer: nn.Module, is_positive: bool = False) -> None:
        super().__init__(layer, is_positive)
        self.weight = self.layer.weight.detach().abs()

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        terms, sizes = _with_sizes(values, self.is_positive)
        sums = self.product(sizes, self.weight)
        output: Tensor = _OverPositive.apply(self.layer(terms), sums, _bias_of(self.layer))
        return output


class ShareOfItsSign(Rule):
    """An average or an addition with the rule z⁺: shares in proportion to the terms that have the sign of their sum."""

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the layer's output."""
        output: Tensor
        if self.is_positive:
            sums = self.layer(*(_Terms.apply(values, values, False) for values in inputs))
            output = _Distribute.apply(sums.detach().clone(), (1.0,), sums)
        else:
            positive = self.layer(*(_Terms.apply(values, values.clamp(min=0), False) for values in inputs))
            negative = self.layer(*(_Terms.apply(values, values.clamp(max=0), False) for values in inputs))
            output = _BySign.apply(positive, negative)
        return output


class ByTotal(Rule):
    """An addition that scales the relevance of both terms of an image to their shares in its total.

    For terms a and b that receive A and B by the rule 0, A is scaled to |ΣA| / (|ΣA| + |ΣB|) of A's and B's sum over
    the whole image. Otherwise, terms of opposite signs could get large relevance that cancels (Chefer et al., CVPR
    2021, equation 9).
    """

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the sum."""
        total: Tensor = _ByTotal.apply(a, b)
        return total


class WSquared(PixelRule):
    """A layer with the rule w²: x_i receives Σ_j w_ij² / Σ_i w_ij² R_j; in an average or an addition, equal shares."""

    def __init__(self, layer: nn.Module, is_positive: bool = False) -> None:
        super().__init__(layer, is_positive)
        self.weight = self.layer.weight.detach() ** 2 if isinstance(layer, WEIGHTED) else None

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the layer's output."""
        ones = [
            _PassOn.apply(values, torch.ones_like if values.requires_grad else torch.zeros_like)
            for values in inputs  # a constant has no share
        ]
        sums = self.layer(*ones) if self.weight is None else self.product(ones[0], self.weight)
        output: Tensor = _Distribute.apply(self.layer(*(values.detach() for values in inputs)), (1.0,), sums)
        return output


class ZBox(PixelRule):
    """A linear layer or convolution with z^B, computed as (x − l) w⁺ + (x − h) w⁻, whose terms are never negative.

    zennit's ``ZBox`` is x w − l w⁺ − h w⁻. If all inputs of a neuron are at their bounds, this is only the rounding
    error of a difference of large numbers, and dividing by it destroys the relevance of the neighborhood. For the same
    reason, distances within rounding error count as 0, and so do those of pixels outside the bounds, which noise can
    cause.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Return the layer's output."""
        ((low, high),) = self.bounds
        least = _rounding(high) * (high - low)
        weight = self.layer.weight.detach()
        above, below = values.detach() - low, values.detach() - high
        sums = self.product(
            _Terms.apply(values, torch.where(above > least, above, 0), True), weight.clamp(min=0)
        ) + self.product(
            _Terms.apply(values, torch.where(below < -least, below, 0), True), weight.clamp(max=0)
        )
        output: Tensor = _Distribute.apply(self.layer(values.detach()), (1.0,), sums)
        return output


class ShareByRange(PixelRule):
    """An average or an addition of pixels: shares in proportion to the range of each term.

    The shares are equal, except that padded zeros get none. They are not in proportion to x − l, since black pixels
    carry information, too.
    """

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the layer's output."""
        ranges = [
            _Terms.apply(values, (high - low).expand_as(values), False)
            for values, (low, high) in zip(inputs, self.bounds, strict=True)
        ]
        output: Tensor = _Distribute.apply(
            self.layer(*(values.detach() for values in inputs)), (1.0,), self.layer(*ranges)
        )
        return output


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


def _with_sizes(values: Tensor, is_positive: bool) -> tuple[Tensor, Tensor]:
    """Return inputs of a product and their absolute values, which pass on the gradient times the inputs."""
    terms: Tensor = _Terms.apply(values, values, True)
    return terms, terms if is_positive else _Terms.apply(values, values.abs(), True)


def _bias_of(layer: Any) -> Tensor | float:
    """Return the bias of a linear layer or convolution in a shape that can be broadcast to its output."""
    if layer.bias is None:
        return 0.0
    bias: Tensor = layer.bias.detach()
    return bias.reshape(-1, 1, 1) if isinstance(layer, nn.Conv2d) else bias


class _Terms(torch.autograd.Function):
    """Terms of a sum in the forward pass; in the backward pass, the gradient times the terms.

    ``is_product`` is True if only products with weights read the terms, whose gradient is then in memory of its own.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, terms: Tensor, is_product: bool) -> Tensor:
        ctx.save_for_backward(terms)
        ctx.is_product = is_product
        return terms.view_as(terms)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (terms,) = ctx.saved_tensors
        if ctx.is_product:
            return gradient.mul_(terms), None, None
        # A score that a mask sets to −∞ has no relevance, and 0 · −∞ would be NaN.
        return terms.clamp(min=torch.finfo(terms.dtype).min).mul_(gradient), None, None


class _Distribute(torch.autograd.Function):
    """The output; in the backward pass, each sum receives the relevance times its factor, divided by the sum.

    Terms of the first sum are positive, those of the second one are negative.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, factors: Sequence[float], *sums: Tensor) -> Tensor:
        ctx.save_for_backward(*sums)
        ctx.factors = factors
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        shares = [
            _divide(relevance, sums, sign, factor)
            for sums, sign, factor in zip(ctx.saved_tensors, (1, -1), ctx.factors, strict=False)
        ]
        return None, None, *shares


class _BySign(torch.autograd.Function):
    """The sum of positive and negative terms, of which those with its sign receive the relevance."""

    @staticmethod
    def forward(ctx: Any, positive: Tensor, negative: Tensor) -> Tensor:
        ctx.save_for_backward(positive, negative)
        return positive + negative

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, Tensor]:
        positive, negative = ctx.saved_tensors
        of_positive = torch.ge(positive + negative, 0, out=torch.empty_like(relevance)).mul_(relevance)
        return _divide(of_positive, positive), _divide(relevance - of_positive, negative, -1)


class _ByTotal(torch.autograd.Function):
    """The rule of ``ByTotal``."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a + b

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, ...]:
        terms = ctx.saved_tensors
        share = relevance / not_zero(terms[0] + terms[1])
        parts = [term * share for term in terms]
        sums = torch.stack([part.flatten(1).sum(1) for part in parts])  # [2, N]
        factors = sums.abs() / not_zero(sums.abs().sum(0)) * sums.sum(0) / not_zero(sums)
        return tuple(
            part.mul_(factor.reshape(-1, *[1] * (part.ndim - 1))).sum_to_size(term.shape)
            for part, factor, term in zip(parts, factors, terms, strict=True)
        )


class _OverPositive(torch.autograd.Function):
    """The output of ``PositiveRule``, which divides relevance by Σ z⁺ and distributes it to both products."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: Tensor, bias: Tensor | float) -> Tensor:
        ctx.save_for_backward((values - bias).add_(sums).div_(2))
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, Tensor, None]:
        (positive,) = ctx.saved_tensors
        share = _divide(relevance, positive, factor=0.5)
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
        stabilized = ctx.rule.stabilize(divisors)
        share = torch.div(relevance, stabilized, out=stabilized)
        half = ctx.rule.gamma / 2
        of_sizes = signs.mul_(share).mul_(half)
        return None, share.mul_(1 + half), of_sizes


class _PassOn(torch.autograd.Function):
    """The rule of ``PassOn``."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        output: Tensor = function(values)
        return output

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor, None]:
        return relevance, None


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
        stabilized = ctx.stabilize(values)
        share = torch.div(relevance, stabilized, out=stabilized)
        return share if ctx.shares == 1 else share.div_(ctx.shares), None, None


def stabilizer(epsilon: float) -> Callable[[Tensor], Tensor]:
    """Return the function from sums to divisors: z + ε sign z, where the sign of 0 is 1, or ``not_zero`` if ε is 0."""
    return partial(away_from_zero, epsilon=epsilon) if epsilon else not_zero


def away_from_zero(sums: Tensor, epsilon: float) -> Tensor:
    """Return z + ε sign z; equals zennit's ``Stabilizer``, which compares and selects.

    The sign of 0 is 1, and that of −0 is −1, which only terms of 0 sum to.
    """
    return sums.abs().add_(epsilon).copysign_(sums)


def not_zero(sums: Tensor) -> Tensor:
    """Return the divisor for terms of both signs, whose small sums are significant: infinity only for 0."""
    # Faster than a mask of booleans.
    return torch.threshold_(sums.abs(), 0.0, torch.inf).copysign_(sums)


def _divide(relevance: Tensor, sums: Tensor, sign: int = 1, factor: float = 1.0) -> Tensor:
    """Return the relevance times ``factor``, divided by sums of one sign, ``[N, channels, ...]``, in their memory.

    No relevance is distributed where a sum is only rounding error. A small divisor would make the quotient huge, and
    convolutions that work in tiles or by Fourier transform (as in cuDNN) would spread its rounding error to adjacent
    positions. The threshold is relative to the channel's largest sum in the image, so that it depends neither on the
    scale of a network nor on other images.
    """
    channels = sums.reshape(*sums.shape[:2], -1)
    least = torch.finfo(sums.dtype).tiny
    largest = channels.amax(-1).clamp_(min=least) if sign > 0 else channels.amin(-1).clamp_(max=-least)
    largest = largest.reshape(*sums.shape[:2], *[1] * (sums.ndim - 2))
    sums = torch.threshold_(sums.div_(largest), _rounding(sums), torch.inf)
    return torch.div(relevance, sums, out=sums).div_(largest / factor)


def _rounding(values: Tensor) -> float:
    """Return a bound on the relative error of a sum in the type of ``values``, with a margin for fast convolutions."""
    return 64 * float(torch.finfo(values.dtype).eps)
