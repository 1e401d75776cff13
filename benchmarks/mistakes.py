"""Seconds from the command of ``make run`` until each mistake of ``tests/mistakes.py`` is reported.

``python benchmarks/mistakes.py`` runs each configuration in a new folder, prints a line for each mistake, and fails if
one is not reported before a training.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from mistakes import MISTAKES, Mistake, write_weights  # noqa: E402


def report(mistake: Mistake, folder: Path) -> tuple[float, str]:
    """Return the seconds until a run with a mistake has ended, and what it printed."""
    study = folder / "study.yaml"
    study.write_text(yaml.safe_dump(mistake.configuration), encoding="utf-8")
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "saliency_assay.cli", "run", "study.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return time.perf_counter() - start, done.stdout


def main() -> None:
    """Measure all mistakes."""
    slowest, missed = 0.0, []
    for mistake in MISTAKES:
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_weights(folder)
            shutil.copy(ROOT / "tests/mistaken_networks.py", folder)
            seconds, printed = report(mistake, folder)
            lines = [line for line in printed.splitlines() if mistake.line in line]
            is_trained = any(folder.glob("results/models/*/*/weights.pt"))
        slowest = max(slowest, seconds)
        print(f"{seconds:5.1f} s  {mistake.title}")
        if len(lines) != 1 or is_trained or re.search("Traceback", printed):
            missed.append(mistake.title)
            print(printed)
    print(f"{slowest:5.1f} s  slowest of {len(MISTAKES)}")
    if missed:
        raise SystemExit(f"not reported: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
