"""Jobs on machines that share no files with this one, as on Kubernetes: check of their image and files.

Snakemake sends such jobs the files that Git tracks in the working directory, up to a size. All else is in their image,
in object storage or on persistent volumes.
"""

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from saliency_assay.runtime.environment import PLANNED, installed_version
from saliency_assay.runtime.user_files import Source

LARGEST = 10_000_000  # bytes of a file that Snakemake sends
SNAKEMAKE_IMAGE = "snakemake/snakemake"
"""Default of ``--container-image``, which lacks the packages of the jobs."""
KUBERNETES, BROKEN = "snakemake-executor-plugin-kubernetes", "0.5.1"
"""A plugin, and the version that requests a log of each failed job that never exists, which ends the run."""


def is_unshared(workflow: Any) -> bool:
    """Return True if this process sends jobs the files of the workflow, because they do not share its folder."""
    return not workflow.remote_exec and "SOURCES" not in {
        usage.name for usage in workflow.storage_settings.shared_fs_usage
    }


def prepare(workflow: Any, code: Iterable[Path], sources: Iterable[Source]) -> None:
    """Check that the jobs have an image and get all files, and pass them the package versions of the plan.

    Args:
        workflow: Snakemake's workflow, which has planned the jobs.
        code: files of the code of the jobs.
        sources: the user's files and folders in the configuration.

    Raises:
        ValueError: the plugin does not work, the image is Snakemake's own, or jobs do not get a file; the message has a
            line for each file.
    """
    settings = workflow.remote_execution_settings
    image = str(settings.container_image)
    if image.startswith(SNAKEMAKE_IMAGE):
        raise ValueError(
            f"container-image: found {image}, expected an image with the packages of the jobs; see docs/cluster.md"
        )
    volumes = getattr(workflow.executor_settings, "persistent_volumes", None)
    if volumes is not None and installed_version(KUBERNETES) == BROKEN:
        raise ValueError(
            f"{KUBERNETES}: found {BROKEN}, in which a failed job ends the run; install workflow/envs/kubernetes.txt"
        )
    sent = {file for file in workflow.dag.get_sources() if _is_sent(Path(file))}
    if problems := sorted({*_problems(code, sources, sent, [Path(each.path) for each in volumes or ()])}):
        raise ValueError("\n".join(problems))
    settings.precommand = f"export {PLANNED}={shlex.quote(os.environ[PLANNED])}"


def _is_sent(file: Path) -> bool:
    return file.is_file() and ".." not in file.parts and file.stat().st_size <= LARGEST


def _problems(
    code: Iterable[Path], sources: Iterable[Source], sent: set[str], volumes: list[Path]
) -> Iterator[str]:
    for file in code:
        if (name := os.path.relpath(file)) not in sent:
            yield (
                f"{name}: jobs do not get this code; valid: files that Git tracks in the working directory, which is "
                "a clone of the project"
            )
    for source in sources:
        path = Path(source.path).absolute()
        files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
        is_mounted = any(path.is_relative_to(volume) for volume in volumes)
        if not is_mounted and not sent.issuperset(map(os.path.relpath, files)):
            yield (
                f"{source.place}: found {source.path!r}, which jobs do not get; valid: files of up to "
                f"{LARGEST // 10**6} MB that Git tracks in the working directory, or a path on a persistent volume"
            )
