"""FullGrad: gradient ⊙ input and gradient ⊙ bias of all layers, as one map.

A network of convolutions, linear layers, ReLUs, poolings and additions is linear near an image, with an offset to which
each bias contributes. Its logit is therefore the sum of the gradient ⊙ the input and, over all layers with a bias, of
the bias ⊙ the gradient with respect to the layer's output: the full gradient. Another activation function η is replaced
by its tangent at its input z, whose offset η(z) − η′(z) z is the function's implicit bias.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor, fx, nn
from torch.nn.functional import interpolate

from saliency_assay.methods.canonical import (
    canonical_for,
    check_form,
    network_of,
    normalized,
    signals,
)
from saliency_assay.methods.differentiate import autograd_errors, check_inputs, check_logits, gradient_of
from saliency_assay.methods.feature_maps import minimum_and_span, rescaled
from saliency_assay.methods.layers import Add, Mean, Scale
from saliency_assay.models.classifier import kind_of
from saliency_assay.models.grid_settings import PartlyConnected, of_grid
from saliency_assay.registry.limits import Limits

RESCALINGS = {"layer": (1, 2, 3), "channel": (2, 3)}
"""For each value of ``rescale``, the dimensions over which values are rescaled together."""

_LAYERS = (
    *(nn.Conv2d, nn.Linear, nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.MaxPool2d),
    *(nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample, Mean, Scale),
)
"""Layers that are linear piece by piece, with no offset but their bias; another one is ``Add``."""
_WITH_OFFSET = (
    *(nn.ReLU6, nn.Hardtanh, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid),
    *(nn.Softplus, nn.Hardswish, nn.Hardsigmoid),
)
"""Activation functions with an implicit bias."""


def fullgrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    rescale: Annotated[str, Limits(choices=("layer", "channel"))] = "layer",
) -> Tensor:
    """Compute Σ_c ψ(∇f_t ⊙ x)_c + Σ_l Σ_c ψ(b_l ⊙ ∂f_t / ∂z_l)_c, ``[N, 1, H, W]``, at least 0.

    x is the normalized image, z_l the output of layer l, b_l its bias, and c runs over channels. ψ takes absolute
    values, rescales them linearly to [0, 1] for each image and resizes them to the image. Srinivas & Fleuret (2019),
    section 4. Values are rescaled over all channels of a ``layer`` together, as in the released code, or over each
    ``channel`` by itself, as in the equation. BatchNorm is folded into the layer before it, and its offset is part of
    this layer's bias. Activation functions whose tangent has an offset, their implicit bias, are layers with a bias.
    Biases of linear layers, and of activations of one vector per image, have no position, so they are left out.

    Raises:
        ValueError: a layer whose offset is not its bias, or a network whose head receives a part of the last layer.
    """
    check_inputs(images, targets)
    if isinstance(network_of(model), PartlyConnected):
        raise ValueError(
            "fullgrad: found a head of one cell (dipart), whose biases have another size than the grid"
        )
    network = canonical_for("fullgrad", model, images)
    _check_layers(network, kind_of(network_of(model)))
    sums: dict[torch.Size, Tensor] = {}

    def add(name: str, term: Tensor) -> None:
        if term.ndim == 4 and not isinstance(network.get_submodule(name), nn.Linear):
            # Summed over channels and layers of the same size before they are resized, which is linear.
            layer = _rescaled_sum(of_grid(network_of(model), term).abs_(), RESCALINGS[rescale])
            size = layer.shape[2:]
            sums[size] = sums[size] + layer if size in sums else layer

    of_input, logits = full_gradient(network, normalized(model, images), targets, add)
    check_form("fullgrad", model, images, logits)
    maps = _rescaled_sum(of_input.abs_(), RESCALINGS[rescale])
    for layers in sums.values():
        maps = maps + interpolate(layers, size=images.shape[2:], mode="bilinear")
    return maps


def _rescaled_sum(values: Tensor, dimensions: tuple[int, ...]) -> Tensor:
    """Return the sum over the channels of ``rescaled`` values ``[N, K, h, w]``, ``[N, 1, h, w]``."""
    if 1 not in dimensions:
        return rescaled(values, dimensions).sum(1, keepdim=True)
    low, span = minimum_and_span(values, dimensions)  # one of each for all channels, which are summed first
    return (values.sum(1, keepdim=True) - values.shape[1] * low) / span


def full_gradient(
    network: fx.GraphModule, inputs: Tensor, targets: Tensor, receive: Callable[[str, Tensor], None]
) -> tuple[Tensor, Tensor]:
    """Return ∇f_t(x) ⊙ x, ``[N, C, H, W]``, and the logits, ``[N, K]``; pass the terms of biases to ``receive``.

    The term of the bias b of a layer z is b ⊙ ∂f_t / ∂z. The implicit bias of an activation function η of z is
    η(z) − η′(z) z, and the constant in an addition is a bias, too.
    ``receive`` is called with the name of the layer and the term, ``[N, ...]``, from the last layer to the first, so
    that the gradients of all layers are not in memory at once. ``network`` is in canonical form, ``inputs`` are
    normalized images. If the network has the layers of ``_LAYERS`` and ``_WITH_OFFSET`` and additions, all terms of an
    image sum to f_t(x) (completeness).

    Raises:
        ValueError: the network does not return ``[N, K]``.
    """
    inputs = inputs.detach().requires_grad_()
    with torch.enable_grad(), autograd_errors():
        logits = _BiasHooks(network, receive).run(inputs)
        check_logits(logits, inputs)
        score = logits.gather(1, targets[:, None]).sum()
    return inputs.detach() * gradient_of(score, inputs), logits.detach()


class _BiasHooks(fx.Interpreter):
    """Interpreter that passes the terms of all biases to ``receive`` when the gradients are computed."""

    def __init__(self, network: fx.GraphModule, receive: Callable[[str, Tensor], None]) -> None:
        super().__init__(network)
        self.varying = signals(network.graph)
        self.receive = receive

    def run_node(self, n: fx.Node) -> Any:
        output = super().run_node(n)
        layer = self.fetch_attr(str(n.target)) if n.op == "call_module" and n in self.varying else None
        is_linear = isinstance(layer, nn.Linear)
        if (is_linear or isinstance(layer, _WITH_OFFSET)) and output.ndim not in (
            (2,) if is_linear else (2, 4)
        ):
            valid = "one vector per image" + ("" if is_linear else " or feature maps")
            raise ValueError(
                f"fullgrad: found {type(layer).__name__} ({n.target!r}) that returns {list(output.shape)}, expected "
                f"{valid}; or use integrated_gradients"
            )
        bias = None if layer is None else self._bias(n)
        if bias is not None:
            # Without a reference to this object, which keeps the logits: a cycle through the autograd graph, which the
            # garbage collector does not see, would never be released.
            output.register_hook(partial(_pass_term, self.receive, str(n.target), bias.detach()))
        return output

    def _bias(self, node: fx.Node) -> Tensor | None:
        """Return the bias of a layer in a shape that can be broadcast to its output; None if it has none."""
        layer = self.fetch_attr(str(node.target))
        if isinstance(layer, nn.Conv2d):
            return None if layer.bias is None else layer.bias[:, None, None]
        if isinstance(layer, nn.Linear):
            return layer.bias
        if isinstance(layer, _WITH_OFFSET):
            inputs = self.env[node.all_input_nodes[0]].detach().requires_grad_()
            values = layer(inputs)
            offset = values.detach() - torch.autograd.grad(values.sum(), inputs)[0] * inputs.detach()
            # Rounding errors, where η is linear through 0, could be all of a channel that is rescaled to [0, 1].
            rounding = 4 * torch.finfo(offset.dtype).eps * values.detach().abs()
            return torch.where(offset.abs() > rounding, offset, 0)
        constants = [term for term in node.all_input_nodes if term not in self.varying]
        return self.env[constants[0]] if isinstance(layer, Add) and constants else None


def _pass_term(receive: Callable[[str, Tensor], None], name: str, bias: Tensor, gradient: Tensor) -> None:
    receive(name, bias * gradient)


def _check_layers(network: fx.GraphModule, kind: str) -> None:
    """Check that the full gradient of a canonical network, that of a ``kind``, is complete."""
    varying = signals(network.graph)
    permutation = next((node.name for node in network.graph.nodes if node.target is torch.permute), "")
    for node in network.graph.nodes:
        if node not in varying or node.op in ("placeholder", "output"):
            continue
        layer = network.get_submodule(str(node.target)) if node.op == "call_module" else None
        if layer is not None and not isinstance(layer, (*_LAYERS, *_WITH_OFFSET, Add)):
            valid = ", ".join(supported.__name__ for supported in (*_LAYERS, *_WITH_OFFSET))
            raise ValueError(
                f"fullgrad: found {type(layer).__name__} ({node.target!r}) in {kind}, whose offset is not a bias; "
                f"valid: {valid}, BatchNorm, dropout and addition; or use integrated_gradients"
            )
        has_constant = isinstance(layer, Add) and not varying.issuperset(node.all_input_nodes)
        if permutation and (has_constant or isinstance(layer, _WITH_OFFSET)):
            raise ValueError(
                f"fullgrad: found {permutation!r} in {kind}, which permutes dimensions, and the offset of "
                f"{node.name!r}, whose channels are then unknown; or use integrated_gradients"
            )
        is_join = node.target is torch.cat
        if is_join and not varying.issuperset(node.all_input_nodes):
            raise ValueError(
                f"fullgrad: found {node.name!r} in {kind}, which joins a constant to activations; expected "
                f"activations alone; or use integrated_gradients"
            )
