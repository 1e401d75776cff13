"""Time and memory of planning by Snakemake, without running jobs.

Dry runs of studies on the digits, with about 1,000 and 10,000 jobs by the number of seeds, and of
``config/iteroar.yaml`` with empty folders in place of its images. Then a run with nothing to do, with all jobs of the
smaller study finished: its outputs are empty files, and ``snakemake --touch`` writes the same metadata as a real run.
Reports wall time, processor time and peak resident memory of the Snakemake process, imports included, each as the
minimum of ``--rounds`` runs, because other load on the machine increases times.

    python benchmarks/planning.py
    python benchmarks/planning.py --seeds 10 --rounds 3
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
SNAKEMAKE = [
    sys.executable,
    "-m",
    "snakemake",
    "--profile",
    str(ROOT / "profiles/local"),
    "--snakefile",
    str(ROOT / "workflow/Snakefile"),
]
DRY = ["--dry-run", "--quiet", "rules"]
METHODS, METRICS = 12, 7


def digits(seeds: int) -> dict[str, object]:
    """Return a configuration of 12 methods and 7 metrics on the digits: 98 jobs per seed and a few others."""
    methods = {
        f"smooth{samples}": {"method": "smoothgrad", "samples": samples} for samples in range(2, 2 + METHODS)
    }
    metrics = {f"deletion{steps}": {"metric": "deletion", "steps": steps} for steps in range(2, 2 + METRICS)}
    model = {"architecture": "resnet8", "data": "digits", "trained_on": "class", "training": {"epochs": 1}}
    return {
        "results": "results",
        "device": "cpu",
        "seeds": list(range(seeds)),
        "data": {"digits": {"kind": "digits", "max_explained_images": 2}},
        "models": {"digits": model},
        "methods": methods,
        "metrics": metrics,
        "studies": {"digits": {"kind": "fidelity", "model": "digits", "metrics": list(metrics)}},
    }


def iteroar(folder: Path) -> dict[str, object]:
    """Return ``config/iteroar.yaml``, and create empty folders for its images."""
    configuration: dict[str, object] = yaml.safe_load((ROOT / "config/iteroar.yaml").read_text())
    for entry in configuration["data"].values():
        for split in ("train", entry.get("test_folder", "")):
            (folder / entry["path"] / split).mkdir(parents=True, exist_ok=True)
    return configuration


def plan(folder: Path, *arguments: str) -> tuple[dict[str, float], str]:
    """Run Snakemake in ``folder``; return seconds, processor seconds and MB, and its output."""
    command = [*SNAKEMAKE, "--configfile", "configuration.yaml", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}\n{text[-2000:]}")
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024}, text


def best(folder: Path, rounds: int, *arguments: str) -> tuple[dict[str, float], str]:
    """Return the minimum of each number over ``rounds`` runs, and the output of the last run."""
    runs = [plan(folder, *arguments) for _ in range(rounds)]
    return {name: min(numbers[name] for numbers, _ in runs) for name in runs[0][0]}, runs[-1][1]


def jobs_in(text: str) -> int:
    """Return the total of Snakemake's ``Job stats``; 0 if there is nothing to do."""
    totals = [line.split()[1] for line in text.splitlines() if line.startswith("total ")]
    return int(totals[0]) if totals else 0


def finish(folder: Path) -> None:
    """Create the outputs and metadata of the study as if all its jobs had run."""
    _, summary = plan(folder, "--summary")
    for line in summary.splitlines():
        if line.startswith("results/"):
            path = folder / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    plan(folder, "--touch", "--forceall", "--quiet", "all")


def measure(options: argparse.Namespace) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for name, seeds in (("digits", options.seeds), ("iteroar.yaml", 0), ("digits", 10 * options.seeds)):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            settings = digits(seeds) if seeds else iteroar(folder)
            (folder / "configuration.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
            least, text = best(folder, options.rounds, *DRY)
            jobs = jobs_in(text)
            rows.append({"run": f"dry run, {name}", "jobs": jobs, **least})
            if seeds == options.seeds:
                finish(folder)
                least, text = best(folder, options.rounds, *DRY)
                if jobs_in(text):
                    raise SystemExit(f"finished jobs: {jobs_in(text)} would run again, expected none")
                rows.append({"run": f"nothing to do, {name}", "jobs": jobs, **least})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=11, help="of the smaller study of digits")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    rows = measure(options)
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'':28}{'jobs':>8}{'s':>8}{'core, s':>9}{'MB':>8}")
    for row in rows:
        print(f"{row['run']:28}{row['jobs']:8,}{row['seconds']:8.1f}{row['cpu']:9.1f}{row['mb']:8.0f}")


if __name__ == "__main__":
    main()
