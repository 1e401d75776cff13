"""The gradient of the target's logit, what is read off it directly, and guided backpropagation."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as colour
from saliency_assay.methods.differentiate import input_gradient, score_pixels


def gradient(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """∂f_t(x) / ∂x: the gradient of the target's logit, ``[N, C, H, W]``, signed (Simonyan et al., 2013)."""
    return input_gradient(model, images, targets)


def sensitivity(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """max_c |∂f_t(x) / ∂x_c|: the largest slope over the channels, ``[N, 1, H, W]``, ≥ 0.

    The class saliency map of Simonyan et al. (2013), section 3.1; "sensitivity" in Tomsett et al. (2020).
    """
    return input_gradient(model, images, targets).abs().amax(1, keepdim=True)


def gradient_x_input(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator, baseline: str = "black"
) -> Tensor:
    """(x − x′) ⊙ ∂f_t(x) / ∂x, x′ the baseline, ``[N, C, H, W]``, signed (Shrikumar et al., 2016).

    With x′ black, on a ReLU network without biases behind no normalisation, it sums to the logit.
    """
    slopes = input_gradient(model, images, targets)
    return (images.detach() - colour(model, images, baseline)) * slopes


def guided_backprop(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    times_input: bool = False,
) -> Tensor:
    """The gradient with every ReLU also blocking what is negative on the way back, ``[N, C, H, W]``.

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
