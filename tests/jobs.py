"""Scripts of the workflow, run as Snakemake runs them but in the process of a test."""

import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snakemake.iocontainers import Namedlist

from saliency_assay.runtime.provenance import SOURCE

Paths = Mapping[str, Any] | Sequence[Any]


def snakemake_of(
    rule: str,
    log: Path,
    settings: Mapping[str, Any],
    files: Paths = (),
    output: Paths = (),
    **wildcards: str,
) -> SimpleNamespace:
    """Return what a script of ``rule`` has as ``snakemake``; ``files`` are its inputs."""
    return SimpleNamespace(
        rule=rule,
        log=[str(log)],
        params=SimpleNamespace(settings=dict(settings)),
        input=_named(files),
        output=_named(output),
        wildcards=Namedlist(fromdict=wildcards),
        threads=1,
        resources={},
    )


def run_script(
    rule: str, folder: Path, settings: Mapping[str, Any], files: Paths, output: Paths, **wildcards: str
) -> None:
    """Run the script of ``rule``; its log is in ``folder``."""
    job = snakemake_of(rule, folder / f"{rule}.log", settings, files, output, **wildcards)
    runpy.run_path(str(SOURCE.parent / f"workflow/scripts/{rule}.py"), init_globals={"snakemake": job})


def _named(files: Paths) -> Namedlist:
    """Return ``files`` as Snakemake has them: text, a list for each name that stands for several."""
    if not isinstance(files, Mapping):
        return Namedlist(map(str, files))
    named = Namedlist()
    for name, paths in files.items():
        several = isinstance(paths, list | tuple)
        start = len(named)
        named.extend(map(str, paths if several else [paths]))
        named._set_name(name, start, end=len(named) if several else None)
    return named
