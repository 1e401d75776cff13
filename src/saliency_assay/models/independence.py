"""Check that the logits of an image depend on that image alone, without which maps would depend on the batch size."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.models.layout import restored_buffers
from saliency_assay.models.state import State, changed, state_of, tensors_of

ROUNDING = 1e-3
"""Difference of logits, relative to the largest of an image, that is put down to rounding in float32."""


class _Checked(NamedTuple):
    state: State
    written: frozenset[str]


_CHECKED: WeakKeyDictionary[nn.Module, _Checked] = WeakKeyDictionary()


def check_independence(classifier: Classifier, images: Tensor) -> frozenset[str]:
    """Check that logits are a function of each image, and return the names of buffers that a forward pass writes.

    The network is called three times, in evaluation mode: with the first of ``images [N, C, H, W]``, with that image
    beside its negative, and with the first alone again. Buffers are restored. The result is cached until the network
    changes.

    Raises:
        ValueError: the logits of the first image differ, or the network does not take one or two images.
    """
    network = classifier.network
    cached = _CHECKED.get(network)
    if cached and cached.state == state_of(network):
        return cached.written
    first = images[:1].detach()
    before = {name: tensor.clone() for name, tensor in tensors_of(classifier).items()}
    with evaluating(classifier), restored_buffers(classifier), exact_float32(), torch.no_grad():
        # The network is called directly, because hooks on the classifier must not run in a trial pass.
        outputs = [
            main_output(network(classifier.network_input(batch)))
            for batch in (first, torch.cat([first, 1 - first]), first)
        ]
        written = frozenset(changed(before, tensors_of(classifier)))
    name = type(network).__name__
    logits = [output[:1] for output in outputs if isinstance(output, Tensor) and output.ndim == 2]
    if len(logits) < len(outputs):
        return written  # the classifier raises an error at its next pass
    alone, together, again = logits
    if differ(alone, again):
        raise ValueError(
            f"{name}: found other logits in a second pass of the same image, expected the same; dropout may be active "
            "in evaluation mode, or the network may change with each pass"
        )
    if differ(alone, together):
        raise ValueError(
            f"{name}: the logits of an image depend on the other images of its batch, as with BatchNorm without "
            "running statistics, so that all results would depend on the batch size; expected logits of each image "
            "alone"
        )
    _CHECKED[network] = _Checked(state_of(network), written)
    return written


def differ(logits: Tensor, others: Tensor) -> bool:
    """Return True if logits ``[N, K]`` of the same images differ by more than rounding; NaN is equal to NaN."""
    scale = torch.maximum(logits.abs(), others.abs()).nan_to_num(nan=0).amax(1, keepdim=True)
    equal = (logits == others) | (logits.isnan() & others.isnan())
    return not bool((equal | ((logits - others).abs() <= ROUNDING * scale)).all())
