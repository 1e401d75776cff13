"""A share of what ``fuzz.py`` tries, and all of ``bombs.py``: programs, so that a crash or a limit ends no test."""

import os
import re
import subprocess
import sys
from pathlib import Path

from property.readers import READERS

HERE = Path(__file__).parent
ROUNDS = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "full" else 40


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, HERE / name, *arguments], capture_output=True, text=True)


def test_damaged_files_are_read_whole_or_refused_in_a_line() -> None:
    ran = run("fuzz.py", "--rounds", str(ROUNDS), "--seed", "17")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    counts = {
        name: (int(refused), int(read), int(faults))
        for name, refused, read, faults in re.findall(
            r"^(\w+) +\d+ mutated files: (\d+) refused, (\d+) read, (\d+) faults", ran.stdout, re.MULTILINE
        )
    }
    assert set(counts) == {*READERS, "all"}
    for name, (refused, read, faults) in counts.items():
        assert refused + read == ROUNDS * (len(READERS) if name == "all" else 1)
        assert refused > ROUNDS // 4  # the mutations do damage
        assert faults == 0


def test_files_that_claim_much_are_refused_before_memory_is_taken() -> None:
    ran = run("bombs.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) > 25
    assert all(line.startswith("refused: ") for line in lines[:-1])
    assert re.fullmatch(
        rf"{len(lines) - 1} files, 0 not refused as they should be, \d+ MiB at the peak .*", lines[-1]
    )
