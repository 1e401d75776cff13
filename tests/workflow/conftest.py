"""A finished tiny run, made once, and checkouts for tests to change."""

from pathlib import Path

import pytest
from checkout import Checkout
from filelock import FileLock


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Checkout:
    """The finished run itself, in a folder that no shell likes; tests that change anything take ``finished``.

    Of several processes that run tests one makes it, and the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if base.name.startswith("popen-") else base) / f"finished-{testrun_uid}"
    checkout, done = Checkout(root / "Überprüfung der Karten (neu)/project"), root / "done"
    with FileLock(f"{root}.lock"):
        if not done.exists():
            Checkout.fresh(checkout.root).make()
            done.touch()
    return checkout


@pytest.fixture
def finished(finished_once: Checkout, tmp_path: Path) -> Checkout:
    """A finished run of one's own."""
    return finished_once.copy(tmp_path / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout in which nothing has run yet."""
    return Checkout.fresh(tmp_path / "project")
