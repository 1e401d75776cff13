"""Submission of jobs to PBS, Grid Engine, LSF and HTCondor for ``profiles/generic``: one command for all of them.

    python -m saliency_assay.runtime.batch submit SYSTEM JOBSCRIPT
    python -m saliency_assay.runtime.batch status SYSTEM JOB

``submit`` requests what the job's properties in the script contain: ``threads``, ``mem_mb``, ``runtime`` in minutes,
``gpu``, and the site's ``queue``, ``account`` and ``options``, further options of the submitting command. It prints the
id of the job. ``status`` prints running, success or failed. A job writes its exit status to a file, because not every
scheduler remembers jobs that have ended; a job without such a file that is no longer in the queue was killed.
"""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saliency_assay.runtime.atomic import replacing

STATUS = Path(".snakemake/saliency_assay_jobs")
"""Folder of the exit statuses and outputs of jobs, in the working directory."""
GRACE = 20  # seconds within which a network file system shows the file of a job that has left the queue
SIGNAL_BEFORE = 2  # minutes between the signal and the end of a job, where the scheduler can send one


@dataclass(frozen=True)
class Job:
    """Requests of a job, and the script that runs it and records its exit status."""

    name: str
    script: Path
    output: Path
    threads: int
    megabytes: int
    minutes: int
    gpus: int
    queue: str
    account: str
    options: tuple[str, ...]

    def named(self, **options: str) -> list[str]:
        """Return the options whose values are not empty, such as ``-q short`` for ``q="short"``."""
        return [word for name, value in options.items() if value for word in (f"-{name}", value)]


@dataclass(frozen=True)
class System:
    """Commands of a scheduler."""

    submit: Callable[[Job], list[str]]
    """Command that submits a job."""
    find: Callable[[str], list[str]]
    """Command that lists a job that is in the queue."""
    job_variable: str
    """Environment variable of a job that contains its id."""
    is_listed: Callable[[subprocess.CompletedProcess[str]], bool]
    """Function that returns True if the job is in the queue, from the result of ``find``."""
    description: Callable[[Job], str] = lambda job: ""
    """Standard input of the submitting command."""


def _pbs(job: Job) -> list[str]:
    gpus = f":ngpus={job.gpus}" if job.gpus else ""
    return [
        *("qsub", "-N", job.name, "-V", "-j", "oe", "-o", str(job.output)),
        *(
            "-l",
            f"select=1:ncpus={job.threads}:mem={job.megabytes}mb{gpus}",
            "-l",
            f"walltime={60 * job.minutes}",
        ),
        *job.named(q=job.queue, A=job.account),
    ]


def _sge(job: Job) -> list[str]:
    return [
        *("qsub", "-terse", "-N", job.name, "-V", "-cwd", "-j", "y", "-o", str(job.output)),
        *("-l", f"h_rt={60 * job.minutes}", "-l", f"h_vmem={-(-job.megabytes // job.threads)}M"),
        *(("-pe", "smp", str(job.threads)) if job.threads > 1 else ()),
        *(("-l", f"gpu={job.gpus}") if job.gpus else ()),
        *job.named(q=job.queue, P=job.account),
    ]


def _lsf(job: Job) -> list[str]:
    return [
        *("bsub", "-J", job.name, "-o", str(job.output), "-n", str(job.threads), "-R", "span[hosts=1]"),
        *("-M", f"{job.megabytes}MB", "-W", str(job.minutes)),
        *("-wa", "TERM", "-wt", str(SIGNAL_BEFORE)),
        *(("-gpu", f"num={job.gpus}") if job.gpus else ()),
        *job.named(q=job.queue, P=job.account),
    ]


def _condor_description(job: Job) -> str:
    lines = {
        "executable": "/bin/sh",
        "arguments": f"\"'{job.script}'\"",
        "initialdir": str(Path.cwd()),
        "output": job.output,
        "error": job.output,
        "getenv": "True",
        "environment": '"SALIENCY_ASSAY_JOB=$(Cluster).$(Process)"',
        "request_cpus": job.threads,
        "request_memory": f"{job.megabytes}MB",
        "request_gpus": job.gpus,
        "accounting_group": job.account,
        "+JobName": f'"{job.name}"',
        "+MaxRuntime": 60 * job.minutes,
    }
    return "".join(f"{key} = {value}\n" for key, value in lines.items() if value not in ("", 0)) + "queue\n"


def _succeeded(result: "subprocess.CompletedProcess[str]") -> bool:
    return result.returncode == 0


SYSTEMS: Mapping[str, System] = {
    "pbs": System(_pbs, lambda job: ["qstat", job], "PBS_JOBID", _succeeded),
    "sge": System(_sge, lambda job: ["qstat", "-j", job], "JOB_ID", _succeeded),
    "lsf": System(
        _lsf,
        lambda job: ["bjobs", "-noheader", "-o", "stat", job],
        "LSB_JOBID",
        lambda result: result.stdout.strip() not in ("", "DONE", "EXIT"),
    ),
    "htcondor": System(
        lambda job: ["condor_submit", "-terse", "-"],
        lambda job: ["condor_q", job, "-format", "%d", "JobStatus"],
        "SALIENCY_ASSAY_JOB",
        lambda result: bool(result.stdout.strip()),
        _condor_description,
    ),
}


def submit(system: str, jobscript: Path) -> str:
    """Submit the script of a job of Snakemake and return the id of the job.

    Raises:
        ValueError: the scheduler did not accept the job, or printed no id.
    """
    record = SYSTEMS[system]
    job = read_job(jobscript, record.job_variable)
    command = [*record.submit(job), *job.options]
    if not (description := record.description(job)):
        command.append(str(job.script))
    done = subprocess.run(command, input=description, capture_output=True, text=True, check=False)
    match = re.search(r"\d[\w.\[\]-]*", done.stdout)
    if done.returncode or not match:
        said = " ".join(f"{done.stdout} {done.stderr}".split())
        raise ValueError(f"{shlex.join(command)}: exit status {done.returncode}: {said}")
    return match[0]


def read_job(jobscript: Path, job_variable: str) -> Job:
    """Return the requests of a job, after writing a script that runs ``jobscript`` and records its exit status."""
    properties = _properties(jobscript)
    resources: Mapping[str, Any] = properties.get("resources", {})
    name = str(properties.get("rule") or properties.get("groupid") or "group")
    folder = STATUS.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    script = jobscript.with_suffix(".batch.sh").absolute()
    with replacing(script) as temporary:
        run, directory = shlex.quote(str(jobscript.absolute())), shlex.quote(str(Path.cwd()))
        lines = ["#!/bin/sh", f"cd {directory}", f"/bin/sh {run}", "status=$?"]
        lines += [f'echo $status > {shlex.quote(str(folder))}/"${job_variable}"', "exit $status", ""]
        temporary.write_text("\n".join(lines), encoding="utf-8")
    return Job(
        name=f"assay_{name}"[:60],
        script=script,
        output=folder / f"{jobscript.stem}.out",
        threads=int(properties.get("threads", 1)),
        megabytes=int(resources.get("mem_mb", 4000)),
        minutes=int(resources.get("runtime", 30)),
        gpus=int(resources.get("gpu", 0)),
        queue=str(resources.get("queue", "")),
        account=str(resources.get("account", "")),
        options=tuple(shlex.split(str(resources.get("options", "")))),
    )


def _properties(jobscript: Path) -> dict[str, Any]:
    for line in jobscript.read_text(encoding="utf-8").splitlines():
        if line.startswith("# properties = "):
            properties: dict[str, Any] = json.loads(line.partition("=")[2])
            return properties
    raise ValueError(f"{jobscript}: found no properties, expected a script of Snakemake")


def status(system: str, job: str) -> str:
    """Return ``running``, ``success`` or ``failed``."""
    file = STATUS / job
    if (ended := _ended(file)) or _is_in_queue(SYSTEMS[system], job):
        return ended or "running"
    deadline = time.monotonic() + GRACE
    while not (ended := _ended(file)) and time.monotonic() < deadline:
        time.sleep(1)
    return ended or "failed"


def _ended(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    return "" if not text else "success" if text == "0" else "failed"


def _is_in_queue(system: System, job: str) -> bool:
    return system.is_listed(subprocess.run(system.find(job), capture_output=True, text=True, check=False))


def main(arguments: Sequence[str]) -> int:
    """Run ``submit`` or ``status`` and print its result; return the exit status."""
    command, system, subject = arguments
    if system not in SYSTEMS:
        print(f"batch-system: found {system!r}; valid: {', '.join(SYSTEMS)}", file=sys.stderr)
        return 1
    try:
        print(submit(system, Path(subject)) if command == "submit" else status(system, subject))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
