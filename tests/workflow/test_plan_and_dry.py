"""What ``make dry`` and ``make plan`` print."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from checkout import PROJECT, Checkout

from tools.rule_keys import generated

CONFIGURATIONS = sorted(path for path in PROJECT.glob("config/*.yaml") if path.stem != "schema")


def printed(command: str, checkout: Checkout) -> str:
    """Return the standard output of one of the two commands."""
    run = checkout.assay(command)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_a_method_and_a_key_are_named_in_one_screen(smallest: Checkout) -> None:
    assert printed("dry", smallest) == (
        "Nothing to run: configuration, code and tracked files have not changed. Image files are not tracked.\n"
    )
    smallest.edit("src/saliency_assay/methods/cam.py", lambda text: f"{text}\nADDED = 1\n")
    smallest.configure(metrics__infidelity__largest=3)
    (smallest.root / "results/figures/training.svg").unlink()
    lines = printed("dry", smallest).splitlines()
    assert len(lines) <= 30
    causes = [
        line.strip().partition(" (")[0]
        for line in lines[lines.index("Causes, with the number of jobs:") + 1 :]
    ]
    assert causes == [
        "5  key metrics.infidelity.largest: 2 → 3",
        "2  code of saliency_assay/methods/cam.py",
        "1  output missing",
        "4  input from the jobs above",
    ]


@pytest.mark.slow
def test_results_without_a_record_are_not_called_unchanged(smallest: Checkout) -> None:
    shutil.rmtree(smallest.root / ".snakemake")
    smallest.configure(metrics__infidelity__largest=3)
    run = smallest.assay("dry")
    assert run.stdout == "Nothing to run.\n"
    [warning] = [line for line in run.stderr.splitlines() if line.startswith("Warning: ")]
    assert f"have no record in {smallest.root / '.snakemake'}" in warning


def test_an_invalid_configuration_is_one_line(fresh: Checkout) -> None:
    fresh.configure(metrics={"insertoin": {}})
    run = fresh.assay("plan")
    assert run.returncode == 1
    [line] = [line for line in run.stderr.splitlines() if not line.startswith("Using profile ")]
    assert "metrics.insertoin: unknown metric 'insertoin'; did you mean 'insertion'?" in line


def test_jobs_that_have_never_run_are_counted(fresh: Checkout) -> None:
    lines = printed("dry", fresh).splitlines()
    assert len(lines) <= 30
    assert "  never run (" in lines[-2]
    assert lines[-1].endswith("1  input from the jobs above")  # the rule `all`


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda path: path.stem)
def test_a_plan_needs_no_data(file: Path, fresh: Checkout) -> None:
    if file.stem == "iteroar":  # thousands of jobs of each seed
        replace(fresh, configuration=f"config/{file.name}").configure(seeds=[0])
    lines = printed("plan", replace(fresh, configuration=f"config/{file.name}")).splitlines()
    assert lines[0].split() == ["jobs", "models", "model", "time", "other", "time", "storage,", "GB"]
    written = [path for path in fresh.root.glob("results*/**/*") if path.is_file()]
    assert {path.name for path in written} <= {"digests.json"}, "a cache of digests of weights"
    assert not (fresh.root / "data").exists()
    is_missing = any(line.startswith("not found: ") for line in lines)
    assert is_missing == any(word in file.read_text() for word in ("path: ", "coco: "))


ATTRIBUTES = """
from functools import reduce
from inspect import getattr_static
from saliency_assay.pipeline.dry_run import plan_run
from saliency_assay.pipeline.snakemake_internals import ATTRIBUTES

workflow = plan_run(["--snakefile", "workflow/Snakefile", "--configfile", "tiny.yaml", "--profile", "profiles/local"])
for name in ATTRIBUTES:
    *parents, last = name.split(".")[1:]
    getattr_static(reduce(getattr, parents, workflow), last)  # some have values only while Snakefiles are read
print(len(ATTRIBUTES), "attributes")
"""


def test_snakemake_has_all_attributes_that_the_project_uses(fresh: Checkout) -> None:
    environment = {**os.environ, "PYTHONPATH": str(fresh.root / "src")}
    run = subprocess.run(
        [sys.executable, "-c", ATTRIBUTES], cwd=fresh.root, env=environment, capture_output=True, text=True
    )
    assert run.stdout.endswith(" attributes\n"), run.stderr


def test_rules_name_the_sections_of_the_configuration_that_they_depend_on() -> None:
    assert [path for path, text in generated() if path.read_text(encoding="utf-8") != text] == []
