"""DeepLIFT: each pixel's contribution to the difference from a baseline, by the Rescale or the RevealCancel rule.

One forward pass propagates each value's difference from its baseline, in parts. The parts of a layer's output are a
linear function of the parts of its input, with multipliers that are treated as constants, so the backward pass is the
chain rule for multipliers (Shrikumar et al., 2017, equation 3).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.canonical import MERGES_ROWS, canonical_for, check_form, network_of, normalized
from saliency_assay.methods.differentiate import (
    autograd_errors,
    check_background,
    check_inputs,
    check_logits,
    gradient_of,
)
from saliency_assay.methods.layers import Add, MatMul, Mean, Multiply, Reciprocal, Scale, SquareRoot
from saliency_assay.methods.operations import with_rows
from saliency_assay.methods.passes import passes_of
from saliency_assay.models.classifier import kind_of
from saliency_assay.registry.limits import Baseline, Limits

COMPLETENESS = 1e-2
"""Error of the sum of a map, relative to the largest logit, that is put down to rounding in float32."""
_EQUAL = 4  # multiple of ``_rounding`` up to which baseline values count as equal


def deeplift(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    rule: Annotated[str, Limits(choices=("rescale", "reveal_cancel"))] = "reveal_cancel",
    baseline: Baseline = "black",
) -> Tensor:
    """Compute (x − x′) ⊙ m with DeepLIFT's multipliers m from pixels to the target's logit, ``[N, C, H, W]``, signed.

    A map sums to f_t(x) − f_t(x′), x′ the baseline, which is checked. Shrikumar et al. (2017), sections 3.5.1 to
    3.5.3; ``rule`` applies to every activation.

    Raises:
        ValueError: an error of ``baselines.baseline``, ``fit_network`` or ``contributions``.
    """
    check_inputs(images, targets)
    reference = baseline_color(model, images, baseline).expand(1, *images.shape[1:])
    network = fit_network("deeplift", model, images)
    maps, logits = contributions(
        network, normalized(model, images), normalized(model, reference), targets, rule
    )
    check_form("deeplift", model, images, logits)
    return maps


def fit_network(method: str, model: nn.Module, images: Tensor) -> fx.GraphModule:
    """Return ``canonical(model, images)`` if DeepLIFT has a rule for every layer.

    Raises:
        ValueError: otherwise, with ``method``, the layer or operation and an alternative.
    """
    name = kind_of(network_of(model))
    network = canonical_for(method, model, images)
    for node in network.graph.find_nodes(op="call_module"):
        kind = type(network.get_submodule(node.target))
        if kind not in _LAYERS:
            raise ValueError(
                f"{method}: found {kind.__name__} ({node.target!r}) in {name}, which has no rule; "
                f"valid: {', '.join(layer.__name__ for layer in _LAYERS)}; or use integrated_gradients"
            )
    return network


def contributions(
    network: fx.GraphModule, images: Tensor, references: Tensor, targets: Tensor, rule: str
) -> tuple[Tensor, Tensor]:
    """Compute (x − x′) ⊙ m for a ``fit_network``, and its logits ``[N, K]``.

    ``images [N, C, H, W]`` and ``references [N or 1, C, H, W]`` are normalized.

    Raises:
        ValueError: the network does not return ``[N, K]``.
    """
    # The leaf of the autograd graph is Δx rather than x: m is then its gradient, by the chain rule for multipliers.
    difference = (images - references).detach().requires_grad_()
    if network.meta[MERGES_ROWS]:  # baselines need as many rows
        references = references.expand_as(images)
    with torch.enable_grad(), autograd_errors():
        is_split = rule == "reveal_cancel"
        parts = (difference, _Size.apply(difference)) if is_split else (difference,)
        output = _DifferencePropagation(network).run(Signal(images.detach(), references.detach(), parts))
        check_logits(output.value, images)
        multipliers = gradient_of(output.whole.gather(1, targets[:, None]).sum(), difference)
    maps = difference.detach() * multipliers
    _check_complete(maps, output, targets)
    return maps, output.value


def _check_complete(maps: Tensor, output: "Signal", targets: Tensor) -> None:
    """Check that maps sum to the difference of the target's logits.

    Raises:
        ValueError: they do not, by far more than rounding errors of well-conditioned layers.
    """
    if maps.is_meta:
        return
    change = (output.value - output.reference).detach().gather(1, targets[:, None])[:, 0]
    scale = torch.maximum(output.value.abs(), output.reference.abs()).detach().amax(1)
    if bool((missing := (maps.sum((1, 2, 3)) - change).abs() > COMPLETENESS * scale).any()):
        first = int(missing.nonzero()[0])
        raise ValueError(
            f"deeplift: found contributions that sum to {float(maps[first].sum()):.3g}, expected "
            f"{float(change[first]):.3g}, the difference of the logits; rounding errors grow where a normalization has "
            "no variance at the baseline; use another baseline, such as mean, or integrated_gradients"
        )


@dataclass(frozen=True)
class Signal:
    """Activations of N images at one point of the network, and their differences from the baseline."""

    value: Tensor
    """``[N, ...]``."""
    reference: Tensor
    """The value at the baseline, ``[N or 1, ...]``."""
    parts: tuple[Tensor, ...]
    """Δ, their difference, ``[N, ...]``, and under RevealCancel also Δ⁺ − Δ⁻, with Δ⁺ and Δ⁻ the parts of Δ."""

    @property
    def whole(self) -> Tensor:
        """Return Δ."""
        return self.parts[0]


_SIZES: WeakKeyDictionary[fx.GraphModule, dict[str, Tensor]] = WeakKeyDictionary()
"""For each canonical network, the absolute values of the weights of its layers."""


class _DifferencePropagation(fx.Interpreter):
    """Interpreter that runs the network's graph on a ``Signal``; signals that no later layer reads are released."""

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        layer = self.fetch_attr(target)
        # A layer of constants, such as the queries of a pooling.
        if not any(isinstance(value, Signal) for value in args):
            return layer(*args)
        if isinstance(layer, nn.Conv2d | nn.Linear):
            (signal,) = args
            return _linear(layer, signal, None if len(signal.parts) == 1 else self._sizes(target, layer))
        return _LAYERS[type(layer)](layer, *args)

    def _sizes(self, name: str, layer: nn.Conv2d | nn.Linear) -> Tensor:
        """Return the absolute values of a layer's weights."""
        assert isinstance(self.module, fx.GraphModule)
        sizes = _SIZES.setdefault(self.module, {})
        if name not in sizes:
            with torch.inference_mode(False), torch.no_grad():  # a later caller may need gradients
                sizes[name] = layer.weight.abs()
        return sizes[name]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Apply a function of a canonical network, which moves values, to each part of a signal; constants stay."""
        signals: list[Signal] = []
        fx.node.map_aggregate(
            args, lambda entry: signals.append(entry) if isinstance(entry, Signal) else None
        )

        def of(
            select: Callable[[Signal], Tensor], constant: Callable[[Any], Any] = lambda entry: entry
        ) -> Any:
            def chosen(entry: Any) -> Any:
                return select(entry) if isinstance(entry, Signal) else constant(entry)

            return target(*fx.node.map_aggregate(args, chosen), **kwargs)

        if not signals:
            return target(*args, **kwargs)
        value, reference = of(lambda signal: signal.value), of(lambda signal: signal.reference)
        if target is with_rows:  # a constant does not differ from itself
            return Signal(value, reference, (torch.zeros_like(value),) * len(signals[0].parts))
        parts = tuple(
            of(lambda signal, number=number: signal.parts[number], _without_value)  # type: ignore[misc]
            for number in range(len(signals[0].parts))
        )
        return Signal(value, reference, parts)


def _without_value(constant: Any) -> Any:
    """Return zeros for a constant that is joined to signals; indices stay."""
    is_joined = isinstance(constant, Tensor) and constant.is_floating_point()
    return torch.zeros_like(constant) if is_joined else constant


class _Scaled(torch.autograd.Function):
    """``value`` in the forward pass, and the gradient times ``multiplier`` to ``part`` in the backward pass.

    ``multiplier · part`` would differ from ``value`` by rounding error, and Δ of an inactive ReLU must be exactly 0,
    since the linear rule of the next layer uses its sign.
    """

    @staticmethod
    def forward(ctx: Any, part: Tensor, multiplier: Tensor, value: Tensor) -> Tensor:
        ctx.save_for_backward(multiplier)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        multiplier: Tensor = ctx.saved_tensors[0]
        return multiplier.mul_(gradient), None, None  # in its memory, since there is only one backward pass


class _Size(torch.autograd.Function):
    """|x|, whose derivative at 0 is 0."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.save_for_backward(values)
        return values.abs()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        values: Tensor = ctx.saved_tensors[0]
        return values.sign().mul_(gradient)


class _ScaledPair(torch.autograd.Function):
    """As ``_Scaled`` for Δy = a Δx + b Σx and Σy = b Δx + a Σx, with Σ = Δ⁺ − Δ⁻."""

    @staticmethod
    def forward(
        ctx: Any, delta: Tensor, spread: Tensor, a: Tensor, b: Tensor, of_delta: Tensor, of_spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        return of_delta, of_spread

    @staticmethod
    def backward(ctx: Any, of_delta: Tensor | None, of_spread: Tensor | None) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        if of_delta is not None and of_spread is not None:
            a, b = (a * of_delta).addcmul_(b, of_spread), (b * of_delta).addcmul_(a, of_spread)
        elif of_delta is not None:
            a, b = a.mul_(of_delta), b.mul_(of_delta)
        elif of_spread is not None:
            a, b = b.mul_(of_spread), a.mul_(of_spread)
        return a, b, None, None, None, None


def _each(layer: Callable[[Tensor], Tensor], signal: Signal) -> Signal:
    """Apply a layer that moves values or averages them, without a bias, to each part separately."""
    return Signal(layer(signal.value), layer(signal.reference), tuple(map(layer, signal.parts)))


def _add(layer: nn.Module, a: Signal, b: Signal | Tensor) -> Signal:
    """Add two signals part by part, or a constant."""
    if not isinstance(b, Signal):
        value = a.value + b
        return Signal(value, a.reference + b, tuple(part.expand_as(value) for part in a.parts))
    parts = tuple(one + other for one, other in zip(a.parts, b.parts, strict=True))
    return Signal(a.value + b.value, a.reference + b.reference, parts)


def _scale(layer: Scale, signal: Signal) -> Signal:
    """Multiply by a constant, by the linear rule."""
    size: Any = abs(layer.factor)
    spread = tuple(part * size for part in signal.parts[1:])
    return Signal(layer(signal.value), layer(signal.reference), (layer(signal.whole), *spread))


def _product(layer: Multiply | MatMul, a: Any, b: Any) -> Signal:
    """Assign to each factor its effect, averaged over both orders: Δ(ab) = Δa (b + b₀) / 2 + (a + a₀) / 2 Δb.

    These are the Shapley values of the two factors (Lundberg & Lee 2017, section 4.2). One may be a constant.
    """
    if not isinstance(a, Signal):  # a constant matrix, which cannot be swapped
        return Signal(layer(a, b.value), layer(a, b.reference), _split(layer(a, b.whole), b))
    if not isinstance(b, Signal):
        return Signal(layer(a.value, b), layer(a.reference, b), _split(layer(a.whole, b), a))
    middle_a, middle_b = (((signal.value + signal.reference) / 2).detach() for signal in (a, b))
    change = layer(a.whole, middle_b) + layer(middle_a, b.whole)
    return Signal(layer(a.value, b.value), layer(a.reference, b.reference), _split(change, a))


def _split(change: Tensor, signal: Signal) -> tuple[Tensor, ...]:
    """Return the parts of a change, as many as those of ``signal``."""
    return (change,) if len(signal.parts) == 1 else (change, _Size.apply(change))


def _softmax(layer: nn.Softmax, signal: Signal) -> Signal:
    """Propagate through y = exp(x − log Σ exp x), with the Rescale rule for each exponential and logarithm."""
    axis = layer.dim
    assert axis is not None
    with torch.no_grad():
        x, x0 = signal.value, signal.reference
        total, total0 = (values.logsumexp(axis, keepdim=True) for values in (x, x0))
        largest = torch.maximum(total, total0)
        # Σ multiplier Δx = Δ log Σ exp x. Both quotients are those of exponentials divided by exp(largest).
        multiplier = _exp_slope(x - largest, x0 - largest) / _exp_slope(total - largest, total0 - largest)
        y, y0 = x - total, x0 - total0
        slope = _exp_slope(y, y0)
    change = slope * (signal.whole - (multiplier * signal.whole).sum(axis, keepdim=True))
    return Signal(y.exp(), y0.exp(), _split(change, signal))


def _exp_slope(a: Tensor, b: Tensor) -> Tensor:
    """Return (exp a − exp b) / (a − b), or exp a where a = b, without cancellation or overflow for a, b <= 0."""
    distance = (a - b).abs()
    share = torch.where(distance > 0, -torch.expm1(-distance) / distance, 1)
    return torch.maximum(a, b).exp() * share


def _layer_norm(layer: nn.LayerNorm, signal: Signal) -> Signal:
    """Propagate through y = u r w + b with u = x − mean x and r = 1 / √(mean u² + ε).

    The rules are Rescale for u² and for r, and then that of a product.
    """
    axes = tuple(range(-len(layer.normalized_shape), 0))
    with torch.no_grad():
        u, u0 = (values - values.mean(axes, keepdim=True) for values in (signal.value, signal.reference))
        r, r0 = (((values**2).mean(axes, keepdim=True) + layer.eps).rsqrt() for values in (u, u0))
        slope = -((r * r0) ** 2) / (r + r0)  # (r − r₀) / (variance − variance₀), without their differences
    whole = signal.whole
    centered = whole - whole.mean(axes, keepdim=True)
    scale_change = slope * ((u + u0) * centered).mean(axes, keepdim=True)
    change = centered * ((r + r0) / 2) + (u + u0) / 2 * scale_change
    if layer.weight is not None:
        change = change * layer.weight.detach()
    with torch.no_grad():
        value, reference = layer(signal.value), layer(signal.reference)
    return Signal(value, reference, _split(change, signal))


def _square_root(layer: nn.Module, signal: Signal) -> Signal:
    """Apply Rescale, whose multiplier (√x − √x₀) / (x − x₀) is 1 / (√x + √x₀), and 0 where both are 0."""
    value, reference = layer(signal.value), layer(signal.reference)
    total = (value + reference).detach()
    change = torch.where(total > 0, 1 / total, 0) * signal.whole
    return Signal(value, reference, _split(change, signal))


def _reciprocal(layer: nn.Module, signal: Signal) -> Signal:
    """Apply Rescale, whose multiplier (1/x − 1/x₀) / (x − x₀) is −1 / (x x₀)."""
    value, reference = layer(signal.value), layer(signal.reference)
    return Signal(value, reference, _split(-(value * reference).detach() * signal.whole, signal))


def _linear(layer: nn.Conv2d | nn.Linear, signal: Signal, sizes: Tensor | None) -> Signal:
    """Apply the linear rule (section 3.5.1): Δy⁺ sums w Δx > 0, Δy⁻ sums w Δx < 0, and Δx = 0 counts half for each.

    These are ½ (W Δx ± |W| |Δx|), with |W| = ``sizes``: the derivative of |Δx| = sign(Δx) Δx is 0 at 0, so each part
    keeps ½ W Δx.
    """
    apply = layer._conv_forward if isinstance(layer, nn.Conv2d) else functional.linear
    with torch.no_grad():
        reference = layer(signal.reference)
    weight, whole = layer.weight.detach(), signal.whole
    # Without the bias, which cancels in differences and is part of the reference.
    change = apply(whole, weight, None)
    value = reference + change.detach()
    if sizes is None:
        return Signal(value, reference, (change,))
    return Signal(value, reference, (change, apply(_Size.apply(whole), sizes, None)))


def _activation(layer: nn.Module, signal: Signal) -> Signal:
    """Apply Rescale or RevealCancel."""
    is_split = len(signal.parts) > 1
    with torch.no_grad():
        y, y0 = layer(signal.value), layer(signal.reference)
        rule = _reveal_cancel if is_split else _rescale
        results = rule(layer, signal.reference, y, y0, *signal.parts)
    scaled = (
        _ScaledPair.apply(*signal.parts, *results) if is_split else (_Scaled.apply(*signal.parts, *results),)
    )
    return Signal(y, y0, scaled)


def _rescale(g: nn.Module, x0: Tensor, y: Tensor, y0: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Return m and Δy with m = Δy / Δx (section 3.5.2); for Δx → 0 its limit, g′ at the baseline."""
    change = y - y0
    _, slope = _value_and_slope(g, x0)
    return _ratio(change, delta, slope, _smallest(x0, delta), torch.empty_like(delta)), change


def _reveal_cancel(
    g: nn.Module, x0: Tensor, y: Tensor, y0: Tensor, delta: Tensor, spread: Tensor
) -> tuple[Tensor, ...]:
    """Return (m⁺ ± m⁻) / 2 and Δy⁺ ± Δy⁻: the effect of each part, averaged over both orders (section 3.5.3).

    A part is once added to the baseline and once added after the other part: Δy⁺ is the mean of g(x₀ + Δ⁺) − g(x₀) and
    g(x) − g(x₀ + Δ⁻).
    """
    plus, minus = delta + spread, delta - spread  # twice the parts
    _, slope = _value_and_slope(g, x0)
    y_plus, slope_plus = _value_and_slope(g, torch.add(x0, plus, alpha=0.5))
    y_minus, slope_minus = _value_and_slope(g, torch.add(x0, minus, alpha=0.5))
    change, distance = y - y0, y_plus.sub_(y_minus)
    up, down = change + distance, torch.sub(change, distance, out=y_minus)
    # As a part vanishes, its multiplier approaches the mean slope at the two points to which it is added.
    smallest = _smallest(2 * x0, plus, minus)
    # Half the multipliers, in the memory of the parts.
    of_plus = _ratio(up.mul_(0.5), plus, slope_minus.add_(slope).mul_(0.25), smallest, plus)
    of_minus = _ratio(down.mul_(0.5), minus, slope_plus.add_(slope).mul_(0.25), smallest, minus)
    return torch.add(of_plus, of_minus, out=up), of_plus.sub_(of_minus), change, distance


def _ratio(change: Tensor, step: Tensor, limit: Tensor, smallest: Tensor, out: Tensor) -> Tensor:
    """Return change / step in the memory ``out``, or its limit where rounding error of the step would dominate."""
    # Numbers in place of booleans, with which PyTorch is several times slower on a CPU.
    is_small = step.abs()
    torch.le(is_small, smallest, out=is_small)
    # A large step makes the quotient negligible.
    torch.add(step, is_small, alpha=torch.finfo(step.dtype).eps ** -2, out=out)
    return torch.div(change, out, out=out).addcmul_(is_small, limit)


def _smallest(*terms: Tensor) -> Tensor:
    """Return the smallest significant difference in sums of such terms, one for each image, ``[N, 1, ...]``.

    Relative to the largest value of the image, to which rounding errors are proportional, it is ε^(2/3): 4e-11 in
    float64 and 2e-5 in float32.
    """
    largest = [_largest(term, tuple(range(1, term.ndim))) for term in terms]
    scale = functools.reduce(torch.maximum, largest)
    return float(torch.finfo(scale.dtype).eps ** (2 / 3)) * scale


def _largest(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the largest absolute value over some dimensions, which are kept."""
    return torch.maximum(values.amax(axes, keepdim=True), -values.amin(axes, keepdim=True))


def _value_and_slope(g: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return g(x) and the elementwise derivative g′(x)."""
    if isinstance(g, nn.ReLU):
        return x.relu(), torch.gt(x, 0, out=torch.empty_like(x))
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = g(x)
        return y.detach(), torch.autograd.grad(y.sum(), x)[0]


def _max_pool(layer: nn.MaxPool2d, signal: Signal) -> Signal:
    """Assign the difference to the maximum of the window: the image's if the output rises, the baseline's if it falls.

    A baseline of one color makes all values of a window equal, and so do inactive ReLUs. To keep the choice from
    depending on rounding errors, equal values are ordered by position; and if the image's maximum is also a maximum of
    the baseline, it is used for both.
    """
    with torch.no_grad():
        winner, value = _winners(layer, signal.value)
        reference_winner, reference = _winners(layer, signal.reference)
        # Distance of the baseline's value at the image's maximum from the baseline's maximum.
        shortfall = reference - _gather(winner, signal.reference.expand_as(signal.value))
        change = value - reference
        stays = (change >= 0) | (shortfall < _EQUAL * _rounding(signal.reference))
        winner = torch.where(stays, winner, reference_winner)
    parts = [_gather(winner, part) for part in signal.parts]
    with torch.no_grad():
        smallest = _smallest(signal.reference, *signal.parts)
        # Not 1 where image and baseline have their maxima at different positions: the difference at the winner is then
        # not that of the output.
        multiplier = _ratio(
            change, parts[0].detach(), torch.ones_like(reference), smallest, torch.empty_like(value)
        )
    return Signal(value, reference, tuple(multiplier * part for part in parts))


def _winners(layer: nn.MaxPool2d, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index of each window's maximum, ``[N, C, h, w]``, and the maximum.

    Values equal up to rounding are ordered by position.

    Each position in a window is penalized by a multiple of a step larger than rounding error. The penalty is ignored
    where the chosen value would be smaller than the maximum by more than two steps.
    """
    sizes, dilations = (
        pair if isinstance(pair, tuple) else (pair, pair) for pair in (layer.kernel_size, layer.dilation)
    )
    tall, wide = (dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True))
    rows, columns = (torch.arange(length, device=values.device) for length in values.shape[2:])
    # Modulo the window's extent, so that the penalties of all positions in a window differ, wherever it lies.
    penalty = (rows % tall)[:, None] * wide + columns % wide
    step = _rounding(values)
    # PyTorch's pooling is several times faster on a CPU if the channels of a pixel are adjacent.
    adjacent = values.contiguous(memory_format=torch.channels_last)
    (_, positions), (largest, largest_positions) = (
        [
            pooled.contiguous()
            for pooled in functional.max_pool2d(
                ranked,
                layer.kernel_size,
                layer.stride,
                layer.padding,
                layer.dilation,
                layer.ceil_mode,
                return_indices=True,
            )
        ]
        for ranked in (torch.addcmul(adjacent, penalty.to(values), step, value=-1), adjacent)
    )
    is_smaller = largest - _gather(positions, values) > 2 * step
    return torch.where(is_smaller, largest_positions, positions), largest.contiguous(
        memory_format=_format(values)
    )


def _rounding(values: Tensor) -> Tensor:
    """Return a bound on the rounding error of a channel's equal values, ``[N, C, 1, 1]``.

    Relative to the largest value it is 1e-6 in float32, since terms of a convolution that cancel round more than its
    result, and 4e-11 in float64. It is positive even for a channel of zeros, so that equal values still have an order.
    """
    share = max(8 * torch.finfo(values.dtype).eps, 4e-11)
    return share * _largest(values, (2, 3)).clamp(min=1e-20)


def _gather(positions: Tensor, values: Tensor) -> Tensor:
    """Return the values at the positions, ``[N, C, h, w]``, which are indices into H·W."""
    chosen = values.flatten(2).gather(2, positions.flatten(2)).view_as(positions)
    return chosen.contiguous(memory_format=_format(values))


def _format(values: Tensor) -> torch.memory_format:
    """Return the memory format of values, so that it is that of a layer's results, too."""
    is_last = values.is_contiguous(memory_format=torch.channels_last) and not values.is_contiguous()
    return torch.channels_last if is_last else torch.contiguous_format


_LAYERS: dict[type[nn.Module], Callable[..., Signal]] = {
    **dict.fromkeys((nn.Conv2d, nn.Linear), _linear),
    nn.MaxPool2d: _max_pool,
    **dict.fromkeys((nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample, Mean), _each),
    Add: _add,
    **dict.fromkeys((Multiply, MatMul), _product),
    nn.Softmax: _softmax,
    nn.LayerNorm: _layer_norm,
    Scale: _scale,
    SquareRoot: _square_root,
    Reciprocal: _reciprocal,
    **dict.fromkeys((nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh), _activation),
    **dict.fromkeys((nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish), _activation),
    **dict.fromkeys((nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Hardswish, nn.Hardsigmoid), _activation),
}


def deep_shap(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, background: Tensor
) -> Tensor:
    """Compute the mean of DeepLIFT's maps over ``background [B, C, H, W]`` as baselines, ``[N, C, H, W]``, signed.

    A map sums to f_t(x) minus the mean of f_t over the background. Lundberg & Lee (2017), section 4.2, with the
    multipliers of DeepLIFT's Rescale rule.

    Raises:
        ValueError: a background of another shape, type or device than the images, or an error of ``deeplift``.
    """
    check_inputs(images, targets)
    check_background(images, background)
    network = fit_network("deep_shap", model, images)
    network_inputs, baselines = normalized(model, images), normalized(model, background)
    total = torch.zeros_like(images)
    for number in passes_of(images, len(background)):
        maps, logits = contributions(
            network, network_inputs, baselines[number : number + 1], targets, "rescale"
        )
        if number == 0:
            check_form("deep_shap", model, images, logits)
        total += maps
    return total / len(background)
