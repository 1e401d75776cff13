"""Selection of a network's memory format by a trial pass.

Channels-last images make convolutions faster, but networks with ``x.view(len(x), -1)`` or custom kernels may not accept
them.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.inference import evaluating, to_evaluation, to_pixels

log = logging.getLogger(__name__)

VECTORS = {"AVX2": (8, 0), "AVX512": (16, 40)}
"""For each kind of CPU, float32 numbers in a vector, and the side in pixels up to which no gradient is overrun."""


def place(
    classifier: Classifier, device: torch.device, size: Sequence[int], *, training: bool = False
) -> Classifier:
    """Move ``classifier`` to ``device`` and return it, in the memory format that ``adapt`` selects."""
    # PyTorch's stubs allow ``memory_format`` only for tensors.
    classifier.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    adapt(classifier, size, training=training)
    classifier.to(memory_format=classifier.memory_format)
    return classifier


def adapt(classifier: Classifier, size: Sequence[int], *, training: bool = False) -> Exception | None:
    """Set the memory format of input and weights to contiguous if the network fails with channels-last images.

    For ``training``, also if oneDNN would write beyond a tensor with channels-last images.

    The test is a forward and backward pass of two images of height and width ``size`` in evaluation mode and, with
    ``training``, another one in training mode. A network that fails in both formats is left unchanged, and its error
    returned. Modes, buffers, gradients and random states are restored.
    """
    if training and _overruns_in_channels_last(classifier, size):
        classifier.memory_format = torch.contiguous_format
        classifier.to(memory_format=torch.contiguous_format)
        log.info("memory format: contiguous, because of a fault of oneDNN in narrow convolutions on this CPU")
        return None
    classifier.memory_format = torch.channels_last
    failure = _trial_error(classifier, size, training)
    if failure is None:
        return None
    weights = [parameter.data for parameter in classifier.parameters()]
    classifier.memory_format = torch.contiguous_format
    classifier.to(memory_format=torch.contiguous_format)
    if _trial_error(classifier, size, training) is None:
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        log.info("memory format: contiguous, because the network fails with channels-last images: %s", reason)
        return None
    classifier.memory_format = torch.channels_last
    for parameter, data in zip(classifier.parameters(), weights, strict=True):
        parameter.data = data
    return failure


def in_layout_of(model: Classifier, classifier: Classifier) -> Classifier:
    """Return ``model`` for evaluation, without gradients of its weights, on the device of ``classifier``.

    It is in the same memory format, since a network that needs contiguous images needs them with any weights.
    """
    model.memory_format = classifier.memory_format
    # PyTorch's stubs allow ``memory_format`` only for tensors.
    model.to(classifier.device, memory_format=classifier.memory_format)  # type: ignore[call-overload]
    to_evaluation(model)
    return model.requires_grad_(False)


def leaves_unused(classifier: Classifier, size: Sequence[int]) -> bool:
    """Return True if a training step leaves parameters without a gradient, such as those of auxiliary heads."""
    try:
        return any(gradient is None for gradient in _trial_gradients(classifier, size, training=True))
    except Exception:  # the error appears later, where the network is used
        return False


def _overruns_in_channels_last(classifier: Classifier, size: Sequence[int]) -> bool:
    """Return True if the gradients of channels-last weights would overwrite memory that is not theirs.

    oneDNN of torch 2.15 writes beyond the gradient of a 1 × 1 convolution with a stride and fewer input channels than
    a vector has numbers, such as the shortcut of a narrow ResNet: with AVX2 for images of any size, with AVX-512 above
    40 pixels. Reproduced by 300 gradients of ``Conv2d(4, 8, 1, stride=2)`` and eight images of 48 × 48
    pixels, both channels-last, with ``MALLOC_CHECK_=3``.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    if classifier.device.type != "cpu" or capability not in VECTORS:
        return False
    numbers, largest_safe = VECTORS[capability]
    if max(size) <= largest_safe:
        return False
    layers = (layer for layer in classifier.network.modules() if isinstance(layer, nn.Conv2d))
    return any(
        layer.kernel_size == (1, 1) and max(layer.stride) > 1 and layer.in_channels < numbers
        for layer in layers
    )


def _trial_error(classifier: Classifier, size: Sequence[int], training: bool) -> Exception | None:
    """Return the exception of a trial pass in evaluation or, with ``training``, training mode; None if none fails."""
    try:
        for mode in (False, True) if training else (False,):
            _trial_gradients(classifier, size, training=mode)
    except Exception as error:  # a custom network may raise any exception
        return error
    return None


def trial_images(classifier: Classifier, size: Sequence[int]) -> Tensor:
    """Return two images of different pixels ``[2, C, H, W]``, for a trial pass."""
    count = 2  # BatchNorm needs more than one value per channel in training
    shape, mean = (count, classifier.channels, *size), classifier.mean
    pixel_levels = torch.arange(math.prod(shape), device=mean.device).remainder(256).to(torch.uint8)
    # Converted in the same way as real images: with one channel, only the strides reveal the memory format.
    return to_pixels(pixel_levels.reshape(shape)).to(mean.dtype)


def _trial_gradients(
    classifier: Classifier, size: Sequence[int], *, training: bool
) -> Sequence[Tensor | None]:
    """Return the gradients of a trial pass: of the pixels and, in ``training`` mode, of all trainable parameters."""
    mean = classifier.mean
    pixels = trial_images(classifier, size)
    trainable = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    devices = [mean.device] if mean.device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        evaluating(classifier),
        restored_buffers(classifier),
        torch.enable_grad(),
    ):
        if training:
            classifier.train()
        # The network is called directly, because hooks on the classifier must not run in a trial pass.
        logits = main_output(classifier.network(classifier.network_input(pixels.requires_grad_())))
        if not isinstance(logits, Tensor) or not logits.requires_grad:
            return ()
        inputs = [pixels, *(trainable if training else [])]
        return torch.autograd.grad(logits.sum(), inputs, allow_unused=True)


@contextmanager
def restored_buffers(network: nn.Module) -> Iterator[None]:
    """Restore the buffers of ``network``, such as running statistics, after the context."""
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
