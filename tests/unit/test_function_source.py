"""What a user's function takes, read from its source."""

import sys
from pathlib import Path

import pytest

from saliency_assay.source import check_call, source_of

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


def fault(function: str, *parameters: str) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        check_call(f"own_package.functions:{function}", parameters)
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
        ("made", ["unknown"]),  # an assignment: only running it would tell
        ("system", []),
    ],
)
def test_what_fits_is_accepted_without_running_it(module: Path, function: str, parameters: list[str]) -> None:
    check_call(f"own_package.functions:{function}", parameters)


def test_what_does_not_fit_is_one_line(module: Path) -> None:
    assert fault("plain", "level") == "level: unknown parameter 'level'; valid: none"
    assert fault("tuned", "level", "powr") == (
        "powr: unknown parameter 'powr'; did you mean 'power'? valid: level, power"
    )
    assert fault("tuned", "power") == "level: missing, the function has no default for it"
    assert fault("plian").startswith(
        "function: unknown function 'plian'; did you mean 'plain'? valid: anything, "
    )
    assert fault("plian").endswith(f" (in {module})")
    expected = "expected (model, images, targets, *, generator, …)"
    assert fault("short") == f"function: found arguments (images, generator), {expected}"
    assert fault("forgetful") == f"function: found arguments (model, images, targets, level), {expected}"


def test_what_cannot_be_found_or_parsed_is_one_line(module: Path) -> None:
    for function, line in {
        "mine": "function: found 'mine', expected package.module:name",
        "mine:": "function: found 'mine:', expected package.module:name",
        "no_such_module:f": (
            "function: found 'no_such_module:f', no module 'no_such_module' beside the configuration or on "
            "PYTHONPATH"
        ),
        "no_such_package.module:f": (
            "function: found 'no_such_package.module:f', 'no_such_package.module': No module named "
            "'no_such_package'"
        ),
    }.items():
        with pytest.raises(ValueError, match=r".") as error:
            check_call(function, [])
        assert str(error.value) == line
    module.write_text("def plain(:\n")
    assert fault("plain") == f"function: {module}, line 1: invalid syntax"


def test_a_module_without_source_is_left_to_the_job() -> None:
    assert source_of("sys") is None
    check_call("sys:exit", ["unknown"])
