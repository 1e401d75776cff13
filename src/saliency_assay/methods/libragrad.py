"""LibraGrad: gradients of vision transformers whose nonlinear factors count as constants or share the gradient."""

from typing import Any

import torch
from torch import Tensor, fx, nn

from saliency_assay.methods.attention import network_with_attention, on_grid
from saliency_assay.methods.canonical import check_form, network_of, normalized, signals
from saliency_assay.methods.differentiate import check_inputs, check_logits
from saliency_assay.methods.layers import Add, MatMul, Mean, Multiply, Reciprocal, Scale
from saliency_assay.methods.relevance_rules import LinearNorm
from saliency_assay.methods.residual_stream import embedded_patches
from saliency_assay.models.classifier import kind_of
from saliency_assay.registry.limits import Upsampling

_PRODUCTS = (Multiply, MatMul)
_PRUNED = (nn.Softmax, nn.Sigmoid, nn.Hardsigmoid, Reciprocal)
"""Layers whose output counts as a constant, since it weights another factor."""
_GATED = (nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish)
"""Activations x ⊙ g(x)."""
_PIECEWISE_LINEAR = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ReLU6, nn.Hardtanh)
_LINEAR = (
    *(nn.Linear, nn.Conv2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.MaxPool2d, nn.Upsample),
    *(Add, Mean, Scale),
)
_SUPPORTED = (nn.LayerNorm, *_PRUNED, *_GATED, *_PIECEWISE_LINEAR, *_PRODUCTS, *_LINEAR)


def libragrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute Libra Input × Grad, Σ_d x_td ∂̃f / ∂x_td for each patch t, upsampled to ``[N, 1, H, W]``, signed.

    x_t are the embedded patches: the input of the first block, with position embeddings. In the gradient ∂̃, attention
    weights, the gates g(x) of activations x ⊙ g(x) such as GELU, and the standard deviations of LayerNorm count as
    constants, and the gradient of any other product of two activations is halved. The values of all tokens, with
    gradient ⊙ bias of every layer after the embedding, sum to the logit. Mehri et al. (2025).

    Raises:
        ValueError: the network has no attention or a layer without a rule, or other than one sequence of tokens enters
            its first block.
    """
    check_inputs(images, targets)
    network, calls = network_with_attention("libragrad", model, images)
    start = embedded_patches(network, calls[0][0])
    run = _Balanced(network, start, _products(model, network, start))
    with torch.enable_grad():
        logits = run.run(normalized(model, images.detach()))
        check_logits(logits, images)
        check_form("libragrad", model, images, logits)
        tokens = run.tokens
        if tokens.ndim != 3 or len(tokens) != len(images):
            raise ValueError(
                f"libragrad: found {list(tokens.shape)} before the first attention of {kind_of(network_of(model))}, "
                f"expected tokens [{len(images)}, tokens, width]; or use lrp_epsilon"
            )
        gradient = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), tokens)[0]
    rows = (tokens.detach() * gradient).sum(2)
    return on_grid(model, rows[:, None], images, upsampling, relu=False)


def _products(model: nn.Module, network: fx.GraphModule, start: fx.Node) -> set[str]:
    """Return the names of the products after ``start`` whose factors both have gradients.

    Raises:
        ValueError: a layer after ``start`` has no rule, or a value that counts as a constant is no factor of a product.
    """
    kind, varying = kind_of(network_of(model)), signals(network.graph)
    products: set[str] = set()
    pruned: set[fx.Node] = set()
    node = start
    while node.op != "output":
        node = node.next
        if node not in varying:
            continue
        layer = network.get_submodule(str(node.target)) if node.op == "call_module" else None
        if layer is not None and not isinstance(layer, _SUPPORTED):
            valid = ", ".join(supported.__name__ for supported in _SUPPORTED)
            raise ValueError(
                f"libragrad: found {type(layer).__name__} ({node.target!r}) in {kind}, which has no rule; valid: "
                f"{valid}; or use integrated_gradients"
            )
        sources = [source for source in node.all_input_nodes if source in varying]
        constants = [source for source in sources if source in pruned]
        if constants and (
            node.op == "output" or (len(constants) < len(sources) and not isinstance(layer, _PRODUCTS))
        ):
            raise ValueError(
                f"libragrad: found {constants[0].name!r} in {kind}, a softmax or gate that is no factor of a product; "
                "expected logits without softmax; or use integrated_gradients"
            )
        if isinstance(layer, _PRUNED) or len(constants) == len(sources):
            pruned.add(node)
        elif (
            isinstance(layer, _PRODUCTS)
            and not constants
            and len(node.args) == sum(a in varying for a in node.args)
        ):
            products.add(str(node.target))
    return products


class _Balanced(fx.Interpreter):
    """Runs a network whose values are unchanged and whose gradients for the tokens are those of LibraGrad."""

    def __init__(self, network: fx.GraphModule, start: fx.Node, products: set[str]) -> None:
        super().__init__(network)
        self.start, self.products = start, products
        self.tokens = torch.empty(0)

    def run_node(self, node: fx.Node) -> Any:
        """Return the value of a node; the gradient ends at the tokens."""
        value = super().run_node(node)
        if node is self.start:
            value = self.tokens = value.detach().requires_grad_()
        return value

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the output of a layer, with the gradient by its rule."""
        layer = self.module.get_submodule(target)
        if isinstance(layer, nn.LayerNorm):
            return LinearNorm(layer)(args[0])
        if isinstance(layer, _GATED):
            return args[0] * _gate(args[0].detach(), layer)
        output = layer(*args)
        if isinstance(layer, _PRUNED):
            return output.detach()
        if target in self.products:
            output.register_hook(lambda gradient: gradient / 2)
        return output


def _gate(values: Tensor, activation: nn.Module) -> Tensor:
    """Return g(x) of an activation x ⊙ g(x)."""
    values = torch.where(values == 0, torch.finfo(values.dtype).eps, values)
    gate: Tensor = activation(values) / values
    return gate
