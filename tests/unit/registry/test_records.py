"""Parameters, references to callables, and the one-line errors that every registry shares."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.registry.aliases import (
    METHOD_ALIASES,
    METRIC_ALIASES,
    SIMILAR,
    plain,
    registered_name,
)
from saliency_assay.registry.records import (
    RENAMED,
    Parameter,
    module_of,
    record_of,
    resolve,
    short_repr,
    unknown,
    with_defaults,
)


@dataclass(frozen=True)
class Named:
    name: str
    function: str = "math:sqrt"


RECORDS = (Named("smoothgrad"), Named("gradcam"))
PARAMETERS = {
    "samples": Parameter(25, minimum=1),
    "noise": Parameter(0.15, minimum=0, maximum=1),
    "rule": Parameter("left", choices=("left", "right")),
    "relu": Parameter(True),
}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Parameter(3, minimum=1, maximum=5), 1),
        (Parameter(3, minimum=1, maximum=5), 5),
        (Parameter(0.5, minimum=0, maximum=1), 0.0),
        (Parameter(0.5, minimum=0, maximum=1), 1),
        (Parameter("left", choices=("left", "right")), "right"),
        (Parameter("free"), "anything"),
        (Parameter(False), True),
        (Parameter(3, minimum=1, words=("exact", "all")), "all"),
        (Parameter(3, minimum=1, words=("exact",)), 1),
        (Parameter(0.5, words=("auto",)), "auto"),
    ],
)
def test_values_in_range_have_no_problem(parameter: Parameter, value: object) -> None:
    assert parameter.problem(value) is None


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        (Parameter(3, minimum=1), 0, "expected at least 1"),
        (Parameter(3, maximum=5), 6, "expected at most 5"),
        (Parameter(0.5, minimum=0.25), 0.2, "expected at least 0.25"),
        (Parameter(0.5), float("nan"), "expected a finite number"),
        (Parameter(0.5, minimum=0), float("inf"), "expected a finite number"),
        (Parameter(0.5), "much", "expected a number (YAML reads 1e-3 as text, 1.0e-3 as a number)"),
        (Parameter(0.5), None, "expected a number"),
        (Parameter(3), 3.0, "expected an integer"),
        (Parameter(3), True, "expected an integer"),  # to Python, True is 1
        (Parameter(0.5), True, "expected a number"),
        (Parameter(True), 1, "expected true or false"),
        (Parameter("free"), 7, "expected a string"),
        (Parameter("left", choices=("left", "right")), "up", "valid: left, right"),
        (Parameter(3, minimum=1, words=("exact",)), "exactly", "expected an integer or 'exact'"),
        (Parameter(3, minimum=1, words=("exact", "all")), 3.0, "expected an integer or 'exact' or 'all'"),
        (Parameter(3, minimum=1, words=("exact",)), 0, "expected at least 1"),
    ],
)
def test_a_problem_names_what_is_valid(parameter: Parameter, value: object, problem: str) -> None:
    assert parameter.problem(value) == problem


def test_missing_parameters_have_their_defaults() -> None:
    parameters = {"rule": "right", "noise": 1}
    complete = with_defaults(PARAMETERS, parameters)
    assert list(complete.items()) == [("samples", 25), ("noise", 1), ("rule", "right"), ("relu", True)]
    assert parameters == {"rule": "right", "noise": 1}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sample": 3}, r"unknown parameter 'sample'; .*'samples'.* valid: noise, relu"),
        ({"x": 3}, r"unknown parameter 'x'; valid: noise, relu"),
        ({"noise": 2}, "noise: found 2, expected at most 1"),
        ({"samples": None}, "samples: found null, expected an integer"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        with_defaults(PARAMETERS, parameters)


def test_a_record_has_its_name() -> None:
    assert record_of(RECORDS, "gradcam", "method") is RECORDS[1]
    with pytest.raises(ValueError, match=r"^unknown method 'smoothgrd'; .*'smoothgrad'.* valid: gradcam"):
        record_of(RECORDS, "smoothgrd", "method")


def test_unknown_names() -> None:
    assert unknown("set", "bam", []) == "unknown set 'bam'; valid: none"
    assert unknown("key", 7, ["seeds"]) == "unknown key 7; valid: seeds"
    assert unknown("key", None, ["seeds"]) == "unknown key null; valid: seeds"


@pytest.mark.parametrize(
    ("kind", "records", "aliases"),
    [("method", METHODS, METHOD_ALIASES), ("metric", METRICS, METRIC_ALIASES)],
)
def test_aliases_are_suggested_and_none_is_a_name(kind: str, records: Any, aliases: dict[str, str]) -> None:
    names = [record.name for record in records]
    spelled = [plain(name) for name in (*names, *aliases, *SIMILAR)]
    assert len(spelled) == len(set(spelled))
    assert not set(spelled) & set(map(plain, RENAMED))
    for alias, name in aliases.items():
        assert registered_name(alias, names) == registered_name(alias.upper(), names) == name
        assert f"; did you mean {name!r}? " in unknown(kind, alias, names)


def test_names_of_other_libraries_are_suggested() -> None:
    names, metrics = [record.name for record in METHODS], {record.name: record for record in METRICS}
    for known in {name for similar in SIMILAR.values() for name in similar}:
        assert known in names or known in metrics
    for name, suggested in GUESSES.items():
        valid = names if set(suggested) & set(names) else metrics
        assert f"did you mean {' or '.join(map(repr, suggested))}? " in unknown("name", name, valid)
    assert "integrated" not in unknown("metric", "ig", ["deletion"])


GUESSES = {
    "shap": ["deep_shap", "gradient_shap", "kernel_shap"],
    "cam_": ["cam"],
    "saliency": ["gradient", "sensitivity"],
    "Saliency": ["gradient", "sensitivity"],
    "GradCAM": ["gradcam"],
    "Grad-CAM++": ["gradcam_plus_plus"],
    "NoiseTunnel": ["smoothgrad", "smoothgrad_squared", "vargrad"],
    "Integrated-Gradients": ["integrated_gradients"],
    "InputXGradient": ["gradient_x_input"],
    "Smooth Gradd": ["smoothgrad"],
    "PixelFlipping": ["deletion", "aopc"],
    "EnergyPG": ["mask_attribution"],
    "RelevanceRankAccuracy": ["mask_attribution"],
    "average_gain": ["average_drop"],
    "MaxSensitivity": ["sensitivity_max"],
}


def test_a_name_that_several_have_in_another_spelling_is_none_of_them() -> None:
    assert registered_name("AB", ["a_b", "ab"]) == ""
    assert registered_name("a_b", ["a_b", "ab"]) == "a_b"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (False, "false"),
        (0.1, "0.1"),
        ("two\nlines", r"'two\nlines'"),
        ([None], "[None]"),
        ("a" * 78, f"'{'a' * 78}'"),
        ("a" * 79, f"'{'a' * 78}…"),
    ],
)
def test_values_have_a_short_text_of_one_line(value: object, text: str) -> None:
    assert short_repr(value) == text


def test_references_are_resolved() -> None:
    assert resolve("os.path:join")("a", "b") == "a/b"
    assert module_of("os.path:join") == "os.path"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("os.path.join", "'os.path.join': expected package.module:name"),
        ("os.path:", "'os.path:': expected package.module:name"),
        (":join", "':join': expected package.module:name"),
        ("no_such_package.module:name", "'no_such_package.module:name': .*'no_such_package'"),
        ("math:sqroot", "'math:sqroot': .*no attribute 'sqroot'"),
        ("math:pi", "'math:pi': expected a function, found float"),
    ],
)
def test_a_wrong_reference_is_named(reference: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        resolve(reference)


def test_a_module_that_exits_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"^'leaves_at_once:f': its module exits"):
        resolve("leaves_at_once:f")


@pytest.mark.parametrize(
    ("kind", "records", "old", "new"),
    [
        ("method", METHODS, "square", "optimal_square"),
        ("metric", METRICS, "criteria", "necessity_sufficiency"),
    ],
)
def test_an_old_name_is_answered_with_the_new_one(kind: str, records: Any, old: str, new: str) -> None:
    message = unknown(kind, old, (record.name for record in records))
    assert message.startswith(f"unknown {kind} {old!r}; it is called {new!r}")
