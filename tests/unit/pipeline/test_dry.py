"""Causes of planned jobs, from the settings that were recorded and the new ones."""

from pathlib import Path
from typing import Any

import pytest

from saliency_assay.pipeline.code_digest import Code
from saliency_assay.pipeline.code_record import CodeRecord
from saliency_assay.pipeline.dry import (
    UNSET,
    Change,
    causes_of_changes,
    changed_settings,
    changes,
    configuration_changes,
    report_text,
)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeRecord:
    monkeypatch.chdir(tmp_path)
    record = CodeRecord(tmp_path / "record")
    for digest, content in (("old", "1"), ("new", "2")):
        record.add(Code(digest, (), {tmp_path / "cam.py": content, tmp_path / "shared.py": "1"}))
    return record


# ---- changes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": {"c": [1, 2]}}, []),
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}, [Change(("b", "c"), 2, 3)]),
        ({"a": 1}, {"b": 2}, [Change(("a",), 1, UNSET), Change(("b",), UNSET, 2)]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [Change(("a",), ["x"], ["x", "y"])]),
        ({"a": {"b": 1}}, {"a": 2}, [Change(("a",), {"b": 1}, 2)]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, [Change(("a", "1", "b"), 2, 3)]),
        (
            {"a": [{"name": "x", "b": 1}, {"name": "y", "b": 2}]},
            {"a": [{"name": "y", "b": 3}]},
            [Change(("a", "x"), {"name": "x", "b": 1}, UNSET), Change(("a", "y", "b"), 2, 3)],
        ),
    ],
)
def test_nested_settings_are_compared_value_by_value(old: Any, new: Any, expected: list[Change]) -> None:
    assert list(changes(old, new)) == expected


def test_recorded_settings_are_literals_of_which_the_most_similar_are_compared() -> None:
    old = ["{'rule': 'a', 'samples': 2, 'size': 3}", "{'rule': 'b', 'samples': 2}"]
    new = ["{'rule': 'a', 'samples': 4, 'size': 3}", "{'rule': 'b', 'samples': 5}"]
    expected = [Change(("samples",), 2, 4), Change(("samples",), 2, 5)]
    assert changed_settings(old, new) == expected
    assert changed_settings(["<function f at 0x7f>"], new) == changed_settings(old, []) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(("methods", "gradcam", "relu"), UNSET, False), "methods.gradcam.relu: not set → false"),
        (Change(("a",), "nearest", [1, "x"]), 'a: nearest → [1, "x"]'),
        (Change(("a",), None, "x" * 60), f"a: null → {'x' * 49}…"),
    ],
)
def test_a_change_is_written_as_in_a_configuration(change: Change, text: str) -> None:
    assert change.text == text


def test_keys_of_the_configuration_are_found_in_settings_that_contain_it() -> None:
    old, new = (
        {"seeds": [0], "methods": {"a": {"relu": True}}},
        {"seeds": [0], "methods": {"a": {"relu": False}}},
    )
    of_report = list(changes({"configuration": old, "targets": []}, {"configuration": new, "targets": []}))
    texts = ("seeds: [0]\nmethods:\n  a: {relu: true}\n", "seeds: [0]\nmethods:\n  a: {relu: false}\n")
    of_provenance = [Change(("configuration",), *texts)]
    expected = [Change(("methods", "a", "relu"), True, False)]
    assert configuration_changes(of_report) == configuration_changes(of_provenance) == expected
    assert configuration_changes([*of_report, *of_provenance, Change(("relu",), 1, 2)]) == expected


# ---- causes


def test_a_digest_of_code_is_traced_to_its_file(record: CodeRecord) -> None:
    assert causes_of_changes([Change(("code",), "old", "new")], [], record, "attribute") == {"code of cam.py"}
    (unknown,) = causes_of_changes([Change(("code",), "older", "new")], [], record, "attribute")
    assert unknown.startswith("code of attribute (")


def test_packages_and_files_are_named(record: CodeRecord) -> None:
    settings = [
        Change(("environment", "torch"), "2.14", "2.15"),
        Change(("files",), [["start.pt", "1" * 64], ["same", "3"]], [["start.pt", "2" * 64], ["same", "3"]]),
    ]
    expected = {"package torch: 2.14 → 2.15", "input start.pt changed"}
    assert causes_of_changes(settings, [], record, "train") == expected


RELU = Change(("methods", "gradcam", "relu"), UNSET, False)
SAMPLES = Change(("metrics", "mcs", "samples"), 3, 4)
OTHER_SAMPLES = Change(("metrics", "idr", "samples"), 3, 4)


def test_a_setting_is_traced_to_the_key_of_the_configuration(record: CodeRecord) -> None:
    relu = [Change(("parameters", "relu"), True, False)]
    # The old value of a key that was not set is its default value, which the settings contain.
    expected = {"key methods.gradcam.relu: true → false"}
    assert causes_of_changes(relu, [RELU, SAMPLES], record, "attribute") == expected
    assert causes_of_changes(relu, [RELU], record, "attribute") == expected
    # A setting that is computed from the only changed key.
    derived = [Change(("labels", "methods"), ["a"], ["b"])]
    assert causes_of_changes(derived, [SAMPLES], record, "plot_bam") == {"key metrics.mcs.samples: 3 → 4"}
    # With changed code, its cause may be a default value in the code.
    coded = [*derived, Change(("code",), "old", "new")]
    expected = {"code of cam.py", 'setting labels.methods: ["a"] → ["b"]'}
    assert causes_of_changes(coded, [SAMPLES], record, "plot_bam") == expected


def test_the_key_of_a_setting_is_that_of_the_jobs_wildcards(record: CodeRecord) -> None:
    settings, keys = [Change(("parameters", "samples"), 3, 4)], [SAMPLES, OTHER_SAMPLES]
    for name in ("mcs", "idr"):
        causes = causes_of_changes(settings, keys, record, "score", [name, "0"])
        assert causes == {f"key metrics.{name}.samples: 3 → 4"}
    assert causes_of_changes(settings, keys, record, "tabulate") == {"setting parameters.samples: 3 → 4"}


def test_jobs_that_show_the_configuration_have_all_keys_as_causes(record: CodeRecord) -> None:
    settings = list(changes({"configuration": {"a": 1, "b": 2}}, {"configuration": {"a": 3, "b": 4}}))
    keys = configuration_changes(settings)
    assert causes_of_changes(settings, keys, record, "report") == {"key a: 1 → 3", "key b: 2 → 4"}


def part(name: str, settings: dict[str, Any], *files: str) -> dict[str, Any]:
    rule, *_ = name.split()
    return {"name": name, "rule": rule, "input": {"files": list(files), "names": {}}, "settings": settings}


def test_causes_of_a_combined_job_are_those_of_its_parts(record: CodeRecord) -> None:
    mcs, idr, edge = (f"score {name} 0" for name in ("mcs", "idr", "edge"))
    old = {
        "parts": [part(mcs, {"samples": 3}), part(idr, {"samples": 3, "code": "old"}), part(edge, {}, "a")]
    }
    new = {
        "parts": [part(mcs, {"samples": 4}), part(idr, {"samples": 3, "code": "new"}), part(edge, {}, "b")]
    }
    settings, keys = list(changes(old, new)), [SAMPLES, OTHER_SAMPLES]
    expected = {"key metrics.mcs.samples: 3 → 4", "code of cam.py", "score has other input files"}
    assert causes_of_changes(settings, keys, record, "score") == expected
    new["parts"].append(part("score iir 0", {}))
    settings = list(changes(old, new))
    assert causes_of_changes(settings, keys, record, "score") == {*expected, "never run"}


@pytest.mark.parametrize("back", [False, True])
def test_a_job_that_was_not_combined_before_is_not_compared_with_its_parts(
    record: CodeRecord, back: bool
) -> None:
    both = [{"samples": 3, "code": "old"}, {"parts": [part("score mcs 0", {"samples": 3})]}]
    settings = list(changes(*(reversed(both) if back else both)))
    assert causes_of_changes(settings, [SAMPLES], record, "score") == {
        "jobs of score are combined differently"
    }


# ---- the text


def test_the_most_frequent_causes_are_listed() -> None:
    counts = {"attribute": 1200, "score_bam": 3, "plot_metric": 1}
    assert report_text(
        counts, {"": 7, "code of cam.py": 1190, "never run": 4, "missing": 4}
    ).splitlines() == [
        "Jobs by rule, 1,204 in total:",
        "  attribute 1,200   score_bam 3       plot_metric 1",
        "Causes, with the number of jobs:",
        "  1,190  code of cam.py",
        "      4  missing",
        "      4  never run",
        "      7  input from the jobs above",
    ]
    many = report_text(
        {f"rule{number}": 1 for number in range(46)}, {f"cause {number}": 1 for number in range(15)}
    )
    assert len(many.splitlines()) <= 30
    assert many.splitlines()[-1] == "         and 3 more: snakemake --dry-run shows all"
