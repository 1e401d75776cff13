"""How long a whole configuration takes, and how much memory: by default the demo.

Runs Snakemake in an empty folder, as ``make run`` does in this one. Wall time, processor time of all processes with
Snakemake's own, and the highest memory of all of them at one moment: proportional set sizes are added, in which a page
that several processes share counts once, and in files of its own what they keep in memory. Then what each rule's jobs
took, by Snakemake's benchmark files.

    python benchmarks/demo.py
    python benchmarks/demo.py --config config/methods.yaml --cores 1 --json
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
EVERY = 2  # seconds between two looks at the memory, which stop a process for a moment


class Peak(threading.Thread):
    """Looks at a process and all that it started, until ``done`` is set."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.process, self.done, self.bytes = process, threading.Event(), 0

    def run(self) -> None:
        """Look until told to stop."""
        while not self.done.wait(EVERY):
            self.bytes = max(self.bytes, sum(held(self.process)))


def held(process: psutil.Process) -> Iterator[int]:
    try:
        everyone = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for one in everyone:
        try:
            yield one.memory_full_info().pss
        except psutil.Error:  # it has ended since
            continue


def rules(folder: Path) -> dict[str, dict[str, float]]:
    """Jobs, seconds and processor seconds of every rule."""
    found: dict[str, dict[str, float]] = {}
    for path in sorted((folder / "benchmarks").rglob("*.tsv")):
        rule = path.relative_to(folder / "benchmarks").parts[0].removesuffix(".tsv")
        entry = found.setdefault(rule, {"jobs": 0, "seconds": 0.0, "processor": 0.0})
        with path.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                entry["jobs"] += 1
                entry["seconds"] += float(row["s"])
                entry["processor"] += float(row["cpu_time"]) if row["cpu_time"] not in ("NA", "-") else 0.0
    return dict(sorted(found.items(), key=lambda item: -item[1]["seconds"]))


def run(configuration: Path, cores: str, folder: Path) -> dict[str, object]:
    settings = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--configfile", str(configuration), "--profile", str(ROOT / "profiles/local"), "--cores", cores),
    ]
    began, spent = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "said").open("w", encoding="utf-8") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        peak = Peak(psutil.Process(process.pid))
        peak.start()
        status = process.wait()
        peak.done.set()
    if status:
        sys.exit((folder / "said").read_text(encoding="utf-8")[-4000:])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    by_rule = rules(folder / settings.get("results", "results"))
    return {
        "wall": time.perf_counter() - began,
        "processor": used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime,
        "peak_bytes": peak.bytes,
        "jobs": sum(entry["jobs"] for entry in by_rule.values()),
        "rules": by_rule,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", type=Path, default=ROOT / "config/config.yaml")
    parser.add_argument("--cores", default="all")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options.config.resolve(), options.cores, Path(folder))
    if options.json:
        print(json.dumps(found))
        return
    print(f"jobs with a benchmark     {found['jobs']:8.0f}")
    print(f"wall time, s              {found['wall']:8.0f}")
    print(f"processor time, s         {found['processor']:8.0f}")
    print(f"highest memory, MB        {found['peak_bytes'] / 1e6:8.0f}")
    print(f"{'rule':28}{'jobs':>6}{'s':>9}{'processor s':>13}{'s a job':>9}")
    for rule, entry in found["rules"].items():
        each = entry["seconds"] / entry["jobs"]
        print(f"{rule:28}{entry['jobs']:6.0f}{entry['seconds']:9.1f}{entry['processor']:13.1f}{each:9.1f}")


if __name__ == "__main__":
    main()
