"""Guided backpropagation, and Guided Grad-CAM, its product with Grad-CAM."""

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
"""For nodes that may be ReLUs the attribute that is then 0."""
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

    R = 1[h > 0] · 1[g > 0] · g at each ReLU (Springenberg et al., 2014). The ReLUs are nodes of the autograd graph, so
    shared, functional and in-place ReLUs are included, in the spellings of ``is_relu``, and the model gets no hooks.
    With ``times_input``, the result is multiplied by x.

    Raises:
        ValueError: there is no ReLU between the pixels and the logits, the pixels have no gradient, or an operation
            hides its own operations, among which may be ReLUs.
    """
    pixels, score = _transparent_score(model, images, targets)
    relus = [node for node in graph_nodes(score) if is_relu(node)]
    if not relus and score.requires_grad:
        kind = kind_of(model.network if isinstance(model, Classifier) else model)
        raise ValueError(
            f"guided_backprop: found no ReLU in {kind}; without one the result is the gradient, so use gradient"
        )
    # The backward function of a ReLU already applies 1[h > 0]; clamping its result adds 1[g > 0].
    for node in relus:
        node.register_hook(
            lambda inputs, outputs: tuple(None if each is None else each.clamp(min=0) for each in inputs)
        )
    guided = gradient_of(score, pixels)
    return guided * images.detach() if times_input else guided


def is_relu(node: Node) -> bool:
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


def guided_gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute guided backpropagation ⊙ Grad-CAM (with its ReLU), ``[N, C, H, W]``, signed (Selvaraju et al., 2017)."""
    guided = guided_backprop(model, images, targets, generator=generator)
    return guided * gradcam(model, images, targets, generator=generator, upsampling=upsampling)


def _saved(node: Node, name: str) -> Any:
    return getattr(node, f"_saved_{name}", None)


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
