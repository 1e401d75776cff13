"""Fixtures for all tests of the runtime."""

import pytest

from saliency_assay.runtime import gpus


@pytest.fixture(autouse=True)
def unpinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a process of its own, which has reserved no GPU."""
    monkeypatch.setattr(gpus, "_pinned", [])
