"""The cluster, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from filelock import FileLock
from slurm import LOCK, PREFIX, Slurm, missing


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """The running cluster; waits while other tests on this machine have one."""
    if reason := missing():
        pytest.skip(reason)
    with FileLock(LOCK):
        cluster = Slurm(tmp_path_factory.mktemp(PREFIX))
        try:
            yield cluster
        finally:
            cluster.stop()
