"""Inference in batches, in float32 precision that does not depend on the GPU."""

import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.data.batching import batches
from saliency_assay.models.classifier import Classifier

# PyTorch's settings for the precision of float32 products. Settings of single operations fall back on those of all.
_FALLBACKS = (("generic", "all"), ("cuda", "all"), ("mkldnn", "all"))
_MATMULS = (("cuda", "matmul"), ("mkldnn", "matmul"))
_OTHERS = tuple((backend, operation) for backend in ("cuda", "mkldnn") for operation in ("conv", "rnn"))


@contextmanager
def exact_float32() -> Iterator[None]:
    """Compute in full float32 precision within the context, whatever PyTorch's global settings are.

    TF32 and bf16 would change the ranks of pixels by rounding. Within the context, autocast is off, and new tensors are
    float32 and on the CPU by default. Afterwards the previous settings are restored, whichever of PyTorch's interfaces
    set them.
    """
    products = _ieee_products if hasattr(torch._C, "_get_fp32_precision_getter") else _without_tf32
    with products(), ExitStack() as stack:
        for device in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        yield


@contextmanager
def _ieee_products() -> Iterator[None]:
    """Compute products, convolutions and recurrent layers in full float32 precision within the context."""
    # Private functions, because ``torch.backends…fp32_precision`` does not expose all settings.
    read, write = torch._C._get_fp32_precision_getter, torch._C._set_fp32_precision_setter
    settings_before = {}
    for setting in (*_FALLBACKS, *_MATMULS):  # read before the fallbacks are overwritten
        settings_before[setting] = read(*setting)
        write(*setting, "none" if setting in _FALLBACKS else "ieee")
    matmul_precision = torch.get_float32_matmul_precision()  # raises unless it agrees with the settings above
    torch.set_float32_matmul_precision("highest")
    for setting in _FALLBACKS:
        write(*setting, "ieee")
    for setting in _OTHERS:
        # Written only if necessary: the default for convolutions follows the fallbacks and cannot be restored once it
        # is overwritten. ``cudnn.allow_tf32`` is not used, because it would overwrite it.
        if read(*setting) != "ieee":
            settings_before[setting] = read(*setting)
            write(*setting, "ieee")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul_precision)
        for setting, precision in settings_before.items():
            write(*setting, precision)


@contextmanager
def _without_tf32() -> Iterator[None]:
    """Return the context of ``_ieee_products`` for PyTorch before 2.9, which has only these two settings."""
    matmul_precision, allow_tf32 = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul_precision)
        torch.backends.cudnn.allow_tf32 = allow_tf32


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put ``module`` into evaluation mode within the context, and restore the mode of each submodule afterwards."""
    # A frozen TorchScript module has no mode.
    modes = [(each, each.training) for each in module.modules() if hasattr(each, "training")]
    to_evaluation(module)
    try:
        yield
    finally:
        for submodule, training in modes:
            submodule.training = training


def uncompiled() -> AbstractContextManager[object]:
    """Run networks of ``torch.compile`` uncompiled, since compiled code ignores hooks and hides its operations."""
    # The import of Dynamo, PyTorch's compiler, takes seconds, and nothing is compiled without it.
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


def to_evaluation(module: nn.Module) -> None:
    """Put ``module`` into evaluation mode; an exported program has the mode in which it was exported."""
    try:
        module.eval()
    except NotImplementedError:
        for submodule in module.modules():
            submodule.training = False


def to_pixels(images: Tensor) -> Tensor:
    """Return images ``[N, C, H, W]`` as float32 pixels in [0, 1], channels last, which makes convolutions faster.

    uint8 images are divided by 255; floating-point images, already in [0, 1], are copied.
    """
    if images.is_floating_point():
        return images.clone(memory_format=torch.channels_last)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(255)


def logits(classifier: Classifier, images: Any, *, batch_size: int, indices: Tensor | None = None) -> Tensor:
    """Return float32 logits ``[N, K]``, on the CPU, of images ``[N, C, H, W]`` or of those at ``indices``.

    ``images`` may be of the types that ``logit_batches`` accepts; use that function if all logits need too much memory.
    """
    count = len(images) if indices is None else len(indices)
    result = torch.empty(count, classifier.classes, device=classifier.device)
    logit_iterator = logit_batches(classifier, images, batch_size=batch_size, indices=indices)
    with closing(logit_iterator):
        start = 0
        for batch_logits in logit_iterator:
            result[start : start + len(batch_logits)] = batch_logits
            start += len(batch_logits)
    return result.cpu()


def logit_batches(
    classifier: Classifier, images: Any, *, batch_size: int, indices: Tensor | None = None
) -> Generator[Tensor, None, None]:
    """Yield the logits of ``batch_size`` images at a time, in order, on the classifier's device.

    ``images`` are as in ``data.batching``; without ``indices``, they only need to support slices. Images that are not
    on the device are prefetched by a thread, so a generator that is not exhausted must be closed.

    Raises:
        ValueError: the images are neither uint8 nor float32, or have another channel count; or the batch size is below
            1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: found {batch_size}, expected at least 1")
    with closing(batches(images, indices, batch_size, classifier.device)) as image_batches:
        for batch in image_batches:
            with evaluating(classifier), exact_float32(), torch.inference_mode():
                batch_logits: Tensor = classifier(to_pixels(batch))
            yield batch_logits
