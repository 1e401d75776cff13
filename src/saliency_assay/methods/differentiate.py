"""Target logits of images and their gradients."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from saliency_assay.models.classifier import probabilities

Predict: TypeAlias = Callable[[Tensor], Tensor]
"""A model ``[B, C, H, W] -> [B, K]``."""
OUTPUTS = ("probability", "logit")
NO_GRADIENT = (
    "model: found no gradient of the logits, expected a network that autograd can follow, without torch.no_grad(), "
    "detach() or operations on integers; or use a method without gradients, such as occlusion or rise"
)


def check_inputs(images: Tensor, targets: Tensor) -> None:
    """Check images and targets of an attribution method.

    Raises:
        ValueError: ``images`` is not floating point ``[N, C, H, W]`` with N >= 1, or ``targets`` not int64 ``[N]``.
    """
    if images.ndim != 4 or not images.is_floating_point() or len(images) == 0:
        raise ValueError(
            f"images: found {describe_tensor(images)}, expected floating point [N, C, H, W] with N >= 1"
        )
    if targets.dtype != torch.int64 or targets.shape != images.shape[:1]:
        raise ValueError(f"targets: found {describe_tensor(targets)}, expected int64 [{len(images)}]")


def check_background(images: Tensor, background: Tensor) -> None:
    """Check the background of a method that takes training images as baselines.

    Raises:
        ValueError: it is not ``[B, C, H, W]`` with B >= 1, of the type and on the device of ``images [N, C, H, W]``.
    """
    shape, kind = list(images.shape[1:]), str(images.dtype).removeprefix("torch.")
    fits = background.dtype == images.dtype and background.device == images.device
    if not fits or background.ndim != 4 or list(background.shape[1:]) != shape or len(background) == 0:
        raise ValueError(
            f"background: found {describe_tensor(background)} on {background.device}, expected {kind} "
            f"[B, {', '.join(map(str, shape))}] on {images.device} with B >= 1"
        )


def check_logits(logits: Tensor, images: Tensor) -> None:
    """Check that a model's output for ``images [N, C, H, W]`` has one row per image.

    Raises:
        ValueError: ``logits`` are not ``[N, K]``.
    """
    if logits.ndim != 2 or len(logits) != len(images):
        raise ValueError(f"model: returned {describe_tensor(logits)}, expected logits [{len(images)}, K]")


def describe_tensor(tensor: Tensor) -> str:
    """Format type and shape for an error message, such as ``float32 [8, 3, 64, 64]``."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def score_pixels(model: Predict, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pixels as the leaf of a new autograd graph, and the sum of the target logits as its root.

    Raises:
        ValueError: the inputs are invalid (see ``check_inputs``), or the model does not return ``[N, K]``.
    """
    check_inputs(images, targets)
    # A detached alias, so that requires_grad of the caller's tensor does not change.
    pixels = images.detach().requires_grad_()
    with torch.enable_grad(), autograd_errors():
        logits = model(pixels)
        check_logits(logits, images)
        return pixels, logits.gather(1, targets[:, None]).sum()


def input_gradient(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Compute the gradient of each image's target logit with respect to its pixels, ``[N, C, H, W]``.

    One backward pass of the sum serves all images, because in evaluation mode no logit depends on another image.
    """
    pixels, score = score_pixels(model, images, targets)
    return gradient_of(score, pixels)


def gradient_of(score: Tensor, values: Tensor) -> Tensor:
    """Return the gradient of a sum of logits with respect to ``values``, such as pixels or a layer's output.

    Raises:
        ValueError: there is none.
    """
    if not (score.requires_grad and values.requires_grad):
        raise ValueError(NO_GRADIENT)
    with autograd_errors():
        gradient = torch.autograd.grad(score, values, allow_unused=True)[0]
    if gradient is None:
        raise ValueError(NO_GRADIENT)
    return gradient


@contextmanager
def autograd_errors() -> Iterator[None]:
    """Raise ``ValueError`` for errors of autograd in a network that can be called without gradients."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if "use_reentrant" in str(error):
            raise ValueError(
                "model: its gradient checkpointing allows no gradient of the pixels; expected "
                "torch.utils.checkpoint.checkpoint(…, use_reentrant=False)"
            ) from error
        raise ValueError(
            f"model: found no gradient of the logits: {str(error).splitlines()[0]}; expected a network that autograd "
            "can follow; or use a method without gradients, such as occlusion or rise"
        ) from error


def logits_of(model: Predict, images: Tensor) -> Tensor:
    """Compute the logits of all classes, ``[N, K]``, without an autograd graph.

    Raises:
        ValueError: the model does not return ``[N, K]``.
    """
    with torch.no_grad():
        logits: Tensor = model(images.detach())
    check_logits(logits, images)
    return logits


def target_logits(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Compute the logit of each image's target, ``[N]``, without gradients.

    Raises:
        ValueError: the model does not return ``[N, K]``.
    """
    return target_outputs(model, images, targets, "logit")


def check_several_outputs(logits: Tensor, output: str) -> None:
    """Raise ``ValueError`` if the ``output`` is constant because the network has a single logit, ``[N, 1]``."""
    if logits.shape[1] == 1 and output != "logit":
        raise ValueError(
            f"output: found {output!r} of a single logit, which is always 1; expected output='logit', or a network "
            "with the logits of at least two classes, such as 0 and this one"
        )


def target_outputs(model: nn.Module, images: Tensor, targets: Tensor, output: str) -> Tensor:
    """Compute the ``output`` of each image's target, its probability or its logit, ``[N]``, without gradients.

    Raises:
        ValueError: unknown ``output``, or a probability of a single logit, or the model does not return ``[N, K]``.
    """
    if output not in OUTPUTS:
        raise ValueError(f"output: found {output!r}, valid: {', '.join(OUTPUTS)}")
    logits = logits_of(model, images)
    check_several_outputs(logits, output)
    values = probabilities(model, logits) if output == "probability" else logits
    return values.gather(1, targets[:, None])[:, 0]


def graph_nodes(output: Tensor) -> Iterator[Node]:
    """Yield each node of the autograd graph of ``output`` once; none if it has no graph."""
    pending = [] if output.grad_fn is None else [output.grad_fn]
    visited = set(pending)
    while pending:
        node = pending.pop()
        yield node
        new = {source for source, _ in node.next_functions if source is not None} - visited
        visited |= new
        pending += new
