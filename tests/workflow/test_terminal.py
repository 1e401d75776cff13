"""What a run shows on a terminal, here a pseudo terminal of 60 columns, and in a pipe."""

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import yaml
from checkout import LOCAL, Checkout
from PIL import Image

STUDY = {
    "results": "results",
    "data": {"digits": {"kind": "digits"}, "photos": {"kind": "folder", "path": "photos", "size": 8}},
}
TARGETS = [f"results/data/{name}.zarr.zip" for name in STUDY["data"]]
ERROR = "build_data: photos/test/a/0.png: "
DETAILS = ["    rule build_data, data=photos", "    log: results/logs/build_data/photos.log"]


def on_terminal(checkout: Checkout, *arguments: str, columns: int = 60) -> tuple[int, str]:
    """Exit status of Snakemake, and all that it wrote to a terminal."""
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, columns))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *arguments, *LOCAL, "--configfile", checkout.configuration],
        cwd=checkout.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=end,
    )
    os.close(end)
    written = b""
    try:
        while chunk := os.read(terminal, 1 << 16):
            written += chunk
    except OSError:  # the end, on Linux
        pass
    os.close(terminal)
    return process.wait(), written.decode().replace("\r\n", "\n")


def rows(written: str) -> list[str]:
    """The lines that the terminal shows in the end."""
    plain = re.sub(r"[^\n]*\r\x1b\[K", "", written)
    return re.sub(r"\x1b\[\d*m", "", plain).splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A study of two data sets, of which one has an image that cannot be read."""
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    checkout = Checkout.fresh(tmp_path / "project", tmp_path / "study.yaml")
    for name in ("train/a", "train/b", "test/a", "test/b"):
        (checkout.root / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(checkout.root / "photos" / name / "0.png")
    (checkout.root / "photos/test/a/0.png").write_text("no image")
    return checkout


def test_a_run_shows_its_progress_and_the_cause_of_an_error_first(checkout: Checkout) -> None:
    status, written = on_terminal(checkout, *TARGETS, "--cores=2", "--keep-going")
    (log,) = (checkout.root / ".snakemake/log").glob("*.log")
    assert status == 1
    *_, message, rule, job_log, counts, file = rows(written)
    assert message.startswith(ERROR)
    assert f"\x1b[31m{message}\x1b[0m\n" in written
    assert ([rule, job_log], file) == (DETAILS, f"Snakemake's log: .snakemake/log/{log.name}")
    assert re.fullmatch(r"1 of 2 jobs done, 1 failed, in 0:\d\d:\d\d", counts)
    statuses = re.findall(r"\r\x1b\[K(\d of [^\n\r]*)", written)
    assert max(map(len, statuses)) < 60
    assert any(re.match("0 of 2 jobs done, [12] running", status) for status in statuses)

    # Snakemake's own messages, and only those, are in its log.
    text = log.read_text()
    assert "Error in rule build_data:" in text
    assert len(re.findall(r"^Finished jobid", text, re.MULTILINE)) == 1
    assert "1 of 2 jobs done" not in text


@pytest.mark.slow
def test_a_run_in_a_pipe_shows_the_same_without_control_characters(checkout: Checkout) -> None:
    checkout.make(TARGETS[0])
    status, output = checkout.snakemake(*TARGETS)
    assert status == 1
    assert "\x1b" not in output
    first, message, *details, counts, _ = output.splitlines()[output.splitlines().index("jobs to run: 1") :]
    assert (first, details) == ("jobs to run: 1", DETAILS)
    assert message.startswith(ERROR)
    assert counts.startswith("0 of 1 jobs done, 1 failed, in ")

    # Options that ask for Snakemake's own output get it.
    status, output = checkout.snakemake(*TARGETS, "--printshellcmds")
    assert (status, "Error in rule build_data:" in output) == (1, True)
    status, output = checkout.snakemake(TARGETS[0], "--quiet", "all")
    assert (status, "Nothing to be done" in output) == (0, False)
    status, output = checkout.snakemake(TARGETS[0])
    assert (status, "Nothing to be done" in output) == (0, True)
