"""A finished tiny run, made once, and checkouts for tests to change."""

from pathlib import Path

import pytest
from checkout import Checkout


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The finished run itself, in a folder that no shell likes; tests that change anything take ``finished``."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("finished") / "Überprüfung der Karten (neu)/project")
    checkout.make()
    return checkout


@pytest.fixture
def finished(finished_once: Checkout, tmp_path: Path) -> Checkout:
    """A finished run of one's own."""
    return finished_once.copy(tmp_path / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout in which nothing has run yet."""
    return Checkout.fresh(tmp_path / "project")
