"""The workflow as a module of another Snakefile, and as an installed package."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import PROJECT, SMALLEST, Checkout, jobs_in

from tools.pages import blocks

SNAKEFILE = """
configfile: "config/config.yaml"

module saliency:
    snakefile: "{snakefile}"
    config: config["saliency"]
    prefix: "explained"

use rule * from saliency as saliency_*

rule count:
    default_target: True
    input:
        report=rules.saliency_report.output.report,
        table="explained/results/tables/digits/reliability.csv",
    output:
        "lines.txt",
    shell:
        "wc -l < {{input.table}} > {{output}}"
"""


@dataclass(frozen=True)
class Importing:
    """A folder with a Snakefile that imports the workflow."""

    root: Path

    def configure(self, saliency: Any) -> None:
        (self.root / "config").mkdir(exist_ok=True)
        content = {"threshold": 3, "saliency": saliency}
        (self.root / "config/config.yaml").write_text(yaml.safe_dump(content, sort_keys=False))

    def edit(self, old: str, new: str) -> None:
        text = (self.root / "Snakefile").read_text()
        assert old in text
        (self.root / "Snakefile").write_text(text.replace(old, new))

    def snakemake(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "snakemake", "--cores=2", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True)

    def planned(self) -> set[str]:
        done = self.snakemake("--dry-run", "--quiet=host")
        assert done.returncode == 0, done.stderr
        return jobs_in(done.stdout + done.stderr)


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    folder = tmp_path / "importing"
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE.format(snakefile=PROJECT / "workflow/Snakefile"))
    return Importing(folder)


def results_of(folder: Path) -> dict[str, bytes]:
    """All files of a run that contain no path, and all tables."""
    kinds = ("maps/**/*.zip", "scores/**/*.parquet", "tables/**/*.csv", "models/**/*.pt")
    files = (file for kind in kinds for file in folder.glob(kind))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.slow
def test_a_module_computes_what_the_workflow_computes(importing: Importing, smallest_once: Checkout) -> None:
    configuration = yaml.safe_load(SMALLEST.read_text())
    importing.configure(configuration)
    done = importing.snakemake()
    assert done.returncode == 0, done.stderr
    assert {path.name for path in importing.root.iterdir()} == {
        *("Snakefile", "config", "explained", ".snakemake", "lines.txt")
    }
    results = results_of(importing.root / "explained/results")
    assert len(results) > 8
    assert results == results_of(smallest_once.root / "results")
    assert "<html" in (importing.root / "explained/results/report.html").read_text()
    assert importing.planned() == set()

    configuration["metrics"]["sensitivity"]["samples"] = 3
    importing.configure(configuration)
    rules = {job.split()[0].removeprefix("saliency_") for job in importing.planned()}
    assert rules == {
        "score__sensitivity__digits__seed0__digits",
        *(
            "tabulate__digits",
            "plot__digits",
            "document_methods",
            "overview",
            "provenance",
            "report",
            "count",
        ),
    }


@pytest.mark.slow
def test_the_documented_example(importing: Importing) -> None:
    snakefile, configuration = (
        block.text
        for block in blocks(PROJECT / "docs/howto/module.md")
        if block.language in ("python", "yaml")
    )
    (importing.root / "Snakefile").write_text(snakefile)
    importing.configure(yaml.safe_load(configuration)["saliency"])
    planned = importing.planned()
    assert {job for job in planned if not job.startswith("saliency_")} == {"all"}
    assert {"saliency_train net 0", "saliency_report", "saliency_tabulate__trust"} <= planned


MAPS = "explained/results/maps/digits/seed0/digits/gradient.zarr.zip"


@pytest.mark.slow
def test_rules_may_be_left_out_and_path_variables_be_those_of_the_importer(importing: Importing) -> None:
    importing.configure(yaml.safe_load(SMALLEST.read_text()))
    importing.edit("use rule * from saliency as", "use rule * from saliency exclude evaluate as")
    importing.edit(
        '    prefix: "explained"\n', '    prefix: "explained"\n    pathvars: results="elsewhere"\n'
    )
    done = importing.snakemake(MAPS, "--dry-run", "--quiet=host")
    assert done.returncode == 0, done.stderr
    jobs = jobs_in(done.stdout + done.stderr)
    assert {job.split()[0] for job in jobs} == {
        *("saliency_build_data", "saliency_train", "saliency_attribute__digits__seed0__digits")
    }


@pytest.mark.slow
def test_the_jobs_of_a_changed_rule_are_not_combined(importing: Importing) -> None:
    importing.configure(yaml.safe_load(SMALLEST.read_text()))
    changed = "use rule attribute from saliency as saliency_attribute with:\n    priority: 3\n\nrule count"
    importing.edit("rule count", changed)
    done = importing.snakemake(MAPS, "--dry-run", "--quiet=host")
    assert done.returncode == 0, done.stderr
    assert "    priority: 3\n" in done.stdout
    assert "\nrule saliency_attribute:\n" in done.stdout


@pytest.mark.slow
def test_errors_of_a_module_name_it(importing: Importing) -> None:
    importing.configure({**yaml.safe_load(SMALLEST.read_text()), "seeds": ["x"]})
    done = importing.snakemake("--dry-run")
    assert done.returncode
    assert "module saliency: seeds.0: " in done.stderr
    assert not (importing.root / "explained").exists()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the installed wheel, which Python searches before the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = Checkout.fresh(folder / "source").root
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(folder / "site-packages"),
        ".",
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    shutil.rmtree(source)
    return folder / "site-packages"


def assay(installed: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "saliency_assay.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_an_installed_package_runs_the_workflow_anywhere(installed: Path, tmp_path: Path) -> None:
    target = "results/maps/digits/seed0/digits/gradient.zarr.zip"
    shutil.copy(SMALLEST, tmp_path / "study.yaml")
    done = assay(installed, tmp_path, "run", "study.yaml", target, "--cores=2")
    assert (tmp_path / target).is_file(), done.stderr


@pytest.mark.slow
def test_an_installed_package_refuses_environments_of_jobs(installed: Path, tmp_path: Path) -> None:
    done = assay(installed, tmp_path, "run", "config", "--software-deployment-method", "conda")
    assert done.returncode == 1
    assert "--software-deployment-method: " in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_an_installed_package_continues_the_results_of_a_checkout(
    installed: Path, smallest: Checkout
) -> None:
    """The digests of code do not depend on where it is; only the report reads its captions from another folder."""
    done = assay(installed, smallest.root, "dry", smallest.configuration)
    jobs = done.stdout.split("Causes")[0].split("total:")[1]
    assert jobs.split() == ["1", "all", "1", "report"], done.stderr
    smallest.edit(smallest.configuration, lambda text: text.replace("samples: 2}", "samples: 3}", 1))
    done = assay(installed, smallest.root, "dry", smallest.configuration)
    assert "key methods.smooth.samples: 2 → 3" in done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_edit_of_an_installed_package_reruns_jobs(
    installed: Path, smallest: Checkout, tmp_path: Path
) -> None:
    edited = tmp_path / "site-packages"
    shutil.copytree(installed, edited)
    file = edited / "saliency_assay/metrics/faithfulness.py"
    file.write_text(f"{file.read_text()}\n\nADDED = 1\n")
    done = assay(edited, smallest.root, "dry", smallest.configuration)
    assert "code of saliency_assay/metrics/faithfulness.py" in done.stdout, done.stdout + done.stderr
