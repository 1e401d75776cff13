"""Contents of the wheel and the sdist: the library without the workflow."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from saliency_assay import __version__
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "MANIFEST.in")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built from a copy."""
    work = tmp_path_factory.mktemp("package")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", work / "src", ignore=ignored)
    # As setuptools finds them in a checkout, where it takes tests by default.
    (work / "tests").mkdir()
    (work / "tests/test_one.py").write_text("")
    for name in NEEDED:
        shutil.copy2(ROOT / name, work)
    code = "from setuptools import build_meta as build; build.build_wheel('dist'); build.build_sdist('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return work / "dist"


def files_of_the_package() -> set[str]:
    """All modules, the templates and assets that they read, and Snakemake's plugin."""
    folder = SOURCE / "saliency_assay"
    read = [path for name in ("templates", "assets") for path in folder.rglob(f"{name}/*")]
    assert {"page.html.j2", "page.css", "page.js", "reader.js"} <= {path.name for path in read}
    read += folder.rglob("assets/*/*")
    paths = {*folder.rglob("*.py"), folder / "py.typed", *(path for path in read if path.is_file())}
    paths |= set((SOURCE / "snakemake_logger_plugin_saliency_assay").glob("*.py"))
    return {path.relative_to(SOURCE).as_posix() for path in paths}


def test_the_wheel_holds_the_library_and_nothing_else(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == files_of_the_package()
    [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
    headers = Parser().parsestr(zipfile.ZipFile(wheel).read(metadata).decode())
    assert headers["Version"] == __version__
    assert headers["License-Expression"] == "MIT"
    pythons = [
        line.rpartition(" ")[2] for line in headers.get_all("Classifier") if re.search(r":: 3\.\d+$", line)
    ]
    assert pythons == ["3.11", "3.12", "3.13"]
    assert all(version in SpecifierSet(headers["Requires-Python"]) for version in pythons)
    requirements = [Requirement(line) for line in headers.get_all("Requires-Dist")]
    plain = {requirement.name for requirement in requirements if not requirement.marker}
    of_workflow = {requirement.name for requirement in requirements if "workflow" in str(requirement.marker)}
    assert plain == {"jinja2", "matplotlib", "numpy", "pandas", "scipy", "torch", "tqdm"}
    assert {"saliency-assay", "snakemake", "pydantic", "pyyaml", "psutil", "zarr"} <= of_workflow


def test_the_sdist_holds_what_the_wheel_is_made_of_and_no_tests(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in files_of_the_package()} | set(NEEDED) <= names
    assert [name for name in names if name.startswith(("tests", "results", "docs", "config"))] == []
