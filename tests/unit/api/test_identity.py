"""Digests of methods and models: equal after a restart, and different after every change that changes results."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from saliency_assay import benchmark, wrap
from saliency_assay.api.identity import identity_of, model_digest


class Power:
    """A method as an object, with its exponent in a list of lists."""

    def __init__(self, exponent: float, depth: int = 0) -> None:
        self.exponent: Any = exponent
        for _ in range(depth):
            self.exponent = [self.exponent]

    def maps(self, model: Any, images: Any, targets: Any) -> Any:
        return images**self.exponent


def function_of(text: str) -> Callable[..., Any]:
    """Return the function ``f`` in a text of Python."""
    names: dict[str, Any] = {}
    exec(text, names)
    function: Callable[..., Any] = names["f"]
    return function


def decorated(exponent: int) -> Callable[..., Any]:
    def method(images: Any) -> Any:
        return images

    if exponent == 1:

        @wraps(method)
        def outer(images: Any) -> Any:
            return method(images)
    else:

        @wraps(method)
        def outer(images: Any) -> Any:
            return method(images) ** 2

    return outer


def derived(exponent: int) -> Any:
    class Base:
        def __call__(self, images: Any) -> Any:
            return images**exponent

    class Derived(Base):
        pass

    return Derived()


PAIRS = {
    "bound method": (Power(1).maps, Power(2).maps),
    "partial of a bound method": (partial(Power(1).maps), partial(Power(2).maps)),
    "depth": (Power(1, 50), Power(2, 50)),
    "decorator": (decorated(1), decorated(2)),
    "base class": (derived(1), derived(2)),
    "constant of the module": tuple(function_of(f"K = {k}\ndef f(x): return x ** K") for k in (1, 2)),
    "constant of the code": tuple(function_of(f"def f(x): return x ** {k}") for k in (1, 2)),
    "lambdas in one line": (lambda x: x, lambda x: -x),
}


@pytest.mark.parametrize("case", PAIRS)
def test_other_code_and_other_settings_have_another_identity(case: str) -> None:
    one, other = PAIRS[case]
    assert identity_of(one) == identity_of(one)
    assert identity_of(one) != identity_of(other)


def test_equal_objects_are_equal_and_cycles_end() -> None:
    assert identity_of(Power(1).maps) == identity_of(Power(1).maps)
    own = Power(1)
    own.exponent = [own]
    assert identity_of(own) != identity_of(Power(1))


def test_what_is_nested_too_deeply_is_never_equal() -> None:
    value = Power(1, 5000)
    assert identity_of(value) != identity_of(value)


class Network(nn.Module):
    def __init__(self, temperature: float = 1.0, buffer: float = 0.0) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 1)
        nn.init.ones_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.temperature = temperature
        self.register_buffer("shift", torch.full((1,), buffer), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images).mean((2, 3)) * self.temperature


class Edited(Network):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return -super().forward(images)


Edited.__qualname__ = Network.__qualname__


def with_stride(stride: int) -> Network:
    network = Network()
    network.layer.stride = (stride, stride)
    return network


def digest_of(network: nn.Module, **options: bool) -> str:
    return model_digest(wrap(network, classes=2, mean=[0.5], std=[0.5]), **options)


@pytest.mark.parametrize(
    ("changed", "is_code"),
    [
        (Network(temperature=2.0), False),
        (Network(buffer=1.0), False),
        (with_stride(2), False),
        (Edited(), True),
        (nn.Sequential(Network(), nn.ReLU()), False),
    ],
)
def test_other_attributes_buffers_and_code_of_a_network(changed: nn.Module, is_code: bool) -> None:
    assert digest_of(Network()) == digest_of(Network())
    assert digest_of(changed) != digest_of(Network())
    assert (digest_of(changed, with_code=False) == digest_of(Network(), with_code=False)) == is_code


class Storing(Network):
    """A network that counts its passes and stores an activation."""

    calls, stored = 0, None

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.stored = images
        return super().forward(images)


def test_what_passes_change_does_not_count(tmp_path: Path) -> None:
    images = torch.rand(4, 1, 3, 3)
    arguments: tuple[Any, ...] = (images, ["gradient"], ["complexity"])
    options: dict[str, Any] = {"path": tmp_path / "run", "progress": False}
    network = Storing()
    first = benchmark(network, *arguments, **options).scores
    assert first.equals(benchmark(network, *arguments, **options).scores)
    network.temperature = 3
    with pytest.raises(ValueError, match="weights"):
        benchmark(network, *arguments, **options)


def test_a_layer_that_is_used_twice_counts_twice() -> None:
    shared = nn.ReLU()
    assert digest_of(nn.Sequential(Network(), shared)) != digest_of(nn.Sequential(shared, Network(), shared))


def test_the_digest_is_that_of_another_process() -> None:
    program = """
import json, torch
from saliency_assay import wrap
from saliency_assay.api.identity import identity_of, model_digest
from saliency_assay.models.resnet import resnet8
def method(model, images, targets, names={"a", "b", "c"}):
    return images if model in {"x", "y", "z"} else (lambda: images)()
network = resnet8(classes=3, channels=1, generator=torch.Generator().manual_seed(0))
model = wrap(network, classes=3, mean=[0.5], std=[0.5])
print(json.dumps([identity_of(method), model_digest(model), model_digest(model, with_code=False)]))
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(Path(identity_of.__code__.co_filename).parents[2]),
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1
    assert len(json.loads(found.pop())) == 3
