"""Canonical form of a network for relevance propagation and DeepLIFT: a graph of known layers.

Both methods propagate layer by layer, so functional operations become modules, every call gets a separate module, and
BatchNorm is folded into the convolution before it. The network itself is not modified: the canonical form is a copy,
which shares the unchanged weights.
"""

import copy
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.utils.fusion import fuse_conv_bn_weights

from saliency_assay.models.classifier import Classifier

IN_PLACE_OPERATORS = frozenset({operator.iadd, operator.isub, operator.imul, operator.itruediv})
"""Functions behind ``a += b`` and the other in-place operators."""

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class State:
    """Fingerprint of a network, equal to a later one unless the network was changed in between.

    It detects layers that are added, removed or change their settings, mode or hooks, tensors that are replaced, moved
    or converted, and writes that autograd counts. It does not detect writes through ``Parameter.data``.
    """

    layers: tuple[Hashable, ...]
    tensors: tuple[Hashable, ...]
    memory: tuple[Tensor, ...] = field(compare=False)
    """The tensors' memory, kept alive so that no other tensor is allocated at its address."""


@dataclass
class Traced:
    """Result of one analysis of a network."""

    state: State
    graph: fx.Graph
    canonical: fx.GraphModule | None = None


_TRACED: WeakKeyDictionary[nn.Module, Traced] = WeakKeyDictionary()


def traced(network: nn.Module) -> Traced:
    """Return the analysis of a network, cached from the last call unless the network has changed.

    Raises:
        ValueError: the network cannot be traced.
    """
    cached, state = _TRACED.get(network), state_of(network)
    if cached is None or cached.state != state:
        cached = _TRACED[network] = Traced(state, _trace(network))
    return cached


def _trace(network: nn.Module) -> fx.Graph:
    try:
        return _Tracer().trace(network)
    except Exception as error:  # a forward may raise anything when it receives a proxy instead of a tensor
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name = type(network).__name__
        raise ValueError(
            f"{name}: its layers cannot be traced ({reason}); expected a forward without branches that depend "
            f"on values, or a method that needs gradients only, such as integrated_gradients"
        ) from error


def _in_place(function: Any) -> Callable[["_Proxy", Any], fx.Proxy]:
    return lambda proxy, other: proxy.tracer.create_proxy("call_function", function, (proxy, other), {})


class _Proxy(fx.Proxy):
    """A proxy of a tensor that records ``a += b``, which writes to a, differently from ``a = a + b``."""

    __iadd__, __isub__ = _in_place(operator.iadd), _in_place(operator.isub)
    __imul__, __itruediv__ = _in_place(operator.imul), _in_place(operator.itruediv)


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)


def state_of(network: nn.Module) -> State:
    """Return the comparable state of ``network``, without keeping the network alive."""
    tensors = list(chain(network.parameters(), network.buffers()))
    return State(
        tuple(
            (name, ref(layer), _comparable(list(vars(layer).items())))
            for name, layer in network.named_modules()
        ),
        tuple(map(_identity, tensors)),
        tuple(tensor.detach() for tensor in tensors),
    )


def _identity(tensor: Tensor) -> Hashable:
    # A tensor created in inference mode does not count writes, so its state is never equal to another one.
    version = object() if tensor.is_inference() else tensor._version
    memory = tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride()
    return *memory, tensor.requires_grad, version


def _comparable(value: Any) -> Hashable:
    """Return numbers and strings unchanged, the keys of a dictionary (hooks have one each), otherwise the identity."""
    if isinstance(value, dict):
        return tuple(value)
    if isinstance(value, tuple | list):
        return tuple(map(_comparable, value))
    return value if isinstance(value, _PLAIN) else id(value)


REARRANGEMENTS: tuple[Any, ...] = (operator.getitem, functional.pad)
"""Functions that only move values within an image, or pad it with zeros."""

_RELUS = {functional.relu, functional.relu_, torch.relu, torch.relu_, "relu", "relu_"}
_ADDITIONS = {operator.add, operator.iadd, torch.add, "add", "add_"}
_FLATTENINGS = {torch.flatten, "flatten"}
_RESHAPINGS = {torch.reshape, "reshape", "view"}
_MEANS = {torch.mean, "mean"}
_SIZES = {"size", getattr}
_AVERAGES: dict[Any, Callable[..., nn.Module]] = {
    functional.avg_pool2d: nn.AvgPool2d,
    functional.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
}


_ALLOCATING = {*_RELUS, *_ADDITIONS, *_MEANS, *_AVERAGES, functional.max_pool2d}
"""Functions whose result is newly allocated; any other function may return a view of its input."""


class Sum(nn.Module):
    """The sum over the last dimension, as a layer, so that relevance can be distributed among its terms."""

    def forward(self, terms: Tensor) -> Tensor:
        """Sum ``[..., n]`` to ``[...]``."""
        return terms.sum(-1)


class Add(nn.Module):
    """a + b, as at the end of a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = Sum()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Add two tensors of the same shape."""
        total: Tensor = self.sum(torch.stack([a, b], -1))
        return total


def normalized(model: nn.Module, images: Tensor) -> Tensor:
    """Return the input of ``canonical(model)``: images normalized for a ``Classifier``'s network, or unchanged."""
    return model.network_input(images) if isinstance(model, Classifier) else images


def canonical(model: nn.Module) -> fx.GraphModule:
    """Return the network of ``model``, from normalized images to logits, in canonical form and evaluation mode.

    Its graph contains only ``REARRANGEMENTS`` and calls of modules (``Add`` among them), without dropout or BatchNorm,
    each module called once and none in place. The result is cached and must not be modified; modify a
    ``copy.deepcopy`` instead. A network that was changed after the last call is analyzed again; like autograd, this
    does not detect writes through ``Parameter.data``.

    Raises:
        ValueError: the network cannot be traced, is in training mode, uses an unknown function, or overwrites memory
            that is read through a view; the message names the operation.
    """
    network = network_of(model)
    name = type(network).__name__
    has_mode = [isinstance(module, _BatchNorm | _DropoutNd) for module in network.modules()]
    if any(module.training for module in network.modules()) and any(has_mode):
        raise ValueError(f"{name}: found training mode, expected evaluation mode")
    analysis = traced(network)
    if analysis.canonical is None:
        with torch.inference_mode(False), torch.no_grad():  # a later caller may need gradients
            analysis.canonical = _in_canonical_form(
                fx.GraphModule(network, copy.deepcopy(analysis.graph)), name
            )
    return analysis.canonical


def _in_canonical_form(module: fx.GraphModule, name: str) -> fx.GraphModule:
    """Rewrite ``module`` in place, step by step."""
    _drop_identities(module)
    _order_by_writing(module, name)
    _replace_functions(module)
    _separate_calls(module)
    _fold_norms(module, name)
    module.graph.eliminate_dead_code()
    _check_supported(module, name)
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def network_of(model: nn.Module) -> nn.Module:
    """Return the submodule of ``model`` that takes normalized images."""
    return model.network if isinstance(model, Classifier) else model


def _layer(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    return module.get_submodule(str(node.target)) if node.op == "call_module" else None


def _function(node: fx.Node) -> Any:
    """Return the function or method name that ``node`` calls, None if it calls a module or nothing."""
    return node.target if node.op in ("call_function", "call_method") else None


def _call_layer(module: fx.GraphModule, node: fx.Node, layer: nn.Module, *arguments: fx.Node) -> None:
    """Turn ``node`` into a call of ``layer``."""
    name = f"canonical_{node.name}"
    module.add_submodule(name, layer.eval())
    node.op, node.target = "call_module", name
    node.args, node.kwargs = arguments or node.args, {}


def _erase(module: fx.GraphModule, node: fx.Node) -> None:
    """Remove ``node`` and connect its users to its input."""
    node.replace_all_uses_with(node.all_input_nodes[0])
    module.graph.erase_node(node)


# ------------------------------------------------------------------------------------- steps, in this order


def _drop_identities(module: fx.GraphModule) -> None:
    for node in list(module.graph.nodes):
        disabled = _function(node) is functional.dropout and node.kwargs.get("training") is False
        if disabled or isinstance(_layer(module, node), _DropoutNd | nn.Identity):
            _erase(module, node)


def _order_by_writing(module: fx.GraphModule, name: str) -> None:
    """Redirect later reads of a tensor that is overwritten in place to the node that overwrites it.

    Later reads through a view of the same memory cannot be redirected; they raise an error.
    """
    for node in list(module.graph.nodes):
        layer = _layer(module, node)
        if _writes(node) or node.kwargs.get("inplace") or getattr(layer, "inplace", False):
            source = node.all_input_nodes[0]
            for view in _same_memory(module, source):
                if view < node and any(node < user for user in view.users):
                    raise ValueError(
                        f"{name}: found {node.name!r} in place, over memory that is read later ({view.name!r}); "
                        f"expected inplace=False, or no view of the overwritten tensor"
                    )
            for user in [user for user in source.users if node < user]:
                user.replace_input_with(source, node)
            if layer is not None:
                layer_copy: Any = copy.deepcopy(layer)
                layer_copy.inplace = False
                _call_layer(module, node, layer_copy)


def _same_memory(module: fx.GraphModule, source: fx.Node) -> set[fx.Node]:
    """Return all other nodes that may share memory with ``source``: its views, its base, the base's views, etc."""
    visited, pending = {source}, [source]
    while pending:
        node = pending.pop()
        related = [user for user in node.users if _is_view(module, user)]
        related += node.all_input_nodes if _is_view(module, node) else []
        pending += (new := set(related) - visited)
        visited |= new
    return visited - {source}


def _is_view(module: fx.GraphModule, node: fx.Node) -> bool:
    """Return True if a node may return its input's memory."""
    if node.op == "call_module":
        return isinstance(_layer(module, node), nn.Flatten | nn.Unflatten)
    function = _function(node)
    return (
        function is not None and function not in _ALLOCATING and function not in _SIZES and not _writes(node)
    )


def _writes(node: fx.Node) -> bool:
    """Return True if a function or method overwrites its first input: in-place operators and names like ``relu_``."""
    function = _function(node)
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    return function in IN_PLACE_OPERATORS or (name.endswith("_") and not name.endswith("__"))


def _replace_functions(module: fx.GraphModule) -> None:
    """Replace functions by equivalent modules; others stay, and ``_check_supported`` rejects those without a rule."""
    for node in list(module.graph.nodes):
        if _function(node) is None:
            continue
        if node.target in _ADDITIONS and _are_nodes(node.args, 2) and not node.kwargs:
            _call_layer(module, node, Add())
        elif node.target in _MEANS and _is_over_space(node):
            # The pooling layer keeps two dimensions of size 1, which a mean without ``keepdim`` drops.
            if not (node.kwargs.get("keepdim") or node.args[2:] == (True,)):
                with module.graph.inserting_after(node):
                    flat = module.graph.call_function(torch.flatten, (node, 1))
                node.replace_all_uses_with(flat, delete_user_cb=lambda user, flat=flat: user is not flat)
                _call_layer(module, flat, nn.Flatten(), node)
            _call_layer(module, node, nn.AdaptiveAvgPool2d(1), *node.args[:1])
        elif (layer := _as_module(node)) is not None:
            _call_layer(module, node, layer, *node.args[:1])


def _separate_calls(module: fx.GraphModule) -> None:
    """Give each further call of a module a copy, since hooks store their data by module."""
    visited: set[int] = set()
    for node in module.graph.nodes:
        layer = _layer(module, node)
        if layer is not None:
            if id(layer) in visited:
                _call_layer(module, node, copy.deepcopy(layer))
            visited.add(id(layer))


def _fold_norms(module: fx.GraphModule, name: str) -> None:
    """Fold each BatchNorm into the linear layer before it, or else replace it by a depthwise convolution."""
    for node in list(module.graph.nodes):
        norm = _layer(module, node)
        if not isinstance(norm, nn.BatchNorm2d | nn.BatchNorm1d):
            continue
        if norm.running_var is None:
            raise ValueError(
                f"{name}: found {type(norm).__name__} ({node.target!r}) without running statistics; "
                f"expected track_running_stats=True"
            )
        previous = node.all_input_nodes[0]
        # Folding changes the output of the linear layer, so no other node may read it.
        linear = _layer(module, previous) if len(previous.users) == 1 else None
        if isinstance(linear, nn.Conv2d | nn.Linear):
            _call_layer(module, previous, _folded(linear, norm))
            _erase(module, node)
        elif isinstance(norm, nn.BatchNorm2d):
            _call_layer(module, node, _folded(_identity_convolution(norm.running_var), norm))
        else:
            raise ValueError(
                f"{name}: found BatchNorm1d ({node.target!r}) without a linear layer directly before it; expected one"
            )


def _identity_convolution(like: Tensor) -> nn.Conv2d:
    """Return a depthwise 1 × 1 convolution that leaves ``len(like)`` channels unchanged."""
    channels = len(like)
    # On any other device, the initial weights would be sampled from the global generator.
    with torch.device("meta"):
        convolution = nn.Conv2d(channels, channels, 1, groups=channels, bias=False)
    convolution.weight = nn.Parameter(like.new_ones(channels, 1, 1, 1), requires_grad=False)
    return convolution.eval()


def _folded(linear: nn.Conv2d | nn.Linear, norm: nn.BatchNorm2d | nn.BatchNorm1d) -> nn.Module:
    """Merge a linear layer and the BatchNorm after it into one layer."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    folded = copy.deepcopy(linear)
    folded.weight, folded.bias = fuse_conv_bn_weights(
        linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    return folded


def _check_supported(module: fx.GraphModule, name: str) -> None:
    sizes: set[fx.Node] = set()
    for node in module.graph.nodes:
        if _function(node) in _SIZES or (_function(node) is operator.getitem and node.args[0] in sizes):
            # A size alone is harmless; an unsupported operation that uses it is reported below.
            sizes.add(node)
        if node.op in ("placeholder", "output", "call_module") or node in sizes:
            continue
        if node.target not in REARRANGEMENTS or not _stays_within_images(node):
            operation = getattr(node.target, "__name__", node.target)
            raise ValueError(
                f"{name}: found the operation {operation!r} ({node.name}), which has no rule; valid: "
                f"modules, relu, addition of two, flatten, pooling, mean over space, slices of images and zero padding"
            )


# ----------------------------------------------------------------------------------------- properties of nodes


def _as_module(node: fx.Node) -> nn.Module | None:
    """Return the layer equivalent to a function of one tensor, or None."""
    options: dict[str, Any] = dict(node.kwargs)
    rest: Any = node.args[1:]
    if node.args[:1] == () or not isinstance(node.args[0], fx.Node):
        return None
    if _flattens(node):
        return nn.Flatten()
    if len(node.all_input_nodes) != 1:
        return None
    if node.target in _RELUS:
        return nn.ReLU()
    if node.target is functional.max_pool2d and not options.pop("return_indices", False):
        return nn.MaxPool2d(*rest, **options)
    if node.target in _AVERAGES:
        return _AVERAGES[node.target](*rest, **options)
    return None


def _are_nodes(arguments: tuple[Any, ...], count: int) -> bool:
    return len(arguments) == count and all(isinstance(argument, fx.Node) for argument in arguments)


def _flattens(node: fx.Node) -> bool:
    """Return True if a reshaping keeps images separate and flattens each to one vector."""
    if node.target in _FLATTENINGS:
        options = dict(zip(("start_dim", "end_dim"), node.args[1:], strict=False)) | node.kwargs
        return options in ({"start_dim": 1}, {"start_dim": 1, "end_dim": -1})
    if node.target not in _RESHAPINGS:
        return False
    shape = node.args[1:]
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        shape = tuple(shape[0])
    return len(shape) == 2 and _counts_images(shape[0]) and bool(shape[1] == -1)


def _counts_images(size: object) -> bool:
    """Return True if ``size`` is ``x.size(0)``, ``x.size()[0]`` or ``x.shape[0]``."""
    return isinstance(size, fx.Node) and size.target in ("size", operator.getitem) and size.args[1:] == (0,)


def _is_over_space(mean: fx.Node) -> bool:
    dimensions = mean.args[1] if len(mean.args) > 1 else mean.kwargs.get("dim")
    if not isinstance(dimensions, tuple | list) or not mean.kwargs.keys() <= {"dim", "keepdim"}:
        return False
    return sorted(dimension % 4 for dimension in dimensions) == [2, 3]


def _stays_within_images(node: fx.Node) -> bool:
    """Return True if a rearrangement keeps every image in its row and adds only zeros."""
    if len(node.all_input_nodes) != 1:
        return False
    if node.target is operator.getitem:
        index = node.args[1]
        return isinstance(index, tuple) and index[0] in (slice(None), ...)
    options: dict[str, Any] = dict(zip(("pad", "mode", "value"), node.args[1:], strict=False)) | node.kwargs
    return not options.get("value") and len(options["pad"]) <= 6
