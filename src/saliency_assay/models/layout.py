"""The memory format in which a network takes images, found by a trial pass before anything is computed.

Channels-last images make convolutions faster, but ``x.view(len(x), -1)`` and hand-written kernels refuse them.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.inference import evaluating, to_pixels

log = logging.getLogger(__name__)


def place(
    classifier: Classifier, device: torch.device, size: Sequence[int], *, training: bool = False
) -> Classifier:
    """Move ``classifier`` to ``device``, its weights in the memory format that it takes; see ``adapt``."""
    # torch's stubs know the memory format of tensors alone.
    classifier.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    adapt(classifier, size, training=training)
    classifier.to(memory_format=classifier.memory_format)
    return classifier


def adapt(classifier: Classifier, size: Sequence[int], *, training: bool = False) -> None:
    """Give the network contiguous images from now on, and its weights likewise, if it fails with channels-last ones.

    One forward and backward pass of two images of height and width ``size`` tells, with ``training`` one in training
    mode, too. A network that fails either way is left to fail where it is used. Modes, buffers, gradients and random
    numbers are as before.
    """
    classifier.memory_format = torch.channels_last
    failure = _failure(classifier, size, training)
    if failure is None:
        return
    weights = [parameter.data for parameter in classifier.parameters()]
    classifier.memory_format = torch.contiguous_format
    classifier.to(memory_format=torch.contiguous_format)
    if _failure(classifier, size, training) is None:
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        log.info(
            "the network is given contiguous images, because it fails with channels-last ones: %s", reason
        )
        return
    classifier.memory_format = torch.channels_last
    for parameter, data in zip(classifier.parameters(), weights, strict=True):
        parameter.data = data


def leaves_unused(classifier: Classifier, size: Sequence[int]) -> bool:
    """Return whether a training step leaves parameters without a gradient, such as those of auxiliary heads."""
    try:
        return any(gradient is None for gradient in _gradients(classifier, size, training=True))
    except Exception:  # left to fail where it is used
        return False


def _failure(classifier: Classifier, size: Sequence[int], training: bool) -> Exception | None:
    try:
        for mode in (False, True) if training else (False,):
            _gradients(classifier, size, training=mode)
    except Exception as error:  # whatever a network raises
        return error
    return None


def _gradients(classifier: Classifier, size: Sequence[int], *, training: bool) -> Sequence[Tensor | None]:
    """Return the gradients of a trial pass: of the pixels, and in ``training`` of all parameters that learn."""
    count = 2  # in training BatchNorm wants more than one value
    shape, mean = (count, classifier.channels, *size), classifier.mean
    levels = torch.arange(math.prod(shape), device=mean.device).remainder(256).to(torch.uint8)
    # Made as all images are: of one channel, strides alone tell the format.
    pixels = to_pixels(levels.reshape(shape)).to(mean.dtype)
    learning = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    devices = [mean.device] if mean.device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        evaluating(classifier),
        _same_buffers(classifier),
        torch.enable_grad(),
    ):
        classifier.train(training)
        # Not the classifier itself: hooks on it are for the passes that count.
        logits = main_output(classifier.network(classifier.network_input(pixels.requires_grad_())))
        if not isinstance(logits, Tensor) or not logits.requires_grad:
            return ()
        wanted = [pixels, *(learning if training else [])]
        return torch.autograd.grad(logits.sum(), wanted, allow_unused=True)


@contextmanager
def _same_buffers(network: nn.Module) -> Iterator[None]:
    """Put every buffer back that changes within the context."""
    before = [
        (module._buffers, name, buffer, buffer.clone())
        for module in network.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffers, name, buffer, values in before:
                buffers[name] = buffer
                if not torch.equal(buffer, values):
                    buffer.copy_(values)
