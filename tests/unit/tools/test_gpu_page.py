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


def test_the_page_is_that_of_the_recorded_measurements(gpu: Any) -> None:
    recorded = json.loads(gpu.RESULTS.read_text()) if gpu.RESULTS.exists() else {}
    assert gpu.PAGE.read_text() == gpu.page(recorded)
