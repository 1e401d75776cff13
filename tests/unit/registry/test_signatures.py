"""Arguments of a custom function, read from its source."""

import sys
from pathlib import Path

import pytest
from configurations import agrees

from saliency_assay.registry.records import Parameter
from saliency_assay.registry.signatures import (
    FunctionDoc,
    check_call,
    declared,
    describe_function,
    parameters_of,
    source_of,
)

POSITIONAL = ("model", "images", "targets")
FUNCTIONS = """import os as system
raise RuntimeError("never run")


def plain(model, images, targets, *, generator):
    return images


def tuned(model, images, targets, *, generator, level, power=1):
    return images


def anything(model, images, targets, **parameters):
    return images


def positional(model, images, targets, generator, level=1):
    return images


def short(images, *, generator):
    return images


def forgetful(model, images, targets, *, level=1):
    return images


def greedy(model, images, targets, *, generator, mask, mean=None, level):
    return images


def early(model, images, targets, mean, *, generator):
    return images


def plenty(model, images, targets, *, mask, **rest):
    return images


class Network(Base):
    def __init__(self, model, images, targets, *, generator, width=8):
        super().__init__()


class Small:
    def __init__(self, classes):
        pass


class Inherited(Network):
    pass


made = plain
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    path = package / "functions.py"
    path.write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_package", raising=False)  # of the test before
    return path


def check(function: str, *parameters: str, offered: tuple[str, ...] = ()) -> tuple[str, ...]:
    return check_call(f"own_package.functions:{function}", parameters, positional=POSITIONAL, offered=offered)


def fault(function: str, *parameters: str, offered: tuple[str, ...] = ()) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        check(function, *parameters, offered=offered)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        ("plain", []),
        ("tuned", ["level"]),
        ("tuned", ["level", "power"]),
        ("anything", ["whatever"]),
        ("positional", ["level"]),
        ("positional", []),
        ("Network", ["width"]),
        ("Inherited", ["unknown"]),  # only Python knows what it takes
        ("made", ["unknown"]),  # an assignment: only running it would tell
        ("system", []),
    ],
)
def test_what_fits_is_accepted_without_running_it(module: Path, function: str, parameters: list[str]) -> None:
    assert check(function, *parameters) == ()


@pytest.mark.parametrize(
    ("function", "parameters", "taken"),
    [
        ("greedy", ["level"], ("mask", "mean")),
        ("early", [], ("mean",)),
        ("tuned", ["level"], ()),
        ("plenty", ["level"], ("mask",)),  # the others are not passed by ``**rest``
        ("anything", ["level"], ()),
        ("made", [], ()),
    ],
)
def test_of_what_is_offered_a_function_takes_what_it_names(
    module: Path, function: str, parameters: list[str], taken: tuple[str, ...]
) -> None:
    assert check(function, *parameters, offered=("mean", "mask", "randomized_model")) == taken


def test_what_is_offered_is_no_parameter(module: Path) -> None:
    offered = ("mean", "mask")
    assert agrees(fault("greedy", "level", "mean", offered=offered), "mean: found a value, expected none")
    assert agrees(fault("greedy", offered=offered), "level: missing")
    assert agrees(fault("greedy", "level"), "mask: missing")


def test_a_class_in_place_of_a_function_that_creates_it(module: Path) -> None:
    builder = ("classes", "channels", "generator")
    with pytest.raises(ValueError, match=r".") as error:
        check_call("own_package.functions:Small", [], positional=(), named=builder)
    expected = (
        "function: found class Small with arguments (classes), expected (*, classes, channels, generator"
    )
    assert agrees(str(error.value), f"{expected} … a function with these arguments that creates Small")


def test_a_star_import_may_contain_any_name(module: Path) -> None:
    module.write_text("from os.path import *\n")
    assert check("join") == ()


def test_positional_arguments_are_those_that_the_caller_has(module: Path) -> None:
    message = r"^function: found arguments \(model, images, targets, generator\), expected \(predict, images,"
    with pytest.raises(ValueError, match=message):
        check_call("own_package.functions:plain", [], positional=("predict", "images", "targets", "maps"))
    assert check_call("own_package.functions:short", [], positional=("images",)) == ()


@pytest.mark.parametrize(
    ("function", "parameters", "expected"),
    [
        ("plain", ["level"], "level: unknown parameter 'level' … valid: none"),
        ("tuned", ["level", "powr"], "powr: unknown parameter 'powr' … 'power' … valid: level, power"),
        ("tuned", ["power"], "level: missing"),
        ("plian", [], "function: unknown function 'plian' … 'plain' … (in MODULE)"),
        ("Network", ["depth"], "depth: unknown parameter 'depth' … valid: width"),
        (
            "Small",
            [],
            "function: found class Small … (classes) … (model, images, targets, *, generator … a function",
        ),
        ("short", [], "function: found arguments (images, generator) … (model, images, targets"),
        ("forgetful", [], "function: found arguments (model, images, targets, level) … generator"),
    ],
)
def test_what_does_not_fit_is_one_line(
    module: Path, function: str, parameters: list[str], expected: str
) -> None:
    assert agrees(fault(function, *parameters), expected.replace("MODULE", str(module)))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("mine", "expected package.module:name"),
        ("mine:", "expected package.module:name"),
        ("mine.py:build", "expected package.module:name"),
        ("my_folder/mine:build", "expected package.module:name"),
        ("no_such_module:f", "no module 'no_such_module'"),
        ("no_such_package.module:f", "'no_such_package.module': … 'no_such_package'"),
    ],
)
def test_what_does_not_exist_is_one_line(function: str, expected: str) -> None:
    with pytest.raises(ValueError, match=r"^function: ") as error:
        check_call(function, [], positional=POSITIONAL)
    assert agrees(str(error.value), f"function: found '{function}', {expected}")


def test_a_module_that_cannot_be_parsed_is_named(module: Path) -> None:
    module.write_text("def plain(:\n")
    assert fault("plain").startswith(f"function: {module}, line 1: ")


def test_a_module_without_source_is_left_to_the_job() -> None:
    assert source_of("sys") is None
    assert check_call("sys:exit", ["unknown"], positional=POSITIONAL, offered=("mean",)) == ()


def test_declared_are_all_arguments_of_a_registered_function(module: Path) -> None:
    assert declared("own_package.functions:greedy") == {
        "model", "images", "targets", "generator", "mask", "mean", "level",
    }  # fmt: skip


SHOWN = """
def shown(images, scale=2, *, level=-0.5, sides=[1, 2], name="a", power=3 ** 2, mean=None, generator=None):
    '''The share of it, [N].

    More of it.
    '''
"""


def test_the_description_of_a_function(module: Path) -> None:
    module.write_text(FUNCTIONS + SHOWN)
    assert describe_function(
        "own_package.functions:shown", passed=("images", "mean", "generator")
    ) == FunctionDoc("The share of it, [N]", {"scale": 2, "level": -0.5, "sides": [1, 2], "name": "a"})
    assert describe_function("own_package.functions:plain", passed=POSITIONAL) == FunctionDoc("", {})
    assert describe_function("own_package.functions:made", passed=POSITIONAL) == FunctionDoc("", {})


REGISTERED = """
from dataclasses import dataclass


def score(images, scale=2.0, *, generator, steps: PositiveInt = 20_000, noise: float = -0.5, fill: Fill = "mean",
    mean=None):
    pass


def respond(images, *, generator, steps: int = 5, orders: int = 10, exact: bool = False):
    pass


@dataclass(frozen=True)
class Descent:
    rate: float = 1e-6
    rule: Annotated[str, Limits(choices=("constant", "polyak"))] = "polyak"

    LEVELS = 255


def without(images, *, generator, level: int):
    pass


def listed(images, *, generator, sides=(1, 2)):
    pass


def unlimited(images, *, generator, size: Size = 3):
    pass
"""


def parameters(*names: str, apart: tuple[str, ...] = ("mean",)) -> dict[str, Parameter]:
    functions = [f"own_package.registered:{name}" for name in names]
    return parameters_of(*functions, apart=apart)


def test_parameters_are_the_keyword_only_arguments_with_their_defaults(module: Path) -> None:
    module.with_name("registered.py").write_text(REGISTERED)
    assert list(parameters("score", "respond", "Descent").items()) == [
        ("steps", Parameter(20_000, minimum=1)),
        ("noise", Parameter(-0.5)),
        ("fill", Parameter("mean", choices=("black", "gray", "mean", "image_mean", "random", "blur"))),
        ("orders", Parameter(10)),
        ("exact", Parameter(False)),
        ("rate", Parameter(1e-6)),
        ("rule", Parameter("polyak", choices=("constant", "polyak"))),
    ]
    types = {name: type(parameter.default) for name, parameter in parameters("respond").items()}
    assert types == {"steps": int, "orders": int, "exact": bool}


def test_a_record_that_does_not_fit_its_function_is_refused(module: Path) -> None:
    module.with_name("registered.py").write_text(REGISTERED)
    with pytest.raises(ValueError, match=r"registered:without: level: expected a plain default"):
        parameters("without")
    with pytest.raises(ValueError, match=r"registered:listed: sides: expected a plain default"):
        parameters("listed")
    with pytest.raises(ValueError, match=r"registered:score: mean: expected a plain default"):
        parameters("score", apart=())
    with pytest.raises(ValueError, match=r"registered:unlimited: size: found Size, .*registry\.limits"):
        parameters("unlimited")
