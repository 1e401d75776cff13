"""Digests that identify methods, metrics and models in memory, so that a result can be reused after a restart."""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from logging import Logger
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
from torch import Tensor, nn

from saliency_assay.api.networks import Prediction
from saliency_assay.api.own_functions import OwnFunction
from saliency_assay.models.classifier import Classifier, digest
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.provenance import fingerprint

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Part of a text of an object that differs between processes."""


def identity_of(value: Any) -> Any:
    """Return plain data that changes if a function, its settings or the state of an object that it uses changes.

    Functions are identified by their source code, which does not include that of other functions that they call, and by
    what their closures and default values contain; objects by the source code of their class and their attributes, at
    any depth. Networks are identified by structure, weights and public attributes.
    """
    return _Identity().of(value)


class _Identity:
    """The traversal of one value; an object that occurs again is replaced by its number."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.held: list[Any] = []  # so that no other object gets the address of a temporary one

    def of(self, value: Any) -> Any:
        """Return plain data for ``value``."""
        if isinstance(value, bool | int | float | str | None):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, PurePath | bytes):
            return str(value)
        if isinstance(value, Tensor | np.ndarray) and not _has_objects(value):
            return _of_array(value)
        if isinstance(value, OwnFunction):
            return self.of(value.function)
        if isinstance(value, tuple | frozenset):  # equal ones may be one object
            return self._of_items(value)
        if id(value) in self.numbers:
            return f"object {self.numbers[id(value)]}"
        self.numbers[id(value)] = len(self.numbers)
        self.held.append(value)
        return self._of_object(value)

    def _of_items(self, values: Iterable[Any]) -> list[Any]:
        items = [self.of(each) for each in values]
        return sorted(items, key=repr) if isinstance(values, set | frozenset) else items

    def _of_object(self, value: Any) -> Any:
        if isinstance(value, nn.Module):
            return self._of_network(value)
        if isinstance(value, np.ndarray):
            return self._of_items(value.tolist())
        if isinstance(value, dict | MappingProxyType):
            return {str(key): self.of(each) for key, each in value.items()} | self._state(value)
        if isinstance(value, list | set):
            return self._of_items(value)
        if isinstance(value, partial):
            return self._of_items((value.func, value.args, value.keywords))
        if inspect.ismodule(value):
            return value.__name__
        if isinstance(value, Logger):  # refers to all others
            return value.name
        if inspect.isfunction(value):
            closure = [_contents(cell) for cell in value.__closure__ or ()]
            return [_source(value), *self._of_items((value.__defaults__, value.__kwdefaults__, closure))]
        if inspect.ismethod(value) or inspect.isbuiltin(value):
            function = value.__func__ if inspect.ismethod(value) else value.__qualname__
            return self._of_items((function, value.__self__))
        if isinstance(value, type):
            return _source(value)
        state = self._state(value)
        return [_source(type(value)), state or self._reduced(value)]

    def _state(self, value: Any) -> dict[str, Any]:
        """Return the attributes of an object, those in ``__slots__`` as well."""
        state = object.__getstate__(value)  # of Python 3.11; a class may leave out some
        parts = state if isinstance(state, tuple) else (state,)
        return {str(key): self.of(each) for part in parts for key, each in (part or {}).items()}

    def _reduced(self, value: Any) -> Any:
        """Return what restores an object without attributes, such as a deque; its text if nothing does."""
        try:
            reduced = value.__reduce_ex__(2)
        except Exception:  # a class may raise anything
            reduced = ""
        if isinstance(reduced, str):
            return ADDRESS.sub("", repr(value))
        arguments = [each for each in reduced[1] if each is not type(value)]
        return self._of_items([*arguments, *reduced[2:3], *(list(each or ()) for each in reduced[3:5])])

    def _of_network(self, network: nn.Module) -> Any:
        if isinstance(network, Prediction):
            return self.of(network.predict)
        state = _of_weights(network)
        return [_source(type(network)), state, *map(self._public_attributes, network.modules())]

    def _public_attributes(self, module: nn.Module) -> dict[str, Any]:
        return {
            name: self.of(value)
            for name, value in vars(module).items()
            if not name.startswith("_") and name != "training"
        }


def identity_of_record(function: str) -> str:
    """Return the digest of the code of a registered function ``package.module:name`` and of what it imports."""
    return code_of(module_of(function)).digest


def model_digest(classifier: Classifier) -> str:
    """Return the SHA-256 of weights, structure and normalization of a model."""
    network = classifier.network
    structure = identity_of(network.predict) if isinstance(network, Prediction) else _of_weights(network)
    normalization = [each.flatten().tolist() for each in (classifier.mean, classifier.std)]
    # Without the attributes of the network, some of which its passes change.
    return fingerprint([structure, normalization, classifier.cam_layer, classifier.classes])


def _of_weights(network: nn.Module) -> list[Any]:
    try:
        return [repr(network), digest(network.state_dict())]
    except TypeError:  # an entry of the state without a plain form
        return [repr(network), {name: _of_array(each) for name, each in network.named_parameters()}]


def _has_objects(value: Tensor | np.ndarray[Any, Any]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def _of_array(value: Tensor | np.ndarray[Any, Any]) -> list[Any]:
    if isinstance(value, Tensor):
        return [str(value.dtype), list(value.shape), digest({"": value.to_dense()})]
    array = np.ascontiguousarray(value)
    return [str(array.dtype), list(array.shape), sha256(array.tobytes()).hexdigest()]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _source(value: Callable[..., Any]) -> list[str]:
    name = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', repr(value))}"
    try:
        return [name, inspect.getsource(value)]
    except (OSError, TypeError):  # built in, compiled, or defined by exec
        code = getattr(value, "__code__", None)
        return [name, "" if code is None else f"{code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"]
