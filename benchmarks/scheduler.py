"""Processor time of Snakemake's own process, with and without its default limit on job starts.

``local`` runs 3,000 jobs that only sleep until 1,000 of them have finished. ``slurm`` simulates one hour of a run on a
Slurm cluster, with 100 of 3,000 jobs in the queue and 8 to 16 minutes per job. Slurm's commands are simulated, and the
hour takes three minutes. Only the jobs and the status checks are faster: Snakemake's own delay of one second between
two passes of its scheduler stays. With ``--lost``, the nodes of this share of the jobs fail, and Snakemake submits
these jobs again. With ``--late``, the network file system shows a finished job's file only after this number of
seconds, which are not shortened.

The jobs run in other processes, which are not counted. A pass is one search for jobs to start.

    python benchmarks/scheduler.py
    python benchmarks/scheduler.py --only local --jobs 600 --finished 200
    python benchmarks/scheduler.py --only slurm --jobs 5000 --lost 0.05
    python benchmarks/scheduler.py --only slurm --jobs 5000 --late 2
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

TICKS = os.sysconf("SC_CLK_TCK")
HOUR = 180.0  # seconds in which ``slurm`` simulates one hour
SNAKEFILE = """
from saliency_assay.pipeline.snakemake_internals import remove_default_limit

rule all:
    input: expand("finished/{{number}}", number=range(1, {jobs} + 1))

rule sleep:
    output: "finished/{{number}}"
    shell: "sleep 1.5; : > {{output}}"

onstart:
    passes, select = open("passes", "ab", buffering=0), workflow.scheduler.job_selector
    workflow.scheduler.job_selector = lambda jobs: passes.write(b".") and select(jobs)
    {remedy}
"""
REMEDY = "remove_default_limit(workflow)"
VARIANTS = {
    "default limit, 100/1s": ("", []),
    "limit of 1000/10s": ("", ["--max-jobs-per-timespan", "1000/10s"]),
    "no limit": (REMEDY, []),
}
LOCAL = ["--cores", "8"]
SLURM = [
    *("--retries", "3", "--latency-wait", "60"),
    *("--executor", "slurm", "--jobs", "100", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"),
    *("--default-resources", "slurm_account=a", "slurm_partition=p", "mem_mb=1000", "runtime=30"),
]
# The name of a file is the attempt and the number in the comment of a job; its date is the time of submission.
SBATCH = r"""#!/bin/sh
number=${*#*_wildcards_}
number=${number%%[!0-9]*}
attempt=$(ls queue | grep -c "^[0-9]*_$number\$")
touch "queue/${attempt}_$number"
echo "$((attempt * 100000 + number))"
"""
SACCTMGR = """#!/bin/sh
echo a
"""
QUEUE = f"""#!{sys.executable} -S
import pathlib, random, time
for path in pathlib.Path("queue").iterdir():
    attempt, number = path.name.split("_")
    job = random.Random(number)
    minutes, is_lost = job.uniform(8, 16), job.random() < LOST and attempt == "0"
    since_end = time.time() - path.stat().st_mtime - minutes / 60 * {HOUR}
    state = "RUNNING" if since_end < 0 else "FAILED" if is_lost else "COMPLETED"
    if IS_FILE_SYSTEM and state == "COMPLETED" and since_end > LATE:
        pathlib.Path("finished", number).touch()
    print(int(attempt) * 100000 + int(number), state, sep="|")
"""


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process without its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def run(
    kind: str, remedy: str, options: list[str], jobs: int, finished: int, *, lost: float, late: float
) -> dict[str, float]:
    """Run ``jobs`` jobs until ``finished`` of them have ended or an hour is over; return times, jobs and passes."""
    program = QUEUE.replace("LOST", str(lost)).replace("LATE", str(late))
    queue = program.replace("IS_FILE_SYSTEM", "False")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs, remedy=remedy))
        for name in ("bin", "queue", "finished"):
            (folder / name).mkdir()
        commands = {"sbatch": SBATCH, "squeue": queue, "sacct": queue, "sacctmgr": SACCTMGR}
        for name, text in commands.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        file_system = [sys.executable, "-S", "-c", program.replace("IS_FILE_SYSTEM", "True")]
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--scheduler", "greedy", *options],
            cwd=folder,
            env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")},
            stdout=(folder / "log").open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            passes = folder / "passes"
            while not passes.exists():
                check_running(process, folder / "log")
                time.sleep(0.1)
            start, planned = time.perf_counter(), cpu_seconds(process.pid)
            while True:
                time.sleep(0.2)
                check_running(process, folder / "log")
                if kind == "slurm":
                    subprocess.run(file_system, cwd=folder, check=True, stdout=subprocess.DEVNULL)
                seconds, done = time.perf_counter() - start, len(list(folder.glob("finished/*")))
                if seconds > HOUR if kind == "slurm" else done >= finished:
                    break
            cpu = cpu_seconds(process.pid) - planned
            again = len(list(folder.glob("queue/[1-9]*_*")))
            counts = {"finished": done, "repeated": again, "passes": passes.stat().st_size}
            return {**counts, "seconds": seconds, "cpu": cpu}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def check_running(process: "subprocess.Popen[bytes]", log: Path) -> None:
    if process.poll() is not None:
        raise SystemExit(f"snakemake: exit status {process.returncode}\n{log.read_text()[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("local", "slurm"))
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--finished", type=int, default=1000, help="of the local jobs")
    parser.add_argument("--lost", type=float, default=0.0, help="share of the Slurm jobs whose node fails")
    parser.add_argument(
        "--late", type=float, default=0.0, help="seconds until the file of a Slurm job is visible"
    )
    parser.add_argument("--variant", choices=tuple(VARIANTS), help="only this one")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    rows = []
    for kind, arguments in (("local", LOCAL), ("slurm", SLURM)):
        for name, (remedy, limit) in VARIANTS.items():
            if options.only in (None, kind) and options.variant in (None, name):
                measured = run(
                    kind,
                    remedy,
                    [*arguments, *limit],
                    options.jobs,
                    options.finished,
                    lost=options.lost,
                    late=options.late,
                )
                rows.append({"run": f"{kind}, {name}", **measured})
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'':30}{'finished':>9}{'repeated':>9}{'passes':>8}{'s':>7}{'core, s':>9}")
    for row in rows:
        print(
            f"{row['run']:30}{row['finished']:9,}{row['repeated']:9,}{row['passes']:8,}{row['seconds']:7.0f}{row['cpu']:9.1f}"
        )


if __name__ == "__main__":
    main()
