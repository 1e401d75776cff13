"""Guided backpropagation, and Guided Grad-CAM, its product with Grad-CAM."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from saliency_assay.methods.cam import gradcam
from saliency_assay.methods.differentiate import score_pixels


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
    shared, functional and in-place ReLUs are included, and the model gets no hooks. With ``times_input``, the result is
    multiplied by x.

    Raises:
        ValueError: there is no ReLU between the pixels and the logits.
    """
    pixels, score = score_pixels(model, images, targets)
    relus = [node for node in _graph_nodes(score) if node.name() == "ReluBackward0"]
    if not relus:
        kind = type(model).__name__
        raise ValueError(
            f"guided_backprop: found no ReLU in {kind}; without one the result is the gradient, so use gradient"
        )
    # The backward function of a ReLU already applies 1[h > 0]; clamping its result adds 1[g > 0].
    for node in relus:
        node.register_hook(lambda inputs, outputs: (inputs[0].clamp(min=0),))
    guided = torch.autograd.grad(score, pixels)[0]
    return guided * images.detach() if times_input else guided


def guided_gradcam(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: str = "bilinear",
) -> Tensor:
    """Compute guided backpropagation ⊙ Grad-CAM (with its ReLU), ``[N, C, H, W]``, signed (Selvaraju et al., 2017)."""
    guided = guided_backprop(model, images, targets, generator=generator)
    return guided * gradcam(model, images, targets, generator=generator, upsampling=upsampling)


def _graph_nodes(output: Tensor) -> Iterator[torch.autograd.graph.Node]:
    """Yield each node of the autograd graph of ``output`` once."""
    assert output.grad_fn is not None
    pending, visited = [output.grad_fn], {output.grad_fn}
    while pending:
        node = pending.pop()
        yield node
        new = {source for source, _ in node.next_functions if source is not None} - visited
        visited |= new
        pending += new
