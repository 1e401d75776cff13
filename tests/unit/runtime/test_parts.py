"""Parts of combined jobs: which of them run, and what is kept of the others."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from snakemake.iocontainers import (
    InputFiles,
    Log,
    OutputFiles,
    Params,
    ResourceList,
    Snakemake,
    Wildcards,
)

from saliency_assay.runtime import parts
from saliency_assay.runtime.parts import FORCED, run_parts

SCRIPT = """
from pathlib import Path
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    with Path("ran.txt").open("a") as ran:
        print(job.wildcards.name, file=ran)
    text = "".join(path.read_text() for path in job.input)
    if "bad" in text:
        raise ValueError(f"{job.input[0]}: found bad")
    job.output.result.write_text(text + job.settings["added"])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the script ``copy.py`` and the file ``source.txt``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FORCED, raising=False)
    monkeypatch.setattr(parts, "SCRIPTS", tmp_path)
    monkeypatch.setattr(parts.gc, "collect", lambda: 0)  # slow in the process of many tests
    Path("copy.py").write_text(SCRIPT)
    Path("source.txt").write_text("source")
    return tmp_path


def part(name: str, source: str = "source.txt", added: str = "+") -> dict[str, Any]:
    """Return a part that copies a file to ``NAME.txt``."""
    return {
        "name": f"copy {name}",
        "rule": "copy",
        "script": "copy.py",
        "wildcards": {"name": name},
        "input": {"files": [source], "names": {}},
        "output": {"files": [f"out/{name}.txt"], "names": {"result": [0, None]}},
        "log": f"logs/{name}.log",
        "benchmark": f"benchmarks/copy/{name}.tsv",
        "settings": {"added": added},
        "software": {},
    }


def run(*parts: dict[str, Any]) -> list[str]:
    """Run parts as Snakemake does, which deletes all outputs first; return the names of those whose script ran."""
    outputs = [file for each in parts for file in each["output"]["files"]]
    for file in map(Path, outputs):
        file.unlink(missing_ok=True)
    Path("ran.txt").write_text("")
    settings = {"parts": list(parts), "state": "state"}
    job = Snakemake(
        InputFiles(["source.txt"]),
        OutputFiles(outputs),
        Params(fromdict={"settings": settings}),
        Wildcards(),
        1,
        ResourceList(),
        Log(["combined.log"]),
        {},
        "copy__all",
        None,
        ".",
    )
    try:
        run_parts(job)
    finally:
        ran = Path("ran.txt").read_text().split()
    return ran


def test_all_parts_run_once_and_only_changed_ones_again(folder: Path) -> None:
    parts = part("a"), part("b"), part("c", source="out/a.txt")
    assert run(*parts) == ["a", "b", "c"]
    assert Path("out/c.txt").read_text() == "source++"
    assert run(*parts) == []
    assert Path("out/c.txt").read_text() == "source++"
    assert run(part("a"), part("b", added="!"), parts[2]) == ["b"]
    assert Path("out/b.txt").read_text() == "source!"
    assert run(part("a", added="?"), part("b", added="!"), parts[2]) == ["a", "c"]
    assert Path("out/c.txt").read_text() == "source?+"
    Path("source.txt").write_text("other")
    assert run(*parts) == ["a", "b", "c"]


def test_an_output_with_the_same_content_reruns_nothing_after_it(folder: Path) -> None:
    run(part("a"), part("c", source="out/a.txt"))
    Path("source.txt").write_text("source+")
    assert run(part("a", added=""), part("c", source="out/a.txt")) == ["a"]


def test_forced_rules_and_files_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = part("a"), part("b")
    run(*parts)
    for forced, names in {"*": "ab", "copy": "ab", "copy__all": "ab", "out/b.txt": "b", "other": ""}.items():
        monkeypatch.setenv(FORCED, f"{time.time()}\n{forced}")
        assert run(*parts) == list(names)
        if forced == "*":
            assert run(*parts) == [], "an earlier attempt of the same run has computed them"


def test_a_failure_stops_only_what_depends_on_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_text("bad")
    parts = part("a", source="bad.txt"), part("b", source="out/a.txt"), part("c")
    with pytest.raises(SystemExit):
        run(*parts)
    assert Path("ran.txt").read_text().split() == ["a", "c"]
    assert capsys.readouterr().err == "copy: bad.txt: found bad\n"
    log = Path("combined.log").read_text().splitlines()
    assert (log[0], log[2], log[-1]) == (
        "part 1 of 3: copy a",
        "part 2 of 3: copy b",
        "copy: bad.txt: found bad",
    )
    assert log[1].startswith("failed, see logs/a.log")
    assert log[3].startswith("not run: ")
    assert not Path("benchmarks/copy/a.tsv").exists()
    Path("bad.txt").write_text("good")
    assert run(*parts) == ["a", "b"]
    assert Path("out/b.txt").read_text() == "good++"


def test_what_was_changed_in_place_is_not_reused(folder: Path) -> None:
    run(part("a"), part("b"))
    Path("out/a.txt").write_text("changed")
    assert run(part("a"), part("b")) == ["a"]
    assert Path("out/a.txt").read_text() == "source+"


def test_parts_that_were_left_out_for_a_run_are_still_good(folder: Path) -> None:
    run(part("a"), part("b"))
    run(part("a"))
    assert run(part("a"), part("b")) == []


def test_another_container_or_environment_reruns_a_part(folder: Path) -> None:
    run(part("a"), part("b"))
    assert run(part("a") | {"software": {"container": "other.sif"}}, part("b")) == ["a"]


def test_a_script_that_cannot_start_fails_alone(folder: Path) -> None:
    Path("broken.py").write_text("import no_such_module\n")
    with pytest.raises(SystemExit):
        run(part("a") | {"script": "broken.py"}, part("b"))
    assert Path("ran.txt").read_text().split() == ["b"]
    assert Path("combined.log").read_text().splitlines()[-1].startswith("copy: ModuleNotFoundError: ")


def test_without_hard_links_outputs_are_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    run(part("a"))
    assert run(part("a")) == []
    assert Path("out/a.txt").read_text() == "source+"


def test_benchmarks_have_seconds_and_memory(folder: Path) -> None:
    run(part("a"))
    head, values = Path("benchmarks/copy/a.tsv").read_text().splitlines()
    row = dict(zip(head.split("\t"), values.split("\t"), strict=True))
    assert 0 < float(row["s"]) < 60
    assert 10 < float(row["max_rss"]) < 100_000
    assert row["h:m:s"].startswith("0:00:")
