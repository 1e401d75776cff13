"""A share of what ``fuzz.py`` tries, and all of ``bombs.py``, in a program, so that a crash or a limit ends no test."""

import os
import re
import subprocess
import sys
from pathlib import Path

from property.readers import READERS

HERE = Path(__file__).parent
ROUNDS = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "full" else 20
PROGRAM = "import sys, bombs, fuzz; sys.exit(fuzz.main() or bombs.main())"


def test_damaged_files_and_those_that_claim_much_are_read_whole_or_refused_in_a_line() -> None:
    command = [sys.executable, "-c", PROGRAM, "--rounds", str(ROUNDS), "--seed", "17"]
    completed = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    counts = {
        name: (int(refused), int(read), int(faults))
        for name, refused, read, faults in re.findall(
            r"^(\w+) +\d+ mutated files: (\d+) refused, (\d+) read, (\d+) faults",
            completed.stdout,
            re.MULTILINE,
        )
    }
    assert set(counts) == {*READERS, "all"}
    for name, (refused, read, faults) in counts.items():
        assert refused + read == ROUNDS * (len(READERS) if name == "all" else 1)
        assert refused > ROUNDS // 4  # the mutations do damage
        assert faults == 0
    bombs = completed.stdout.partition("\nall ")[2].splitlines()[1:]
    assert len(bombs) > 25
    assert all(line.startswith("refused: ") for line in bombs[:-1])
    assert bombs[-1].startswith(f"{len(bombs) - 1} files, 0 not refused as they should be, ")
