"""Canonical form of a network for the methods that follow its layers: a graph of known layers.

LRP, DeepLIFT, FullGrad and the attention methods go from layer to layer. The operations that a forward pass records
become modules, every call a separate one; BatchNorm is folded into the convolution before it, and attention of any
library is a softmax between two matrix products. The network itself is not modified: the canonical form shares the
unchanged weights.
"""

import operator
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from saliency_assay.methods.differentiate import logits_of
from saliency_assay.methods.exported import NotTraced, exported
from saliency_assay.methods.layers import Add, Affine, Mean, Scale, convolution, linear
from saliency_assay.methods.operations import CONVERSIONS, Form, Unknown, with_rows
from saliency_assay.models.classifier import Classifier, kind_of, unwrapped
from saliency_assay.models.independence import differ
from saliency_assay.models.state import State, checksums, state_of

UNFOLDED = "unfolded_pair"
"""Key of ``fx.GraphModule.meta``: True if two logits of one output are a layer of their own, see ``_fold_pair``."""
ADDS_IMAGES = "adds_images"
"""Key of ``fx.GraphModule.meta``: True if the first dimension of every addition is that of the images."""
MERGES_ROWS = "merges_rows"
"""Key of ``fx.GraphModule.meta``: True if images share a dimension with other values, such as windows."""
HOOKS_ROUNDING = 1e-6
"""Difference of logits, relative to the largest, of two passes with the same operations."""
_WEIGHT_HOOKS = (WeightNorm, SpectralNorm, BasePruningMethod)
"""Hooks that compute a layer's weight before each pass."""


@dataclass
class _Analysis:
    """Result of one analysis of a network for images of one shape."""

    state: State
    images: Hashable
    """Shape, type and device of the images."""
    checksums: Tensor
    """Of the values of parameters and buffers; see ``forget_if_written``."""
    network: fx.GraphModule
    lacks_hooks: bool
    """True if the network can only be analyzed without its hooks."""
    compared: set[tuple[str, bool]] = field(default_factory=set)
    """Methods whose logits ``check_form`` has compared, each for one image or for several."""


_LOCK = RLock()
"""Held while a network is recorded, since PyTorch's recording is of the process and not of a thread."""
_ANALYSES: WeakKeyDictionary[nn.Module, _Analysis] = WeakKeyDictionary()


def canonical(model: nn.Module, images: Tensor) -> fx.GraphModule:
    """Return the network of ``model``, from normalized images to logits, in canonical form and evaluation mode.

    It is for any number of images of the shape, type and device of ``images [N, C, H, W]``. What depends on the images
    is a call of a module, among them those of ``layers``, or one of ``REARRANGEMENTS``; constants, such as position
    embeddings, are attributes. There is no dropout or BatchNorm; each module is called once and none in place. The
    result is cached and must not be modified; modify a ``copy.deepcopy`` instead. A network that was changed after the
    last call is analyzed again, unless it was written through ``Parameter.data``, see ``forget_if_written``.

    Raises:
        ValueError: the network cannot be recorded, is in training mode, or uses an operation without a layer; the
            message names the operation.
    """
    return _analysis(model, images).network


def canonical_for(method: str, model: nn.Module, images: Tensor) -> fx.GraphModule:
    """Return ``canonical(model, images)`` for a method, which compares its logits by ``check_form``.

    Raises:
        ValueError: as ``canonical``; the message starts with ``method`` and ends with an alternative.
    """
    try:
        return canonical(model, images)
    except ValueError as error:
        raise ValueError(f"{method}: {error}; or use integrated_gradients") from error


def normalized(model: nn.Module, images: Tensor) -> Tensor:
    """Return the input of ``canonical(model)``: images normalized for a ``Classifier``'s network, or unchanged."""
    return model.network_input(images) if isinstance(model, Classifier) else images


def network_of(model: nn.Module) -> nn.Module:
    """Return the submodule of ``model`` that takes normalized images, without wrappers."""
    return unwrapped(model.network if isinstance(model, Classifier) else model)


def signals(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes of a canonical network whose values depend on those of the images."""
    varying: set[fx.Node] = set()
    for node in graph.nodes:
        depends = node.op == "placeholder" or any(source in varying for source in node.all_input_nodes)
        if depends and node.target is not with_rows:
            varying.add(node)
    return varying


def forget_if_written(network: nn.Module) -> None:
    """Remove the analysis of a network from the cache if its values were written through ``Parameter.data``.

    It waits for the device, so it is for the beginning of a call and not for each batch.
    """
    cached = _ANALYSES.get(network)
    if cached is not None and not torch.equal(cached.checksums, checksums(network)):
        del _ANALYSES[network]


def check_form(method: str, model: nn.Module, images: Tensor, logits: Tensor) -> None:
    """Check that the ``logits`` of a model's canonical form are those of the model for ``images``, up to rounding.

    The operations do not depend on the images, so they are compared in the first call of each method after a change of
    the network. If hooks of layers could not be exported, every call checks that they do not change the logits at all:
    the effect of a hook may be as small as rounding errors of other layers.

    Raises:
        ValueError: they are not.
    """
    analysis, name = _analysis(model, images), kind_of(network_of(model))
    key = method, len(images) > 1
    if images.is_meta or (key in analysis.compared and not analysis.lacks_hooks):
        return
    expected = logits_of(model, images)
    if analysis.lacks_hooks:
        with _without_hooks(model):
            plain = logits_of(model, images)
        if differ(plain, expected, rounding=HOOKS_ROUNDING):
            raise ValueError(
                f"{method}: found hooks of {name} that change its logits and cannot be exported, expected hooks of "
                "tensor operations alone; or use integrated_gradients"
            )
    if differ(logits.detach(), expected):
        raise ValueError(
            f"{method}: the layers of {name}, exported, do not return its logits; expected standard layers in one "
            "precision, without branches; or use integrated_gradients"
        )
    analysis.compared.add(key)


# ---------------------------------------------------------------------------------------------- analysis


def _analysis(model: nn.Module, images: Tensor) -> _Analysis:
    """Return the analysis of the network of ``model``, cached from the last call unless the network has changed."""
    network = network_of(model)
    name = kind_of(network)
    if any((_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks)):
        raise ValueError(
            f"{name}: found a global hook (torch.nn.modules.module.register_module_…), which would also be called for "
            "layers that replace operations; expected none"
        )
    has_mode = [isinstance(module, _BatchNorm | _DropoutNd) for module in network.modules()]
    if any(module.training for module in network.modules()) and any(has_mode):
        raise ValueError(f"{name}: found training mode, expected evaluation mode")
    cached, state = _ANALYSES.get(network), state_of(network)
    key = tuple(images.shape[1:]), images.dtype, images.device
    if cached is None or cached.state != state or cached.images != key:
        form, lacks_hooks = _exported(network, images)
        cached = _Analysis(state, key, checksums(network), form, lacks_hooks)
        _ANALYSES[network] = cached
    return cached


def _exported(network: nn.Module, images: Tensor) -> tuple[fx.GraphModule, bool]:
    """Return the canonical form of a network, and True if hooks were left out."""
    has_hooks = any(True for _ in _hooks(network))
    for hooks in (nullcontext(), _without_hooks(network)) if has_hooks else (nullcontext(),):
        try:
            with _LOCK, hooks:
                operations = exported(network, images, CONVERSIONS)
        except NotTraced as error:
            failure: NotTraced = error
            continue
        with torch.inference_mode(False), torch.no_grad():  # a later caller may need gradients
            return _in_canonical_form(network, operations), not isinstance(hooks, nullcontext)
    raise ValueError(f"{kind_of(network)}: {failure}") from failure


def _hooks(network: nn.Module) -> Iterator[tuple[nn.Module, str, OrderedDict[int, Any]]]:
    """Yield module, kind and kept hooks where a module has forward hooks other than those that compute weights."""
    for module in network.modules():
        for kind in ("_forward_hooks", "_forward_pre_hooks"):
            hooks = getattr(module, kind)
            kept = OrderedDict((key, hook) for key, hook in hooks.items() if isinstance(hook, _WEIGHT_HOOKS))
            if len(kept) < len(hooks):
                yield module, kind, kept


@contextmanager
def _without_hooks(network: nn.Module) -> Iterator[None]:
    """Remove forward hooks within the context."""
    removed = [(module, kind, getattr(module, kind), kept) for module, kind, kept in _hooks(network)]
    for module, kind, _, kept in removed:
        setattr(module, kind, kept)
    try:
        yield
    finally:
        for module, kind, hooks, _ in removed:
            setattr(module, kind, hooks)


def _in_canonical_form(network: nn.Module, operations: Any) -> fx.GraphModule:
    try:
        form = Form(operations)
    except Unknown as error:
        raise ValueError(
            f"{kind_of(network)}: {error}, which has no rule; valid: convolutions, linear layers, activations, "
            "arithmetic of tensors, matrix products, softmax, attention, normalization, pooling, means, and "
            "rearrangements within images"
        ) from None
    module = fx.GraphModule(form.root, form.graph, "CanonicalNetwork")
    module.meta[MERGES_ROWS], module.meta[ADDS_IMAGES] = form.merges_rows, form.adds_images
    module.graph.eliminate_dead_code()
    _fold_norms(module)
    if getattr(network, "is_binary", False):
        _fold_pair(module)
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()
    return module.eval()


def _layer(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    return module.get_submodule(str(node.target)) if node.op == "call_module" else None


def _set_layer(module: fx.GraphModule, node: fx.Node, layer: nn.Module) -> None:
    module.add_submodule(str(node.target), layer.eval())


def _fold_norms(module: fx.GraphModule) -> None:
    """Fold each scale and shift of channels into the linear layer before it, or else replace it by a linear layer."""
    for node in list(module.graph.nodes):
        affine = _layer(module, node)
        if not isinstance(affine, Affine):
            continue
        (previous,) = node.all_input_nodes
        # Folding changes the output of the linear layer, so no other node may read it.
        layer = _layer(module, previous) if len(previous.users) == 1 else None
        scale, shift = affine.scale, affine.shift
        is_folded = isinstance(layer, nn.Conv2d) or (isinstance(layer, nn.Linear) and affine.dimensions == 2)
        if is_folded:
            assert isinstance(layer, nn.Conv2d | nn.Linear)
            weight = layer.weight * scale.reshape(-1, *[1] * (layer.weight.ndim - 1))
            bias = shift if layer.bias is None else layer.bias * scale + shift
            _set_layer(module, previous, _with(layer, weight, bias))
            node.replace_all_uses_with(previous)
            module.graph.erase_node(node)
        elif affine.dimensions == 4:
            weight = scale.reshape(-1, 1, 1, 1)
            _set_layer(module, node, convolution(weight, shift, (1,), (0,), (1,), len(scale)))
        else:
            _replace_by_arithmetic(module, node, affine)


def _replace_by_arithmetic(module: fx.GraphModule, node: fx.Node, affine: Affine) -> None:
    """Replace a scale and shift of channels by a product and a sum with constants."""
    name, shape = str(node.target), (-1, *[1] * (affine.dimensions - 2))
    module.register_buffer(f"shift_{node.name}", affine.shift.reshape(shape))
    _set_layer(module, node, Scale(affine.scale.reshape(shape)))
    module.add_submodule(f"{name}_shift", Add().eval())
    with module.graph.inserting_after(node):
        total = module.graph.call_module(f"{name}_shift", (node,))
    node.replace_all_uses_with(total, delete_user_cb=lambda user: user is not total)
    with module.graph.inserting_before(total):
        total.args = (node, module.graph.get_attr(f"shift_{node.name}"))


def _with(layer: nn.Conv2d | nn.Linear, weight: Tensor, bias: Tensor | None) -> nn.Module:
    """Return a layer with the settings of another one."""
    if isinstance(layer, nn.Linear):
        return linear(weight, bias)
    settings: Any = layer.stride, layer.padding, layer.dilation, layer.groups
    return convolution(weight, bias, *settings)


def _fold_pair(module: fx.GraphModule) -> None:
    """Merge the layer that makes two logits of one output into the linear layer that computes the output.

    The result is the layer of an equivalent network with two outputs, so that rules of LRP and DeepLIFT treat it alike.
    Means over height and width, or average pooling, may directly follow a convolution of one channel; otherwise
    ``module.meta[UNFOLDED]`` is True.
    """
    (output,) = module.graph.find_nodes(op="output")
    pair = output.args[0]
    weight = cast(nn.Linear, _layer(module, pair)).weight
    previous, pools, is_single, is_indexed = pair.args[0], [], True, False
    while True:
        layer, is_single = _layer(module, previous), is_single and len(previous.users) == 1
        if _is_spatial_mean(layer):
            pools.append(previous)
        elif not pools and previous.target is operator.getitem:
            is_indexed = True
        elif previous.target is not torch.reshape:
            break
        previous = previous.args[0]
    outputs = getattr(layer, "out_features", getattr(layer, "out_channels", 0))
    is_linear = isinstance(layer, nn.Linear) and not pools
    is_convolution = isinstance(layer, nn.Conv2d) and not is_indexed
    if not is_single or outputs != 1 or not (is_linear or is_convolution):
        module.meta[UNFOLDED] = True
        return
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    factors = weight if isinstance(layer, nn.Linear) else weight[:, :, None, None]
    merged = factors @ layer.weight if isinstance(layer, nn.Linear) else factors * layer.weight
    bias = None if layer.bias is None else weight[:, 0] * layer.bias
    _set_layer(module, previous, _with(layer, merged, bias))
    last = previous
    for pool in reversed(pools):
        pool.args = (last,)
        last = pool
    with module.graph.inserting_before(output):
        output.args = (module.graph.call_function(torch.reshape, (last, (-1, 2))),)
    module.graph.eliminate_dead_code()


def _is_spatial_mean(layer: nn.Module | None) -> bool:
    """Return True for average pooling and for a mean over the height and width of ``[N, C, H, W]``."""
    if isinstance(layer, Mean):
        return {dimension % 4 for dimension in layer.dimensions} == {2, 3}
    return isinstance(layer, nn.AdaptiveAvgPool2d | nn.AvgPool2d)
