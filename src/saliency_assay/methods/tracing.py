"""The graph of a network, traced when it is new or has changed.

That a network is still what it was is found without going through its values.
"""

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary, ref

from torch import Tensor, fx, nn

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
    """What one look at a network found."""

    state: State
    graph: fx.Graph
    canonical: fx.GraphModule | None = None


_TRACED: WeakKeyDictionary[nn.Module, Traced] = WeakKeyDictionary()


def traced(network: nn.Module) -> Traced:
    """What is known of a network, the same as in the last call unless the network has changed.

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
    """What can be compared of ``network``, which it does not keep alive."""
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
