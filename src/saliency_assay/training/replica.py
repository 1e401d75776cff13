"""Model that one of several processes trains: the classifier's weights behind layers that know the whole batch.

Dropout draws for the whole batch, and BatchNorm takes its mean and variance over all of it, so that what is learnt does
not depend on how many processes learn it. Other randomness of a network of one's own is each process's own.
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
    """Return what to call in training: ``classifier`` in one process, else a copy that shares its tensors.

    Gradients are means over the whole batch, where every process has an equal part of it. The classifier stays of
    ordinary layers, and is what is evaluated and saved. ``unused`` tells that some parameters have no part in the
    logits, such as those of auxiliary heads; these get no gradient, as in one process.
    """
    if processes() == 1:
        return classifier
    shared = {id(tensor): tensor for tensor in (*classifier.parameters(), *classifier.buffers())}
    copied = deepcopy(classifier, shared)
    on_gpu = classifier.device.type == "cuda"
    _check_batch_norms(copied)
    if on_gpu:
        copied = nn.SyncBatchNorm.convert_sync_batchnorm(copied)  # type: ignore[no-untyped-call]  # so in torch
    for layer in copied.modules():
        # The layer keeps its names and its weights, and what others ask it for.
        if isinstance(layer, _BatchNorm) and not on_gpu:
            layer.forward = partial(whole_batch_norm, layer)  # type: ignore[method-assign]  # on purpose
        elif isinstance(layer, _DropoutNd):
            layer.forward = partial(whole_dropout, layer.forward)
    own, parts = (dict(each.named_modules(remove_duplicate=False)) for each in (classifier, copied))
    shared_buffers = [(own[name]._buffers, part._buffers) for name, part in parts.items()]

    def share(*call: object) -> None:
        # A forward pass may replace buffers rather than write to them.
        for mine, theirs in shared_buffers:
            mine.update(theirs)

    copied.register_forward_hook(share)
    device_ids = [classifier.device.index] if on_gpu else None
    replicated = DistributedDataParallel(copied.train(), device_ids=device_ids, find_unused_parameters=unused)
    match_modes(classifier, copied)
    return replicated


def match_modes(classifier: nn.Module, copied: nn.Module) -> None:
    """Put every layer of ``copied`` in the mode of its original in ``classifier``.

    A network that keeps layers frozen by its own ``train`` may not know them after their conversion to another type.
    """
    own = dict(classifier.named_modules(remove_duplicate=False))
    for name, layer in copied.named_modules(remove_duplicate=False):
        layer.training = own[name].training


def _check_batch_norms(network: nn.Module) -> None:
    """Refuse layers whose own ``forward`` would be replaced, such as a BatchNorm with an activation in it."""
    for name, layer in network.named_modules():
        known = isinstance(layer, nn.SyncBatchNorm) or type(layer).forward is _BatchNorm.forward
        if isinstance(layer, _BatchNorm) and not known:
            raise ValueError(
                f"{name}: found {type(layer).__name__}, a BatchNorm with a forward of its own, which several processes "
                "cannot share; valid: one process"
            )


def whole_batch_norm(norm: _BatchNorm, x: Tensor) -> Tensor:
    """Return what ``norm`` makes of this process's ``x`` ``[n, C, …]`` as an equal part of the batch of all.

    With process r's mean m_r and variance v_r, the batch has the mean E of all m_r and the variance mean of
    v_r + (m_r − E)², where nothing cancels. As in ``nn.BatchNorm2d``, a layer in evaluation mode normalizes with its
    running statistics, if it has any, and only one in training that tracks them moves them.
    """
    if not norm.training and (norm.running_mean is not None or norm.running_var is not None):
        frozen: Tensor = type(norm).forward(norm, x)
        return frozen
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(wide, [0, *range(2, x.ndim)], correction=0)
    means, variances = gathered(torch.stack([mean, variance])).unbind(1)
    mean = means.mean(0)
    variance = (variances + (means - mean).square()).mean(0)
    if norm.training and norm.track_running_stats:
        _keep(norm, mean.detach(), variance.detach(), processes() * x.numel() // x.shape[1])
    scale = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight
    shape = (-1, *[1] * (x.ndim - 2))
    found = (wide - mean.reshape(shape)) * scale.reshape(shape)
    if norm.bias is not None:
        found = found + norm.bias.reshape(shape)
    return found.to(x.dtype)


def _keep(norm: _BatchNorm, mean: Tensor, variance: Tensor, count: int) -> None:
    """Move the running statistics towards those of a batch of ``count`` values a channel, the variance unbiased."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    norm.num_batches_tracked.add_(1)
    momentum = 1 / int(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    unbiased = variance * (count / (count - 1))
    norm.running_mean.mul_(1 - momentum).add_(mean.to(norm.running_mean), alpha=momentum)
    norm.running_var.mul_(1 - momentum).add_(unbiased.to(norm.running_var), alpha=momentum)


def whole_dropout(drop: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return this process's rows of what ``drop`` makes of the whole batch, of which ``x`` ``[n, …]`` is its part.

    The other rows are zeros: the layer draws as many numbers as for a whole batch, in the same order.
    """
    before, after = rank() * len(x), (processes() - 1 - rank()) * len(x)
    whole = functional.pad(x, (*[0, 0] * (x.ndim - 1), before, after))
    return drop(whole)[before : before + len(x)]
