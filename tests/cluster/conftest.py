"""The cluster, for all tests of this folder, and the small study that they run on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import Checkout
from slurm import Slurm, missing

SMALL = Path(__file__).parent / "small.yaml"
PROFILE = ("--profile", "slurm", "--cores=1", "--slurm-init-seconds-before-status-checks=1", "--latency-wait=5")
"""One thread a job, because results are the same bit for bit for an equal number; and no waiting for a slow disk."""


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """The running cluster."""
    if reason := missing():
        pytest.skip(reason)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout with the small study, in which nothing has run yet."""
    return Checkout.fresh(tmp_path / "project", SMALL)
