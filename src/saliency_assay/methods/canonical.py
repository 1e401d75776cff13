"""A network as a chain of known layers: what relevance propagation and DeepLIFT need to see.

Both go through a network layer by layer, so functional operations become modules, every call gets a module of its
own, and BatchNorm is folded into the convolution before it. The network itself is left alone: what changes is a
copy, and weights that do not change are shared with it.
"""

import copy
import operator
from collections.abc import Callable, Hashable, Iterator
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
"""Functions that stand for ``a += b`` and the like."""

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class State:
    """Equal to a later one of the same network unless that was changed in between.

    Seen are layers that come, go or change their settings, mode or hooks, tensors that are replaced, moved or
    converted, and what autograd counts as writing to one; what is written through ``Parameter.data`` is not.
    """

    layers: tuple[Hashable, ...]
    tensors: tuple[Hashable, ...]
    memory: tuple[Tensor, ...] = field(compare=False)
    """The tensors' memory, kept so that no other tensor comes to lie at its address."""


@dataclass
class Traced:
    """Result of one analysis of a network."""

    state: State
    graph: fx.Graph
    canonical: fx.GraphModule | None = None


_TRACED: WeakKeyDictionary[nn.Module, Traced] = WeakKeyDictionary()


def traced(network: nn.Module) -> Traced:
    """Return the analysis of a network, the same as in the last call unless the network has changed.

    Raises:
        ValueError: a network that cannot be traced.
    """
    known, state = _TRACED.get(network), state_of(network)
    if known is None or known.state != state:
        known = _TRACED[network] = Traced(state, _trace(network))
    return known


def _trace(network: nn.Module) -> fx.Graph:
    try:
        return _Tracer().trace(network)
    except Exception as error:  # whatever a forward raises when it is given a stand-in for a tensor
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name = type(network).__name__
        raise ValueError(
            f"{name}: its layers cannot be traced ({reason}); expected a forward without branches that depend "
            f"on values, or a method that needs gradients only, such as integrated_gradients"
        ) from error


def _in_place(function: Any) -> Callable[["_Proxy", Any], fx.Proxy]:
    return lambda proxy, other: proxy.tracer.create_proxy("call_function", function, (proxy, other), {})


class _Proxy(fx.Proxy):
    """A stand-in for a tensor that knows ``a += b``, which writes to a, from ``a = a + b``."""

    __iadd__, __isub__ = _in_place(operator.iadd), _in_place(operator.isub)
    __imul__, __itruediv__ = _in_place(operator.imul), _in_place(operator.itruediv)


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)


def state_of(network: nn.Module) -> State:
    """Return what can be compared of ``network``, without keeping it alive."""
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
    # A tensor made in inference mode does not count its writes.
    version = object() if tensor.is_inference() else tensor._version
    place = tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride()
    return *place, tensor.requires_grad, version


def _comparable(value: Any) -> Hashable:
    """Numbers and names as they are, the keys of a dictionary (its hooks have one each), else which object it is."""
    if isinstance(value, dict):
        return tuple(value)
    if isinstance(value, tuple | list):
        return tuple(map(_comparable, value))
    return value if isinstance(value, _PLAIN) else id(value)


REARRANGEMENTS: tuple[Any, ...] = (operator.getitem, functional.pad)
"""Functions that only move values about within an image, or put zeros beside them."""

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


_FRESH = {*_RELUS, *_ADDITIONS, *_MEANS, *_AVERAGES, functional.max_pool2d}
"""Functions whose result is memory of its own; any other may return a view of its input."""


class Sum(nn.Module):
    """The sum over the last dimension, a layer of its own so that relevance can be shared among its terms."""

    def forward(self, terms: Tensor) -> Tensor:
        """``[..., n]`` to ``[...]``."""
        return terms.sum(-1)


class Add(nn.Module):
    """a + b, as where a residual connection ends."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = Sum()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Two tensors of one shape to their sum."""
        total: Tensor = self.sum(torch.stack([a, b], -1))
        return total


def normalised(model: nn.Module, images: Tensor) -> Tensor:
    """What ``canonical(model)`` takes: images as a ``Classifier``'s network sees them, or as they are."""
    return model.network_input(images) if isinstance(model, Classifier) else images


def canonical(model: nn.Module) -> fx.GraphModule:
    """The network behind ``model``, from normalised images to logits, in evaluation mode.

    Its graph holds calls of modules (among them ``Add``, no dropout or BatchNorm, none twice and none in place) and
    of ``REARRANGEMENTS``. The result is kept for the next call, so leave it as it is: ``copy.deepcopy`` it to change
    it. A network that has changed since is gone through anew; a write through ``Parameter.data`` goes unseen, as it
    does in autograd.

    Raises:
        ValueError: a network that cannot be traced, is in training mode, computes with a function that is not
            known here, or writes over memory that is read through a view; the line names it.
    """
    network = network_of(model)
    name = type(network).__name__
    modes = [isinstance(part, _BatchNorm | _DropoutNd) for part in network.modules()]
    if any(part.training for part in network.modules()) and any(modes):
        raise ValueError(f"{name}: found training mode, expected evaluation mode")
    known = traced(network)
    if known.canonical is None:
        with torch.inference_mode(False), torch.no_grad():  # who comes next may want gradients
            known.canonical = _in_canonical_form(fx.GraphModule(network, copy.deepcopy(known.graph)), name)
    return known.canonical


def _in_canonical_form(module: fx.GraphModule, name: str) -> fx.GraphModule:
    _drop_identities(module)
    _order_by_writing(module, name)
    _name_functions(module)
    _part_calls(module)
    _fold_norms(module, name)
    module.graph.eliminate_dead_code()
    _check_known(module, name)
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def unfit_relus(model: nn.Module) -> Iterator[str]:
    """What of ``model``'s network keeps hooks from seeing each ReLU once, a phrase for each such ReLU.

    Raises:
        ValueError: a network that cannot be traced.
    """
    network = network_of(model)
    calls: dict[str, int] = {}
    for node in traced(network).graph.nodes:
        if _function(node) in _RELUS:
            yield f"the ReLU {node.name!r} is a function"
        elif node.op == "call_module" and isinstance(network.get_submodule(str(node.target)), nn.ReLU):
            target = str(node.target)
            calls[target] = calls.get(target, 0) + 1
            if calls[target] == 2:
                yield f"the ReLU {target!r} is called more than once"


def network_of(model: nn.Module) -> nn.Module:
    """What of ``model`` sees normalised images."""
    return model.network if isinstance(model, Classifier) else model


def _layer(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    return module.get_submodule(str(node.target)) if node.op == "call_module" else None


def _function(node: fx.Node) -> Any:
    """The function or the method's name that ``node`` calls, None where it calls a module or nothing."""
    return node.target if node.op in ("call_function", "call_method") else None


def _put(module: fx.GraphModule, node: fx.Node, layer: nn.Module, *arguments: fx.Node) -> None:
    """Make ``node`` a call of ``layer``, in place of what it is."""
    name = f"canonical_{node.name}"
    module.add_submodule(name, layer.eval())
    node.op, node.target = "call_module", name
    node.args, node.kwargs = arguments or node.args, {}


def _erase(module: fx.GraphModule, node: fx.Node) -> None:
    node.replace_all_uses_with(node.all_input_nodes[0])
    module.graph.erase_node(node)


# ------------------------------------------------------------------------------------- steps, in this order


def _drop_identities(module: fx.GraphModule) -> None:
    for node in list(module.graph.nodes):
        idle = _function(node) is functional.dropout and node.kwargs.get("training") is False
        if idle or isinstance(_layer(module, node), _DropoutNd | nn.Identity):
            _erase(module, node)


def _order_by_writing(module: fx.GraphModule, name: str) -> None:
    """Where an operation writes over its input, what reads that input later gets what was written.

    What reads the same memory later by another name would not: that is refused.
    """
    for node in list(module.graph.nodes):
        layer = _layer(module, node)
        if _writes(node) or node.kwargs.get("inplace") or getattr(layer, "inplace", False):
            source = node.all_input_nodes[0]
            for view in _same_memory(module, source):
                if view < node and any(node < user for user in view.users):
                    raise ValueError(
                        f"{name}: found {node.name!r} in place, over memory that is read later ({view.name!r}); "
                        f"expected inplace=False, or no view of what is written over"
                    )
            for user in [user for user in source.users if node < user]:
                user.replace_input_with(source, node)
            if layer is not None:
                own: Any = copy.deepcopy(layer)
                own.inplace = False
                _put(module, node, own)


def _same_memory(module: fx.GraphModule, source: fx.Node) -> set[fx.Node]:
    """The views of ``source``, what it is a view of, and that one's views, and so on; not ``source``."""
    found, new = {source}, [source]
    while new:
        node = new.pop()
        near = [user for user in node.users if _is_view(module, user)]
        near += node.all_input_nodes if _is_view(module, node) else []
        new += (unseen := set(near) - found)
        found |= unseen
    return found - {source}


def _is_view(module: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node may return its input's memory."""
    if node.op == "call_module":
        return isinstance(_layer(module, node), nn.Flatten | nn.Unflatten)
    function = _function(node)
    return function is not None and function not in _FRESH and function not in _SIZES and not _writes(node)


def _writes(node: fx.Node) -> bool:
    """Whether a function or method writes over its first input, as names that end in one underscore say."""
    function = _function(node)
    called = function if isinstance(function, str) else getattr(function, "__name__", "")
    return function in IN_PLACE_OPERATORS or (called.endswith("_") and not called.endswith("__"))


def _name_functions(module: fx.GraphModule) -> None:
    """Make modules of functions that have one. What is unknown stays, and ``_check_known`` refuses what counts."""
    for node in list(module.graph.nodes):
        if _function(node) is None:
            continue
        if node.target in _ADDITIONS and _are_nodes(node.args, 2) and not node.kwargs:
            _put(module, node, Add())
        elif node.target in _MEANS and _is_over_space(node):
            if not (node.kwargs.get("keepdim") or node.args[2:] == (True,)):
                with module.graph.inserting_after(node):
                    flat = module.graph.call_function(torch.flatten, (node, 1))
                node.replace_all_uses_with(flat, delete_user_cb=lambda user, flat=flat: user is not flat)
                _put(module, flat, nn.Flatten(), node)
            _put(module, node, nn.AdaptiveAvgPool2d(1), *node.args[:1])
        elif (layer := _as_module(node)) is not None:
            _put(module, node, layer, *node.args[:1])


def _part_calls(module: fx.GraphModule) -> None:
    """Give each further call of a module a copy: hooks keep what they saw under the module."""
    seen: set[int] = set()
    for node in module.graph.nodes:
        layer = _layer(module, node)
        if layer is not None:
            if id(layer) in seen:
                _put(module, node, copy.deepcopy(layer))
            seen.add(id(layer))


def _fold_norms(module: fx.GraphModule, name: str) -> None:
    for node in list(module.graph.nodes):
        norm = _layer(module, node)
        if not isinstance(norm, nn.BatchNorm2d | nn.BatchNorm1d):
            continue
        if norm.running_var is None:
            raise ValueError(
                f"{name}: found {type(norm).__name__} ({node.target!r}) without running statistics; "
                f"expected one that keeps them"
            )
        before = node.all_input_nodes[0]
        linear = _layer(module, before) if len(before.users) == 1 else None
        if isinstance(linear, nn.Conv2d | nn.Linear):
            _put(module, before, _folded(linear, norm))
            _erase(module, node)
        elif isinstance(norm, nn.BatchNorm2d):
            _put(module, node, _folded(_no_change(norm.running_var), norm))
        else:
            raise ValueError(
                f"{name}: found BatchNorm1d ({node.target!r}) that follows no linear layer; expected one that does"
            )


def _no_change(like: Tensor) -> nn.Conv2d:
    """A convolution of one pixel and one channel each, that leaves ``len(like)`` channels as they are."""
    channels = len(like)
    with torch.device("meta"):  # it would draw its first weights from the global generator anywhere else
        convolution = nn.Conv2d(channels, channels, 1, groups=channels, bias=False)
    convolution.weight = nn.Parameter(like.new_ones(channels, 1, 1, 1), requires_grad=False)
    return convolution.eval()


def _folded(linear: nn.Conv2d | nn.Linear, norm: nn.BatchNorm2d | nn.BatchNorm1d) -> nn.Module:
    """A linear layer and the BatchNorm after it, as one."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    folded = copy.deepcopy(linear)
    folded.weight, folded.bias = fuse_conv_bn_weights(
        linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    return folded


def _check_known(module: fx.GraphModule, name: str) -> None:
    sizes: set[fx.Node] = set()
    for node in module.graph.nodes:
        if _function(node) in _SIZES or (_function(node) is operator.getitem and node.args[0] in sizes):
            sizes.add(node)  # what reads it is named
        if node.op in ("placeholder", "output", "call_module") or node in sizes:
            continue
        if node.target not in REARRANGEMENTS or not _stays_within_images(node):
            operation = getattr(node.target, "__name__", node.target)
            raise ValueError(
                f"{name}: found the operation {operation!r} ({node.name}), which has no rule of its own; valid: "
                f"modules, relu, addition of two, flatten, pooling, mean over space, slices of images and zero padding"
            )


# ------------------------------------------------------------------------------------------- what a node does


def _as_module(node: fx.Node) -> nn.Module | None:
    """The layer that does what a function of one tensor does, if there is one."""
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
    """Whether a reshaping keeps images apart and makes one vector of each."""
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
    """Whether ``size`` is ``x.size(0)``, ``x.size()[0]`` or ``x.shape[0]``."""
    return isinstance(size, fx.Node) and size.target in ("size", operator.getitem) and size.args[1:] == (0,)


def _is_over_space(mean: fx.Node) -> bool:
    dimensions = mean.args[1] if len(mean.args) > 1 else mean.kwargs.get("dim")
    if not isinstance(dimensions, tuple | list) or not mean.kwargs.keys() <= {"dim", "keepdim"}:
        return False
    return sorted(dimension % 4 for dimension in dimensions) == [2, 3]


def _stays_within_images(node: fx.Node) -> bool:
    """Whether a rearrangement leaves every image its row, and adds nothing but zeros."""
    if len(node.all_input_nodes) != 1:
        return False
    if node.target is operator.getitem:
        index = node.args[1]
        return isinstance(index, tuple) and index[0] in (slice(None), ...)
    options: dict[str, Any] = dict(zip(("pad", "mode", "value"), node.args[1:], strict=False)) | node.kwargs
    return not options.get("value") and len(options["pad"]) <= 6
