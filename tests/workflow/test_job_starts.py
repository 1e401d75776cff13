"""Passes of Snakemake's scheduler, with and without its default limit on job starts."""

import re
import subprocess
import sys
from pathlib import Path

from checkout import LOCAL, Checkout

JOBS, CORES, SECONDS = 20, 4, 0.1
SLEEPERS = f"""
rule all:
    input: expand("{{number}}", number=range({JOBS}))

rule sleep:
    output: "{{number}}"
    shell: "sleep {SECONDS} && touch {{output}}"
"""
REMEDY = """
from saliency_assay.pipeline.snakemake_internals import remove_default_limit

onstart:
    remove_default_limit(workflow)
"""
# Count the passes that look for jobs to start, and the timers that order further passes.
COUNT = """
import atexit, threading
from collections import Counter
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

passes, select = Counter(), JobScheduler.job_selector

def counted(self, jobs):
    passes["all"] += 1
    return select(self, jobs)

class Timer(threading.Timer):
    def start(self):
        passes["ordered"] += 1
        super().start()

threading.Timer, JobScheduler.job_selector = Timer, counted
atexit.register(lambda: print("passes:", passes["all"], passes["ordered"]))
main()
"""
# Start no job.
SHOW = """
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

def show(self):
    print("limit:", self.job_rate_limiter)
    return False

JobScheduler.schedule = show
main()
"""


def start(folder: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_passes_of_the_scheduler_do_not_grow_without_the_default_limit(tmp_path: Path) -> None:
    running = {}
    for name, text in (("limited", SLEEPERS), ("remedied", SLEEPERS + REMEDY)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "Snakefile").write_text(text)
        running[name] = start(folder, COUNT, f"--cores={CORES}", "--scheduler=greedy")
    passes = {}
    for name, process in running.items():
        output, _ = process.communicate()
        assert process.returncode == 0, output
        passes[name] = tuple(map(int, re.findall(r"^passes: (\d+) (\d+)$", output, re.MULTILINE)[0]))
    # At most one pass for each finished job, one at the start, and one for the rule "all".
    assert passes["remedied"][0] <= JOBS + 2
    assert passes["remedied"][1] == 0
    # Each of these passes orders another one, and so on, although fewer than 100 jobs start.
    assert passes["limited"][1] > JOBS / 2, (
        "Snakemake's scheduler no longer runs more often with every finished job: delete remove_default_limit"
    )


def test_runs_remove_the_default_limit(fresh: Checkout) -> None:
    arguments = ["results/data/digits.zarr.zip", *LOCAL, "--configfile", fresh.configuration, "--cores=2"]
    output, _ = start(fresh.root, SHOW, *arguments).communicate()
    assert re.findall(r"^limit: (.+)$", output, re.MULTILINE) == ["None"], output
