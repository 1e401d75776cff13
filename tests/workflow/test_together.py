"""Two runs on one results folder, and folders that cannot be written: one line, and nothing half-written."""

import os
import re
import signal
from pathlib import Path

import pytest
from checkout import Checkout
from mounts import mounted
from processes import processes, wait_until

from saliency_assay.runtime.lock import NAME

pytestmark = pytest.mark.slow

TARGET = "data/digits.zarr.zip"
WEIGHTS = "models/digits/seed0/weights.pt"


def lines(output: str, start: str) -> list[str]:
    """The lines on the terminal that begin so; there is no traceback beside them."""
    assert "Traceback" not in output
    return [line for line in output.splitlines() if line.startswith(start)]


def test_two_checkouts_do_not_work_in_one_results_folder(fresh: Checkout, tmp_path: Path) -> None:
    """Snakemake's own lock is of the working directory; also what a killed run leaves is not worked beside."""
    results = tmp_path / "für beide/results (1)"
    fresh.configure(results=str(results), models__digits__training__epochs=10_000)
    other = fresh.copy(tmp_path / "other")
    weights = str(results / WEIGHTS)
    running = fresh.start(weights, "--cores=1")
    wait_until(lambda: processes(fresh, script="train"))

    status, output = other.snakemake(weights)
    assert status == 1
    (line,) = lines(output, "results: ")
    who = (
        rf"another run uses {re.escape(str(results))}: process {running.pid} on \S+, started in {fresh.root};"
    )
    assert re.match(f"results: {who} wait until it ends, stop it with: kill {running.pid}, or choose", line)
    # What writes nothing goes on beside it.
    assert other.planned(weights) == {"train digits 0"}
    other.make("--unlock")

    running.kill()
    running.wait()  # its output stays open: the job has it, too
    (job,) = processes(fresh, script="train")
    status, output = other.snakemake(weights)
    assert status == 1
    (line,) = lines(output, "results: ")
    assert line == (
        f"results: jobs of a killed run are still running in {results}; wait until they end, or stop them "
        f"(fuser {results / NAME} lists them)"
    )
    os.kill(job, signal.SIGTERM)
    wait_until(lambda: not processes(fresh))

    assert not (results / WEIGHTS).exists()
    other.configure(models__digits__training__epochs=1)
    other.make(weights)
    assert (results / WEIGHTS).exists()
    assert not (results / NAME).exists()
    assert running.stdout
    running.stdout.close()


def test_a_results_folder_that_cannot_be_written(fresh: Checkout) -> None:
    with mounted(fresh.root / "results", "-t", "tmpfs", "-o", "ro", "tmpfs") as results:
        status, output = fresh.snakemake(f"results/{TARGET}")
        assert list(results.iterdir()) == []
    assert status == 1
    fault = f"cannot write in {results}: Read-only file system; valid: a writable folder"
    assert lines(output, "results: ") == [f"results: {fault}"]


def test_a_working_directory_that_cannot_be_written(fresh: Checkout) -> None:
    before = fresh.files(".")
    with mounted(fresh.root, "--bind", str(fresh.root), "-o", "ro"):
        status, output = fresh.snakemake(f"results/{TARGET}")
    assert status == 1
    (line,) = lines(output, f"{fresh.root}: ")
    assert "Snakemake cannot write its folder .snakemake in the working directory; start it in a" in line
    assert fresh.files(".") == before


def test_a_name_that_snakemake_would_read_as_a_wildcard(fresh: Checkout) -> None:
    fresh.configure(results="results_{model}")
    status, output = fresh.snakemake("all", "--dry-run")
    assert status == 1
    expected = "a folder's path without ~ at its beginning, braces, $, <, >, line breaks and other control characters"
    assert lines(output, "tiny.yaml: ") == [
        f"tiny.yaml: results: found 'results_{{model}}', expected {expected}"
    ]
