"""Check that the logits of an image depend on that image alone, without which maps would depend on the batch size."""

import logging
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, kind_of, main_output
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.models.layout import restored_buffers
from saliency_assay.models.state import State, identities, identity, other_values, state_of

logger = logging.getLogger(__name__)

ROUNDING = 1e-3
"""Difference of logits, relative to the largest of an image, that is put down to rounding in float32."""
DYNAMIC_ROUNDING = 0.05
"""The same for layers that are quantized dynamically, which round to the 8-bit levels of the range of a batch."""


class _Checked(NamedTuple):
    state: State
    written: frozenset[str]
    harmless: set[Hashable]


_CHECKED: WeakKeyDictionary[nn.Module, _Checked] = WeakKeyDictionary()


def check_independence(classifier: Classifier, images: Tensor) -> frozenset[str]:
    """Check that logits are a function of each image, and return the names of buffers that a forward pass writes.

    The network is called in evaluation mode with the first of ``images [N, C, H, W]``, twice, with another image, and
    with both. If each pass writes tensors, such as a counter, it is called once more with other values of these.
    Buffers are restored. The result is cached until the network changes. A network that takes single images alone
    passes if there is no more than one.

    Raises:
        ValueError: logits of the same image differ, or the network does not take one and two images.
    """
    network, name = classifier.network, kind_of(classifier.network)
    cached = _CHECKED.get(network)
    if cached and cached.state == state_of(network):
        return cached.written
    first = images[:1].detach()
    # Of another mean and range than the first image, whatever that is.
    other = 0.25 + first.flip(-1) / 3
    together = None
    before = identities(classifier)
    with evaluating(classifier), restored_buffers(classifier), exact_float32(), torch.no_grad():
        alone, other_alone = (_logits(classifier, each, name) for each in (first, other))
        between = {(path, key): identity(tensor) for path, key, _, tensor in _kept(network)}
        again = _logits(classifier, first, name)
        rewritten = [slot for slot in _kept(network) if between.get(slot[:2]) != identity(slot[3])]
        after = identities(classifier)
        if differ(alone, again):
            raise ValueError(
                f"{name}: found other logits in a second pass of the same image, expected the same; dropout may be "
                "active in evaluation mode, or the network may change with each pass, as with observers of quantization"
            )
        try:
            together = _logits(classifier, torch.cat([first, other]), name)
        except ValueError:
            if len(images) > 1:
                raise
        try:
            for _, key, tensors, tensor in rewritten:
                tensors[key] = other_values(tensor)
            after_change = _logits(classifier, first, name) if rewritten else alone
        finally:
            for _, key, tensors, tensor in rewritten:
                tensors[key] = tensor
        if differ(alone, after_change):
            raise ValueError(
                f"{name}: the logits of an image depend on {'.'.join(filter(None, rewritten[0][:2]))}, which each pass "
                "writes, and so on the images of earlier passes; expected logits of each image alone"
            )
    # A module that writes one of its buffers may write the others for other images, as observers of quantization do.
    writing = {key.rpartition(".")[0] for key, value in after.items() if before.get(key) != value}
    written = frozenset(key for key, _ in classifier.named_buffers() if key.rpartition(".")[0] in writing)
    dynamic = [each for each in network.modules() if "quantized.dynamic" in type(each).__module__]
    rounding = DYNAMIC_ROUNDING if dynamic else ROUNDING
    if together is not None and differ(torch.cat([alone, other_alone]), together, rounding=rounding):
        raise ValueError(
            f"{name}: the logits of an image depend on the other images of its batch, as with BatchNorm without "
            "running statistics, so that all results would depend on the batch size; expected logits of each image "
            "alone"
        )
    if dynamic:
        logger.warning(
            "%s: dynamically quantized layers round by the range of a batch: results depend on the batch size by some "
            "percent; quantize statically to avoid this",
            name,
        )
    if together is not None:
        _CHECKED[network] = _Checked(state_of(network), written, set())
    return written


def harmless_calls(classifier: Classifier) -> set[Hashable]:
    """Return the set to which callers of ``check_independence`` add calls that do not change the network.

    It is a new, empty set after the network changed.
    """
    cached = _CHECKED.get(classifier.network)
    return set() if cached is None else cached.harmless


def _kept(network: nn.Module) -> Iterator[tuple[str, str, dict[str, Any], Tensor]]:
    """Yield path of the module, name, containing dictionary and value of each buffer and each attribute of a tensor."""
    for path, module in network.named_modules():
        for tensors in (vars(module).get("_buffers", {}), vars(module)):
            for name, tensor in list(tensors.items()):
                # Writes to a tensor that was made in inference mode are not counted.
                if (
                    isinstance(tensor, Tensor)
                    and not tensor.is_inference()
                    and tensor.layout == torch.strided
                ):
                    yield path, name, tensors, tensor


def _logits(classifier: Classifier, images: Tensor, name: str) -> Tensor:
    """Return the logits of ``images [N, C, H, W]``, ``[N, K]``.

    Raises:
        ValueError: the network raises an exception, or returns something else.
    """
    try:
        # The network is called directly, because hooks on the classifier must not run in a trial pass.
        logits = main_output(classifier.network(classifier.network_input(images)))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # a network may raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{name}: does not take images {list(images.shape)}: {reason}") from error
    if not isinstance(logits, Tensor) or logits.shape != (len(images), classifier.classes):
        found = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(
            f"{name}: returned {found} for images {list(images.shape)}, expected logits "
            f"[{len(images)}, {classifier.classes}]"
        )
    return logits


def differ(logits: Tensor, others: Tensor, *, rounding: float = ROUNDING) -> bool:
    """Return True if logits ``[N, K]`` of the same images differ by more than rounding; NaN is equal to NaN."""
    scale = torch.maximum(logits.abs(), others.abs()).nan_to_num(nan=0).amax(1, keepdim=True)
    equal = (logits == others) | (logits.isnan() & others.isnan())
    return not bool((equal | ((logits - others).abs() <= rounding * scale)).all())
