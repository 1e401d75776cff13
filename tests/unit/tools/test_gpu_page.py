"""The page of measurements on a GPU."""

import json
import sys
from typing import Any

import pytest

from tools.source_tree import ROOT


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program that writes the page."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import gpu

    return gpu


def rows_of(page: str) -> dict[str, list[str]]:
    """The cells of each row of the page's tables, by its first."""
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}


def measured(gpu: Any, row: list[Any]) -> dict[str, Any]:
    rows = {name: row for each in gpu.MEASUREMENTS for name in each.rows}
    return {"device": "H1", "machine": "P", "described": "torch 9", "tests": "7 passed", "rows": rows}


def test_the_page_is_that_of_the_recorded_measurements(gpu: Any) -> None:
    recorded = json.loads(gpu.RESULTS.read_text()) if gpu.RESULTS.exists() else {}
    assert gpu.PAGE.read_text() == gpu.page(recorded)


def test_without_a_gpu_its_columns_are_empty(gpu: Any) -> None:
    page = gpu.page({"cpu": measured(gpu, [1234.5, 0.987])})
    assert "No GPU" in page
    rows = rows_of(page)
    assert len(rows) > 10
    for name in measured(gpu, [])["rows"]:
        assert rows[name] == ["", "", "1,234", "0.99"]


def test_with_a_gpu_the_page_has_its_name_and_hours(gpu: Any) -> None:
    results = {**measured(gpu, [2000.0, 0.91]), "hours": {"bam": [25.8, 12.14]}}
    page = gpu.page({"gpu": results})
    assert "No GPU" not in page
    assert "H1, torch 9. Tests that need a GPU: 7 passed." in page
    assert rows_of(page)["`bam.yaml`"] == ["25.8", "12.1"]
    assert all(rows_of(page)[name][:2] == ["2,000", "0.91"] for name in results["rows"])
