"""Finished runs, each made once for all processes that test, and checkouts for tests to change."""

from pathlib import Path

import pytest
from checkout import SMALLEST, TINY, Checkout
from filelock import FileLock


def finished_run(study: Path, tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Checkout:
    """Return the finished run of ``study``, in a folder that no shell likes.

    Of several processes that run tests one makes it, and the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if base.name.startswith("popen-") else base) / f"{study.stem}-{testrun_uid}"
    checkout, done = Checkout(root / "Überprüfung der Karten (neu)/project"), root / "done"
    with FileLock(f"{root}.lock"):
        if not done.exists():
            Checkout.fresh(checkout.root, study).make()
            done.touch()
    return checkout


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Checkout:
    """The finished tiny run itself, of every kind of study; tests that change anything take ``finished``."""
    return finished_run(TINY, tmp_path_factory, testrun_uid)


@pytest.fixture(scope="session")
def smallest_once(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Checkout:
    """The finished run of the smallest study itself; tests that change anything take ``smallest``."""
    return finished_run(SMALLEST, tmp_path_factory, testrun_uid)


@pytest.fixture
def finished(finished_once: Checkout, tmp_path: Path) -> Checkout:
    """A finished tiny run of one's own."""
    return finished_once.copy(tmp_path / "project")


@pytest.fixture
def smallest(smallest_once: Checkout, tmp_path: Path) -> Checkout:
    """A finished run of the smallest study of one's own."""
    return smallest_once.copy(tmp_path / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout in which nothing has run yet."""
    return Checkout.fresh(tmp_path / "project")
