"""The cluster, for all tests of this folder, and the small study that they run on it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import Checkout
from slurm import Slurm, missing

SMALL = Path(__file__).parent / "small.yaml"
PROFILE = (
    "--profile",
    "slurm",
    "--cores=1",
    "--slurm-init-seconds-before-status-checks=1",
    "--latency-wait=5",
)
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


@pytest.fixture(scope="session")
def small() -> Path:
    """The configuration of the small study."""
    return SMALL


def checkout_of(root: Path, study: Path) -> Checkout:
    """A checkout with a profile of one thread a job: results are equal bit for bit for an equal number of threads."""
    checkout = Checkout.fresh(root, study)
    change_profile(checkout, **{"set-threads": {}})
    return checkout


def change_profile(checkout: Checkout, **changes: Any) -> None:
    """As a site does: in its copy of the profile."""
    file = checkout.root / "profiles/slurm/config.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes))
