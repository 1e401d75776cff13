"""Logits of many images with memory bounded by a batch, and the float32 that does not depend on the GPU."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.data.batching import batches
from saliency_assay.models.classifier import Classifier

# Where torch keeps the precision of float32 products: settings on which others fall back, and those of operations.
_FALLBACKS = (("generic", "all"), ("cuda", "all"), ("mkldnn", "all"))
_MATMULS = (("cuda", "matmul"), ("mkldnn", "matmul"))
_OTHERS = tuple((backend, operation) for backend in ("cuda", "mkldnn") for operation in ("conv", "rnn"))


@contextmanager
def exact_float32() -> Iterator[None]:
    """Compute float32 products in float32, not TF32 or bf16, within the context: their rounding changes pixel ranks.

    Precision that was set by any of torch's interfaces, or a mix of them, is the same afterwards.
    """
    # The private functions behind ``torch.backends…fp32_precision``, which does not reach every setting.
    read, write = torch._C._get_fp32_precision_getter, torch._C._set_fp32_precision_setter
    before = {}
    for setting in (*_FALLBACKS, *_MATMULS):  # each is read while none on which it would fall back is set
        before[setting] = read(*setting)
        write(*setting, "none" if setting in _FALLBACKS else "ieee")
    matmul = torch.get_float32_matmul_precision()  # refused unless it agrees with the settings above
    torch.set_float32_matmul_precision("highest")
    for setting in _FALLBACKS:
        write(*setting, "ieee")
    for setting in _OTHERS:
        # Torch's default for convolutions follows the fallbacks and cannot be set again, so it is never overwritten.
        # ``cudnn.allow_tf32``, which would overwrite it, is left alone for the same reason.
        if read(*setting) != "ieee":
            before[setting] = read(*setting)
            write(*setting, "ieee")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        for setting, precision in before.items():
            write(*setting, precision)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put ``module`` in evaluation mode, and each of its parts back into its own mode afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def to_pixels(images: Tensor) -> Tensor:
    """Images ``[N, C, H, W]`` as float32 pixels in [0, 1], channels last: convolutions then run faster.

    Stored ones are uint8; those of float32 are in [0, 1] and are copied.
    """
    if images.is_floating_point():
        return images.clone(memory_format=torch.channels_last)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(255)


def logits(classifier: Classifier, images: Any, *, batch_size: int, indices: Tensor | None = None) -> Tensor:
    """Float32 logits ``[N, K]``, on the CPU, of images uint8 ``[N, C, H, W]`` or of those at ``indices``.

    See ``logit_batches`` for what images may be, and for sets of which all logits are too many.
    """
    count = len(images) if indices is None else len(indices)
    found = torch.empty(count, classifier.classes, device=classifier.device)
    parts = logit_batches(classifier, images, batch_size=batch_size, indices=indices)
    with closing(parts):
        start = 0
        for part in parts:
            found[start : start + len(part)] = part
            start += len(part)
    return found.cpu()


def logit_batches(
    classifier: Classifier, images: Any, *, batch_size: int, indices: Tensor | None = None
) -> Generator[Tensor, None, None]:
    """Return the logits of ``batch_size`` images at a time, in order, on the classifier's device; close it when done
    early.

    ``images`` are as ``feed`` has them; without ``indices`` slices are enough. What does not lie on the device is read
    ahead.

    Raises:
        ValueError: images that are not uint8 or not of the classifier's channel count, a batch size below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: found {batch_size}, expected at least 1")
    with closing(batches(images, indices, batch_size, classifier.device)) as parts:
        for batch in parts:
            with evaluating(classifier), exact_float32(), torch.inference_mode():
                found: Tensor = classifier(to_pixels(batch))
            yield found
