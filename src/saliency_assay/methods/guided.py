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
    """Return the gradient with every ReLU also blocking what is negative on the way back, ``[N, C, H, W]``.

    R = 1[h > 0] · 1[g > 0] · g at each ReLU (Springenberg et al., 2014). The ReLUs are taken from the graph of
    the forward pass, so a shared, functional or in-place one counts too, and the model is given no hooks. With
    ``times_input`` the result ⊙ x.

    Raises:
        ValueError: no ReLU on the way from the pixels to the logits.
    """
    pixels, score = score_pixels(model, images, targets)
    relus = [node for node in _graph(score) if node.name() == "ReluBackward0"]
    if not relus:
        found = type(model).__name__
        raise ValueError(
            f"guided_backprop: found no ReLU in {found}; without one it is the gradient, use that"
        )
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
    """Guided backpropagation ⊙ GradCAM (with its ReLU), ``[N, C, H, W]``, signed (Selvaraju et al., 2017)."""
    guided = guided_backprop(model, images, targets, generator=generator)
    return guided * gradcam(model, images, targets, generator=generator, upsampling=upsampling)


def _graph(output: Tensor) -> Iterator[torch.autograd.graph.Node]:
    """Every operation that ``output`` was computed by, once."""
    assert output.grad_fn is not None
    waiting, met = [output.grad_fn], {output.grad_fn}
    while waiting:
        node = waiting.pop()
        yield node
        new = {before for before, _ in node.next_functions if before is not None} - met
        met |= new
        waiting += new
