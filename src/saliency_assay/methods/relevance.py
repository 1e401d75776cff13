"""Layer-wise relevance propagation: LRP-αβ, LRP-ε, AttnLRP and deep Taylor decomposition.

A method is a choice of rules, one for each kind of layer. Relevance starts as the target's logit and is propagated back
through ``canonical(model)``, whose BatchNorm is folded, to the normalized image. It is not converted to units of
pixels, because relevance is a share of the logit.
"""

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn

from saliency_assay.methods.attention_layers import attention_layers, outputs_of
from saliency_assay.methods.canonical import (
    ADDS_IMAGES,
    UNFOLDED,
    canonical_for,
    check_form,
    network_of,
    normalized,
    signals,
)
from saliency_assay.methods.differentiate import check_inputs, check_logits
from saliency_assay.methods.layers import Add, MatMul, Mean, Multiply, Reciprocal, Scale, SquareRoot
from saliency_assay.methods.operations import REARRANGEMENTS
from saliency_assay.methods.relevance_rules import (
    WEIGHTED,
    AlphaBeta,
    ByTotal,
    GammaRule,
    LinearNorm,
    PassOn,
    PixelRule,
    PositiveRule,
    Proportional,
    Rule,
    ShareByRange,
    ShareOfItsSign,
    WSquared,
    ZBox,
    by_contribution,
    stabilizer,
)
from saliency_assay.models.classifier import kind_of
from saliency_assay.registry.limits import InputRule, Limits, NonNegativeFloat

_AVERAGES = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample, Mean)
_BY_GRADIENT = (nn.MaxPool2d,)
_KNOWN = (*WEIGHTED, nn.ReLU, *_AVERAGES, *_BY_GRADIENT, Scale)
"""Layers with a rule of LRP-αβ and deep Taylor decomposition; others are ReLUs with a maximum, see ``has_rule``."""
_ACTIVATIONS = (
    *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU),
    *(nn.Mish, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Hardswish, nn.Hardsigmoid, SquareRoot),
)
_NOT_MONOTONIC = (*(nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.PReLU, nn.LayerNorm, nn.Softmax, MatMul),)
_GATES = (nn.Sigmoid, nn.Hardsigmoid)
_OF_BOTH_SIGNS = (*_KNOWN, *_ACTIVATIONS, Reciprocal, nn.LayerNorm, nn.Softmax, Multiply, MatMul)
"""Layers with a rule of LRP-ε, which does not need the positive activations of ReLUs."""


Wrapper: TypeAlias = Callable[[nn.Module, bool], Rule]
"""Function that wraps a layer in a rule; the second argument is True if no input of the layer is negative."""


def is_rectifier(layer: nn.Module) -> bool:
    """Return True for max(x, 0), and for min(max(x, 0), c) as in ReLU6, whose values are never negative either."""
    return isinstance(layer, nn.ReLU) or (
        isinstance(layer, nn.Hardtanh) and layer.min_val == 0 < layer.max_val
    )


@dataclass(frozen=True)
class _Rules:
    """Rules of a method, one for each kind of layer."""

    weighted: Wrapper
    """Rule of linear layers, and of convolutions unless ``convolutions`` is not None."""
    scale: Wrapper
    """Rule of layers whose every output is one input, scaled and shifted: LayerNorm, and a BatchNorm that follows no
    convolution."""
    sums: Wrapper
    """Rule of averages, and of additions unless ``additions`` is not None: linear layers without learned weights."""
    activations: Wrapper | None
    epsilon: float | None = None
    """ε of products; None if there is no rule for layers other than ``_KNOWN``."""
    convolutions: Wrapper | None = None
    additions: Wrapper | None = None
    softmax: Wrapper | None = None
    """Rule of a softmax; None if attention weights and other gates count as constants."""

    def of(self, layer: nn.Module) -> Wrapper | None:
        """Return the rule of a layer, None for its gradient."""
        if isinstance(layer, Scale) and self.scale is WSquared:
            return PassOn  # equal to w² / w² of the only input
        if _is_scale(layer) or isinstance(layer, LinearNorm | Scale):
            return self.scale
        if isinstance(layer, WEIGHTED):
            return (isinstance(layer, nn.Conv2d) and self.convolutions) or self.weighted
        if isinstance(layer, _ACTIVATIONS):
            return self.activations
        if isinstance(layer, nn.Softmax):
            return self.softmax
        if isinstance(layer, Add):
            return self.additions or self.sums
        return self.sums if isinstance(layer, _AVERAGES) else None


def lrp_alpha_beta(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    alpha: Annotated[float, Limits(minimum=1)] = 2.0,
    beta: NonNegativeFloat = 1.0,
    biases: Annotated[str, Limits(choices=("ignored", "counted"))] = "ignored",
    input_rule: InputRule = "z_box",
) -> Tensor:
    """Compute R_i = Σ_j (α z_ij⁺ / Σ_i z_ij⁺ − β z_ij⁻ / Σ_i z_ij⁻) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015).

    z_ij is the contribution of neuron i to neuron j. The default is LRP-α2β1 of Montavon et al. (2018): without biases,
    and with z^B at the layer that receives the pixels. ``counted`` biases are terms of the sums and receive relevance,
    as in Bach et al., equation 60.

    Raises:
        ValueError: the network has no ReLU or a layer without a rule.
    """
    rule = partial(AlphaBeta, alpha=alpha, counts_bias=biases == "counted")
    # No relevance for a term whose sign differs from that of its sum: its relevance would have the opposite sign, and
    # the αβ rule, which is made for active neurons, would then reverse the signs of the relevance it distributes.
    rules = _Rules(rule, PassOn, ShareOfItsSign, PassOn)
    return _propagate(("lrp_alpha_beta", alpha, biases), model, images, targets, rules, input_rule)


def lrp_epsilon(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    epsilon: Annotated[float, Limits(minimum=1e-12)] = 1e-6,
    input_rule: InputRule = "same",
) -> Tensor:
    """Compute R_i = Σ_j z_ij / (z_j + ε sign z_j) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015, equation 58).

    z_ij is the contribution of neuron i to neuron j, z_j the sum of these contributions and the bias. As ε → 0, it
    becomes the gradient ⊙ the normalized image of a ReLU network.

    Attention weights, other gates and the standard deviations of LayerNorm count as constants (Ali et al. 2022,
    sections 3.1 and 3.2; Arras et al. 2017 for gates), and any activation passes relevance on unchanged. Two factors,
    neither of them a gate, get half each.

    Raises:
        ValueError: the network has a layer without a rule.
    """
    proportional = by_contribution(epsilon)
    rules = _Rules(proportional, proportional, by_contribution(), PassOn, epsilon)
    return _propagate(("lrp_epsilon", epsilon), model, images, targets, rules, input_rule)


def attnlrp(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    epsilon: Annotated[float, Limits(minimum=1e-12)] = 1e-6,
    gamma_linear: NonNegativeFloat = 0.05,
    gamma_convolution: NonNegativeFloat = 0.25,
) -> Tensor:
    """Compute AttnLRP, ``[N, C, H, W]``, signed (Achtibat et al., 2024).

    As ``lrp_epsilon``, but attention weights receive relevance, too: half of that of a product goes to each factor
    (proposition 3.3), and a softmax s of x distributes R_i = x_i (R_i − s_i Σ_j R_j) (proposition 3.1). The same halves
    apply to gates. Linear layers and convolutions have the rule γ, or ε where γ is 0.

    Raises:
        ValueError: the network has a layer without a rule.
    """
    linear, convolution = (
        partial(GammaRule, gamma=gamma, epsilon=epsilon) if gamma else by_contribution(epsilon)
        for gamma in (gamma_linear, gamma_convolution)
    )
    rules = _Rules(
        linear,
        by_contribution(epsilon),
        by_contribution(),
        PassOn,
        epsilon,
        convolutions=convolution,
        softmax=by_contribution(),  # x ⊙ Jᵀ(R / s), with J the Jacobian of the softmax, is proposition 3.1
    )
    key = ("attnlrp", epsilon, gamma_linear, gamma_convolution)
    return _propagate(key, model, images, targets, rules, "same")


def attention_relevance(method: str, model: nn.Module, images: Tensor, targets: Tensor) -> list[Tensor]:
    """Return the relevance of the attention weights of every layer, each ``[N, heads, T, T]``.

    Relevance starts as 1 at the target's logit. Linear layers have the rule z⁺, the factors of a product get half the
    relevance each, and the two terms of an addition are scaled to their shares in its total. Softmax, normalizations
    and activations pass relevance on unchanged. Chefer et al. (CVPR 2021), section 3.1, and their released code.
    """
    rules = _Rules(
        PositiveRule,
        PassOn,
        by_contribution(),
        PassOn,
        0.0,
        additions=ByTotal,
        softmax=PassOn,
    )
    form = canonical_for(method, model, images)
    if not form.meta[ADDS_IMAGES]:
        raise ValueError(
            f"{method}: found additions in {kind_of(network_of(model))} in which images are not the first dimension; "
            "expected [images, tokens, width], as with batch_first=True; or use attnlrp"
        )
    names = [str(softmax.target) for softmax, _ in attention_layers(form)]
    network = _prepared((method,), model, images, rules)
    layers = [network.get_submodule(name) for name in names]
    pixels = normalized(model, images).detach().requires_grad_()
    with torch.enable_grad(), outputs_of(layers) as weights:
        logits = network(pixels)
        check_logits(logits, images)
        check_form(method, model, images, logits)
        start = nn.functional.one_hot(targets, logits.shape[1]).to(logits)
        return list(torch.autograd.grad(logits, weights, start))


def deep_taylor(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    rule: Annotated[str, Limits(choices=("z_plus", "w_squared"))] = "z_plus",
    input_rule: InputRule = "z_box",
) -> Tensor:
    """Compute the deep Taylor decomposition, ``[N, C, H, W]``, with the sign of the logit (Montavon et al., 2017).

    R_i = Σ_j q_ij / Σ_i q_ij R_j with q_ij = x_i w_ij where positive (``z_plus``), or w_ij² (``w_squared``); at the
    layer that receives the pixels q_ij = x_i w_ij − l_i w_ij⁺ − h_i w_ij⁻ for pixels from l to h (``z_box``).

    Raises:
        ValueError: the network has no ReLU or a layer without a rule.
    """
    if rule == "z_plus":
        rules = _Rules(AlphaBeta, PassOn, ShareOfItsSign, PassOn)
    else:
        # w² also gives relevance to inactive neurons. The gradient of the ReLU removes it; otherwise the map would
        # depend on the weights alone.
        rules = _Rules(WSquared, WSquared, WSquared, None)
    return _propagate(("deep_taylor", rule), model, images, targets, rules, input_rule)


PREPARED: WeakKeyDictionary[fx.GraphModule, dict[str, tuple[Any, fx.GraphModule]]] = WeakKeyDictionary()
"""For each canonical network, a copy of it with the rules of each method, and the key of their parameters."""


SIGN_DEPENDENT = ("lrp_alpha_beta", "deep_taylor")
"""Methods that treat positive and negative contributions differently, and so those to z and to −z."""


def _propagate(
    key: tuple[Any, ...], model: nn.Module, images: Tensor, targets: Tensor, rules: _Rules, input_rule: str
) -> Tensor:
    """Propagate the target's logit back to the normalized image, ``[N, C, H, W]``; ``key`` is as in ``_prepared``."""
    check_inputs(images, targets)
    bounds = {} if input_rule == "same" else _bounds(canonical_for(key[0], model, images), model, images)
    network = _prepared((*key, input_rule), model, images, rules, bounds)
    for name in bounds:
        layer = network.get_submodule(name)
        if isinstance(layer, PixelRule):
            layer.bounds = bounds[name]
    pixels = normalized(model, images).detach().requires_grad_()
    with torch.enable_grad():
        logits = network(pixels)
        check_logits(logits, images)
        check_form(key[0], model, images, logits)
        # The backward pass of the rules propagates relevance in place of gradients, so it starts with the logit.
        relevance = logits.detach() * nn.functional.one_hot(targets, logits.shape[1])
        return torch.autograd.grad(logits, pixels, relevance)[0]


def _prepared(
    key: tuple[Any, ...], model: nn.Module, images: Tensor, rules: _Rules, first: Collection[str] = ()
) -> fx.GraphModule:
    """Return a copy of the canonical network in which layers are wrapped by their rule.

    The layers ``first`` have the input rule. ``key`` is the name of the method, and the parameters on which the wrapped
    layers depend; the last one is the input rule if there are such layers.

    Raises:
        ValueError: as ``canonical_for``, or the network has a layer without a rule.
    """
    method, original = key[0], canonical_for(key[0], model, images)
    if original.meta.get(UNFOLDED) and method in SIGN_DEPENDENT:
        raise ValueError(
            f"{method}: found a network with one output that is not computed by a linear layer or convolution at its "
            "end; expected that, or use lrp_epsilon"
        )
    copies, key = PREPARED.setdefault(original, {}), (*key, frozenset(first))
    if method not in copies or copies[method][0] != key:
        network = _copy_sharing_tensors(original)
        _check_layers(method, model, network, rules)
        if rules.epsilon is not None:
            _linearize(method, network, rules.epsilon, gates_are_constant=rules.softmax is None)
        not_negative = _not_negative(network)
        with torch.inference_mode(False), torch.no_grad():  # a later caller may need gradients
            for node in network.graph.find_nodes(op="call_module"):
                layer = network.get_submodule(node.target)
                rule = _input_rule(layer, key[-2]) if node.target in first else rules.of(layer)
                if rule is not None:
                    is_positive = not_negative.issuperset(node.all_input_nodes)
                    network.add_submodule(node.target, rule(layer, is_positive))
        copies[method] = key, network
    return copies[method][1]


def _not_negative(network: fx.GraphModule) -> set[fx.Node]:
    """Return nodes whose values are not negative."""
    nodes: set[fx.Node] = set()
    for node in network.graph.nodes:
        layer = network.get_submodule(node.target) if node.op == "call_module" else None
        keeps_sign = isinstance(layer, (*_AVERAGES, *_BY_GRADIENT, Add)) or (
            node.op in ("call_function", "call_method") and node.target in REARRANGEMENTS
        )
        if isinstance(layer, nn.ReLU) or (keeps_sign and nodes.issuperset(node.all_input_nodes)):
            nodes.add(node)
    return nodes


def _layer_names(network: fx.GraphModule) -> list[str]:
    return [str(node.target) for node in network.graph.nodes if node.op == "call_module"]


def _copy_sharing_tensors(network: fx.GraphModule) -> fx.GraphModule:
    """Return a copy that shares all tensors, so that hooks and replaced weights do not affect the cached network."""
    tensors = (*network.parameters(), *network.buffers())
    return copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})


def _check_layers(method: str, model: nn.Module, network: fx.GraphModule, rules: _Rules) -> None:
    kind = kind_of(network_of(model))
    layers = {name: network.get_submodule(name) for name in _layer_names(network)}
    if rules.epsilon is None and not any(map(is_rectifier, layers.values())):
        raise ValueError(
            f"{method}: found no ReLU in {kind}; expected a ReLU network, or lrp_epsilon, or a method that needs "
            f"gradients only, such as integrated_gradients"
        )
    for name, layer in layers.items():
        if not has_rule(layer, rules):
            known = [each.__name__ for each in (_KNOWN if rules.epsilon is None else _OF_BOTH_SIGNS)]
            if rules.epsilon is None and rules.activations is not None:
                known.append("ReLU6 and Hardtanh from 0")
            alternative = "; or use lrp_epsilon" if isinstance(layer, _OF_BOTH_SIGNS) else ""
            raise ValueError(
                f"{method}: found {type(layer).__name__} ({name!r}) in {kind}, which has no rule; "
                f"valid: {', '.join(known)}, BatchNorm, dropout and addition{alternative}"
            )


def has_rule(layer: nn.Module, rules: _Rules) -> bool:
    """Return True if a method with these rules is defined on a layer.

    The gradient of a ReLU, the rule for activations with w², would also set the relevance of active neurons to 0 in a
    ReLU with a maximum.
    """
    if rules.epsilon is not None:
        return isinstance(layer, (*_OF_BOTH_SIGNS, Add))
    return isinstance(layer, (*_KNOWN, Add)) or (rules.activations is not None and is_rectifier(layer))


def _linearize(method: str, network: fx.GraphModule, epsilon: float, *, gates_are_constant: bool) -> None:
    """Replace normalizations by layers that are linear in their input, and products by their rule, in place.

    Raises:
        ValueError: a softmax or another gate that is constant is no factor of a product, so that it would take all
            relevance.
    """
    varying = signals(network.graph)
    constant = set(network.graph.nodes) - varying
    for node in network.graph.nodes:
        if node in constant or node.op in ("placeholder", "output"):
            continue
        layer = network.get_submodule(str(node.target)) if node.op == "call_module" else None
        if isinstance(layer, nn.LayerNorm):
            network.add_submodule(str(node.target), LinearNorm(layer))
        elif (
            # A quotient is linear in its numerator, as LayerNorm is.
            isinstance(layer, Reciprocal)
            or (gates_are_constant and isinstance(layer, nn.Softmax))
            or (gates_are_constant and isinstance(layer, _GATES) and _only_multiplies(network, node))
            or all(source in constant for source in node.all_input_nodes)
        ):
            constant.add(node)
        elif isinstance(layer, Multiply | MatMul):
            vary = [isinstance(factor, fx.Node) and factor not in constant for factor in node.args]
            rule = Proportional(layer, stabilize=stabilizer(epsilon), vary=vary, shares=sum(vary))
            network.add_submodule(str(node.target), rule)

    for node in constant & varying:
        for user in node.users:
            layer = network.get_submodule(str(user.target)) if user.op == "call_module" else None
            if user not in constant and not isinstance(layer, Proportional):
                raise ValueError(
                    f"{method}: found {node.name!r}, a softmax or gate that is no factor of a product; "
                    f"expected logits without softmax; or use integrated_gradients"
                )


def _only_multiplies(network: fx.GraphModule, node: fx.Node) -> bool:
    """Return True if the output of a node, as it is or rearranged, is only used as a factor."""

    def is_factor(user: fx.Node) -> bool:
        layer = network.get_submodule(str(user.target)) if user.op == "call_module" else None
        if isinstance(layer, Scale) or user.target in REARRANGEMENTS:
            return _only_multiplies(network, user)
        return isinstance(layer, Multiply)

    return all(map(is_factor, node.users))


def _is_scale(layer: nn.Module | None) -> bool:
    """Return True for a convolution whose every output is one input, scaled and shifted."""
    return (
        isinstance(layer, nn.Conv2d)
        and layer.groups == layer.in_channels == layer.out_channels
        and layer.kernel_size == layer.stride == (1, 1)
        and layer.padding == (0, 0)
    )


def _input_rule(layer: nn.Module, input_rule: str) -> Wrapper:
    """Return the rule of a layer that receives pixels without a weighted layer before it."""
    if _is_scale(layer):
        return PassOn
    if isinstance(layer, WEIGHTED):
        return WSquared if input_rule == "w_squared" else ZBox
    return ShareByRange


@torch.no_grad()
def _bounds(
    network: fx.GraphModule, model: nn.Module, images: Tensor
) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """Return the minimum and maximum of each input of the layers that have no weighted layer before them, by name.

    Pixels are in [0, 1], and then normalized. Layers that only pass values on, such as max pooling, have no entry.

    Raises:
        ValueError: an operation before such a layer is not monotonic, so that the ends of its input do not give those
            of its output.
    """
    blank = torch.zeros_like(images)  # as many, since a network may split images (``models.grid_settings``)
    low, high = normalized(model, blank), normalized(model, blank + 1)
    varying = signals(network.graph)
    ends = fx.Interpreter(network), fx.Interpreter(network)
    bounds: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for node in network.graph.nodes:
        if node.op == "placeholder":
            for end, pixels in zip(ends, (low, high), strict=True):
                end.env[node] = pixels
        # Weighted layers get no value here, so that all nodes behind them are skipped.
        elif node.op != "output" and all(source in ends[0].env for source in node.all_input_nodes):
            layer = network.get_submodule(node.target) if node.op == "call_module" else None
            factors = sum(source in varying for source in node.all_input_nodes)
            if isinstance(layer, _NOT_MONOTONIC) or (isinstance(layer, Multiply) and factors > 1):
                raise ValueError(
                    f"input_rule: found {type(layer).__name__} ({node.target!r}) before the first convolution or "
                    f"linear layer, expected monotonic operations there; or use input_rule: same"
                )
            if isinstance(layer, (*WEIGHTED, *_AVERAGES, Add)):
                bounds[str(node.target)] = [(ends[0].env[each], ends[1].env[each]) for each in node.args]
            if layer is None or _is_scale(layer) or not isinstance(layer, WEIGHTED):
                a, b = (end.run_node(node) for end in ends)
                if isinstance(a, Tensor):
                    a, b = torch.minimum(a, b), torch.maximum(a, b)
                ends[0].env[node], ends[1].env[node] = a, b
    return bounds
