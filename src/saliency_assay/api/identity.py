"""Digests that identify methods, metrics and models in memory, so that a result can be reused after a restart."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from torch import Tensor, nn

from saliency_assay.api.networks import Prediction
from saliency_assay.api.own_functions import OwnFunction
from saliency_assay.models.classifier import Classifier, digest
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.provenance import fingerprint

DEPTH = 4
"""Levels of nested functions and objects that are followed; deeper ones count by their type."""


def identity_of(value: Any, depth: int = DEPTH) -> Any:
    """Return plain data that changes if a function, its settings or the arrays and objects in its closure change.

    Functions are identified by their source code, which does not include that of other functions that they call.
    """
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor | np.ndarray):
        array = np.ascontiguousarray(value.detach().cpu() if isinstance(value, Tensor) else value)
        return [str(array.dtype), list(array.shape), sha256(array.tobytes()).hexdigest()]
    if isinstance(value, nn.Module):
        return _identity_of_network(value, depth)
    if isinstance(value, OwnFunction):
        return identity_of(value.function, depth)
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, Mapping):
        return {str(key): identity_of(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [identity_of(each, depth - 1) for each in value]
    if isinstance(value, partial):
        return [identity_of(each, depth - 1) for each in (value.func, value.args, value.keywords)]
    if inspect.isfunction(value):
        closure = [_contents(cell) for cell in value.__closure__ or ()]
        settings = (value.__defaults__, value.__kwdefaults__, closure)
        return [_source(value), *(identity_of(each, depth - 1) for each in settings)]
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return _source(value) if callable(value) else repr(value)
    return [_source(type(value)), identity_of(vars(value), depth - 1)]


def identity_of_record(function: str) -> str:
    """Return the digest of the code of a registered function ``package.module:name`` and of what it imports."""
    return code_of(module_of(function)).digest


def model_digest(classifier: Classifier) -> str:
    """Return the SHA-256 of weights, structure and normalization of a model."""
    return fingerprint(identity_of(classifier))


def _identity_of_network(network: nn.Module, depth: int) -> Any:
    if isinstance(network, Prediction):
        return identity_of(network.predict, depth)
    if isinstance(network, Classifier):
        normalization = [each.flatten().tolist() for each in (network.mean, network.std)]
        return [identity_of(network.network, depth), normalization, network.cam_layer, network.classes]
    try:
        return [repr(network), digest(network.state_dict())]
    except TypeError:  # an entry of the state without a plain form
        return [repr(network), identity_of(dict(network.named_parameters()), depth)]


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
