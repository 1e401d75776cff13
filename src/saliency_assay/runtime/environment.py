"""Versions of the installed packages on which results depend."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

DISTRIBUTIONS = {
    **{"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn"},
    **{"vl_convert": "vl-convert-python", "yaml": "pyyaml"},
}
"""Distribution names of modules, where they differ from the import name."""
WITHOUT_EFFECT = frozenset({"safetensors", "tqdm", "yaml"})
"""Modules on whose version results do not depend: they read files or show progress."""
RECORDED = (
    "PIL",
    "captum",
    "numpy",
    "pycocotools",
    "scipy",
    "skimage",
    "sklearn",
    "timm",
    "torch",
    "zarr",
)
"""Modules whose versions are recorded in result files, if the process that writes them has imported the modules."""

PLANNED = "SALIENCY_ASSAY_PACKAGES"
"""Environment variable of all jobs of a run: JSON of the package versions when the run was planned."""

_COUNTING: ContextVar[frozenset[str] | None] = ContextVar("counting", default=None)
"""Distributions whose versions the running job records; None for all, as outside of jobs."""


def versions_of(modules: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages by distribution; ``modules`` are import names."""
    distributions = (_distribution(module) for module in sorted(set(modules) - WITHOUT_EFFECT))
    return {name: number for name in distributions if (number := installed_version(name))}


@contextmanager
def optional(module: str, extra: str = "workflow") -> Iterator[None]:
    """Import a package that is not a dependency of the Python API; ``extra`` is the extra that installs it.

    Raises:
        ModuleNotFoundError: ``module`` is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        package = DISTRIBUTIONS.get(module, module)
        message = f"{package} is not installed: pip install 'saliency-assay[{extra}]'"
        raise ModuleNotFoundError(message, name=error.name) from None


@contextmanager
def counting(packages: Mapping[str, str]) -> Iterator[None]:
    """Record only the versions of ``packages`` (versions by distribution) within the context; of all if it is empty."""
    token = _COUNTING.set(frozenset(packages) or None)
    try:
        yield
    finally:
        _COUNTING.reset(token)


def loaded_versions() -> dict[str, str]:
    """Return the versions of the packages of ``RECORDED`` that this process has loaded.

    In a job, only the packages selected by ``counting`` are included. Its results do not depend on other packages that
    happen to be loaded, so another version of these causes no rerun and is not reported as a mixture of versions.
    """
    loaded, counting = versions_of(module for module in RECORDED if module in sys.modules), _COUNTING.get()
    return {name: number for name, number in loaded.items() if counting is None or name in counting}


def announce(packages: Mapping[str, str]) -> None:
    """Pass the package versions of the plan (by distribution) to the jobs that this process starts."""
    os.environ[PLANNED] = json.dumps(packages)


def check_environment(packages: Mapping[str, str]) -> None:
    """Check that the installed versions of a job's packages are those with which its run was planned.

    Without the check, an update during a long run would mix environments in its results. ``packages`` contains the
    versions by distribution. Snakemake plans a job on a cluster again when the job starts, with the versions installed
    then, so versions passed by ``announce`` have priority.

    Raises:
        ValueError: a package has another version or is missing.
    """
    announced: Mapping[str, str] = json.loads(os.environ.get(PLANNED, "{}"))
    for name, planned in packages.items():
        expected = announced.get(name, planned)
        if (installed := installed_version(name)) != expected:
            raise ValueError(
                f"environment: found {name} {installed or 'missing'}, expected {expected}, with which this run was "
                "planned; start the run again to plan it with the installed versions"
            )


@cache
def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def _distribution(module: str) -> str:
    name = DISTRIBUTIONS.get(module, module)
    # ``packages_distributions`` reads the files of every distribution, which is slow: only if no distribution has the
    # module's name.
    if installed_version(name) is None:
        return next(iter(packages_distributions().get(module, [name])))
    return name
