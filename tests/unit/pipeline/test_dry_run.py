"""Causes of planned jobs, from the settings that were recorded and the new ones."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from saliency_assay.pipeline.code_digest import Code
from saliency_assay.pipeline.code_record import CodeRecord
from saliency_assay.pipeline.dry_run import (
    UNSET,
    Change,
    causes_of_setting,
    changed_settings,
    changes,
    configuration_keys,
    report_text,
)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeRecord:
    monkeypatch.chdir(tmp_path)
    record = CodeRecord(tmp_path / "record")
    for digest, content in (("old", "1"), ("new", "2")):
        record.add(Code(digest, (), {tmp_path / "cam.py": content, tmp_path / "shared.py": "1"}))
    return record


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": {"c": [1, 2]}}, []),
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}, [(("b", "c"), 2, 3)]),
        ({"a": 1}, {"b": 2}, [(("a",), 1, UNSET), (("b",), UNSET, 2)]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [(("a", "y"), UNSET, "y")]),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}, [(("a",), ["x", "y"], ["y", "x"])]),
        ({"a": [0]}, {"a": [0, 1]}, [(("a",), [0], [0, 1])]),
        ({"a": {"b": 1}}, {"a": 2}, [(("a",), {"b": 1}, 2)]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, [(("a", "1", "b"), 2, 3)]),
        ({"a": [{"name": "x", "b": 1}]}, {"a": [{"name": "x", "b": 3}]}, [(("a", "x", "b"), 1, 3)]),
        ({"a": [["x", "1"], ["y", "1"]]}, {"a": [["x", "2"], ["y", "1"]]}, [(("a", "x"), "1", "2")]),
    ],
)
def test_nested_settings_are_compared_value_by_value(old: Any, new: Any, expected: list[Any]) -> None:
    assert changes(old, new) == expected


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(("methods", "gradcam", "relu"), UNSET, False), "methods.gradcam.relu: not set → false"),
        (Change(("a",), "nearest", [1, "x"]), 'a: nearest → [1, "x"]'),
        (Change(("a",), None, "x" * 60), f"a: null → {'x' * 49}…"),
        (Change(("methods", "gradcam"), UNSET, "gradcam"), "methods: with gradcam"),
        (Change(("methods", "gradcam"), "gradcam", UNSET), "methods: without gradcam"),
    ],
)
def test_a_change_is_written_as_in_a_configuration(change: Change, text: str) -> None:
    assert change.text() == text


def compared(old: Any, new: Any) -> list[Change]:
    """Return the changed settings of a job whose recorded and new settings are ``old`` and ``new``."""
    return list(changed_settings(SimpleNamespace(only_old={repr(old)}, only_new={repr(new)})))


def causes(settings: list[Change], record: CodeRecord, *keys: Change) -> set[str]:
    """Return the causes of changed settings if ``keys`` of the configuration have changed, too."""
    of_report = [Change(("configuration", *key.path), key.old, key.new) for key in keys]
    return {
        cause
        for change in settings
        for cause in causes_of_setting(change, configuration_keys(of_report), record)
    }


SAMPLES = Change(("metrics", "mcs", "samples"), 3, 4)
OTHER_SAMPLES = Change(("metrics", "idr", "samples"), 3, 4)


def test_code_packages_and_files_are_named(record: CodeRecord) -> None:
    old = {"code": "old", "environment": {"torch": "2.14"}, "files": [["start.pt", "1"], ["same", "3"]]}
    new = {"code": "new", "environment": {"torch": "2.15"}, "files": [["start.pt", "2"], ["same", "3"]]}
    expected = {"code of cam.py", "package torch: 2.14 → 2.15", "input start.pt changed"}
    assert causes(compared(old, new), record) == expected
    (unknown,) = causes(compared({"code": "older"}, {"code": "new"}), record)
    assert unknown == "code of files that the earlier run did not record"


def test_a_setting_is_traced_to_the_only_key_with_its_name_and_values(record: CodeRecord) -> None:
    settings = compared({"parameters": {"samples": 3}}, {"parameters": {"samples": 4}})
    assert causes(settings, record, SAMPLES) == {"key metrics.mcs.samples: 3 → 4"}
    assert causes(settings, record, SAMPLES, OTHER_SAMPLES) == {"setting parameters.samples: 3 → 4"}
    assert causes(settings, record) == {"setting parameters.samples: 3 → 4"}


def test_jobs_that_show_the_configuration_have_all_keys_as_causes(record: CodeRecord) -> None:
    expected = {"key metrics.mcs.samples: 3 → 4", "key metrics.idr.samples: 3 → 4"}
    assert causes([Change(("configuration",), "text", "other")], record, SAMPLES, OTHER_SAMPLES) == expected


def part(name: str, settings: dict[str, Any], *files: str) -> dict[str, Any]:
    return {"name": name, "input": {"files": list(files), "names": {}}, "settings": settings}


def test_causes_of_a_combined_job_are_those_of_its_parts(record: CodeRecord) -> None:
    mcs, idr, edge = (f"score {name} 0" for name in ("mcs", "idr", "edge"))
    old = {
        "parts": [part(mcs, {"samples": 3}), part(idr, {"samples": 3, "code": "old"}), part(edge, {}, "a")]
    }
    new = {
        "parts": [part(mcs, {"samples": 4}), part(idr, {"samples": 3, "code": "new"}), part(edge, {}, "b")]
    }
    expected = {"key metrics.mcs.samples: 3 → 4", "code of cam.py", "other input files"}
    assert causes(compared(old, new), record, SAMPLES) == expected
    new["parts"].append(part("score iir 0", {}))
    assert causes(compared(old, new), record, SAMPLES) == {*expected, "never run"}
    single = {"samples": 3, "code": "old"}
    assert causes(compared(single, new), record) == {"combined differently"}
    assert causes(compared(new, single), record) == {"combined differently"}


def test_the_most_frequent_causes_are_listed() -> None:
    counts = Counter(attribute=1200, score_bam=3, plot_metric=1)
    text = report_text(
        counts,
        {
            "": Counter(plot=7),
            "code of cam.py": Counter(attribute=1190, a=3, b=2, c=1),
            "output missing": Counter(score=4),
            "never run": Counter(train=4),
        },
    )
    total, rules, _, *causes = (line.split(maxsplit=1) for line in text.splitlines())
    assert "1,204" in total[1]
    assert " ".join(rules).split() == ["1,200", "attribute", "3", "score_bam", "1", "plot_metric"]
    assert causes[:3] == [
        ["1,196", "code of cam.py (1,190 attribute, 3 a, 2 b, …)"],
        ["4", "never run (4 train)"],
        ["4", "output missing (4 score)"],
    ]
    assert causes[3][0] == "7"
