"""Versions of the installed packages that results depend on."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

DISTRIBUTIONS = {"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Names under which modules are installed, where these differ from the names under which they are imported."""
WITHOUT_EFFECT = frozenset({"tqdm", "yaml"})
"""Modules that read configurations or show progress: no result depends on their version."""
RECORDED = ("PIL", "captum", "numpy", "pycocotools", "scipy", "skimage", "sklearn", "torch", "zarr", "zennit")
"""Modules whose versions a file of results carries, where the process that writes it has loaded them."""

PLANNED = "SALIENCY_ASSAY_PACKAGES"
"""Environment variable of all jobs of a run: JSON of the versions that the run was planned with."""

_COUNTING: ContextVar[frozenset[str] | None] = ContextVar("counting", default=None)
"""Distributions that count for the running job; None outside of jobs."""


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages by distribution; ``modules`` are the names that are imported."""
    named = (_distribution(module) for module in sorted(set(modules) - WITHOUT_EFFECT))
    return {name: number for name in named if (number := installed_version(name))}


@contextmanager
def counting(packages: Mapping[str, str]) -> Iterator[None]:
    """Record only ``packages``, versions by distribution, within the context; all that are loaded if there are none."""
    token = _COUNTING.set(frozenset(packages) or None)
    try:
        yield
    finally:
        _COUNTING.reset(token)


def loaded_versions() -> dict[str, str]:
    """Return the versions of the packages of ``RECORDED`` that this process has loaded.

    In a job these are only packages that count for it (``counting``): another version of a package that is
    loaded by the way makes nothing again, and is no mixture.
    """
    loaded, counting = versions_of(module for module in RECORDED if module in sys.modules), _COUNTING.get()
    return {name: number for name, number in loaded.items() if counting is None or name in counting}


def announce(packages: Mapping[str, str]) -> None:
    """Let the jobs that this process starts know the versions by distribution that their run was planned with."""
    os.environ[PLANNED] = json.dumps(packages)


def check_environment(packages: Mapping[str, str]) -> None:
    """Check that the ``packages`` of a job, versions by distribution, are installed as its run was planned with them.

    After an update during a long run, its results would otherwise mix environments. A job on a cluster plans itself
    once more, with what is installed by then, so what the run announced counts first.

    Raises:
        ValueError: a package of another version, or one that is missing.
    """
    announced: Mapping[str, str] = json.loads(os.environ.get(PLANNED, "{}"))
    for name, version_now in packages.items():
        expected = announced.get(name, version_now)
        if (found := installed_version(name)) != expected:
            raise ValueError(
                f"environment: found {name} {found or 'missing'}, expected {expected}, with which this run was "
                "planned; start the run again to plan it with what is installed now"
            )


@cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None if there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def _distribution(module: str) -> str:
    name = DISTRIBUTIONS.get(module, module)
    # Reads the files of every distribution, so only where the name tells nothing.
    if installed_version(name) is None:
        return next(iter(packages_distributions().get(module, [name])))
    return name
