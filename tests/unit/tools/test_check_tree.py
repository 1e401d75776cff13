"""The linter of the source tree reports each kind of fault."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import PROJECT, Checkout

MORE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks",
    "containers",
    "docs",
    "mkdocs.yml",
    "requirements-dev.txt",
    "requirements.txt",
    "tests",
    "tools",
)


def lint(root: Path) -> list[str]:
    command = [sys.executable, "-m", "tools.check_tree"]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert not done.stderr
    assert done.returncode == 1
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    tree = Checkout.fresh(tmp_path_factory.mktemp("tree") / "project")
    (tree.root / "tiny.yaml").unlink()
    for name in MORE:
        source = PROJECT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tree.root / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(source, tree.root / name)
    return tree


FAULTS = {
    "src/saliency_assay/storage/csv_tables.py": (
        "import saliency_assay.report.pages.words\n",
        "imports report.pages.words, but storage comes before it",
    ),
    "src/saliency_assay/models/mlp.py": ("import zarr\n", "imports zarr, which belongs to ['storage']"),
    "src/saliency_assay/metrics/fills.py": (
        "import urllib.request\n",
        "imports urllib.request, but only data/download/fetch.py opens the network",
    ),
    "src/saliency_assay/metrics/__init__.py": (
        "import numpy\n",
        "imports numpy, but a registry needs no installed package",
    ),
    "src/saliency_assay/report/pages/words.py": ('KIND = "retrain"\n', "names the kind of study 'retrain'"),
    "src/saliency_assay/methods/sampling.py": ('"""See ``methods.nowhere.f``."""\n', "no methods.nowhere.f"),
    "workflow/rules/score.smk": (
        "nothing = lambda wildcards: []\n",
        "a lambda; functions of inputs and parameters",
    ),
    "containers/Dockerfile": ("RUN pip install requests\n", "installs without hashes: pip install requests"),
    "workflow/report/left_over.rst": ("Left over.\n", "no rule shows this caption"),
    "docs/bam.md": ("[gone](nowhere.md)\n", "broken link: nowhere.md"),
    "docs/retrain.md": (
        "`src/saliency_assay/nowhere.py`\n",
        "no such file or test: src/saliency_assay/nowhere.py",
    ),
    "build/docs/index.html": ('<script src="https://example.org/a.js"></script>\n', "needs a network"),
    "config/schema.yaml": (
        "# edited by hand\n",
        "not up to date: run python -m tools.configuration_reference",
    ),
}


@pytest.mark.slow
def test_each_fault_is_reported(tree: Checkout) -> None:
    for name, (line, _) in FAULTS.items():
        path = tree.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + line)
    tree.edit(
        "workflow/envs/report.yaml",
        lambda text: "".join(line for line in text.splitlines(keepends=True) if "matplotlib=" not in line),
    )
    tree.edit("profiles/slurm/config.yaml", lambda text: text.replace("  train:", "  trian:"))
    pinned = re.compile(r"^matplotlib==.*\n(?: +--hash=.*\n)+", re.MULTILINE)
    tree.edit("requirements.txt", lambda text: pinned.sub("", text))
    problems = lint(tree.root)
    for name, (_, message) in FAULTS.items():
        assert any(line.startswith(f"{name}:") and message in line for line in problems), (name, problems)
    lacking = {
        line.split()[-2] for line in problems if "workflow/envs/report.yaml:1: lacks matplotlib" in line
    }
    assert {"plot_training", "plot_bam", "plot_caption", "plot_retrain"} <= lacking
    assert "profiles/slurm/config.yaml:1: no rule trian" in problems
    lacks = "lacks matplotlib, which jobs import; it is not in requirements.txt"
    assert f"containers/Dockerfile:1: {lacks}" in problems
