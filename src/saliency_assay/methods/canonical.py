"""Canonical form of a network for the methods that follow its layers: a graph of known layers.

LRP, DeepLIFT, FullGrad and the attention methods go from layer to layer, so functional operations become modules, every
call gets a separate module, and BatchNorm is folded into the convolution before it. The network itself is not modified:
the canonical form is a copy, which shares the unchanged weights.
"""

import copy
import itertools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from torch.nn.utils.fusion import fuse_conv_bn_weights
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from saliency_assay.methods.differentiate import logits_of
from saliency_assay.methods.layers import (
    Add,
    MatMul,
    Mean,
    Multiply,
    expand_attention,
    expand_multihead,
    linear,
)
from saliency_assay.models.classifier import Classifier, kind_of, main_output, unwrapped
from saliency_assay.models.independence import differ
from saliency_assay.models.inference import uncompiled
from saliency_assay.models.state import State, checksums, state_of

IN_PLACE_OPERATORS = frozenset({operator.iadd, operator.isub, operator.imul, operator.itruediv})
"""Functions behind ``a += b`` and the other in-place operators."""


@dataclass
class Traced:
    """Result of one analysis of a network."""

    state: State
    module: fx.GraphModule
    checksums: Tensor
    """Of the values of parameters and buffers; see ``forget_if_written``."""
    canonical: fx.GraphModule | None = None


_TRACED: WeakKeyDictionary[nn.Module, Traced] = WeakKeyDictionary()


def traced(network: nn.Module) -> Traced:
    """Return the analysis of a network, cached from the last call unless the network has changed.

    Raises:
        ValueError: the network cannot be traced.
    """
    cached, state = _TRACED.get(network), state_of(network)
    if cached is None or cached.state != state:
        cached = _TRACED[network] = Traced(state, _trace(network), checksums(network))
    return cached


def forget_if_written(network: nn.Module) -> None:
    """Remove the analysis of a network from the cache if its values were written through ``Parameter.data``.

    It waits for the device, so it is for the beginning of a call and not for each batch.
    """
    cached = _TRACED.get(network)
    if cached is not None and not torch.equal(cached.checksums, checksums(network)):
        del _TRACED[network]


def _trace(network: nn.Module) -> fx.GraphModule:
    before = set(vars(network))
    try:
        with uncompiled():
            return fx.GraphModule(network, _Tracer().trace(network))
    except Exception as error:  # a forward may raise anything when it receives a proxy instead of a tensor
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        name = kind_of(network)
        raise ValueError(
            f"{name}: its layers cannot be traced ({reason}); expected a forward without branches that depend "
            f"on values"
        ) from error
    finally:
        for name in set(vars(network)) - before:  # constants, of which the module has its own reference
            delattr(network, name)


def _in_place(function: Any) -> Callable[["_Proxy", Any], fx.Proxy]:
    return lambda proxy, other: proxy.tracer.create_proxy("call_function", function, (proxy, other), {})


class _Proxy(fx.Proxy):
    """A proxy of a tensor that records ``a += b``, which writes to a, differently from ``a = a + b``."""

    __iadd__, __isub__ = _in_place(operator.iadd), _in_place(operator.isub)
    __imul__, __itruediv__ = _in_place(operator.imul), _in_place(operator.itruediv)


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)

    def call_module(self, m: nn.Module, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module that ``Module.compile`` has compiled as it was before."""
        is_compiled = getattr(m, "_compiled_call_impl", None) is not None
        return super().call_module(m, m._call_impl if is_compiled else forward, args, kwargs)

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Pass the images alone to the network, so that its other arguments have their defaults."""
        return root_fn, [self.root, self.create_proxy("placeholder", "images", (), {})]


UNFOLDED = "unfolded_pair"
"""Key of ``fx.GraphModule.meta``: True if two logits of one output are a layer of their own, see ``_fold_pair``."""
_WEIGHT_HOOKS = (WeightNorm, SpectralNorm, BasePruningMethod)
"""Hooks that compute a layer's weight before each pass."""
HOOKS_ROUNDING = 1e-6
"""Difference of logits, relative to the largest, of two passes with the same operations."""

_SIZES = {"size", "dim"}
_SIZE_ATTRIBUTES = {"shape", "ndim", "device", "dtype"}
PERMUTATIONS: set[Any] = {
    *(torch.permute, torch.transpose, torch.swapaxes, torch.movedim, torch.unbind, torch.chunk, torch.split),
    *("permute", "transpose", "swapaxes", "movedim", "unbind", "chunk", "split"),
}
_RESHAPINGS: set[Any] = {
    *(torch.reshape, torch.flatten, torch.unflatten, torch.squeeze, torch.unsqueeze),
    *("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "expand"),
}
_JOINS: set[Any] = {torch.cat, torch.concat, torch.stack}

REARRANGEMENTS: set[Any] = {
    *(operator.getitem, functional.pad, torch.roll, "roll"),
    *PERMUTATIONS,
    *_RESHAPINGS,
    *_JOINS,
}
"""Functions and methods that only move values within an image, join them, or pad them with zeros."""

_ADDITIONS = {operator.add, operator.iadd, torch.add, "add", "add_"}
_PRODUCTS = {operator.mul, operator.imul, torch.mul, "mul", "mul_"}
_DIVISIONS = {operator.truediv, torch.div, "div"}
_MATRIX_PRODUCTS = {operator.matmul, torch.matmul, torch.bmm, "matmul", "bmm"}
_MEANS = {torch.mean, "mean"}
_FUNCTIONS: dict[Any, Callable[..., nn.Module]] = {
    **dict.fromkeys((functional.relu, functional.relu_, torch.relu, torch.relu_, "relu", "relu_"), nn.ReLU),
    **dict.fromkeys((torch.sigmoid, functional.sigmoid, "sigmoid"), nn.Sigmoid),
    **dict.fromkeys((torch.tanh, functional.tanh, "tanh"), nn.Tanh),
    **dict.fromkeys((functional.softmax, torch.softmax, "softmax"), nn.Softmax),
    functional.relu6: nn.ReLU6,
    functional.leaky_relu: nn.LeakyReLU,
    functional.elu: nn.ELU,
    functional.gelu: nn.GELU,
    functional.silu: nn.SiLU,
    functional.mish: nn.Mish,
    functional.softplus: nn.Softplus,
    functional.hardswish: nn.Hardswish,
    functional.hardsigmoid: nn.Hardsigmoid,
    functional.max_pool2d: nn.MaxPool2d,
    functional.avg_pool2d: nn.AvgPool2d,
    functional.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
}
"""Functions of one tensor, and the layers that take the same further arguments."""
_WEIGHTED = {functional.linear, functional.layer_norm, functional.batch_norm}

_COPIES = {torch.clone, "clone", "contiguous"}

_ALLOCATING = {
    torch.clone,
    "clone",
    *_ADDITIONS,
    *_PRODUCTS,
    *_DIVISIONS,
    *_MATRIX_PRODUCTS,
    *_MEANS,
    *_FUNCTIONS,
    *_WEIGHTED,
    *_JOINS,
    functional.scaled_dot_product_attention,
}
"""Functions whose result is newly allocated; any other function may return a view of its input."""


def normalized(model: nn.Module, images: Tensor) -> Tensor:
    """Return the input of ``canonical(model)``: images normalized for a ``Classifier``'s network, or unchanged."""
    return model.network_input(images) if isinstance(model, Classifier) else images


def canonical(model: nn.Module) -> fx.GraphModule:
    """Return the network of ``model``, from normalized images to logits, in canonical form and evaluation mode.

    What depends on the images is a call of a module, among them those of ``layers``, or one of ``REARRANGEMENTS``;
    sizes and constants, such as position embeddings, may be computed by any function. There is no dropout, BatchNorm or
    ``nn.MultiheadAttention``; each module is called once and none in place. The result is cached and must not be
    modified; modify a ``copy.deepcopy`` instead. A network that was changed after the last call is analyzed again,
    unless it was written through ``Parameter.data``, see ``forget_if_written``.

    Raises:
        ValueError: the network cannot be traced, is in training mode, uses an unknown function, or overwrites memory
            that is read through a view; the message names the operation.
    """
    network = _analysis(model).canonical
    assert network is not None
    return network


def _analysis(model: nn.Module) -> Traced:
    """Return the analysis of the network of ``model``, with its canonical form."""
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
    analysis = traced(network)
    if analysis.canonical is None:
        with torch.inference_mode(False), torch.no_grad():  # a later caller may need gradients
            analysis.canonical = _in_canonical_form(
                fx.GraphModule(analysis.module, copy.deepcopy(analysis.module.graph)),
                name,
                is_binary=getattr(network, "is_binary", False),
            )
    return analysis


def canonical_for(method: str, model: nn.Module) -> fx.GraphModule:
    """Return ``canonical(model)`` for a method, which compares its logits by ``check_form``.

    Raises:
        ValueError: as ``canonical``; the message starts with ``method`` and ends with an alternative.
    """
    try:
        return canonical(model)
    except ValueError as error:
        raise ValueError(f"{method}: {error}; or use integrated_gradients") from error


def check_form(method: str, model: nn.Module, images: Tensor, logits: Tensor) -> None:
    """Check that the ``logits`` of a model's canonical form are those of the model for ``images``, up to rounding.

    Hooks of layers, which the form does not have, must not change them at all: the effect of a hook may be as small as
    rounding errors of other layers.

    Raises:
        ValueError: they are not.
    """
    if images.is_meta:
        return
    expected = logits_of(model, images)
    name = kind_of(network_of(model))
    with _hooks_disabled(model) as hooks:
        if hooks and differ(logits_of(model, images), expected, rounding=HOOKS_ROUNDING):
            raise ValueError(
                f"{method}: found hooks of {name} that change its logits, expected none; put the change into the "
                "network, or use integrated_gradients"
            )
    if differ(logits.detach(), expected):
        raise ValueError(
            f"{method}: the layers of {name}, traced, do not return its logits; expected standard layers in one "
            "precision, without branches; or use integrated_gradients"
        )


@contextmanager
def _hooks_disabled(model: nn.Module) -> Iterator[int]:
    """Remove the hooks that the canonical form does not have, and yield their number; containers' hooks are traced."""
    network = network_of(model)
    graph = traced(network).module.graph
    layers = [network.get_submodule(str(node.target)) for node in graph.find_nodes(op="call_module")]
    modules = {id(each): each for layer in layers for each in layer.modules()}
    modules |= {id(each): each for each in (model, network)}
    removed = []
    for module in modules.values():
        for kind in ("_forward_hooks", "_forward_pre_hooks"):
            hooks = getattr(module, kind)
            kept = OrderedDict((key, hook) for key, hook in hooks.items() if isinstance(hook, _WEIGHT_HOOKS))
            if len(kept) < len(hooks):
                removed.append((module, kind, hooks))
                setattr(module, kind, kept)
    try:
        yield len(removed)
    finally:
        for module, kind, hooks in removed:
            setattr(module, kind, hooks)


def changes_shape(node: fx.Node) -> bool:
    """Return True for constants, methods and functions other than slices, paddings and concatenations."""
    plain = (operator.getitem, functional.pad, torch.cat)
    return node.op in ("get_attr", "call_method") or (node.op == "call_function" and node.target not in plain)


def _in_canonical_form(module: fx.GraphModule, name: str, *, is_binary: bool) -> fx.GraphModule:
    """Rewrite ``module`` in place, step by step; ``is_binary`` for a network with one output (``ToLogits``)."""
    _return_logits(module, name)
    _pass_by_position(module)
    _drop_identities(module)
    _order_by_writing(module, name)
    _replace_functions(module, name)
    _fix_computed_weights(module, name)
    _remove_hooks(module)
    _separate_calls(module)
    _fold_norms(module, name)
    module.graph.eliminate_dead_code()
    if is_binary:
        _fold_pair(module)
    _check_supported(module, name)
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def network_of(model: nn.Module) -> nn.Module:
    """Return the submodule of ``model`` that takes normalized images, without wrappers."""
    return unwrapped(model.network if isinstance(model, Classifier) else model)


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


def _return_logits(module: fx.GraphModule, name: str) -> None:
    """Return only the logits of a network with auxiliary outputs."""
    output = next(node for node in module.graph.nodes if node.op == "output")
    logits = main_output(output.args[0])
    if not isinstance(logits, fx.Node):
        raise ValueError(
            f"{name}: found no logits in its output; expected logits, or a tuple that starts with them"
        )
    output.args = (logits,)


def _pass_by_position(module: fx.GraphModule) -> None:
    """Pass the only argument of a layer by position."""
    for node in module.graph.nodes:
        if node.op == "call_module" and not node.args and len(node.kwargs) == 1:
            node.args, node.kwargs = tuple(node.kwargs.values()), {}


def _drop_identities(module: fx.GraphModule) -> None:
    for node in list(module.graph.nodes):
        function = _function(node)
        if function is not None and getattr(function, "__name__", "") == "_assert":
            module.graph.erase_node(node)
        elif _adds_no_mask(node):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
        elif (_is_random(function) and _is_in_evaluation(node)) or isinstance(
            _layer(module, node), _DropoutNd | nn.Identity
        ):
            _erase(module, node)


def _adds_no_mask(node: fx.Node) -> bool:
    """Return True for timm's addition of an attention mask if there is no mask.

    timm is optional, so that its functions are recognized by their names.
    """
    if getattr(node.target, "__name__", "") != "maybe_add_mask":
        return False
    mask = node.kwargs.get("attn_mask", (*node.args, None)[1])
    if not isinstance(mask, fx.Node):
        return mask is None
    options: dict[str, Any] = dict(
        zip(("seq_len", "attn", "attn_mask", "is_causal"), mask.args, strict=False)
    )
    options |= mask.kwargs
    is_resolved = getattr(mask.target, "__name__", "") == "resolve_self_attn_mask"
    return is_resolved and options.get("attn_mask") is None and not options.get("is_causal")


def _is_random(function: Any) -> bool:
    """Return True for dropout, and for torchvision's stochastic depth, which is not imported to be compared."""
    return function is functional.dropout or getattr(function, "__name__", "") == "stochastic_depth"


def _is_in_evaluation(node: fx.Node) -> bool:
    """Return True if the last argument of a call, ``training``, is False."""
    position = 2 if node.target is functional.dropout else 3
    return node.kwargs.get("training", (*node.args, True)[min(position, len(node.args))]) is False


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
        function is not None and function not in _ALLOCATING and not _reads_size(node) and not _writes(node)
    )


def _writes(node: fx.Node) -> bool:
    """Return True if a function or method overwrites its first input: in-place operators and names like ``relu_``."""
    function = _function(node)
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    return function in IN_PLACE_OPERATORS or (name.endswith("_") and not name.endswith("__"))


def _replace_functions(module: fx.GraphModule, name: str) -> None:
    """Replace functions by equivalent modules; others stay, and ``_check_supported`` rejects those without a rule."""
    varying = signals(module.graph)
    for node in list(module.graph.nodes):
        if isinstance(attention := _layer(module, node), nn.MultiheadAttention):
            _expand(module, node, name, partial(expand_multihead, attention=attention))
        if _function(node) is None or node not in varying:
            continue
        if node.target in _COPIES:
            _erase(module, node)
            continue
        if node.target == "view":
            node.target = "reshape"  # a view may need the memory of a copy that is left out
        if node.target is functional.scaled_dot_product_attention:
            _expand(module, node, name, expand_attention)
        elif (operation := _operation(node)) is not None:
            # The first argument of the layer is an activation, the second may be a constant. ``varying`` lacks the
            # layers that have replaced functions before.
            current = signals(module.graph)
            a, b = node.args if node.args[0] in current else reversed(node.args)
            if node.target in _DIVISIONS:
                with module.graph.inserting_before(node):
                    b = module.graph.call_function(operator.truediv, (1.0, b))
            in_order = isinstance(operation, MatMul)
            _call_layer(module, node, operation, *(node.args if in_order else (a, b)))
        elif node.target in _MEANS and _is_over_space(node):
            # The pooling layer keeps two dimensions of size 1, which a mean without ``keepdim`` drops.
            if not (node.kwargs.get("keepdim") or node.args[2:] == (True,)):
                with module.graph.inserting_after(node):
                    flat = module.graph.call_function(torch.flatten, (node, 1))
                node.replace_all_uses_with(flat, delete_user_cb=lambda user, flat=flat: user is not flat)
                _call_layer(module, flat, nn.Flatten(), node)
            _call_layer(module, node, nn.AdaptiveAvgPool2d(1), *node.args[:1])
        elif (layer := _as_module(module, node)) is not None:
            _call_layer(module, node, layer, *(node.args[:1] or (node.kwargs["input"],)))


def signals(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes whose values depend on those of the images; sizes and constants do not."""
    varying: set[fx.Node] = set()
    for node in graph.nodes:
        depends = node.op == "placeholder" or any(source in varying for source in node.all_input_nodes)
        if depends and not _reads_size(node):
            varying.add(node)
    return varying


def _reads_size(node: fx.Node) -> bool:
    """Return True if a node reads a property of a tensor that does not depend on its values."""
    return _function(node) in _SIZES or (node.target is getattr and node.args[1] in _SIZE_ATTRIBUTES)


def _expand(module: fx.GraphModule, node: fx.Node, name: str, expansion: Callable[..., fx.Node]) -> None:
    """Replace a call of attention, and reads of the first of its results, by ``expansion``."""
    count = itertools.count()

    def call(layer: nn.Module, *arguments: Any) -> fx.Node:
        path = f"canonical_{node.name}_{next(count)}"
        module.add_submodule(path, layer.eval())
        return module.graph.call_module(path, arguments)

    with module.graph.inserting_before(node):
        try:
            result = expansion(module.graph, call, node)
        except ValueError as error:
            raise ValueError(f"{name}: {node.name}: {error}") from None
    if node.op == "call_module":
        for user in list(node.users):
            user.replace_all_uses_with(result)
            module.graph.erase_node(user)
    else:
        node.replace_all_uses_with(result)
    module.graph.erase_node(node)


def _fix_computed_weights(module: fx.GraphModule, name: str) -> None:
    """Replace layers whose weights are computed in each pass, as by weight norm or pruning, by plain ones.

    Rules of LRP replace parameters, and such a layer computes its weights from other parameters.

    Raises:
        ValueError: a layer with computed weights has a forward of its own.
    """
    for node in module.graph.find_nodes(op="call_module"):
        layer = module.get_submodule(str(node.target))
        if not isinstance(layer, nn.Conv2d | nn.Linear) or {"weight", "bias"} <= layer._parameters.keys():
            continue
        kind = nn.Conv2d if isinstance(layer, nn.Conv2d) else nn.Linear
        if type(layer).forward is not kind.forward:
            raise ValueError(
                f"{name}: found {type(layer).__name__} ({node.target!r}), which has computed weights and a forward of "
                f"its own; expected {kind.__name__}"
            )
        for hook in layer._forward_pre_hooks.values():
            if isinstance(hook, _WEIGHT_HOOKS):
                hook(layer, ())  # sets the weight, which is that of the last pass until then
        weight, bias = layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
        _call_layer(
            module,
            node,
            _convolution(layer, weight, bias) if isinstance(layer, nn.Conv2d) else linear(weight, bias),
        )


def _convolution(like: nn.Conv2d, weight: Tensor, bias: Tensor | None) -> nn.Module:
    """Return a plain convolution with the settings of ``like``, and these weights, which are constant."""
    layer = nn.Conv2d(
        like.in_channels,
        like.out_channels,
        cast(tuple[int, int], like.kernel_size),
        cast(tuple[int, int], like.stride),
        cast(Any, like.padding),
        cast(tuple[int, int], like.dilation),
        like.groups,
        bias is not None,
        like.padding_mode,
        device="meta",
    )
    return _with_weights(layer, weight, bias)


def _remove_hooks(module: fx.GraphModule) -> None:
    """Remove hooks from layers, which rules would apply more than once; ``check_form`` refuses those that matter."""
    for node in module.graph.find_nodes(op="call_module"):
        layer = module.get_submodule(str(node.target))
        if any(_hooks_of(each) for each in layer.modules()):
            _call_layer(module, node, _without_hooks(layer))


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _hooks_of(module: nn.Module) -> list[Any]:
    return [hook for kind in _HOOKS for hook in getattr(module, kind).values()]


def _without_hooks(module: nn.Module) -> nn.Module:
    """Return a copy that shares everything but hooks with the module."""
    result = copy.copy(module)
    result._modules = {name: child and _without_hooks(child) for name, child in module._modules.items()}
    for kind in _HOOKS:
        setattr(result, kind, OrderedDict())
    return result


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
        elif pools or not (previous.target in _RESHAPINGS or isinstance(layer, nn.Flatten)):
            break
        previous = previous.args[0]
    outputs = getattr(layer, "out_features", getattr(layer, "out_channels", 0))
    is_linear = isinstance(layer, nn.Linear) and not pools
    is_convolution = isinstance(layer, nn.Conv2d) and not is_indexed
    if not is_single or outputs != 1 or not (is_linear or is_convolution):
        module.meta[UNFOLDED] = True
        return
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    bias = None if layer.bias is None else weight[:, 0] * layer.bias
    if isinstance(layer, nn.Linear):
        _call_layer(module, pair, linear(weight @ layer.weight, bias), previous.args[0])
    else:
        widened = copy.copy(layer)
        widened.out_channels = 2
        merged = _convolution(widened, weight[:, :, None, None] * layer.weight, bias)
        _call_layer(module, previous, merged, previous.args[0])
        _call_layer(module, pair, nn.Flatten(), pools[0] if pools else previous)
        for pool, source in zip(pools, [*pools[1:], previous], strict=True):
            pool.args = (source,)
    module.graph.eliminate_dead_code()


def _is_spatial_mean(layer: nn.Module | None) -> bool:
    """Return True for average pooling and for a mean over the height and width of ``[N, C, H, W]``."""
    if isinstance(layer, Mean):
        return {dimension % 4 for dimension in layer.dimensions} == {2, 3}
    return isinstance(layer, nn.AdaptiveAvgPool2d | nn.AvgPool2d)


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
    varying = signals(module.graph)
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output", "call_module") or node not in varying:
            continue
        if node.target not in REARRANGEMENTS or not _stays_within_images(node):
            operation = getattr(node.target, "__name__", node.target)
            raise ValueError(
                f"{name}: found the operation {operation!r} ({node.name}), which has no rule; valid: "
                f"modules, activations, addition and product of two tensors, matrix products, softmax, attention, "
                f"pooling, means, rearrangements within images and zero padding"
            )


# ----------------------------------------------------------------------------------------- properties of nodes


def _operation(node: fx.Node) -> nn.Module | None:
    """Return the layer of a sum or product of two arguments, of which one at least is a node; None otherwise."""
    if len(node.args) != 2 or node.kwargs:
        return None
    a, b = node.args
    if node.target in _ADDITIONS and isinstance(a, fx.Node) and isinstance(b, fx.Node):
        return Add()
    if node.target in _PRODUCTS:
        return Multiply()
    if node.target in _DIVISIONS and isinstance(b, int | float):
        return Multiply()
    return MatMul() if node.target in _MATRIX_PRODUCTS else None


def _as_module(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """Return the layer equivalent to a function of one activation, or None."""
    options: dict[str, Any] = dict(node.kwargs)
    rest: Any = node.args[1:]
    if not isinstance(options.pop("input", (*node.args, None)[0]), fx.Node):
        return None
    if _flattens(node):
        return nn.Flatten()
    if node.target in _WEIGHTED:
        return _weighted(module, node)
    if node.target in _MEANS:
        return _mean(node)
    if node.target not in _FUNCTIONS or len(node.all_input_nodes) != 1:
        return None
    if options.pop("return_indices", False):
        return None
    options.pop("inplace", None)
    options.pop("_stacklevel", None)
    if options.get("dtype", 0) is None:
        options.pop("dtype")
    try:
        layer = _FUNCTIONS[node.target](*rest, **options)
    except TypeError:  # an argument that the layer does not have
        return None
    return None if isinstance(layer, nn.Softmax) and layer.dim is None else layer


_ARGUMENTS = {
    functional.linear: ("input", "weight", "bias"),
    functional.layer_norm: ("input", "normalized_shape", "weight", "bias", "eps"),
    functional.batch_norm: (
        *("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    ),
}


def _weighted(module: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """Return the layer of a function with weights of the network; None if these are computed."""
    function: Any = node.target
    options: dict[str, Any] = dict(zip(_ARGUMENTS[function], node.args, strict=False)) | node.kwargs
    for key, value in options.items():
        if key != "input" and isinstance(value, fx.Node):
            if value.op != "get_attr":
                return None
            options[key] = operator.attrgetter(str(value.target))(module)
    weight, bias = options.get("weight"), options.get("bias")
    if function is functional.linear:
        return linear(options["weight"], bias)
    if function is functional.layer_norm:
        shape, eps = list(options["normalized_shape"]), options.get("eps", 1e-5)
        return _with_weights(nn.LayerNorm(shape, eps, elementwise_affine=False), weight, bias)
    if options.get("training") or options["running_mean"] is None:
        return None
    layer = nn.BatchNorm2d(len(options["running_mean"]), options.get("eps", 1e-5), device="meta")
    layer.running_mean, layer.running_var = options["running_mean"], options["running_var"]
    return _with_weights(layer, weight, bias)


def _with_weights(layer: nn.Module, weight: Tensor | None, bias: Tensor | None) -> nn.Module:
    """Return ``layer`` with these weights, which are constant."""
    for name, value in (("weight", weight), ("bias", bias)):
        constant = None if value is None else nn.Parameter(value.detach(), requires_grad=False)
        setattr(layer, name, constant)
    return layer


def _mean(node: fx.Node) -> nn.Module | None:
    """Return the layer of a mean over dimensions other than the images; None for a mean over all values."""
    options: dict[str, Any] = dict(zip(("input", "dim", "keepdim"), node.args, strict=False)) | node.kwargs
    dimensions = options.get("dim")
    dimensions = (dimensions,) if isinstance(dimensions, int) else dimensions
    if not dimensions or 0 in dimensions or not options.keys() <= {"input", "dim", "keepdim"}:
        return None
    return Mean(dimensions, bool(options.get("keepdim")))


def _flattens(node: fx.Node) -> bool:
    """Return True if a reshaping keeps images separate and flattens each to one vector."""
    if node.target in (torch.flatten, "flatten"):
        options = dict(zip(("start_dim", "end_dim"), node.args[1:], strict=False)) | node.kwargs
        return options in ({"start_dim": 1}, {"start_dim": 1, "end_dim": -1})
    if node.target not in (torch.reshape, "reshape", "view"):
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
    """Return True if a rearrangement keeps every image in its row and adds only zeros.

    After a permutation or a split, the first dimension need not be the images, so that any index is valid.
    """
    source = node.args[0] if node.args else None
    if node.target is operator.getitem:
        assert isinstance(source, fx.Node)
        index = node.args[1]
        return _is_permuted(source) or (isinstance(index, tuple) and index[0] in (slice(None), ...))
    if node.target in _JOINS:
        return bool(node.kwargs.get("dim", (*node.args, 0, 0)[1]) != 0)
    if node.target in _RESHAPINGS:
        return _is_permuted(source) or _keeps_rows(node)
    if node.target is not functional.pad:
        return True
    options: dict[str, Any] = dict(zip(("pad", "mode", "value"), node.args[1:], strict=False)) | node.kwargs
    return not options.get("value") and len(options["pad"]) <= 6


def _is_permuted(source: Any) -> bool:
    return isinstance(source, fx.Node) and source.target in PERMUTATIONS


def _keeps_rows(node: fx.Node) -> bool:
    """Return True unless a change of shape gives the first dimension another length than a multiple of the images'."""
    first: Any = node.args[1] if len(node.args) > 1 else None
    if node.target in (torch.flatten, "flatten"):
        return node.kwargs.get("start_dim", first) not in (None, 0)
    if node.target not in (torch.reshape, "reshape"):
        return True
    size = first[0] if isinstance(first, tuple | list) else first
    if isinstance(size, fx.Node):
        return size.target not in ("size", operator.getitem) or _counts_images(size)
    return bool(size == -1)
