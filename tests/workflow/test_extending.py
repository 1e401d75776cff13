"""The extensions that docs/extending.md shows, applied to a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from checkout import Checkout

from tools.pages import DOCS, FENCE, FILE
from tools.source_tree import ROOT

pytestmark = pytest.mark.slow

SECTIONS = dict(part.split("\n", 1) for part in (DOCS / "extending.md").read_text().split("\n## ")[1:])
EXTENSIONS = {
    "A method": ("methods", "gradient_squared"),
    "A metric": ("metrics", "top_share"),
    "A kind of study": ("studies", "removal"),
}
"""The section of each, the package that it extends, and the name of its record."""
NAMES = [name for _, name in EXTENSIONS.values()]
STUDY = """
results: results
data: {digits: {kind: digits, max_explained_images: 10}}
models:
  small: {architecture: resnet8, width: 4, data: digits, trained_on: class, training: {epochs: 1, batch_size: 60}}
methods: {gradient_squared: {scale: 2}, gradcam: {}}
metrics: {top_share: {share: 0.2}}
studies:
  all: {kind: fidelity, model: small, metrics: [top_share]}
  removed: {kind: removal, model: small, methods: [gradient_squared]}
"""


def new_files(section: str) -> dict[str, str]:
    """The files that a section shows in full."""
    return {file[1]: text for _, _, text in FENCE.findall(SECTIONS[section]) if (file := FILE.match(text))}


def changes(section: str) -> list[str]:
    """The unified diffs that a section shows."""
    return [text for _, language, text in FENCE.findall(SECTIONS[section]) if language == "diff"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with all of the extensions, and a study that uses them."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("extending") / "project")
    for folder in ("tests", "tools", "benchmarks"):
        shutil.copytree(ROOT / folder, checkout.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for section in EXTENSIONS:
        for file, text in new_files(section).items():
            path = checkout.root / file
            assert not path.exists()
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for change in changes(section):
            subprocess.run(["git", "apply"], cwd=checkout.root, input=change, text=True, check=True)
    (checkout.root / checkout.configuration).write_text(STUDY)
    return checkout


@pytest.mark.parametrize("section", EXTENSIONS)
def test_an_extension_is_a_new_module_and_a_record(section: str) -> None:
    package, name = EXTENSIONS[section]
    folder = f"src/saliency_assay/{package}"
    new = {f"{folder}/{name}", "workflow/rules/studies"} if package == "studies" else {folder}
    assert {Path(file).parent.as_posix() for file in new_files(section)} == new
    changed = [re.findall(r"^\+\+\+ b/(.+)$", text, re.MULTILINE) for text in changes(section)]
    assert changed == [[f"{folder}/__init__.py"]]
    assert package == "studies" or len(new_files(section)) == 1


@pytest.mark.exhaustive
def test_the_contract_tests_cover_the_new_records(extended: Checkout) -> None:
    command = [sys.executable, "-m", "pytest", "tests/contract", "-v", "-k", " or ".join(NAMES)]
    environment = {**os.environ, "PYTHONPATH": str(extended.root / "src")}
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=extended.root, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    passed = re.findall(r"^(.+) PASSED", run.stdout, re.MULTILINE)
    assert [name for name in NAMES if not any(name in test for test in passed)] == []


@pytest.mark.exhaustive
def test_studies_use_the_new_records(extended: Checkout) -> None:
    assert {"tabulate__removed", "plot__removed", "report"} <= extended.planned()
    tables = {study: f"results/tables/{study}/summary.csv" for study in ("all", "removed")}
    extended.make(*tables.values())
    scores = {study: pd.read_csv(extended.root / table) for study, table in tables.items()}
    assert set(scores["all"]["metric"]) == {"top_share"}
    assert set(scores["all"]["method"]) == {"gradient_squared", "gradcam"}
    assert set(scores["removed"]["metric"]) == {"deletion", "insertion"}
    assert all(table["mean"].notna().all() for table in scores.values())
