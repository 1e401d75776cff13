"""Time and memory of a complete run of a configuration, by default the demo.

Runs Snakemake in an empty folder, as ``make run`` does in this one. Prints wall time, processor time of all processes
including Snakemake, and the peak of their total memory: the sum of proportional set sizes, in which a page shared by
several processes counts once. Then the time of each rule's jobs, from Snakemake's benchmark files.

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
EVERY = 2  # seconds between samples of the memory, each of which pauses a process briefly


class Peak(threading.Thread):
    """Thread that records the peak memory of a process and its children until ``done`` is set."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.process, self.done, self.bytes = process, threading.Event(), 0

    def run(self) -> None:
        """Sample the memory until ``done`` is set."""
        while not self.done.wait(EVERY):
            self.bytes = max(self.bytes, sum(memory_of(self.process)))


def memory_of(process: psutil.Process) -> Iterator[int]:
    try:
        processes = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in processes:
        try:
            yield member.memory_full_info().pss
        except psutil.Error:  # it has ended since
            continue


def rules(folder: Path) -> dict[str, dict[str, float]]:
    """Return the number of jobs, seconds and processor seconds of every rule."""
    totals: dict[str, dict[str, float]] = {}
    for path in sorted((folder / "benchmarks").rglob("*.tsv")):
        rule = path.relative_to(folder / "benchmarks").parts[0].removesuffix(".tsv")
        entry = totals.setdefault(rule, {"jobs": 0, "seconds": 0.0, "processor": 0.0})
        with path.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                entry["jobs"] += 1
                entry["seconds"] += float(row["s"])
                entry["processor"] += float(row["cpu_time"]) if row["cpu_time"] not in ("NA", "-") else 0.0
    return dict(sorted(totals.items(), key=lambda item: -item[1]["seconds"]))


def run(configuration: Path, cores: str, folder: Path) -> dict[str, object]:
    settings = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflow/Snakefile")),
        *("--configfile", str(configuration), "--profile", str(ROOT / "profiles/local"), "--cores", cores),
    ]
    start, usage_before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "log").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        peak = Peak(psutil.Process(process.pid))
        peak.start()
        status = process.wait()
        peak.done.set()
    if status:
        sys.exit((folder / "log").read_text(encoding="utf-8")[-4000:])
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    by_rule = rules(folder / settings.get("results", "results"))
    return {
        "wall": time.perf_counter() - start,
        "processor": usage_after.ru_utime
        + usage_after.ru_stime
        - usage_before.ru_utime
        - usage_before.ru_stime,
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
        results = run(options.config.resolve(), options.cores, Path(folder))
    if options.json:
        print(json.dumps(results))
        return
    print(f"jobs with a benchmark     {results['jobs']:8.0f}")
    print(f"wall time, s              {results['wall']:8.0f}")
    print(f"processor time, s         {results['processor']:8.0f}")
    print(f"highest memory, MB        {results['peak_bytes'] / 1e6:8.0f}")
    print(f"{'rule':28}{'jobs':>6}{'s':>9}{'processor s':>13}{'s a job':>9}")
    for rule, entry in results["rules"].items():
        each = entry["seconds"] / entry["jobs"]
        print(f"{rule:28}{entry['jobs']:6.0f}{entry['seconds']:9.1f}{entry['processor']:13.1f}{each:9.1f}")


if __name__ == "__main__":
    main()
