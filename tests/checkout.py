"""A copy of the project in which a test runs Snakemake, and what a dry run says that it would do."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.runtime.provenance import SOURCE

PROJECT = SOURCE.parent
PARTS = (
    *("src", "workflow", "config", "profiles", "slurm", "pyproject.toml"),
    *("Snakefile", "rules", "envs"),
)
TINY = Path(__file__).parent / "workflow/tiny.yaml"
SMALLEST = Path(__file__).parent / "workflow/smallest.yaml"
CONFIGURATION = "tiny.yaml"
"""By default; a path of one's own may stand for it."""
LOCAL = ("--profile", "profiles/local")

# Those of a group are indented.
RULE = re.compile(r"^ *(?:local)?rule (\w+):$")
WILDCARDS = re.compile(r"^ +wildcards: (.+)$")


@dataclass(frozen=True)
class Checkout:
    """A project folder of its own, with the tiny configuration in it."""

    root: Path
    configuration: str = CONFIGURATION

    @classmethod
    def fresh(cls, root: Path, study: Path = TINY) -> "Checkout":
        """The project as it stands, without results, and the configuration ``study``."""
        root.mkdir(parents=True)
        for name in PARTS:
            source = PROJECT / name
            if source.is_dir() and not source.is_symlink():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
            else:
                shutil.copy2(source, root / name, follow_symlinks=False)
        shutil.copy2(study, root / CONFIGURATION)
        return cls(root)

    @classmethod
    def finished(cls, folder: Path, study: str) -> "Checkout":
        """A fresh project in ``folder`` in which the configuration with the text ``study`` has run."""
        file = folder / "study.yaml"
        file.write_text(study)
        checkout = cls.fresh(folder / "project", file)
        checkout.make()
        return checkout

    def copy(self, root: Path) -> "Checkout":
        """The same elsewhere: results, Snakemake's memory of them and all times included."""
        shutil.copytree(self.root, root, symlinks=True)
        return replace(self, root=root)

    def start(self, *arguments: str, profile: tuple[str, ...] = LOCAL) -> "subprocess.Popen[str]":
        """Start Snakemake on the tiny configuration; ``arguments`` begin with targets, if any."""
        command = [sys.executable, "-m", "snakemake", *arguments, *profile]
        return subprocess.Popen(
            [*command, "--configfile", self.configuration],
            cwd=self.root,
            env={name: value for name, value in os.environ.items() if name != "SNAKEMAKE_PROFILE"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def snakemake(self, *arguments: str, profile: tuple[str, ...] = LOCAL) -> tuple[int, str]:
        """Exit status of Snakemake, and what it said on the terminal."""
        process = self.start("--cores=2", *arguments, profile=profile)
        output, _ = process.communicate()
        return process.returncode, output

    def assay(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of ``saliency-assay`` on the tiny configuration."""
        source = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        command_line = [sys.executable, "-m", "saliency_assay.cli", command, self.configuration, *arguments]
        return subprocess.run(command_line, cwd=self.root, env=source, capture_output=True, text=True)

    def make(self, *arguments: str) -> None:
        """Run Snakemake, which must work."""
        status, output = self.snakemake(*arguments)
        assert status == 0, output

    def planned(self, *arguments: str, profile: tuple[str, ...] = LOCAL) -> set[str]:
        """The jobs of a dry run, as a rule's name and the values of its wildcards: ``train f_o 0``."""
        status, output = self.snakemake(*arguments, "--dry-run", "--quiet=host", profile=profile)
        assert status == 0, output
        jobs = jobs_in(output)
        if not jobs:
            assert "Nothing to be done" in output
        return jobs

    def configure(self, **changes: Any) -> None:
        """Change the configuration; a key is a path with ``__`` for each step down, None takes it away."""
        file = self.root / self.configuration
        # By way of JSON, because what an alias stands for is one object in two places.
        content = json.loads(json.dumps(yaml.safe_load(file.read_text())))
        for path, value in changes.items():
            *steps, last = path.split("__")
            entry = content
            for step in steps:
                entry = entry.setdefault(step, {})
            if value is None:
                del entry[last]
            else:
                entry[last] = value
        file.write_text(yaml.safe_dump(content, sort_keys=False))

    def edit(self, file: str, change: Callable[[str], str]) -> None:
        """Replace the text of a file, which must change by it."""
        path = self.root / file
        before = path.read_text()
        after = change(before)
        assert after != before
        path.write_text(after)

    def log(self, name: str) -> str:
        """A job's log."""
        return (self.root / "results/logs" / name).read_text()

    def files(self, folder: str = "results") -> dict[str, bytes]:
        """All files below a folder, by path."""
        top = self.root / folder
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    def saved_states(self) -> set[str]:
        """Files in which unfinished jobs saved their state."""
        return {
            name for name in self.files("results/.state") if not name.startswith(("parts/", "model_check"))
        }


def run_beside(folder: Path, configuration: Any, *targets: str) -> None:
    """Run the project as it stands, from another working directory in which the configuration is; it must work."""
    (folder / "real.yaml").write_text(yaml.safe_dump(configuration))
    command = [sys.executable, "-m", "snakemake", *targets, "--profile", str(PROJECT / "profiles/local")]
    command += [
        "--cores",
        "2",
        "--snakefile",
        str(PROJECT / "workflow/Snakefile"),
        "--configfile",
        "real.yaml",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def jobs_in(output: str) -> set[str]:
    """The jobs that Snakemake listed, which must be as many of each rule as it counted itself."""
    jobs: list[str] = []
    for line in output.splitlines():
        if rule := RULE.match(line):
            jobs.append(rule[1])
        elif wildcards := WILDCARDS.match(line):
            values = (pair.partition("=")[2] for pair in wildcards[1].split(", "))
            # The shard wildcard of an undivided set is empty.
            jobs[-1] += "".join(f" {value}" for value in values if value)
    counted = re.search(r"^Job stats:\njob +count\n[- ]+\n(.*?)^total ", output, re.DOTALL | re.MULTILINE)
    lines = counted[1].splitlines() if counted else []
    assert Counter(job.split()[0] for job in jobs) == {
        rule: int(count) for rule, count in map(str.split, lines)
    }
    assert len(set(jobs)) == len(jobs)
    return set(jobs)
