"""Layer-wise relevance propagation: LRP-αβ, LRP-ε and deep Taylor decomposition, by zennit's rules.

A method here is a choice of rules, one for each kind of layer. Relevance starts as the target's logit and goes
back through ``canonical(model)``, whose BatchNorm is folded, to the normalised image; nothing brings it back to
the units of pixels, because relevance is a share of the logit and has none.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn
from zennit.core import BasicHook, Composite, Hook, stabilize
from zennit.rules import AlphaBeta, ClampMod, Epsilon, NoMod, Norm, Pass, WSquare, ZPlus

from saliency_assay.methods.canonical import Add, Sum, canonical, normalised
from saliency_assay.methods.differentiate import check_inputs, describe
from saliency_assay.models.classifier import Classifier

BIASES = ("ignored", "counted")
RULES = ("z_plus", "w_squared")
INPUT_RULES = ("z_box", "w_squared", "same")

_WEIGHTED = (nn.Conv2d, nn.Linear)
_AVERAGES = (nn.AvgPool2d, nn.AdaptiveAvgPool2d)
_BY_GRADIENT = (nn.MaxPool2d, nn.AdaptiveMaxPool2d, nn.Flatten, nn.ZeroPad2d)
_KNOWN = (*_WEIGHTED, nn.ReLU, *_AVERAGES, *_BY_GRADIENT)


@dataclass(frozen=True)
class _Rules:
    """What a method does at each kind of layer; None is the gradient."""

    weighted: Hook
    """Convolutions and linear layers."""
    scale: Hook
    """A BatchNorm that follows no convolution: one input, one weight and one bias for each output."""
    sums: Hook
    """Averages and additions: linear layers without weights of their own."""
    relu: Hook | None


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
    """R_i = Σ_j (α z_ij⁺ / Σ_i z_ij⁺ − β z_ij⁻ / Σ_i z_ij⁻) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015).

    z_ij is what neuron i adds to neuron j. By default LRP-α2β1 as Montavon et al. (2018) have it: without biases,
    and with z^B at the layer that sees the pixels. ``counted`` biases are terms of the sums that take their share,
    as in Bach et al., equation 60.

    Raises:
        ValueError: α − β is not 1, a bad ``biases`` or ``input_rule``, or a network without ReLU or with a layer
            that has no rule.
    """
    if beta < 0 or abs(alpha - beta - 1) > 1e-9:
        raise ValueError(
            f"alpha, beta: found {alpha}, {beta}, expected alpha - beta = 1 and beta of at least 0"
        )
    if biases not in BIASES:
        raise ValueError(f"biases: found {biases!r}, valid: {', '.join(BIASES)}")
    zeroed = "bias" if biases == "ignored" else None
    # α - 1 and not β: zennit compares the difference with 1 exactly, which 2.2 - 1.2 is not.
    rule = AlphaBeta(alpha=alpha, beta=alpha - 1, stabilizer=_stabilised, zero_params=zeroed)
    # No relevance for a negative term of an addition: it is a neuron that is off, and α and β, which are made for
    # neurons that fire, would turn the signs of what it was given.
    rules = _Rules(rule, Pass(), _positive_share(), Pass())
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
    """R_i = Σ_j z_ij / (z_j + ε sign z_j) R_j, ``[N, C, H, W]``, signed (Bach et al., 2015, equation 58).

    z_ij is what neuron i adds to neuron j, z_j the sum of them and of the bias. As ε → 0 the gradient ⊙ the
    normalised image.

    Raises:
        ValueError: ε of 0 or less, a bad ``input_rule``, or a network without ReLU or with a layer that has no rule.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon: found {epsilon}, expected above 0")
    rules = _Rules(Epsilon(epsilon), Epsilon(epsilon), Norm(_stabilised), Pass())
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
    """Deep Taylor decomposition, ``[N, C, H, W]``, of the logit's sign (Montavon et al., 2017).

    R_i = Σ_j q_ij / Σ_i q_ij R_j with q_ij = x_i w_ij where positive (``z_plus``), or w_ij² (``w_squared``); at the
    layer that sees the pixels q_ij = x_i w_ij − l_i w_ij⁺ − h_i w_ij⁻ for pixels from l to h (``z_box``).

    Raises:
        ValueError: a bad ``rule`` or ``input_rule``, or a network without ReLU or with a layer that has no rule.
    """
    if rule not in RULES:
        raise ValueError(f"rule: found {rule!r}, valid: {', '.join(RULES)}")
    if rule == "z_plus":
        rules = _Rules(ZPlus(_stabilised, zero_params="bias"), Pass(), _positive_share(), Pass())
    else:
        # w² gives relevance to neurons that are off as well. The ReLU's gradient drops it there: passed on, it
        # would make a map that depends on the weights alone.
        rules = _Rules(_w_squared(), _w_squared(), _w_squared(), None)
    return _propagate("deep_taylor", model, images, targets, rules, input_rule)


def _propagate(
    method: str, model: nn.Module, images: Tensor, targets: Tensor, rules: _Rules, input_rule: str
) -> Tensor:
    """Relevance of the normalised image, from the target's logit down."""
    check_inputs(images, targets)
    if input_rule not in INPUT_RULES:
        raise ValueError(f"input_rule: found {input_rule!r}, valid: {', '.join(INPUT_RULES)}")
    network = _own(canonical(model))
    _check_layers(method, model, network)
    first = _first_rules(network, model, images, input_rule)
    pixels = normalised(model, images).detach().requires_grad_()
    with torch.enable_grad(), Composite(_chooser(rules, first)).context(network):
        logits = network(pixels)
        if logits.ndim != 2 or len(logits) != len(images):
            raise ValueError(f"model: returned {describe(logits)}, expected logits [{len(images)}, K]")
        relevance = logits.detach() * nn.functional.one_hot(targets, logits.shape[1])
        return torch.autograd.grad(logits, pixels, relevance)[0]


def _own(network: fx.GraphModule) -> fx.GraphModule:
    """A copy that shares every tensor, so that hooks and replaced weights never reach the model's own layers."""
    tensors = (*network.parameters(), *network.buffers())
    return copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})


def _check_layers(method: str, model: nn.Module, network: fx.GraphModule) -> None:
    found = type(model.network if isinstance(model, Classifier) else model).__name__
    names = [str(node.target) for node in network.graph.nodes if node.op == "call_module"]
    layers = {name: network.get_submodule(name) for name in names}
    if not any(isinstance(layer, nn.ReLU) for layer in layers.values()):
        raise ValueError(
            f"{method}: found no ReLU in {found}; expected a ReLU network, or a method that needs gradients "
            f"only, such as integrated_gradients"
        )
    for name, layer in layers.items():
        if not isinstance(layer, (*_KNOWN, Add)):
            valid = ", ".join(kind.__name__ for kind in _KNOWN)
            raise ValueError(
                f"{method}: found {type(layer).__name__} ({name!r}) in {found}, which has no rule; valid: {valid}, "
                f"BatchNorm, dropout and addition"
            )


def _chooser(rules: _Rules, first: dict[str, Hook]) -> Callable[..., Hook | None]:
    """The rule of each layer, in the form that zennit's ``Composite`` asks for it."""

    def choose(context: object, name: str, layer: nn.Module) -> Hook | None:
        if name in first:
            return first[name]
        if isinstance(layer, _WEIGHTED):
            return rules.scale if _is_scale(layer) else rules.weighted
        if isinstance(layer, nn.ReLU):
            return rules.relu
        return rules.sums if isinstance(layer, (*_AVERAGES, Sum)) else None

    return choose


def _is_scale(layer: nn.Module) -> bool:
    """Whether each output of a convolution is one input, scaled and shifted."""
    return (
        isinstance(layer, nn.Conv2d)
        and layer.groups == layer.in_channels == layer.out_channels
        and layer.kernel_size == (1, 1)
    )


def _first_rules(
    network: fx.GraphModule, model: nn.Module, images: Tensor, input_rule: str
) -> dict[str, Hook]:
    """The rule of each layer with weights that sees the pixels, by name."""
    if input_rule == "same":
        return {}
    blank = images.new_zeros(1, *images.shape[1:])
    low, high = (_at_first_layers(network, normalised(model, blank + value)) for value in (0, 1))
    if input_rule == "w_squared":
        return {name: _w_squared() for name in low}
    return {name: _z_box(low[name], high[name]) for name in low}


@torch.no_grad()
def _at_first_layers(network: fx.GraphModule, pixels: Tensor) -> dict[str, Tensor]:
    """What the layers with weights that see ``pixels`` through none before them are given, by name.

    All that lies before them keeps order, so that the lowest and the highest image give the bounds of their inputs.
    """
    interpreter = fx.Interpreter(network)
    given: dict[str, Tensor] = {}
    for node in network.graph.nodes:
        if node.op == "placeholder":
            interpreter.env[node] = pixels
        elif node.op != "output" and all(before in interpreter.env for before in node.all_input_nodes):
            layer = network.get_submodule(node.target) if node.op == "call_module" else None
            if isinstance(layer, _WEIGHTED):
                given[str(node.target)] = interpreter.env[node.all_input_nodes[0]]
            else:
                interpreter.env[node] = interpreter.run_node(node)
    return given


def _w_squared() -> Hook:
    return WSquare(_stabilised, zero_params="bias")


def _z_box(low: Tensor, high: Tensor) -> Hook:
    """z^B as (x − l) w⁺ + (x − h) w⁻, whose terms are never negative.

    zennit's ``ZBox`` is x w − l w⁺ − h w⁻. Where a neuron sees nothing but pixels at their bounds, that is the
    rounding of a difference of large numbers, and divided by it the relevance around is lost.
    """
    return BasicHook(
        input_modifiers=[lambda pixels: pixels - low, lambda pixels: pixels - high],
        param_modifiers=[ClampMod(min=0.0, zero_params="bias"), ClampMod(max=0.0, zero_params="bias")],
        output_modifiers=[_as_it_is] * 2,
        gradient_mapper=lambda relevance, sums: [relevance / _stabilised(sums[0] + sums[1])] * 2,
        reducer=lambda inputs, shares: inputs[0] * shares[0] + inputs[1] * shares[1],
    )


def _positive_share() -> Hook:
    """z⁺ of a layer without weights: relevance goes to the positive terms of a sum, in proportion.

    zennit's ``ZPlus`` pairs negative inputs with negative weights, and here is no weight to clamp.
    """
    return BasicHook(
        input_modifiers=[lambda terms: terms.clamp(min=0)],
        param_modifiers=[NoMod(param_keys=[])],
        output_modifiers=[_as_it_is],
        gradient_mapper=lambda relevance, sums: [relevance / _stabilised(sums[0])],
        reducer=lambda terms, shares: terms[0] * shares[0],
    )


def _as_it_is(output: Tensor) -> Tensor:
    return output


def _stabilised(denominator: Tensor) -> Tensor:
    """Away from zero, so that 0 / 0 is 0, by so little that no relevance is lost to it."""
    shifted: Tensor = stabilize(denominator, torch.finfo(denominator.dtype).tiny ** 0.5)
    return shifted
