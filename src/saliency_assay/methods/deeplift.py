"""DeepLIFT: how much of the difference to a baseline each pixel makes, by the Rescale or the RevealCancel rule.

One walk through the network carries each value's difference from its baseline, in parts. Every layer's parts are a
linear function of the parts before it, with multipliers that count as constants, so the backward pass of that walk
is the chain rule for multipliers (Shrikumar et al., 2017, equation 3).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from saliency_assay.methods.baselines import baseline as colour
from saliency_assay.methods.canonical import Add, canonical, network_of, normalised, unfit_relus
from saliency_assay.methods.differentiate import check_inputs, check_logits, describe
from saliency_assay.methods.passes import chunks

RULES = ("rescale", "reveal_cancel")

_EQUAL = 4  # times ``_rounding``: how far baseline values may lie apart and count as equal


def deeplift(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    rule: str = "reveal_cancel",
    baseline: str = "black",
) -> Tensor:
    """(x − x′) ⊙ m with m DeepLIFT's multipliers from the pixels to the target's logit, ``[N, C, H, W]``, signed.

    A map sums to f_t(x) − f_t(x′), x′ the baseline. Shrikumar et al. (2017), sections 3.5.1 to 3.5.3; ``rule`` is
    that of every activation.

    Raises:
        ValueError: an unknown rule or baseline, or as ``fit_network`` and ``contributions``.
    """
    check_inputs(images, targets)
    if rule not in RULES:
        raise ValueError(f"rule: found {rule!r}, valid: {', '.join(RULES)}")
    reference = colour(model, images, baseline).expand(1, *images.shape[1:])
    network = fit_network("deeplift", model)
    return contributions(network, normalised(model, images), normalised(model, reference), targets, rule)


def fit_network(method: str, model: nn.Module) -> fx.GraphModule:
    """``canonical(model)``, if every layer has a rule and every ReLU is a module that is called once.

    Raises:
        ValueError: it is not so, or as ``canonical``; the line names ``method``, the layer and what to use.
    """
    name = type(network_of(model)).__name__
    for unfit in unfit_relus(model):
        raise ValueError(
            f"{method}: {unfit} in {name}, and a rule belongs to one layer; give each call an nn.ReLU of its own, "
            f"or use integrated_gradients"
        )
    network = canonical(model)
    for node in network.graph.find_nodes(op="call_module"):
        kind = type(network.get_submodule(node.target))
        if kind not in _LAYERS:
            raise ValueError(
                f"{method}: found {kind.__name__} ({node.target!r}) in {name}, which has no rule; "
                f"valid: {', '.join(known.__name__ for known in _LAYERS)}; or use integrated_gradients"
            )
    return network


def contributions(
    network: fx.GraphModule, images: Tensor, references: Tensor, targets: Tensor, rule: str
) -> Tensor:
    """(x − x′) ⊙ m of a ``fit_network``, from normalised ``images [N, C, H, W]`` and ``references [N or 1, C, H, W]``.

    Raises:
        ValueError: the network does not return ``[N, K]``.
    """
    difference = (images - references).detach().requires_grad_()
    with torch.enable_grad():
        two = rule == "reveal_cancel"
        parts = (difference.clamp(min=0), difference.clamp(max=0)) if two else (difference,)
        logits = _Walk(network).run(Signal(images.detach(), references.detach(), parts)).whole
        check_logits(logits, images)
        multipliers = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), difference)[0]
    return difference.detach() * multipliers


@dataclass(frozen=True)
class Signal:
    """Activations of N images at one place in the network, and their difference from the baseline."""

    value: Tensor
    """``[N, ...]``."""
    reference: Tensor
    """The value at the baseline, ``[N or 1, ...]``."""
    parts: tuple[Tensor, ...]
    """Differences of the two, ``[N, ...]`` each: Δ under Rescale, (Δ⁺, Δ⁻) under RevealCancel."""

    @property
    def whole(self) -> Tensor:
        """Δ."""
        return self.parts[0] if len(self.parts) == 1 else self.parts[0] + self.parts[1]


class _Walk(fx.Interpreter):
    """The network's graph, run on a ``Signal``; what no later layer reads is let go."""

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Signal:
        layer = self.fetch_attr(target)
        return _LAYERS[type(layer)](layer, *args)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Signal:
        signal, *rest = args
        return _each(lambda value: target(value, *rest, **kwargs), signal)


class _Scaled(torch.autograd.Function):
    """``value`` on the way forward, and ``multiplier`` times what arrives on the way back to ``part``.

    ``multiplier · part`` would differ from ``value`` by rounding, and a shut ReLU's Δ must be exactly 0: the linear
    rule after it asks for its sign.
    """

    @staticmethod
    def forward(ctx: Any, part: Tensor, multiplier: Tensor, value: Tensor) -> Tensor:
        ctx.save_for_backward(multiplier)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient * ctx.saved_tensors[0], None, None


def _each(layer: Callable[[Tensor], Tensor], signal: Signal) -> Signal:
    """Propagate through a layer that moves values, or weighs them all alike: each part by itself."""
    return Signal(layer(signal.value), layer(signal.reference), tuple(map(layer, signal.parts)))


def _add(layer: nn.Module, a: Signal, b: Signal) -> Signal:
    parts = tuple(one + other for one, other in zip(a.parts, b.parts, strict=True))
    return Signal(a.value + b.value, a.reference + b.reference, parts)


def _linear(layer: nn.Conv2d | nn.Linear, signal: Signal) -> Signal:
    """Linear rule (section 3.5.1): Δy⁺ = Σ w Δx where w Δx > 0, Δy⁻ where w Δx < 0, and half to each where Δx = 0.

    In short ½ (W Δx ± |W| |Δx|): the derivative of |Δx| = sign(Δx) Δx is 0 at 0, which leaves each its half.
    """
    apply = layer._conv_forward if isinstance(layer, nn.Conv2d) else functional.linear
    with torch.no_grad():
        reference = layer(signal.reference)
    weight, whole = layer.weight.detach(), signal.whole
    change = apply(whole, weight, None)
    value = reference + change.detach()
    if len(signal.parts) == 1:
        return Signal(value, reference, (change,))
    spread = apply(whole.detach().sign() * whole, weight.abs(), None)
    return Signal(value, reference, ((change + spread) / 2, (change - spread) / 2))


def _activation(layer: nn.Module, signal: Signal) -> Signal:
    """One part by Rescale, two by RevealCancel."""
    rule = _rescale if len(signal.parts) == 1 else _reveal_cancel
    with torch.no_grad():
        y, y0 = layer(signal.value), layer(signal.reference)
        moves = rule(layer, signal.reference, y, y0, *signal.parts)
    parts = tuple(_Scaled.apply(part, *move) for part, move in zip(signal.parts, moves, strict=True))
    return Signal(y, y0, parts)


def _rescale(g: nn.Module, x0: Tensor, y: Tensor, y0: Tensor, delta: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(m, Δy) with m = Δy / Δx (section 3.5.2), in the limit g′ at the baseline."""
    return [(_ratio(y - y0, delta, _slope(g, x0), _smallest(x0, delta)), y - y0)]


def _reveal_cancel(
    g: nn.Module, x0: Tensor, y: Tensor, y0: Tensor, plus: Tensor, minus: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """(m⁺, Δy⁺) and (m⁻, Δy⁻): each part's effect, averaged over its coming first and second (section 3.5.3)."""
    y_plus, y_minus = g(x0 + plus), g(x0 + minus)
    up = ((y_plus - y0) + (y - y_minus)) / 2
    down = ((y_minus - y0) + (y - y_plus)) / 2
    slope, smallest = _slope(g, x0), _smallest(x0, plus, minus)
    return [
        (_ratio(up, plus, (slope + _slope(g, x0 + minus)) / 2, smallest), up),
        (_ratio(down, minus, (slope + _slope(g, x0 + plus)) / 2, smallest), down),
    ]


def _ratio(change: Tensor, step: Tensor, limit: Tensor | float, smallest: Tensor) -> Tensor:
    """change / step, and its limit where the step is so small that rounding would tell."""
    return torch.where(step.abs() > smallest, change / step, limit)


def _smallest(*terms: Tensor) -> Tensor:
    """Return the least difference that counts where such terms are summed, one for each image, ``[N, 1, ...]``.

    Of an image's largest value it is 4e-11 in float64 and 2e-5 in float32: rounding is relative to that.
    """
    largest = [term.abs().amax(tuple(range(1, term.ndim)), keepdim=True) for term in terms]
    size = functools.reduce(torch.maximum, largest)
    return float(torch.finfo(size.dtype).eps ** (2 / 3)) * size


def _slope(g: nn.Module, at: Tensor) -> Tensor:
    """g′, value by value."""
    with torch.enable_grad():
        at = at.detach().requires_grad_()
        return torch.autograd.grad(g(at).sum(), at)[0]


def _max_pool(layer: nn.MaxPool2d, signal: Signal) -> Signal:
    """Assign the difference to the winner: the image's where the maximum rises, the baseline's where it falls.

    A baseline of one colour makes all values of a window equal, and so do shut ReLUs. Lest rounding choose, one order
    of places holds among equals, and where the image's winner is among the baseline's, it is both.
    """
    with torch.no_grad():
        winner, its_winner = _winners(layer, signal.value), _winners(layer, signal.reference)
        value, reference = layer(signal.value), layer(signal.reference)
        lag = reference - _at(winner, signal.reference.expand_as(signal.value))
        change = value - reference
        stays = (change >= 0) | (lag < _EQUAL * _rounding(signal.reference))
        winner = torch.where(stays, winner, its_winner)
        smallest = _smallest(signal.reference, *signal.parts)
        multiplier = _ratio(change, _at(winner, signal.whole), 1.0, smallest)
    return Signal(value, reference, tuple(multiplier * _at(winner, part) for part in signal.parts))


def _winners(layer: nn.MaxPool2d, values: Tensor) -> Tensor:
    """Return the position of each window's maximum, ``[N, C, h, w]``; of values that differ by rounding, the same one.

    Places within a window are handicapped by what is more than rounding, unless that would let a value win which is
    less than the maximum by more than two such steps.
    """
    sizes, dilations = (
        pair if isinstance(pair, tuple) else (pair, pair) for pair in (layer.kernel_size, layer.dilation)
    )
    tall, wide = (dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True))
    rows, columns = (torch.arange(length, device=values.device) for length in values.shape[2:])
    handicap = (rows % tall)[:, None] * wide + columns % wide
    step = _rounding(values)
    (_, places), (largest, its_places) = (
        functional.max_pool2d(
            ranked,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.ceil_mode,
            return_indices=True,
        )
        for ranked in (values - handicap * step, values)
    )
    return torch.where(largest - _at(places, values) > 2 * step, its_places, places)


def _rounding(values: Tensor) -> Tensor:
    """More than rounding makes of a channel's equal values, ``[N, C, 1, 1]``: 2e-7 of its largest in float32.

    In float64 there is room for 4e-11. In float32 more would let values win that are not the largest. A channel of
    zeros has an order among equals, too.
    """
    share = max(2 * torch.finfo(values.dtype).eps, 4e-11)
    return share * values.abs().amax((2, 3), keepdim=True).clamp(min=1e-20)


def _at(places: Tensor, values: Tensor) -> Tensor:
    return values.flatten(2).gather(2, places.flatten(2)).view_as(places)


_LAYERS: dict[type[nn.Module], Callable[..., Signal]] = {
    **dict.fromkeys((nn.Conv2d, nn.Linear), _linear),
    nn.MaxPool2d: _max_pool,
    **dict.fromkeys((nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Flatten, nn.ZeroPad2d), _each),
    Add: _add,
    **dict.fromkeys((nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh), _activation),
    **dict.fromkeys((nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish), _activation),
    **dict.fromkeys(
        (nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Softsign, nn.Hardswish, nn.Hardsigmoid), _activation
    ),
}


def deep_shap(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, background: Tensor
) -> Tensor:
    """Mean of DeepLIFT's maps over ``background [B, C, H, W]`` as baselines, ``[N, C, H, W]``, signed.

    A map sums to f_t(x) less the mean of f_t over the background. Lundberg & Lee (2017), section 4.2, with the
    multipliers of DeepLIFT's Rescale rule.

    Raises:
        ValueError: a background of another shape, type or device than the images, or as ``deeplift``.
    """
    check_inputs(images, targets)
    shape, kind = list(images.shape[1:]), str(images.dtype).removeprefix("torch.")
    fits = background.dtype == images.dtype and background.device == images.device
    if not fits or background.ndim != 4 or list(background.shape[1:]) != shape or len(background) == 0:
        raise ValueError(
            f"background: found {describe(background)} on {background.device}, expected {kind} "
            f"[B, {', '.join(map(str, shape))}] on {images.device} with B >= 1"
        )
    network = fit_network("deep_shap", model)
    seen, baselines = normalised(model, images), normalised(model, background)
    total = torch.zeros_like(images)
    for chunk in chunks(len(images), len(background), images.device):
        maps = contributions(
            network, seen[chunk.images], baselines[chunk.passes], targets[chunk.images], "rescale"
        )
        for run in chunk.runs:
            total[run.image] += maps[run.rows].sum(0)
    return total / len(background)
