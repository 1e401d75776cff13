"""Copy of a classifier for training in several processes, with BatchNorm and dropout for the whole batch.

BatchNorm uses the mean and variance of the whole batch, and dropout samples one mask for it: the result does not depend
on the number of processes. Any other randomness in a custom network is sampled per process, with the same numbers in
each.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parallel import DistributedDataParallel

from saliency_assay.models.classifier import Classifier
from saliency_assay.runtime.distributed import gathered, processes
from saliency_assay.runtime.launch import rank


def replica(classifier: Classifier, *, unused: bool = False) -> nn.Module:
    """Return the module to call in training: ``classifier`` for one process, else a copy that shares its tensors.

    Gradients are means over the whole batch, of which every process has an equal share. The classifier keeps its
    ordinary layers, for evaluation and saving. ``unused`` is True if the logits do not depend on some parameters, such
    as those of auxiliary heads; these get no gradient, as in a single process.

    Raises:
        ValueError: a BatchNorm has a custom ``forward``.
    """
    if processes() == 1:
        return classifier
    # ``deepcopy`` takes this as its memo: tensors in it are shared instead of copied.
    shared = {id(tensor): tensor for tensor in (*classifier.parameters(), *classifier.buffers())}
    copied = deepcopy(classifier, shared)
    on_gpu = classifier.device.type == "cuda"
    _check_batch_norms(copied)
    if on_gpu:
        copied = nn.SyncBatchNorm.convert_sync_batchnorm(copied)  # type: ignore[no-untyped-call]  # untyped in torch
    for layer in copied.modules():
        # Only ``forward`` is replaced, so that the layer keeps its type, names and weights.
        if isinstance(layer, _BatchNorm) and not on_gpu:
            layer.forward = partial(whole_batch_norm, layer)  # type: ignore[method-assign]  # on purpose
        elif isinstance(layer, _DropoutNd):
            layer.forward = partial(whole_dropout, layer.forward)
    original_layers, copied_layers = (
        dict(module.named_modules(remove_duplicate=False)) for module in (classifier, copied)
    )
    shared_buffers = [
        (original_layers[name]._buffers, copied_layer._buffers)
        for name, copied_layer in copied_layers.items()
    ]

    def share(*arguments: object) -> None:
        # A forward pass may replace buffers instead of writing to them.
        for original, copy in shared_buffers:
            original.update(copy)

    copied.register_forward_hook(share)
    device_ids = [classifier.device.index] if on_gpu else None
    replicated = DistributedDataParallel(copied.train(), device_ids=device_ids, find_unused_parameters=unused)
    match_modes(classifier, copied)
    return replicated


def match_modes(classifier: nn.Module, copied: nn.Module) -> None:
    """Put every layer of ``copied`` in the mode of its original in ``classifier``.

    A network may keep layers frozen by overriding ``train``, and may not recognize these layers after their conversion
    to another type.
    """
    originals = dict(classifier.named_modules(remove_duplicate=False))
    for name, layer in copied.named_modules(remove_duplicate=False):
        layer.training = originals[name].training


def _check_batch_norms(network: nn.Module) -> None:
    """Check that no BatchNorm has a custom ``forward``, such as one with an activation, which would be lost.

    Raises:
        ValueError: a BatchNorm has a custom ``forward``.
    """
    for name, layer in network.named_modules():
        is_standard = isinstance(layer, nn.SyncBatchNorm) or type(layer).forward is _BatchNorm.forward
        if isinstance(layer, _BatchNorm) and not is_standard:
            raise ValueError(
                f"{name}: found {type(layer).__name__}, a BatchNorm with a custom forward, which several processes "
                "cannot share; valid: one process"
            )


def whole_batch_norm(norm: _BatchNorm, x: Tensor) -> Tensor:
    """Apply ``norm`` to this process's ``x`` ``[n, C, …]``, an equal share of the batch of all processes.

    If m_r and v_r are mean and variance of the rows of process r, the batch has the mean E = mean_r m_r and the
    variance mean_r [v_r + (m_r − E)²], which sums only non-negative terms and so avoids cancellation. As in
    ``nn.BatchNorm2d``, a layer in evaluation mode uses its running statistics, if any; they are updated only in
    training mode.
    """
    if not norm.training and (norm.running_mean is not None or norm.running_var is not None):
        frozen: Tensor = type(norm).forward(norm, x)
        return frozen
    # Under bf16 autocast, statistics need the precision of float32.
    values = x.to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(values, [0, *range(2, x.ndim)], correction=0)
    means, variances = gathered(torch.stack([mean, variance])).unbind(1)
    mean = means.mean(0)
    variance = (variances + (means - mean).square()).mean(0)
    if norm.training and norm.track_running_stats:
        _update_running_statistics(
            norm, mean.detach(), variance.detach(), processes() * x.numel() // x.shape[1]
        )
    scale = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight
    shape = (-1, *[1] * (x.ndim - 2))
    normalized = (values - mean.reshape(shape)) * scale.reshape(shape)
    if norm.bias is not None:
        normalized = normalized + norm.bias.reshape(shape)
    return normalized.to(x.dtype)


def _update_running_statistics(norm: _BatchNorm, mean: Tensor, variance: Tensor, count: int) -> None:
    """Update the running statistics with those of a batch of ``count`` values per channel, using unbiased variance."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    norm.num_batches_tracked.add_(1)
    # Without momentum, the running statistics are the cumulative mean over all batches, as in ``nn.BatchNorm2d``.
    momentum = 1 / int(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    unbiased = variance * (count / (count - 1))
    norm.running_mean.mul_(1 - momentum).add_(mean.to(norm.running_mean), alpha=momentum)
    norm.running_var.mul_(1 - momentum).add_(unbiased.to(norm.running_var), alpha=momentum)


def whole_dropout(drop: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply ``drop`` to this process's rows ``x`` ``[n, …]``, with the mask that a single process would sample.

    Rows of zeros stand for the rows of the other processes, so that the layer samples as many numbers as for the whole
    batch, in the same order.
    """
    before, after = rank() * len(x), (processes() - 1 - rank()) * len(x)
    padded = functional.pad(x, (*[0, 0] * (x.ndim - 1), before, after))
    return drop(padded)[before : before + len(x)]
