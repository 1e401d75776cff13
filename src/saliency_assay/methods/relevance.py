"""Layer-wise relevance propagation: LRP-αβ, LRP-ε and deep Taylor decomposition, by zennit's rules.

A method is a choice of rules, one for each kind of layer. Relevance starts as the target's logit and is propagated back
through ``canonical(model)``, whose BatchNorm is folded, to the normalized image. It is not converted to units of
pixels, because relevance is a share of the logit.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from zennit.core import BasicHook, Composite, Hook, Stabilizer
from zennit.rules import AlphaBeta, ClampMod, Epsilon, NoMod, Norm, Pass, WSquare, ZPlus

from saliency_assay.methods import checks
from saliency_assay.methods.canonical import REARRANGEMENTS, canonical_for, normalized, signals
from saliency_assay.methods.differentiate import check_inputs, check_logits
from saliency_assay.methods.layers import Add, MatMul, Mean, Multiply, Sum
from saliency_assay.models.classifier import Classifier

BIASES = ("ignored", "counted")
RULES = ("z_plus", "w_squared")
INPUT_RULES = ("z_box", "w_squared", "same")

_WEIGHTED = (nn.Conv2d, nn.Linear)
_AVERAGES = (nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_BY_GRADIENT = (nn.MaxPool2d, nn.AdaptiveMaxPool2d, nn.Flatten, nn.ZeroPad2d)
_KNOWN = (*_WEIGHTED, nn.ReLU, *_AVERAGES, *_BY_GRADIENT)
_ACTIVATIONS = (
    *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU),
    *(nn.Mish, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Softsign, nn.Hardswish, nn.Hardsigmoid),
)
_GATES = (nn.Sigmoid, nn.Hardsigmoid)
_OF_BOTH_SIGNS = (*_KNOWN, *_ACTIVATIONS, nn.LayerNorm, nn.Softmax, Multiply, MatMul, Mean)
"""Layers with a rule of LRP-ε, which does not need the positive activations of ReLUs."""


@dataclass(frozen=True)
class _Rules:
    """Rules of a method, one for each kind of layer; None is the gradient."""

    weighted: Hook  # convolutions and linear layers
    scale: Hook  # a BatchNorm that follows no convolution: each output is one input, scaled and shifted
    sums: Hook  # averages and additions: linear layers without learned weights
    relu: Hook | None
    epsilon: float | None = None
    """The stabilizer for normalizations and products; None if there is no rule for layers other than ``_KNOWN``."""


def lrp_alpha_beta(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    alpha: float = 2.0,
    beta: float = 1.0,
    biases: str = "ignored",
    input_rule: str = "z_box",
) -> Tensor:
    """Compute R_i = Σ_j (α z_ij⁺ / Σ_i z_ij⁺ − β z_ij⁻ / Σ_i z_ij⁻) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015).

    z_ij is the contribution of neuron i to neuron j. The default is LRP-α2β1 of Montavon et al. (2018): without biases,
    and with z^B at the layer that receives the pixels. ``counted`` biases are terms of the sums and receive relevance,
    as in Bach et al., equation 60.

    Raises:
        ValueError: α − β is not 1, ``biases`` or ``input_rule`` is invalid, or the network has no ReLU or a layer
            without a rule.
    """
    checks.raise_for(checks.alpha_beta({"alpha": alpha, "beta": beta}))
    if biases not in BIASES:
        raise ValueError(f"biases: found {biases!r}, valid: {', '.join(BIASES)}")
    zeroed = "bias" if biases == "ignored" else None
    # α - 1 instead of β: zennit requires α - β == 1 exactly, and 2.2 - 1.2 is not exactly 1.
    rule = AlphaBeta(alpha=alpha, beta=alpha - 1, stabilizer=_divisor, zero_params=zeroed)
    # No relevance for a term whose sign differs from that of its sum: its relevance would have the opposite sign, and
    # the αβ rule, which is made for active neurons, would then reverse the signs of the relevance it distributes.
    rules = _Rules(rule, Pass(), _share_of_its_sign(), Pass())
    return _propagate("lrp_alpha_beta", model, images, targets, rules, input_rule)


def lrp_epsilon(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    epsilon: float = 1e-6,
    input_rule: str = "same",
) -> Tensor:
    """Compute R_i = Σ_j z_ij / (z_j + ε sign z_j) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015, equation 58).

    z_ij is the contribution of neuron i to neuron j, z_j the sum of these contributions and the bias. As ε → 0, it
    becomes the gradient ⊙ the normalized image of a ReLU network.

    Attention weights, other gates and the standard deviations of LayerNorm count as constants (Ali et al. 2022,
    sections 3.1 and 3.2; Arras et al. 2017 for gates), and any activation passes relevance on unchanged. Two factors,
    neither of them a gate, get half each.

    Raises:
        ValueError: ε is not positive, ``input_rule`` is invalid, or the network has a layer without a rule.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon: found {epsilon}, expected above 0")
    rules = _Rules(Epsilon(epsilon), Epsilon(epsilon), Norm(_not_zero), Pass(), epsilon)
    return _propagate("lrp_epsilon", model, images, targets, rules, input_rule)


def deep_taylor(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    rule: str = "z_plus",
    input_rule: str = "z_box",
) -> Tensor:
    """Compute the deep Taylor decomposition, ``[N, C, H, W]``, with the sign of the logit (Montavon et al., 2017).

    R_i = Σ_j q_ij / Σ_i q_ij R_j with q_ij = x_i w_ij where positive (``z_plus``), or w_ij² (``w_squared``); at the
    layer that receives the pixels q_ij = x_i w_ij − l_i w_ij⁺ − h_i w_ij⁻ for pixels from l to h (``z_box``).

    Raises:
        ValueError: ``rule`` or ``input_rule`` is invalid, or the network has no ReLU or a layer without a rule.
    """
    if rule not in RULES:
        raise ValueError(f"rule: found {rule!r}, valid: {', '.join(RULES)}")
    if rule == "z_plus":
        rules = _Rules(ZPlus(_divisor, zero_params="bias"), Pass(), _share_of_its_sign(), Pass())
    else:
        # w² also gives relevance to inactive neurons. The gradient of the ReLU removes it; otherwise the map would
        # depend on the weights alone.
        rules = _Rules(_w_squared(), _w_squared(), _w_squared(), None)
    return _propagate("deep_taylor", model, images, targets, rules, input_rule)


def _propagate(
    method: str, model: nn.Module, images: Tensor, targets: Tensor, rules: _Rules, input_rule: str
) -> Tensor:
    """Propagate the target's logit back to the normalized image, ``[N, C, H, W]``."""
    check_inputs(images, targets)
    if input_rule not in INPUT_RULES:
        raise ValueError(f"input_rule: found {input_rule!r}, valid: {', '.join(INPUT_RULES)}")
    network = _copy_sharing_tensors(canonical_for(method, model, images))
    _check_layers(method, model, network, rules)
    if rules.epsilon is not None:
        _linearize(method, network, rules.epsilon)
    first = _input_layer_rules(network, model, images, input_rule)
    pixels = normalized(model, images).detach().requires_grad_()
    with torch.enable_grad(), Composite(_rule_choice(rules, first)).context(network):
        logits = network(pixels)
        check_logits(logits, images)
        # The backward pass of zennit's hooks propagates relevance in place of gradients, so it starts with the logit.
        relevance = logits.detach() * nn.functional.one_hot(targets, logits.shape[1])
        return torch.autograd.grad(logits, pixels, relevance)[0]


def _copy_sharing_tensors(network: fx.GraphModule) -> fx.GraphModule:
    """Return a copy that shares all tensors, so that hooks and replaced weights do not affect the cached network."""
    tensors = (*network.parameters(), *network.buffers())
    return copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})


def _check_layers(method: str, model: nn.Module, network: fx.GraphModule, rules: _Rules) -> None:
    kind = type(model.network if isinstance(model, Classifier) else model).__name__
    names = [str(node.target) for node in network.graph.nodes if node.op == "call_module"]
    layers = {name: network.get_submodule(name) for name in names}
    known = _KNOWN if rules.epsilon is None else _OF_BOTH_SIGNS
    if rules.epsilon is None and not any(isinstance(layer, nn.ReLU) for layer in layers.values()):
        raise ValueError(
            f"{method}: found no ReLU in {kind}; expected a ReLU network, or lrp_epsilon, or a method that needs "
            f"gradients only, such as integrated_gradients"
        )
    for name, layer in layers.items():
        if not isinstance(layer, (*known, Add)):
            valid = ", ".join(supported.__name__ for supported in known)
            alternative = "; or use lrp_epsilon" if isinstance(layer, _OF_BOTH_SIGNS) else ""
            raise ValueError(
                f"{method}: found {type(layer).__name__} ({name!r}) in {kind}, which has no rule; valid: {valid}, "
                f"BatchNorm, dropout and addition{alternative}"
            )


def _linearize(method: str, network: fx.GraphModule, epsilon: float) -> None:
    """Replace normalizations by layers that are linear in their input, and products by their rule, in place.

    Raises:
        ValueError: a softmax or another gate is no factor of a product, so that it would take all relevance.
    """
    varying = signals(network.graph)
    constant = set(network.graph.nodes) - varying
    for node in network.graph.nodes:
        if node in constant or node.op in ("placeholder", "output"):
            continue
        layer = network.get_submodule(str(node.target)) if node.op == "call_module" else None
        if isinstance(layer, nn.LayerNorm):
            network.add_submodule(str(node.target), _LinearNorm(layer))
        elif (
            isinstance(layer, nn.Softmax)
            or (isinstance(layer, _GATES) and _only_multiplies(network, node))
            or all(source in constant for source in node.all_input_nodes)
        ):
            constant.add(node)
        elif isinstance(layer, Multiply | MatMul):
            vary = [isinstance(factor, fx.Node) and factor not in constant for factor in node.args]
            network.add_submodule(str(node.target), _ProductRule(layer, epsilon, vary))

    for node in constant & varying:
        for user in node.users:
            layer = network.get_submodule(str(user.target)) if user.op == "call_module" else None
            if user not in constant and not isinstance(layer, _ProductRule):
                raise ValueError(
                    f"{method}: found {node.name!r}, a softmax or gate that is no factor of a product; "
                    f"expected logits without softmax; or use integrated_gradients"
                )


def _only_multiplies(network: fx.GraphModule, node: fx.Node) -> bool:
    """Return True if the output of a node, as it is or rearranged, is only used as a factor."""
    return all(
        isinstance(network.get_submodule(str(user.target)), Multiply)
        if user.op == "call_module"
        else user.target in REARRANGEMENTS and _only_multiplies(network, user)
        for user in node.users
    )


class _LinearNorm(nn.Module):
    """LayerNorm whose standard deviation counts as a constant (Ali et al. 2022, section 3.2)."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.axes, self.eps = tuple(range(-len(norm.normalized_shape), 0)), norm.eps
        self.weight, self.bias = norm.weight, norm.bias

    def forward(self, values: Tensor) -> Tensor:
        centered = values - values.mean(self.axes, keepdim=True)
        scale = ((centered.detach() ** 2).mean(self.axes, keepdim=True) + self.eps).rsqrt()
        normalized = centered * scale if self.weight is None else centered * scale * self.weight
        return normalized if self.bias is None else normalized + self.bias


class _ProductRule(nn.Module):
    """A product whose relevance goes to the factors that vary, in equal shares, and within each by the ε rule."""

    def __init__(self, product: nn.Module, epsilon: float, vary: list[bool]) -> None:
        super().__init__()
        self.product, self.stabilize, self.vary = product, Stabilizer(epsilon), vary

    def forward(self, *factors: Any) -> Tensor:
        factors = tuple(
            factor if varies or not isinstance(factor, Tensor) else factor.detach()
            for factor, varies in zip(factors, self.vary, strict=True)
        )
        output: Tensor = _Product.apply(self, *factors)
        return output


class _Product(torch.autograd.Function):
    """The rule of ``_ProductRule``: a product, and in the backward pass relevance in place of gradients."""

    @staticmethod
    def forward(ctx: Any, rule: _ProductRule, *factors: Any) -> Tensor:
        ctx.rule, ctx.factors = rule, factors
        output: Tensor = rule.product(*factors)
        return output

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        rule = ctx.rule
        with torch.enable_grad():
            factors = [
                factor.detach().requires_grad_(varies) if isinstance(factor, Tensor) else factor
                for factor, varies in zip(ctx.factors, rule.vary, strict=True)
            ]
            output = rule.product(*factors)
        varying = [factor for factor, varies in zip(factors, rule.vary, strict=True) if varies]
        share = relevance / rule.stabilize(output.detach()) / len(varying)
        gradients = iter(torch.autograd.grad(output, varying, share))
        return None, *(
            factor.detach() * next(gradients) if varies else None
            for factor, varies in zip(factors, rule.vary, strict=True)
        )


def _rule_choice(rules: _Rules, first: dict[str, Hook]) -> Callable[..., Hook | None]:
    """Return the function from a layer to its rule that zennit's ``Composite`` calls."""

    def select_hook(context: object, name: str, layer: nn.Module) -> Hook | None:
        if name in first:
            return first[name]
        if isinstance(layer, _WEIGHTED):
            return rules.scale if _is_scale(layer) else rules.weighted
        if isinstance(layer, _ACTIVATIONS):
            return rules.relu
        if isinstance(layer, _LinearNorm):
            return rules.scale
        return rules.sums if isinstance(layer, (*_AVERAGES, Mean, Sum)) else None

    return select_hook


def _is_scale(layer: nn.Module) -> bool:
    """Return True for a convolution whose every output is one input, scaled and shifted."""
    return (
        isinstance(layer, nn.Conv2d)
        and layer.groups == layer.in_channels == layer.out_channels
        and layer.kernel_size == layer.stride == (1, 1)
        and layer.padding == (0, 0)
    )


def _input_layer_rules(
    network: fx.GraphModule, model: nn.Module, images: Tensor, input_rule: str
) -> dict[str, Hook]:
    """Return the rule of each layer that receives pixels without a weighted layer before it, by name."""
    if input_rule == "same":
        return {}
    # The range of the inputs for z^B: that of pixels in [0, 1], normalized.
    blank = images.new_zeros(1, *images.shape[1:])
    bounds = _bounds(network, normalized(model, blank), normalized(model, blank + 1))
    rules: dict[str, Hook] = {}
    for name, (low, high) in bounds.items():
        layer = network.get_submodule(name)
        if _is_scale(layer):
            rules[name] = Pass()
        elif isinstance(layer, _WEIGHTED):
            rules[name] = _w_squared() if input_rule == "w_squared" else _z_box(low, high)
        else:
            rules[name] = _share_by_range(high - low)
    return rules


@torch.no_grad()
def _bounds(network: fx.GraphModule, low: Tensor, high: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the minimum and maximum input of each layer that has no weighted layer before it, by name.

    All operations before such a layer are monotonic: increasing, or decreasing where a BatchNorm has a negative scale.
    Layers that only pass values on, such as max pooling, have no entry.
    """
    ends = fx.Interpreter(network), fx.Interpreter(network)
    bounds: dict[str, tuple[Tensor, Tensor]] = {}
    for node in network.graph.nodes:
        if node.op == "placeholder":
            for end, pixels in zip(ends, (low, high), strict=True):
                end.env[node] = pixels
        # Weighted layers get no value here, so that all nodes behind them are skipped.
        elif node.op != "output" and all(source in ends[0].env for source in node.all_input_nodes):
            layer = network.get_submodule(node.target) if node.op == "call_module" else None
            if isinstance(layer, Add):
                least, most = (Add.stacked(*(end.env[term] for term in node.args)) for end in ends)
                bounds[f"{node.target}.sum"] = least, most
            elif isinstance(layer, (*_WEIGHTED, *_AVERAGES)):
                least, most = (end.env[node.args[0]] for end in ends)
                bounds[str(node.target)] = least, most
            if layer is None or _is_scale(layer) or not isinstance(layer, _WEIGHTED):
                a, b = (end.run_node(node) for end in ends)
                if isinstance(a, Tensor):
                    a, b = torch.minimum(a, b), torch.maximum(a, b)
                ends[0].env[node], ends[1].env[node] = a, b
    return bounds


def _w_squared() -> Hook:
    """Return the w² rule."""
    return WSquare(_divisor, zero_params="bias")


def _z_box(low: Tensor, high: Tensor) -> Hook:
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
        gradient_mapper=lambda relevance, sums: [relevance / _divisor(sums[0] + sums[1])] * 2,
        reducer=lambda inputs, shares: inputs[0] * shares[0] + inputs[1] * shares[1],
    )


def _share_by_range(ranges: Tensor) -> Hook:
    """Return the rule of an average or an addition of pixels: shares in proportion to the range of each term.

    The shares are equal, except that padded zeros get none. They are not in proportion to x − l, since black pixels
    carry information, too.
    """
    return BasicHook(
        input_modifiers=[lambda terms: ranges.expand_as(terms).clone()],
        param_modifiers=[NoMod(param_keys=[])],
        output_modifiers=[_unchanged],
        gradient_mapper=lambda relevance, sums: [relevance / _divisor(sums[0])],
        reducer=lambda inputs, shares: inputs[0] * shares[0],
    )


def _share_of_its_sign() -> Hook:
    """Return z⁺ for a layer without weights: shares in proportion to the terms that have the sign of their sum.

    zennit's ``ZPlus`` cannot be used, because it pairs negative inputs with negative weights and clamps the weights.
    """

    def shares(relevance: Tensor, sums: list[Tensor]) -> list[Tensor]:
        positive = sums[0] + sums[1] >= 0
        return [relevance * positive / _divisor(sums[0]), relevance * ~positive / _divisor(sums[1])]

    return BasicHook(
        input_modifiers=[lambda terms: terms.clamp(min=0), lambda terms: terms.clamp(max=0)],
        param_modifiers=[NoMod(param_keys=[])] * 2,
        output_modifiers=[_unchanged] * 2,
        gradient_mapper=shares,
        reducer=lambda terms, shares: terms[0] * shares[0] + terms[1] * shares[1],
    )


def _unchanged(output: Tensor) -> Tensor:
    """Return the output."""
    return output


def _not_zero(sums: Tensor) -> Tensor:
    """Return the divisor for terms of both signs, whose small sums are significant: infinity only for 0."""
    return torch.where(sums == 0, torch.inf, sums)


def _divisor(sums: Tensor) -> Tensor:
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
