"""Checks of pinned packages, environments of rules, container recipes, and the version of the project."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import saliency_assay
from saliency_assay.catalog import CATALOG
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.environment import DISTRIBUTIONS
from tools.check_workflow import RULE_FILES, RULES
from tools.source_tree import ROOT, Problem, line_of

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# An extra that contains another one names the project itself.
OF_A_RUN, DEPENDENCIES = (
    [
        requirement
        for line in chain(PROJECT["dependencies"], *(EXTRAS[extra] for extra in extras))
        if (requirement := Requirement(line)).name != PROJECT["name"]
    ]
    for extras in (("methods", "workflow"), EXTRAS)
)
PYTHONS = ("3.11", "3.12", "3.13")
"""Supported versions of Python, for which packages are pinned."""
PINNED = ("requirements.txt", "workflow/envs/bootstrap.txt")
"""Pinned packages of a run, which the containers install."""
KUBERNETES = "workflow/envs/kubernetes.txt"
"""Pinned packages of the profile for Kubernetes, which one of the containers installs, too."""
OLDER_ON_KUBERNETES = {"python-dateutil"}
"""Packages of which boto3 needs an older version."""
OPTIONAL = {"safetensors"}
"""Packages that jobs import only for some configurations, and name in an error line if they are missing."""
DEVELOPMENT = "requirements-dev.txt"
"""All pinned packages."""
CPU_EXCLUDES = ROOT / "workflow/envs/cpu_excludes.txt"
"""Names of packages that ``make env CPU=1`` leaves out."""
DOCKER, APPTAINER = ROOT / "containers/Dockerfile", ROOT / "containers/saliency_assay.def"
IMPORT = re.compile(r"^from (saliency_assay[\w.]*) import", re.MULTILINE)
METHODS = [record.function for record in CATALOG.methods.values()]
METRICS = [record.function for record in CATALOG.metrics.values()]
ARCHITECTURES = [record.function for record in CATALOG.architectures.values()]
BY_NAME = {
    **dict.fromkeys(("train", "retrain", "measure_mask_leakage", "evaluate"), ARCHITECTURES),
    **dict.fromkeys(("attribute", "remask"), METHODS + ARCHITECTURES),
    "build_data": [record.function for record in CATALOG.data_kinds.values() if not record.sets],
}
"""Functions that the scripts of a rule may call by name from the configuration."""


def check_requirements() -> Iterator[Problem]:
    """Check all files that name versions of packages."""
    faults = [fault for name in (*PINNED, KUBERNETES, DEVELOPMENT) for fault in check_lock(ROOT / name)]
    yield from faults
    if faults:  # the versions cannot be parsed
        return
    yield from check_subset()
    lock = ROOT / DEVELOPMENT
    for requirement in DEPENDENCIES:
        for python in PYTHONS:
            version = locked_version(requirement.name, python)
            if not requirement.specifier.contains(version):
                yield Problem(
                    lock, 1, f"{requirement.name} on Python {python}: {version!r}, expected {requirement}"
                )
    for path in sorted((ROOT / "workflow/envs").glob("*.yaml")):
        yield from check_environment(path)
    yield from check_images()
    yield from check_version()


def check_lock(path: Path) -> Iterator[Problem]:
    """Check that every line pins a version with hashes and none names a source to load it from."""
    for number, line in _logical_lines(path):
        requirement, *hashes = line.split(" --hash=")
        if not re.fullmatch(r"[\w.\[\]-]+==[^*,\s]+( ; .+)?", requirement.strip()):
            yield Problem(path, number, f"expected a name and one version, found {requirement.strip()}")
        elif not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest.strip()) for digest in hashes):
            yield Problem(path, number, f"expected SHA-256 hashes of {requirement.strip()}")


def check_subset() -> Iterator[Problem]:
    """Check that a run's packages have the same versions in development, and that only pinned packages are left out."""
    run, development = pins(PINNED[0]), pins(DEVELOPMENT)
    for name, requirements in run.items():
        versions = {str(each.specifier) for each in requirements}
        if not versions <= {str(each.specifier) for each in development.get(name, [])}:
            yield Problem(ROOT / PINNED[0], 1, f"{name}: {sorted(versions)} is not pinned in {DEVELOPMENT}")
    for name in {canonicalize_name(each.name) for each in OF_A_RUN} - run.keys():
        yield Problem(ROOT / PINNED[0], 1, f"lacks {name}")
    for name, requirements in pins(KUBERNETES).items():
        versions = {str(each.specifier) for each in requirements}
        if name in run.keys() - OLDER_ON_KUBERNETES and versions != {
            str(each.specifier) for each in run[name]
        }:
            yield Problem(ROOT / KUBERNETES, 1, f"{name}: {sorted(versions)} is not pinned in {PINNED[0]}")
    for number, name in enumerate(CPU_EXCLUDES.read_text().splitlines(), 1):
        if name not in run:
            yield Problem(CPU_EXCLUDES, number, f"{name} is not pinned in {PINNED[0]}")


def _logical_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a requirements file with their numbers; lines ending in a backslash are joined."""
    text = path.read_text()
    for match in re.finditer(r"(?:.*\\\n)*.+", text):
        yield line_of(text, match.start()), re.sub(r"\\\n\s*", " ", match[0])


@cache
def pins(lock: str = DEVELOPMENT) -> dict[str, list[Requirement]]:
    """Return the versions of each package in a lock file; there may be several, for different versions of Python."""
    pinned: dict[str, list[Requirement]] = {}
    for _, line in _logical_lines(ROOT / lock):
        requirement = Requirement(line.partition(" --hash=")[0])
        pinned.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pinned


def locked_version(name: str, python: str) -> str:
    """Return the pinned version of a package for Linux and a version of Python; empty unless there is exactly one."""
    markers = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    matching = [
        pin
        for pin in pins().get(canonicalize_name(name), [])
        if not pin.marker or pin.marker.evaluate(markers)
    ]
    return str(matching[0].specifier).removeprefix("==") if len(matching) == 1 else ""


def check_environment(path: Path) -> Iterator[Problem]:
    """Check that an environment pins the locked versions and contains all packages that its scripts import."""
    dependencies = yaml.safe_load(path.read_text())["dependencies"]
    (python,) = [
        str(each).removeprefix("python=") for each in dependencies if str(each).startswith("python=")
    ]
    (lines,) = [each["pip"] for each in dependencies if isinstance(each, dict)]
    names = {Requirement(line).name for line in lines}
    expected = [f"{name}=={locked_version(name, python)}" for name in sorted(names)]
    if lines != expected:
        yield Problem(path, 1, f"expected {expected}")
    for name in sorted(names - {requirement.name for requirement in DEPENDENCIES}):
        yield Problem(path, 1, f"{name} is no dependency of the project")
    for rule in RULES.values():
        if not rule.base and Path(rule.value("conda")).name == path.name:
            functions = map(module_of, BY_NAME.get(rule.name, ()))
            packages = code_of(str(ROOT / f"workflow/scripts/{rule.name}.py"), *functions).packages
            for name in sorted({DISTRIBUTIONS.get(package, package) for package in packages} - names):
                yield Problem(path, 1, f"lacks {name}, which the script of {rule.name} imports")


def check_images() -> Iterator[Problem]:
    """Check that all images install the pinned packages and those that jobs import, Apptainer's as Docker's first."""
    rules, *others = stages(DOCKER.read_text())
    yield from _check_apptainer(rules)
    if not re.fullmatch(r"python:3\.11\.\d+-slim-\w+ AS rules", rules["FROM"]):
        yield Problem(DOCKER, 1, f"expected one exact version of Python, found {rules['FROM']}")
    copied: list[str] = []
    for stage in (rules, *others):
        copied += stage["COPY"].split()[:-1]
        if stage is not rules and not stage["FROM"].startswith("rules AS "):
            yield Problem(DOCKER, 1, f"expected a stage of rules, found {stage['FROM']}")
        installed = []
        for command in stage["RUN"].split(" && "):
            if re.search(r" (install|download) ", command):
                if match := re.search(r" --require-hashes -r (\w+\.txt)$", command):
                    installed.append(match[1])
                else:
                    yield Problem(DOCKER, 1, f"installs without hashes: {command}")
        if missing := {Path(name).name for name in stage["COPY"].split()[:-1]}.symmetric_difference(
            installed
        ):
            yield Problem(DOCKER, 1, f"copied or installed, but not both: {sorted(missing)}")
    expected = [*PINNED, KUBERNETES]
    if copied != expected:
        yield Problem(DOCKER, 1, f"expected to copy {expected} and nothing else")
    for name in sorted(imported_packages() - OPTIONAL - pins(PINNED[0]).keys()):
        yield Problem(DOCKER, 1, f"lacks {name}, which jobs import; it is not in {PINNED[0]}")
    dockerignore = ROOT / "containers/Dockerfile.dockerignore"
    if dockerignore.read_text().split() != ["*", *(f"!{name}" for name in expected)]:
        yield Problem(dockerignore, 1, f"expected nothing but {expected}")


def stages(dockerfile: str) -> list[dict[str, str]]:
    """Return the arguments of each instruction by its name, for each stage of a Dockerfile; of several joined by &&."""
    stages: list[dict[str, str]] = []
    for name, value in re.findall(r"^([A-Z]+) (.+)$", re.sub(r"\\\n\s*", "", dockerfile), re.MULTILINE):
        if name == "FROM":
            stages.append({})
        stages[-1][name] = f"{stages[-1][name]} && {value}" if name in stages[-1] else value
    return stages


def imported_packages() -> set[str]:
    """Return the names of the packages that jobs import: Snakefile, scripts, and what the configuration may name."""
    modules = {name for file in RULE_FILES for name in IMPORT.findall(file.read_text())}
    functions = {
        module_of(function) for function in (*METHODS, *ARCHITECTURES, *METRICS, *BY_NAME["build_data"])
    }
    scripts = map(str, (ROOT / "workflow/scripts").glob("*.py"))
    packages = code_of(*scripts, *functions, *modules).packages
    return {canonicalize_name(DISTRIBUTIONS.get(package, package)) for package in packages}


def _check_apptainer(docker: dict[str, str]) -> Iterator[Problem]:
    """Check that the recipe of Apptainer has the base image, files, commands and environment of Docker's."""
    text = re.sub(r"^ +", "", APPTAINER.read_text(), flags=re.MULTILINE)
    sections = dict(re.findall(r"^%(\w+)\n((?:[^%\n].*\n)+)", text, re.MULTILINE))
    folder = docker["WORKDIR"]
    compared = {
        "base": (re.findall(r"^From: (.+)$", text, re.MULTILINE), [docker["FROM"].partition(" ")[0]]),
        "files": (
            sections["files"].splitlines(),
            [f"{name} {folder}/{Path(name).name}" for name in docker["COPY"].split()[:-1]],
        ),
        "commands": (
            sections["post"].splitlines(),
            ["set -e", f"cd {folder}", *docker["RUN"].split(" && ")],
        ),
        "environment": (sections["environment"].splitlines(), [f"export {docker['ENV']}"]),
    }
    for name, (apptainer, expected) in compared.items():
        if apptainer != expected:
            yield Problem(
                APPTAINER, 1, f"{name}: expected {expected} as in the Dockerfile, found {apptainer}"
            )
    imported = re.findall(r"\w+", "".join(re.findall(r'-c "import ([\w, ]+)"', sections["test"])))
    for module in imported:
        if canonicalize_name(DISTRIBUTIONS.get(module, module)) not in pins(PINNED[0]):
            yield Problem(APPTAINER, 1, f"test: imports {module}, which is not in {PINNED[0]}")


def check_version() -> Iterator[Problem]:
    """Check that changelog and citation name the version of the package, and the same date."""
    version = saliency_assay.__version__
    changelog, citation = ROOT / "CHANGELOG.md", ROOT / "CITATION.cff"
    headings = re.findall(r"^## (\d\S*) \((\S+)\)$", changelog.read_text(), re.MULTILINE)
    latest, date = headings[0]
    cited = yaml.safe_load(citation.read_text())
    if latest != version:
        yield Problem(changelog, 1, f"latest version with a date {latest}, expected {version}")
    if (cited["version"], cited["license"]) != (version, PROJECT["license"]):
        yield Problem(citation, 1, f"expected version {version} and license {PROJECT['license']}")
    if str(cited["date-released"]) != date:
        yield Problem(
            citation, 1, f"date-released {cited['date-released']}, expected {date} as in CHANGELOG.md"
        )
    for python in PYTHONS:
        if f"Programming Language :: Python :: {python}" not in PROJECT["classifiers"]:
            yield Problem(ROOT / "pyproject.toml", 1, f"no classifier of Python {python}")
