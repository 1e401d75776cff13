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

STUDY = {
    "results": "results",
    "device": "cpu",
    "data": {"digits": {"kind": "digits", "max_explained_images": 20}},
    "models": {
        "digits": {
            "architecture": "resnet8",
            "width": 4,
            "data": "digits",
            "trained_on": "class",
            "training": {"epochs": 2},
        }
    },
    "methods": {"gradient": {}, "broken": {"function": "faulty:broken"}},
    "metrics": {"insertion": {}},
    "studies": {"digits": {"kind": "fidelity", "model": "digits"}},
}
FAULTY = """def broken(classifier, pixels, targets, *, generator=None):
    raise OSError("pixels: found 8 × 8, expected none")
"""
MAPS = [f"results/maps/digits/seed0/digits/{method}.zarr.zip" for method in STUDY["methods"]]
ERROR = "attribute: pixels: found 8 × 8, expected none"
DETAILS = [
    "    rule attribute, model=digits, seed=0, data=digits, method=broken",
    "    log: results/logs/attribute/digits/seed0/digits/broken.log",
]


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
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    checkout = Checkout.fresh(tmp_path / "project", tmp_path / "study.yaml")
    (checkout.root / "faulty.py").write_text(FAULTY)
    return checkout


def test_a_run_shows_its_progress_and_the_cause_of_an_error_first(checkout: Checkout) -> None:
    status, written = on_terminal(checkout, *MAPS, "--cores=2", "--keep-going")
    (log,) = (checkout.root / ".snakemake/log").glob("*.log")
    assert status == 1
    assert f"\x1b[31m{ERROR}\x1b[0m\n" in written
    start = rows(written).index(ERROR)
    message, *details, counts, file = rows(written)[start:]
    assert (message, details, file) == (ERROR, DETAILS, f"Snakemake's log: .snakemake/log/{log.name}")
    assert re.fullmatch(r"3 of 4 jobs done, 1 failed, in 0:\d\d:\d\d", counts)
    statuses = re.findall(r"\r\x1b\[K(\d of [^\n\r]*)", written)
    assert max(map(len, statuses)) < 60
    assert any(status.startswith("1 of 4 jobs done, 1 running, 2 left; 0:00:") for status in statuses)

    # Snakemake's own messages, and only those, are in its log.
    text = log.read_text()
    assert "Error in rule attribute:" in text
    assert len(re.findall(r"^Finished jobid", text, re.MULTILINE)) == 3
    assert "1 of 4 jobs done" not in text

    # In a pipe the same without control characters; the cause stands once.
    status, said = checkout.snakemake(*MAPS)
    assert status == 1
    assert "\x1b" not in said
    first, *lines, counts, _ = said.splitlines()[said.splitlines().index("jobs to run: 1") :]
    assert (first, lines) == ("jobs to run: 1", [ERROR, *DETAILS])
    assert counts.startswith("0 of 1 jobs done, 1 failed, in ")

    # Options that ask for Snakemake's own output get it.
    assert checkout.planned(*MAPS) == {"attribute digits 0 digits broken"}
    status, said = checkout.snakemake(*MAPS, "--printshellcmds")
    assert (status, "Error in rule attribute:" in said) == (1, True)
    status, said = checkout.snakemake(MAPS[0], "--quiet", "all")
    assert (status, "Nothing to be done" in said) == (0, False)
    status, said = checkout.snakemake(MAPS[0])
    assert (status, "Nothing to be done" in said) == (0, True)
