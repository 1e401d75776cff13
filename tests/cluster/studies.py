"""Checkouts with the small study, and how they are run on the cluster."""

from pathlib import Path
from typing import Any

import yaml
from checkout import Checkout

SMALL = Path(__file__).parent / "small.yaml"
PROFILE = (
    "--profile",
    "slurm",
    "--cores=1",
    "--slurm-init-seconds-before-status-checks=1",
    "--latency-wait=5",
)
"""One thread a job, because results are the same bit for bit for an equal number; and no waiting for a slow disk."""

OFTEN = """
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
"""
"""For the rules: the executor waits ten seconds longer after each check that finds no job ended."""


def small_study(root: Path) -> Checkout:
    """A checkout with a profile of one thread a job: results are equal bit for bit for an equal number of threads."""
    checkout = Checkout.fresh(root, SMALL)
    change_profile(checkout, **{"set-threads": None})
    checkout.edit("workflow/rules/cluster.smk", lambda text: text + OFTEN)
    return checkout


def change_profile(checkout: Checkout, **changes: Any) -> None:
    """As a site does, in its copy of the profile; None takes a key away."""
    content = profile_of(checkout) | changes
    kept = {key: value for key, value in content.items() if value is not None}
    (checkout.root / "profiles/slurm/config.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))


def profile_of(checkout: Checkout) -> dict[str, Any]:
    """Return the content of the checkout's profile."""
    content: dict[str, Any] = yaml.safe_load((checkout.root / "profiles/slurm/config.yaml").read_text())
    return content
