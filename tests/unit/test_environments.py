"""What is pinned, and that every place that says so says the same."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import saliency_assay
from saliency_assay.data import DATA_KINDS
from saliency_assay.methods import METHODS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.environment import DISTRIBUTIONS
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
LOCKS = [ROOT / "requirements.txt", ROOT / "envs/bootstrap.txt"]
# What environments may be made with; wheels and markers are chosen for these.
PYTHONS = ("3.11", "3.12", "3.13")


def logical_lines(text: str) -> Iterator[str]:
    """Lines of a requirements file, joined where one ends with a backslash."""
    yield from (line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip())


def pins(text: str) -> dict[str, list[Requirement]]:
    """The pins of each package; there may be several, for different versions of Python."""
    found: dict[str, list[Requirement]] = {}
    for line in logical_lines(text):
        requirement = Requirement(line.partition(" --hash=")[0])
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


@cache
def locked() -> dict[str, list[Requirement]]:
    return pins((ROOT / "requirements.txt").read_text())


def version_for(name: str, python: str) -> str:
    """The version of ``name`` that ``requirements.txt`` pins on Linux for this version of Python."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    chosen = [
        requirement
        for requirement in locked().get(canonicalize_name(name), [])
        if requirement.marker is None or requirement.marker.evaluate(environment)
    ]
    assert len(chosen) == 1, f"{name} on Python {python}: {chosen}"
    return str(chosen[0].specifier).removeprefix("==")


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def direct_dependencies() -> list[Requirement]:
    of_all = project()
    lists = [of_all["dependencies"], *of_all["optional-dependencies"].values()]
    return [Requirement(line) for entries in lists for line in entries]


def pip_lines(path: Path) -> list[str]:
    dependencies = yaml.safe_load(path.read_text())["dependencies"]
    (lines,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return lines


def installed(path: Path) -> list[str]:
    """Names of the packages that an environment installs with pip."""
    return [Requirement(line).name for line in pip_lines(path)]


def test_there_are_environments() -> None:
    assert [path.stem for path in ENVIRONMENTS] == ["data", "models", "report", "workflow"]


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.name)
def test_environments_pin_what_is_locked(path: Path) -> None:
    dependencies = yaml.safe_load(path.read_text())["dependencies"]
    (python,) = [entry.removeprefix("python=") for entry in dependencies if str(entry).startswith("python=")]
    assert python in PYTHONS
    names = installed(path)
    assert names == sorted(names)
    assert list(pip_lines(path)) == [f"{name}=={version_for(name, python)}" for name in names]
    assert set(names) <= {requirement.name for requirement in direct_dependencies()}


def rules() -> Iterator[tuple[str, str]]:
    """Script and environment of every rule that has a script."""
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for rule in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            script = re.search(r'script:\s+"\.\./workflow/scripts/(\w+)\.py"', rule)
            environment = re.search(r'conda:\s+"\.\./envs/(\w+)\.yaml"', rule)
            if script:
                assert environment, f"{script[1]}: no environment"
                yield script[1], environment[1]


def imported(script: str, *functions: str) -> set[str]:
    """Packages that a script and the project's modules behind it import, wherever in them."""
    return set(code_of(str(ROOT / f"workflow/scripts/{script}.py"), *map(module_of, functions)).packages)


BY_NAME = {
    **{
        script: [record.function for record in ARCHITECTURES]
        for script in ("train", "retrain", "leak", "evaluate")
    },
    **{
        script: [record.function for record in (*METHODS, *ARCHITECTURES)]
        for script in ("attribute", "remask")
    },
    "build_data": [record.function for record in DATA_KINDS if not record.sets],
}


def test_every_script_has_a_rule() -> None:
    assert {script for script, _ in rules()} == {
        path.stem for path in (ROOT / "workflow/scripts").glob("*.py")
    }


@pytest.mark.parametrize(("script", "environment"), list(rules()))
def test_environments_hold_what_scripts_import(script: str, environment: str) -> None:
    needed = {DISTRIBUTIONS.get(name, name) for name in imported(script, *BY_NAME.get(script, ()))}
    assert needed <= set(installed(ROOT / f"envs/{environment}.yaml"))


def test_packages_that_bear_results_are_found_in_the_code() -> None:
    """For one script or registered function each, which imports the package itself or by other modules."""
    importing = {
        "captum": "saliency_assay.methods.cam",
        "matplotlib": "saliency_assay.studies.fidelity.curves",
        "numpy": "saliency_assay.storage.zarr_store",
        "pandas": "saliency_assay.storage.score_tables",
        "PIL": "saliency_assay.data.images",
        "pycocotools": "saliency_assay.data.bam.coco",
        "scipy": "saliency_assay.studies.retrain.mask_transforms",
        "skimage": "saliency_assay.studies.retrain.mask_transforms",
        "sklearn": "saliency_assay.data.readers.digits",
        "torch": "saliency_assay.training.loop",
        "zarr": "saliency_assay.studies.retrain.scores",
        "zennit": "saliency_assay.methods.relevance",
    }
    assert {name for name, module in importing.items() if name not in code_of(module).packages} == set()


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_lock_is_a_version_with_hashes(path: Path) -> None:
    lines = list(logical_lines(path.read_text()))
    assert lines
    for line in lines:
        requirement, *hashes = line.split(" --hash=")
        parsed = Requirement(requirement)
        assert re.fullmatch(r"==[^*,]+", str(parsed.specifier)), line
        assert hashes, line
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest.strip()) for digest in hashes), line


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_locks_name_no_place_to_load_from(path: Path) -> None:
    """Neither another index nor an address: all comes from the index that the user has set."""
    text = path.read_text()
    assert "://" not in text
    assert " @ " not in text
    assert not re.search(r"^\s*-", re.sub(r"^\s*--hash=.*$", "", text, flags=re.MULTILINE), re.MULTILINE)


@pytest.mark.parametrize("python", PYTHONS)
def test_direct_dependencies_are_locked_within_their_ranges(python: str) -> None:
    wanted = direct_dependencies()
    assert len(wanted) > 20
    outside = {
        requirement.name: version_for(requirement.name, python)
        for requirement in wanted
        if not requirement.specifier.contains(version_for(requirement.name, python))
    }
    assert outside == {}


def test_pythons_are_those_that_the_project_takes() -> None:
    assert project()["requires-python"] == f">={PYTHONS[0]}"


def test_citation() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == saliency_assay.__version__
    assert citation["license"] == project()["license"]
    papers = {reference["title"].partition(":")[0]: reference for reference in citation["references"]}
    assert set(papers) == {
        "Benchmarking Attribution Methods with Relative Feature Importance",
        "Interpreting Interpretations",
        "IteROAR",
        "On the (In)fidelity and Sensitivity of Explanations",
        "Sanity Checks for Saliency Metrics",
    }
    for paper in papers.values():
        assert 2019 <= paper["year"] <= 2021
        assert len(paper["authors"]) >= 2
        assert all({"given-names", "family-names"} == set(author) for author in paper["authors"])
