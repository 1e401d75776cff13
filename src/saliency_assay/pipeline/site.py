"""Settings of a site, such as account and partition, which the profiles add to their own.

A profile is a YTE template that calls ``read_site``, so that a user's settings are in a file that Git ignores.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
import yte

from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text
from saliency_assay.runtime.batch import SYSTEMS
from saliency_assay.runtime.project import ROOT

SITE, DEFAULT = "SALIENCY_ASSAY_SITE", Path("site.yaml")
"""Environment variable with the path of the file, and the path without it, relative to the working directory."""
PER_RULE, GPU, RESOURCES, BATCH = "set-resources", "gpu", "default-resources", "batch-system"
EXTRA = "slurm_extra"
OF_SLURM = ("slurm", "gres", "gpu_model")
"""Beginnings of the options and resources that only Slurm's executor knows."""


@dataclass(frozen=True)
class Site:
    """Settings of a site."""

    resources: Mapping[str, Any] = field(default_factory=dict)
    """Resources of all jobs: ``default-resources``."""
    of_gpu_jobs: Mapping[str, Any] = field(default_factory=dict)
    """Resources of all jobs that can use a GPU: ``gpu``."""
    of_rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Resources of single rules: ``set-resources``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """All other options of Snakemake, which replace those of the profile."""
    batch_system: str = ""
    """Scheduler of ``profiles/generic``: ``batch-system``."""

    def extra(self, option: str) -> str:
        """Return an option of ``sbatch`` with those of the site, quoted as a string in a Python expression."""
        others = str(self.of_gpu_jobs.get(EXTRA, self.resources.get(EXTRA, ""))).strip("'\"")
        return repr(f"{option} {others}".strip())

    def rules(self, profile: Any) -> dict[str, dict[str, Any]]:
        """Return for each rule that the site changes its resources in the profile with those of the site.

        ``profile`` is the part of YTE's document with the resources of the rules above.
        """
        return {
            rule: {**(_merged(profile[rule]) if rule in profile else {}), **changes}
            for rule, changes in self.of_rules.items()
        }


def batch_command(site: Site, command: str) -> str:
    """Return the command ``submit`` or ``status`` of the site's scheduler for the executor ``cluster-generic``.

    Raises:
        SystemExit: the site names no scheduler, or an unknown one.
    """
    if site.batch_system not in SYSTEMS:
        place = os.environ.get(SITE) or DEFAULT
        raise SystemExit(f"{place}: {BATCH}: found {site.batch_system!r}; valid: {', '.join(SYSTEMS)}")
    return shlex.join([sys.executable, "-m", "saliency_assay.runtime.batch", command, site.batch_system])


def requests(**resources: Any) -> dict[str, Any]:
    """Return the profile for Slurm with the site's settings, without what only Slurm's executor knows.

    ``resources`` are further resources of all jobs, which the site's settings replace.
    """
    with (ROOT / "profiles/slurm/config.yaml").open(encoding="utf-8") as file:
        profile = yte.process_yaml(file, require_use_yte=True)
    del profile["executor"]
    profile = _without(profile)
    profile[RESOURCES] = {**resources, **_without(profile[RESOURCES])}
    profile[PER_RULE] = {rule: _without(entry) for rule, entry in profile[PER_RULE].items()}
    return profile


def _without(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if not key.startswith(OF_SLURM)}


def read_site() -> Site:
    """Return the settings in ``site.yaml``, or in the file that ``SALIENCY_ASSAY_SITE`` names; none without a file.

    Raises:
        SystemExit: the file is not valid, or the one that the variable names does not exist. The message is one line.
    """
    file = Path(os.environ.get(SITE) or DEFAULT).expanduser()
    if not os.environ.get(SITE) and not file.is_file():
        return Site()
    try:
        check_text(file, str(file))
        content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        parts = {key: _mapping(content.pop(key, {}), f"{file}: {key}") for key in (RESOURCES, GPU, PER_RULE)}
        rules = {
            name: _mapping(entry, f"{file}: {PER_RULE}.{name}") for name, entry in parts[PER_RULE].items()
        }
    except ConfigError as error:
        raise SystemExit(f"{SITE}: {error}" if os.environ.get(SITE) else str(error)) from None
    batch_system = str(content.pop(BATCH, ""))
    return Site(parts[RESOURCES], parts[GPU], rules, content, batch_system)


def _merged(entry: Any) -> dict[str, Any]:
    """Return an entry of YTE's document, which keeps what ``<`` merges apart."""
    merged: dict[str, Any] = {}
    for key, value in entry.items():
        merged |= _merged(value) if key == "<" else {key: value}
    return merged


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: found {value!r}, expected a mapping")
    return value
