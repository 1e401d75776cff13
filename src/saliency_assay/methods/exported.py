"""A network as a graph of PyTorch's ATen operations, recorded for images of one size.

They are recorded by ``make_fx``, on which ``torch.export`` is built; see ``docs/decisions.md`` for the reasons. The
shapes in the graph are numbers. It is recorded for a prime number of images, so that a multiple of it is a size that
depends on the number of images. What depends on weights alone is computed once, when the graph is made.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._decomp import core_aten_decompositions
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import make_fx

from saliency_assay.models.classifier import main_output
from saliency_assay.models.inference import uncompiled

PRIMES = (1009, 1013, 1019, 1021)
"""Numbers of images; the first is used of which no size of the network is a multiple."""
PATH = "nn_module_stack"
"""Key of ``fx.Node.meta`` for the path of the module, one of those that PyTorch copies to new nodes."""
_SHAPES_ALONE = {
    *("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty"),
}
"""Operations whose result does not depend on the values of their input."""


@dataclass(frozen=True)
class Constant:
    """A value that does not depend on the images."""

    value: Tensor
    """For one image, if its shape depends on their number."""
    dimension: int | None
    """The dimension whose size is a multiple of the number of images; None if there is none."""


@dataclass(frozen=True)
class Exported:
    """Operations of a network from normalized images to logits."""

    nodes: list[fx.Node]
    """Those that depend on the images, in order; the first is the placeholder of the images."""
    output: fx.Node
    constants: dict[fx.Node, Constant]
    """The other arguments of ``nodes``."""
    rows: int
    """Number of images in the shapes."""


class NotTraced(ValueError):
    """The forward pass is not a fixed sequence of operations on tensors."""


def exported(network: nn.Module, images: Tensor, known: Collection[str]) -> Exported:
    """Return the operations of a network for images like ``images [N, C, H, W]``.

    Operations that are not ``known``, such as ``conv2d.default``, are decomposed if PyTorch has a decomposition. None
    works in place. Attributes that the forward pass sets are restored.

    Raises:
        NotTraced: the network does not return logits, or cannot be recorded.
    """
    weights = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    sizes = set(chain.from_iterable(tensor.shape for tensor in [images[:1], *weights.values()]))
    rows = next(prime for prime in PRIMES if not any(size and size % prime == 0 for size in sizes))
    record = partial(_recorded, partial(_logits, network), [images, *weights.values()], list(weights), rows)
    try:
        with _attributes_restored(network), _paths_recorded(network), _compiled_parts_recorded():
            module = record()
            targets = {node.target for node in _varying(module) if isinstance(node.target, OpOverload)}
            if unknown := [each for each in targets if not _is_known(each, known)]:
                module = record(_decompositions(unknown))
        _replace_writes(module)
        varying = _varying(module)
        placeholders = [node.name for node in module.graph.find_nodes(op="placeholder")]
        with torch.inference_mode(False), torch.no_grad():
            values = dict(
                zip(placeholders[1:], (weight.detach() for weight in weights.values()), strict=True)
            )
            constants = _constants(module, varying, values, rows)
    except (NotTraced, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a forward may raise anything
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise NotTraced(
            f"its layers cannot be traced ({reason}); expected a forward without branches that depend on values"
        ) from error
    return Exported(varying, _output(module), constants, rows)


def _recorded(
    function: Callable[..., Tensor],
    tensors: Iterable[Tensor],
    names: list[str],
    rows: int,
    decompositions: Mapping[OpOverload, Callable[..., Any]] | None = None,
) -> fx.GraphModule:
    """Return the graph of ``function(names, images, *weights)``, whose first tensor are the images."""
    images, *weights = tensors
    with FakeTensorMode(allow_non_fake_inputs=True):
        example = torch.empty(rows, *images.shape[1:], dtype=images.dtype, device=images.device)
        fakes = [
            torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device)
            for each in weights
        ]
    with torch.no_grad(), traceback.preserve_node_meta():
        return make_fx(
            partial(function, names),
            dict(decompositions or {}),
            tracing_mode="real",
            pre_dispatch=True,
            _allow_non_fake_inputs=True,
        )(example, *fakes)


def _logits(network: nn.Module, names: list[str], images: Tensor, *weights: Tensor) -> Tensor:
    """Return the logits of a network with the weights of these names."""
    logits = main_output(functional_call(network, dict(zip(names, weights, strict=True)), (images,)))
    if not isinstance(logits, Tensor):
        raise NotTraced("found no logits in its output; expected logits, or a tuple that starts with them")
    return logits


def _is_known(operation: OpOverload, known: Collection[str]) -> bool:
    """Return True if an operation, or the same one not in place, is known."""
    name = short_name(operation)
    return name in known or name.replace("_.", ".") in known


def _decompositions(operations: Iterable[OpOverload]) -> dict[OpOverload, Callable[..., Any]]:
    """Return the decompositions of those operations that have one."""
    table: Any = core_aten_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return {
        each: each.decompose if each.has_kernel_for_dispatch_key(composite) else table[each]
        for each in operations
        if each.has_kernel_for_dispatch_key(composite) or each in table
    }


def short_name(target: Any) -> str:
    """Return the name of an operation without its namespace, such as ``relu.default``; that of another function."""
    return str(target).removeprefix("aten.") if isinstance(target, OpOverload) else target.__name__


def arguments_of(node: fx.Node) -> SimpleNamespace:
    """Return the arguments of an ATen operation by the names of its schema, with defaults."""
    if not isinstance(node.target, OpOverload):
        return SimpleNamespace(args=node.args)
    schema = node.target._schema.arguments
    values = {argument.name: argument.default_value for argument in schema}
    values |= dict(zip(values, node.args, strict=False)) | node.kwargs
    return SimpleNamespace(**values)


@contextmanager
def _attributes_restored(network: nn.Module) -> Iterator[None]:
    """Restore what the forward pass writes to attributes, or to containers in them, such as a cache."""
    before = [
        (module, name, value, copy.copy(value) if isinstance(value, dict | list | set) else None)
        for module in network.modules()
        for name, value in vars(module).items()
    ]
    names = {module: set(vars(module)) for module in network.modules()}
    is_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # a single operation for a whole layer
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(is_fast)
        for module in names:
            for name in set(vars(module)) - names[module]:
                del vars(module)[name]
        for module, name, value, content in before:
            if isinstance(value, list):
                value[:] = content or []
            elif content is not None:
                value.clear()
                value.update(content)
            vars(module)[name] = value


@contextmanager
def _compiled_parts_recorded() -> Iterator[None]:
    """Record what a compiled network or part of it computes; Dynamo would raise an error."""
    import torch._dynamo

    with uncompiled(), torch._dynamo.config.patch(error_on_nested_fx_trace=False):
        yield


@contextmanager
def _paths_recorded(network: nn.Module) -> Iterator[None]:
    """Record with each operation the path of the module that calls it."""
    stack = [""]

    def enter(path: str, *_: Any) -> None:
        stack.append(path)
        traceback.get_current_meta()[PATH] = {path: (path, None)}

    def leave(*_: Any) -> None:
        stack.pop()
        enter(stack.pop())

    with ExitStack() as hooks:
        for path, module in network.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):
                hooks.enter_context(module.register_forward_pre_hook(partial(enter, path), prepend=True))
                hooks.enter_context(module.register_forward_hook(leave))
        yield


def _replace_writes(module: fx.GraphModule) -> None:
    """Replace operations that write to what depends on the images.

    Nodes after the operation read its result instead of what it overwrites.

    Raises:
        NotTraced: some read the memory through a view, so that they cannot be redirected.
    """
    order = {node: number for number, node in enumerate(module.graph.nodes)}
    varying = _dependent(module)
    written: list[Any] = [node for node in varying if _writes(node)]
    for node in written:
        name, overload = node.target._schema.name.removeprefix("aten::"), node.target._overloadname
        packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
        source = node.args[0]
        views = (user for view in _same_memory(source) - {node} for user in view.users)
        is_read = any(order[user] > order[node] for user in views)
        if source not in varying or is_read or not hasattr(packet, overload):
            raise NotTraced(
                f"found {name!r} in place, over memory that is read later; expected no view of the overwritten tensor"
            )
        node.target = getattr(packet, overload)
        source.replace_all_uses_with(node, delete_user_cb=lambda user, at=order[node]: order[user] > at)


def _writes(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and True in _aliases(node.target)


@cache
def _aliases(operation: OpOverload) -> list[bool]:
    """Return for each argument whose memory the result may share whether the operation writes to it."""
    infos = (argument.alias_info for argument in operation._schema.arguments)
    return [info.is_write for info in infos if info]


def _same_memory(source: fx.Node) -> set[fx.Node]:
    """Return all other nodes that may share memory with ``source``: its views, its base, the base's views, etc."""
    visited, pending = {source}, [source]
    while pending:
        node = pending.pop()
        related = [user for user in node.users if _is_view(user)]
        related += node.all_input_nodes if _is_view(node) else []
        pending += (new := set(related) - visited)
        visited |= new
    return visited - {source}


def _is_view(node: fx.Node) -> bool:
    """Return True if a node may return its input's memory, as views do and dropout in evaluation mode."""
    if not isinstance(node.target, OpOverload):
        return node.op == "call_function"  # an item of a list of views
    return False in _aliases(node.target) or "dropout" in node.target._schema.name


def _output(module: fx.GraphModule) -> fx.Node:
    """Return the node of the logits."""
    (output,) = module.graph.find_nodes(op="output")
    node: fx.Node = output.args[0]
    return node


def _varying(module: fx.GraphModule) -> list[fx.Node]:
    """Return the nodes whose values depend on the images and that the logits need, in order."""
    needed = _ancestors([_output(module)])
    return [node for node in _dependent(module) if node in needed]


def _dependent(module: fx.GraphModule) -> dict[fx.Node, None]:
    """Return the nodes whose values depend on the images, in order."""
    dependent: dict[fx.Node, None] = {}
    for node in module.graph.nodes:
        depends = any(source in dependent for source in node.all_input_nodes)
        if not dependent or (depends and _packet(node) not in _SHAPES_ALONE):
            dependent[node] = None  # the first node is the placeholder of the images
    return dependent


def _packet(node: fx.Node) -> str:
    return short_name(node.target).partition(".")[0] if node.op == "call_function" else ""


def _ancestors(nodes: Iterable[fx.Node], stop: Collection[fx.Node] = ()) -> set[fx.Node]:
    """Return ``nodes`` and all nodes before them, without ``stop`` and what is only before these."""
    visited = set(nodes) - set(stop)
    pending = list(visited)
    while pending:
        new = set(pending.pop().all_input_nodes).difference(visited, stop)
        visited |= new
        pending += new
    return visited


def _constants(
    module: fx.GraphModule, varying: Iterable[fx.Node], values: Mapping[str, Tensor], rows: int
) -> dict[fx.Node, Constant]:
    """Compute the arguments of ``varying`` nodes that do not depend on the images.

    Where a shape depends on the number of images, it is that for one image.

    Raises:
        NotTraced: a constant differs between images.
    """
    varying = dict.fromkeys(varying)
    arguments = {source for node in varying for source in node.all_input_nodes}.difference(varying)
    evaluate = partial(_evaluated, module, varying, values, rows)
    constants = {
        node: Constant(value, _dimension(node, rows))
        for node, value in evaluate(arguments, images=1).items()
        if isinstance(value, Tensor)
    }
    for_each = {node for node, constant in constants.items() if constant.dimension is not None}
    for node, value in evaluate(for_each, images=2).items():
        constant = constants[node]
        twice = torch.cat([constant.value] * 2, constant.dimension or 0)
        if not value.is_meta and not torch.equal(value, twice):
            raise NotTraced(f"found {node.name!r}, which differs between images and does not depend on them")
    return constants


def _evaluated(
    module: fx.GraphModule,
    varying: Collection[fx.Node],
    values: Mapping[str, Tensor],
    rows: int,
    nodes: Collection[fx.Node],
    images: int,
) -> dict[fx.Node, Any]:
    """Return the values of ``nodes`` for a number of images."""

    def size(entry: Any) -> Any:
        is_size = isinstance(entry, int) and not isinstance(entry, bool) and entry and entry % rows == 0
        return entry // rows * images if is_size else entry

    def value_of(node: fx.Node) -> Any:
        if node in env:
            return env[node]
        like = node.meta["val"]  # of an operation that uses the shape alone
        return torch.empty(tuple(map(size, like.shape)), dtype=like.dtype, device=like.device)

    needed = _ancestors(nodes, varying)
    written = {
        node: _same_memory(node.args[0]) | {node.args[0]} for node in module.graph.nodes if _writes(node)
    }
    while new := {node for node, memory in written.items() if not needed.isdisjoint(memory)} - needed:
        needed |= _ancestors(new, varying)
    env: dict[fx.Node, Any] = {}
    for node in module.graph.nodes:
        if node not in needed:
            continue
        if node.op in ("placeholder", "get_attr"):
            value = values[node.name] if node.op == "placeholder" else getattr(module, str(node.target))
            is_written = any(node in memory for memory in written.values())
            env[node] = value.clone() if is_written else value.detach()
            continue
        if "nondeterministic_seeded" in {tag.name for tag in getattr(node.target, "tags", ())}:
            raise NotTraced(
                f"found the operation {short_name(node.target)!r}, which is random; expected none"
            )
        args, kwargs = (
            fx.node.map_aggregate(fx.node.map_arg(each, value_of), size) for each in (node.args, node.kwargs)
        )
        function: Any = node.target
        env[node] = function(*args, **kwargs)
    return {node: env[node] for node in nodes}


def _dimension(node: fx.Node, rows: int) -> int | None:
    shape = node.meta["val"].shape
    return next((axis for axis, size in enumerate(shape) if size and size % rows == 0), None)
