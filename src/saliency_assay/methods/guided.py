"""Guided backpropagation, and Guided Grad-CAM, its product with Grad-CAM."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node
from torch.jit._fuser import optimized_execution

from saliency_assay.methods.cam import gradcam
from saliency_assay.methods.differentiate import gradient_of, graph_nodes, score_pixels
from saliency_assay.models.classifier import Classifier, kind_of
from saliency_assay.models.inference import uncompiled
from saliency_assay.registry.limits import Upsampling

IN_PLACE_OF_VIEW = "CopySlices"
_LOWER_END = {
    **dict.fromkeys(("ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ClampMinBackward1"), "min"),
    "HardtanhBackward0": "min_val",
    "ThresholdBackward0": "threshold",
    "LeakyReluBackward0": "negative_slope",
}
"""For nodes that may be rectifiers the attribute that is then 0."""
UNDEFINED = {
    **{"LeakyRelu": "LeakyReLU", "PreluKernel": "PReLU", "RreluWithNoise": "RReLU", "Elu": "ELU or SELU"},
    **{"Celu": "CELU", "Softplus": "Softplus", "Hardswish": "Hardswish", "Silu": "SiLU", "Gelu": "GELU"},
    **{"Mish": "Mish", "LogSigmoid": "LogSigmoid", "Softshrink": "Softshrink", "Hardshrink": "Hardshrink"},
    "Threshold": "Threshold",
}
"""Operations of activation functions without a rule, unless ``is_rectifier``, and the functions' names."""
SATURATING = {
    **{"Sigmoid": "Sigmoid", "Hardsigmoid": "Hardsigmoid", "Tanh": "Tanh"},
    **dict.fromkeys(("Hardtanh", "Clamp"), "Hardtanh"),
}
"""As ``UNDEFINED``, but of functions that need no rule as gates and at the output."""
_NOT_LINEAR = {*SATURATING, "ClampMin", "Softplus", "Erf", "Abs"}
_ELEMENTWISE = {
    *(*_NOT_LINEAR, "Mul", "Div", "Add", "Sub", "Rsub", "Neg", "Clone", "ToCopy", "Expand", "View"),
    *("UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Permute", "Transpose"),
    *("UpsampleNearest2D", "UpsampleBilinear2D"),
}
"""Operations that give every value a function of one other value, or move or interpolate values."""
HIDING = (IN_PLACE_OF_VIEW, "DifferentiableGraphBackward", "NotImplemented")
"""Names of nodes that hide operations: the second merges those of TorchScript, the third has no derivative."""


def guided_backprop(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    times_input: bool = False,
) -> Tensor:
    """Compute the gradient with negative gradients set to 0 at every ReLU, ``[N, C, H, W]``.

    R = 1[h > 0] · 1[g > 0] · g at each ReLU (Springenberg et al., 2014), and 1[0 < h < c] · 1[g > 0] · g at one with a
    maximum c, such as ReLU6. The ReLUs are nodes of the autograd graph, so shared, functional and in-place ReLUs are
    included, in the spellings of ``is_rectifier``, and the model gets no hooks. With ``times_input``, the result is
    multiplied by x.

    Raises:
        ValueError: there is no ReLU between the pixels and the logits, or another activation function besides
            (``undefined_activation``), the pixels have no gradient, or an operation hides its own operations.
    """
    pixels, score = _transparent_score(model, images, targets)
    nodes = list(graph_nodes(score))
    relus = [node for node in nodes if is_rectifier(node)]
    kind = kind_of(model.network if isinstance(model, Classifier) else model)
    if not relus and score.requires_grad:
        raise ValueError(
            f"guided_backprop: found no ReLU in {kind}; without one the result is the gradient, so use gradient"
        )
    if undefined := undefined_activation(nodes):
        raise ValueError(
            f"guided_backprop: found ReLU and {undefined} in {kind}; the rule is defined for ReLU and for ReLU with a "
            "maximum, such as ReLU6, alone; or use gradient"
        )
    # The backward function of a ReLU already applies 1[h > 0]; clamping its result adds 1[g > 0].
    for node in relus:
        node.register_hook(
            lambda inputs, outputs: tuple(None if each is None else each.clamp(min=0) for each in inputs)
        )
    guided = gradient_of(score, pixels)
    return guided * images.detach() if times_input else guided


def is_rectifier(node: Node) -> bool:
    """Return True if a node of the autograd graph is max(x, 0), or min(max(x, 0), c) as in ReLU6.

    Recognized are relu, clamp, clamp_min, threshold, hardtanh and ReLU6, leaky_relu with slope 0, and maximum and fmax
    with a constant 0; not recognized are products with masks and selections such as where(x > 0, x, 0).
    """
    name = node.name()
    if name in ("MaximumBackward0", "FmaxBackward0"):
        operands = zip(node.next_functions, (_saved(node, "self"), _saved(node, "other")), strict=True)
        return any(source is None and not torch.any(values) for (source, _), values in operands)
    if name in _LOWER_END:
        end = _saved(node, _LOWER_END[name])
        return end is not None and not torch.any(torch.as_tensor(end))
    return name == "ReluBackward0"


def undefined_activation(nodes: Iterable[Node]) -> str:
    """Return the name of an activation function without a rule among nodes of an autograd graph; empty if none.

    It is neither a rectifier (``is_rectifier``) nor a saturating function that is a gate (a factor of a product) or
    computes the outputs. Functions that are written as a product of x and a function of x, such as x · sigmoid(x), are
    included, and so are gates of clamp or ReLU6, whose node would otherwise count as a rectifier.
    """
    saturating: dict[Node, str] = {}
    gates: set[Node] = set()
    for node in nodes:
        operation = _operation(node)
        if operation in UNDEFINED and not is_rectifier(node):
            return UNDEFINED[operation]
        if operation in SATURATING and not is_rectifier(node) and _is_saturating(node):
            saturating[node] = SATURATING[operation]
        if operation in ("Mul", "Div", "Bmm", "Mm", "Gather"):  # Gather selects the targets' logits
            paths = [_path(source) for source in _sources(node)]
            if len(paths) == 2 and (name := _gated(*paths)):
                return name
            if len(paths) == 2 or operation == "Gather":
                gates.update(source for path in paths for source, _ in path)
    return next((name for node, name in saturating.items() if node not in gates), "")


def guided_gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
    layer: str = "",
) -> Tensor:
    """Compute guided backpropagation ⊙ Grad-CAM of ``layer``, as there, ``[N, C, H, W]`` (Selvaraju et al., 2017)."""
    guided = guided_backprop(model, images, targets, generator=generator)
    return guided * gradcam(model, images, targets, generator=generator, upsampling=upsampling, layer=layer)


def _saved(node: Node, name: str) -> Any:
    return getattr(node, f"_saved_{name}", None)


def _operation(node: Node) -> str:
    """Return the name of a node's operation, such as ``Mul`` for ``MulBackward0``."""
    return node.name().partition("Backward")[0]


def _sources(node: Node) -> list[tuple[Node, int]]:
    """Return a node's arguments but constants and parameters, each as a node and the number of one of its outputs."""
    return [
        (source, output)
        for source, output in node.next_functions
        if source is not None and not source.name().endswith("AccumulateGrad")
    ]


def _is_saturating(node: Node) -> bool:
    """Return True unless a node is a clamp that is no Hardtanh, such as one that keeps a divisor from 0."""
    low, high = (_saved(node, name) for name in ("min", "max"))
    is_hardtanh = None not in (low, high) and bool(torch.all(torch.as_tensor(low) < 0))
    return is_hardtanh or _operation(node) != "Clamp"


def _path(value: tuple[Node, int]) -> list[tuple[Node, int]]:
    """Return a value of the graph and, in order, those of which each of its elements is a function of one element."""
    path = [value]
    while _operation(path[-1][0]) in _ELEMENTWISE and len(sources := _sources(path[-1][0])) == 1:
        path += sources
    return path


def _gated(*factors: list[tuple[Node, int]]) -> str:
    """Return the name of the activation function that is written as a product; empty if none."""
    shared = next((value for value in factors[0] if value in factors[1]), None)
    for path in factors:
        operations = [_operation(node) for node, _ in path]
        if shared and _NOT_LINEAR.intersection(operations[: path.index(shared)]):
            return "a product of x and a function of x"
        for position, (node, _) in enumerate(path):
            high = _saved(node, "max_val" if operations[position] == "Hardtanh" else "max")
            if high is not None and is_rectifier(node):
                is_scaled = not {"Mul", "Div"}.isdisjoint(operations[:position])
                if is_scaled or bool(torch.all(torch.as_tensor(high) == 1)):
                    return "a gate of clamp or ReLU6 (Hardsigmoid)"
    return ""


def _transparent_score(model: nn.Module, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``score_pixels`` with all operations of the network in the autograd graph.

    Raises:
        ValueError: an operation hides others, such as a function of ``torch.autograd.Function``.
    """
    # TorchScript's optimizer would merge operations.
    with uncompiled(), optimized_execution(False):
        pixels, score = score_pixels(model, images, targets)
        opaque = _opaque(score)
        if opaque == IN_PLACE_OF_VIEW:  # out of place, the function would be in the graph
            try:
                pixels, score = score_pixels(
                    torch.func.functionalize(model, remove="mutations"), images, targets
                )
                opaque = _opaque(score).replace("NotImplemented", IN_PLACE_OF_VIEW)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, ValueError):  # a function that cannot be functionalized
                pass
    if opaque:
        raise ValueError(
            f"guided_backprop: found {opaque}, which hides its operations and so their ReLUs; expected PyTorch's own "
            "operations, or use gradient"
        )
    return pixels, score


def _opaque(score: Tensor) -> str:
    """Return the name of an operation in the autograd graph that hides others; empty if there is none."""
    names = {
        node.name().rpartition("::")[2]
        for node in graph_nodes(score)
        if isinstance(node, BackwardCFunction) or node.name().endswith(HIDING)
    }
    # One that cannot be avoided comes first.
    return min(names, key=lambda name: name == IN_PLACE_OF_VIEW, default="")
