"""Digests that identify methods, metrics and models in memory, so that a result can be reused after a restart."""

import inspect
import re
from collections.abc import Iterator, Mapping, Set
from functools import partial
from hashlib import sha256
from logging import Logger
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.api.networks import Prediction
from saliency_assay.api.own_functions import OwnFunction
from saliency_assay.methods.engine import pixels_of
from saliency_assay.models.classifier import Classifier, digest, unwrapped
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.models.layout import restored_buffers
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.provenance import fingerprint

BY_NAME = ("builtins", "torch")
"""Packages whose functions and classes count by their names, without their code."""
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Part of a text of an object that differs between processes."""
CONSTANT = (bool, int, float, complex, str, bytes, tuple, frozenset, NoneType)
"""Types of the values of a module or class that count as part of the code that reads them."""


def identity_of(value: Any) -> Any:
    """Return plain data that changes if a function, its settings or the arrays and objects in its closure change.

    Functions are identified by their code and the constants of their module that it reads, but not by other functions
    that they call; objects by the code of their class and its bases, and by their attributes. Data too deeply nested
    for Python's stack are not equal to any other.
    """
    return _Identities().of(value)


def identity_of_record(function: str) -> str:
    """Return the digest of the code of a registered function ``package.module:name`` and of what it imports."""
    return code_of(module_of(function)).digest


def model_digest(classifier: Classifier, images: Tensor | None = None, *, with_code: bool = True) -> str:
    """Return the SHA-256 of weights, buffers, layers with their attributes, normalization and code of a model.

    Args:
        classifier: the model; attributes of its layers count if their names do not begin with ``_``.
        images: ``[N, C, H, W]``; attributes that depend on the images of the last pass, or count passes, are left out.
        with_code: False for a digest that does not change with the code of the layers' classes, only with their names.
    """
    left_out = frozenset() if images is None else _changed_by_passes(classifier, images)
    return fingerprint(_Identities(with_code=with_code, left_out=left_out).of(classifier))


class _Identities:
    """Identities of the objects that are reached from one value; each is computed once."""

    def __init__(self, *, with_code: bool = True, left_out: Set[tuple[str, str]] = frozenset()) -> None:
        self.with_code, self.left_out = with_code, left_out
        self.known: dict[int, tuple[Any, Any]] = {}  # with the objects, so that no other gets their id

    def of(self, value: Any) -> Any:
        """Return plain data that identify ``value``; an object within itself counts by its type."""
        if isinstance(value, bool | int | float | str | None):
            return value
        if isinstance(value, OwnFunction):
            return self.of(value.function)
        if id(value) not in self.known:
            self.known[id(value)] = value, type(value).__qualname__
            try:
                self.known[id(value)] = value, self._computed(value)
            except RecursionError:
                return uuid4().hex
        return self.known[id(value)][1]

    def _computed(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, PurePath | bytes):
            return str(value)
        if isinstance(value, Tensor):
            return [str(value.dtype), list(value.shape), digest({"": value.to_dense()})]
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            return self.of(value.tolist())
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            return [str(array.dtype), list(array.shape), sha256(array.tobytes()).hexdigest()]
        if isinstance(value, nn.Module):
            return fingerprint(self._network(value))
        if isinstance(value, Mapping):
            return {str(key): self.of(each) for key, each in value.items()} | self._state(value)
        if isinstance(value, list | tuple):
            return [self.of(each) for each in value]
        if isinstance(value, set | frozenset):
            return sorted(fingerprint(self.of(each)) for each in value)
        if isinstance(value, partial):
            return [self.of(each) for each in (value.func, value.args, value.keywords)]
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, Logger):  # refers to all others
            return value.name
        if isinstance(value, CodeType):
            consts = [self.of(each) for each in value.co_consts]
            return fingerprint([_source(value), value.co_code.hex(), value.co_names, consts])
        if inspect.ismethod(value):
            return [self.of(value.__func__), self.of(value.__self__)]
        if inspect.isfunction(value):
            return fingerprint([_name(value), *self._code_of_function(value)])
        if isinstance(value, type):
            return fingerprint([_name(value), *self._code_of_class(value)])
        if inspect.isbuiltin(value):
            return [_name(value), self.of(value.__self__)]
        return fingerprint([self.of(type(value)), self._state(value) or self._restored(value)])

    def _state(self, value: Any) -> dict[str, Any]:
        """Return the attributes of an object, those in ``__slots__`` as well."""
        try:
            state = object.__getstate__(value)  # a class may leave out some
        except TypeError:  # of a type without state, such as a view of a dictionary
            return {}
        parts = state if isinstance(state, tuple) else (state,)
        return {str(key): self.of(each) for part in parts for key, each in (part or {}).items()}

    def _restored(self, value: Any) -> Any:
        """Return what restores an object without attributes, such as a deque; its text if nothing does."""
        try:
            reduced = value.__reduce_ex__(2)
        except Exception:  # a class may raise anything
            reduced = ""
        if isinstance(reduced, str):
            return ADDRESS.sub("", repr(value))
        arguments = [each for each in reduced[1] if each is not type(value)]
        return self.of([*arguments, *reduced[2:3], *(list(each or ()) for each in reduced[3:5])])

    def _code_of_function(self, function: FunctionType) -> Iterator[Any]:
        if self._is_by_name(function):
            return
        read = {name: function.__globals__.get(name) for name in _names_in(function.__code__)}
        constants = {name: each for name, each in read.items() if isinstance(each, CONSTANT)}
        closure = [_contents(cell) for cell in function.__closure__ or ()]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, closure, constants)
        yield from map(self.of, (*parts, vars(function)))

    def _code_of_class(self, kind: type) -> Iterator[Any]:
        for base in kind.__mro__:
            if self._is_by_name(base):
                continue
            for name, value in sorted(vars(base).items()):
                for wrapped in ("__func__", "fget", "func"):  # class and static methods, properties
                    value = getattr(value, wrapped, value)
                if inspect.isfunction(value) or (isinstance(value, CONSTANT) and not name.startswith("__")):
                    yield [name, self.of(value)]

    def _is_by_name(self, value: Any) -> bool:
        return not self.with_code or str(value.__module__).partition(".")[0] in BY_NAME

    def _network(self, network: nn.Module) -> Any:
        if isinstance(network, Prediction):
            return self.of(network.predict)
        if isinstance(network, Classifier):
            settings = (network.cam_layer, network.classes, network.multi_label, network.token_grid)
            return [self.of(each) for each in (network.network, network.mean, network.std, *settings)]
        network = unwrapped(network)
        attributes: dict[str, dict[str, Any]] = {}
        for (layer, name), value in _attributes(network).items():
            if (layer, name) not in self.left_out:
                attributes.setdefault(layer, {})[name] = self.of(value)
        layers = [
            [name, self.of(type(layer)), attributes.get(name, {})]
            for name, layer in network.named_modules(remove_duplicate=False)
        ]
        buffers = dict(network.named_buffers())  # also those that are not in the state
        try:
            return [layers, digest({**network.state_dict(), **buffers})]
        except TypeError:  # an entry of the state without a plain form
            return [layers, self.of({**dict(network.named_parameters()), **buffers})]


def _attributes(network: nn.Module) -> dict[tuple[str, str], Any]:
    """Return the attributes by the names of the layer and of the attribute; also the code of traced layers."""
    attributes = {}
    for layer_name, layer in network.named_modules(remove_duplicate=False):
        for name, value in vars(layer).items():
            if not name.startswith("_") and name != "training":
                attributes[layer_name, name] = value
        if isinstance(code := getattr(layer, "code", None), str):
            attributes[layer_name, "code"] = code
    return attributes


def _changed_by_passes(classifier: Classifier, images: Tensor) -> Set[tuple[str, str]]:
    """Return the attributes that differ after passes of two images, such as a stored activation or a counter."""
    network = classifier.network
    if all(type(layer).__module__.partition(".")[0] == "torch" for layer in network.modules()):
        return frozenset()
    pixels, found = pixels_of(images[:1], classifier.device), []
    for each in (pixels, 1 - pixels):
        with evaluating(network), restored_buffers(network), exact_float32(), torch.no_grad():
            network(classifier.network_input(each))
        attributes = _attributes(unwrapped(network))
        found.append({key: fingerprint(_Identities().of(value)) for key, value in attributes.items()})
    return {key for key in {**found[0], **found[1]} if found[0].get(key) != found[1].get(key)}


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions inside it read."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', repr(value))}"


def _source(code: CodeType) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # compiled, or defined by exec
        return ""
