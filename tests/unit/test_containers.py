"""Both images install exactly what is pinned, the same way; that they build, only one with a registry can tell."""

import re
from pathlib import Path

import pytest

from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
FOLDER = ROOT / "containers"
DOCKER, APPTAINER = FOLDER / "Dockerfile", FOLDER / "saliency_assay.def"
PINNED = ["requirements.txt", "envs/bootstrap.txt"]
BASE = re.compile(r"^python:3\.11\.\d+-slim-\w+$")


def sections() -> dict[str, list[str]]:
    """Lines of the sections of Apptainer's definition; the header's is the empty name."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in map(str.strip, APPTAINER.read_text().splitlines()):
        if line.startswith("%"):
            name = line.removeprefix("%")
            found[name] = []
        elif line and not line.startswith("#"):
            found[name].append(line)
    return found


def instructions() -> list[tuple[str, str]]:
    """Docker's instructions with their arguments."""
    text = re.sub(r"\\\n\s*", "", DOCKER.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def of(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def installs(commands: list[str]) -> list[str]:
    return [command for command in commands if " install " in command]


def test_both_start_from_one_exact_version_of_python() -> None:
    header = dict(line.split(": ", 1) for line in sections()[""])
    assert header["Bootstrap"] == "docker"
    assert of("FROM") == [header["From"]]
    assert BASE.match(header["From"])


def test_both_copy_what_is_pinned_and_nothing_else() -> None:
    [copied] = of("COPY")
    *sources, target = copied.split()
    assert sources == PINNED == [line.split()[0] for line in sections()["files"]]
    [folder] = of("WORKDIR")
    assert target == "./"
    assert [line.split()[1] for line in sections()["files"]] == [
        f"{folder}/{Path(name).name}" for name in PINNED
    ]
    kept = (FOLDER / "Dockerfile.dockerignore").read_text().split()
    assert kept == ["*", *(f"!{name}" for name in PINNED)]
    for name in PINNED:
        assert (ROOT / name).is_file()


def test_both_run_the_same_commands() -> None:
    [run] = of("RUN")
    assert run.split(" && ") == sections()["post"][2:]
    assert sections()["post"][:2] == ["set -e", f"cd {of('WORKDIR')[0]}"]
    assert [f"export {line}" for line in of("ENV")] == sections()["environment"]


def test_nothing_is_installed_without_its_hash() -> None:
    found = installs(sections()["post"])
    assert [command.split()[-1] for command in found] == ["bootstrap.txt", "requirements.txt"]
    for command in found:
        assert "--require-hashes -r" in command


@pytest.mark.parametrize("path", [DOCKER, APPTAINER], ids=lambda path: path.name)
def test_no_version_floats(path: Path) -> None:
    code = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    floating = [line for line in code if re.search(r"latest|\bapt|upgrade|>=|~=|https?://|index-url", line)]
    assert not floating


def test_every_rule_runs_in_the_image() -> None:
    """One line for all rules, and none that takes itself out."""
    lines = (ROOT / "Snakefile").read_text().splitlines()
    assert "container: IMAGE" in lines
    assert not [path for path in (ROOT / "rules").glob("*.smk") if "container:" in path.read_text()]
    assert APPTAINER.with_suffix(".sif").relative_to(ROOT).as_posix() in "\n".join(lines)
