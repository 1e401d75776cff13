"""Remake all pictures of the documentation: ``python -m tools.pictures``.

Pictures of runs whose results are absent are skipped, by name. ``make pictures`` runs the demo first.
"""

import subprocess
import sys

from tools.picture_records import PROGRAMS
from tools.source_tree import ROOT


def main() -> None:
    """Run the program of each picture."""
    done = set()
    for program in PROGRAMS:
        names = ", ".join(path.name for path in program.pictures)
        absent = [str(path.relative_to(ROOT)) for path in program.needs if not path.exists()]
        if absent:
            print(f"skipped {names}: no {absent[0]} ({program.command})")
            continue
        if program.name in done:
            continue
        done.add(program.name)
        print(f"{program.name}: {names}", flush=True)
        subprocess.run([sys.executable, "-m", f"tools.{program.name}"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
