"""The cluster, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from slurm import Slurm, missing


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
