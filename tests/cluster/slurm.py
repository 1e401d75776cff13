"""A Slurm of one machine with two pretend GPUs, from Debian's packages, for as long as the tests run.

Its whole configuration and state lie in one folder; ``/etc/slurm`` only gets links to it, because jobs that Snakemake
starts forget ``SLURM_CONF``. Memory is watched by sampling, since control groups may not be there.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from processes import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
PACKAGES = "munge slurmctld slurmd slurm-client"
SYSTEM = Path("/etc/slurm")
LINKS = ("slurm.conf", "gres.conf")
LOCK = Path("/run/lock/saliency_assay_slurm.lock")
"""Held while the cluster runs: there can be one of a machine."""
GPUS = ("/dev/null", "/dev/zero")
"""Files that stand for them: Slurm counts and hands them out, and nothing computes on them."""
GROUPS = ("study", "pages")
PREFIX = "slurm"
"""Of the names of folders of clusters."""
PIDS = {"slurmd.pid": "slurmd", "slurmctld.pid": "slurmctld", "munge/pid": "munged"}

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge/socket,cred_expire=10
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
MailProg=/bin/true
MinJobAge=3600
KillWait=20
SlurmdTimeout=5
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=200000 Gres=gpu:2
PartitionName=main Nodes={host} Default=YES
"""


def missing() -> str | None:
    """Return the reason why no such cluster can run here; None if it can."""
    if os.geteuid() != 0:
        return "a Slurm of one's own takes root"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here: apt-get install {PACKAGES}"
    configuration = SYSTEM / LINKS[0]
    if configuration.exists() and left_over() is None:
        name = re.search(r"(?im)^ *ClusterName *= *(\S+)", configuration.read_text())
        cluster = name[1] if name else "without a name"
        return f"{configuration} is there: this machine is part of another cluster, {cluster}"
    return None


def left_over() -> Path | None:
    """Return the folder of a cluster of these tests whose links are there, running or not; None if there is none."""
    link = SYSTEM / LINKS[0]
    return (
        link.readlink().parent
        if link.is_symlink() and link.readlink().parent.name.startswith(PREFIX)
        else None
    )


def clear(folder: Path) -> None:
    """End the daemons of a cluster in ``folder`` as far as they run, and take its links away."""
    for file, program in PIDS.items():
        with suppress(OSError, ValueError):
            process = int((folder / file).read_text())
            if Path(f"/proc/{process}/comm").read_text().strip() == program:
                os.kill(process, signal.SIGTERM)
                # The next cluster uses the same ports.
                wait_until(lambda process=process: not Path(f"/proc/{process}").exists())
    for name in LINKS:
        (SYSTEM / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class Job:
    """Slurm's record of a job."""

    number: str
    state: str
    rule: str
    """Name that the executor gives the job: ``rule_train_wildcards_digits_0``."""
    gpus: int
    memory: int
    """Megabytes."""
    limit: str
    """Of time."""
    start: float
    end: float
    folder: Path
    """In which it works."""

    @property
    def first_rule(self) -> str:
        """Or its group, of the profile's two; of a combined job the rule of its parts."""
        name = self.rule.removeprefix("rule_").partition("_wildcards_")[0].partition("__")[0]
        return next((group for group in GROUPS if name.startswith(f"{group}_")), name)


class Slurm:
    """The running cluster; ``stop`` ends it and takes its links away.

    What a killed run of these tests has left of another one is cleared first, so ``LOCK`` must be held.
    """

    def __init__(self, folder: Path) -> None:
        assert folder.name.startswith(PREFIX)
        if former := left_over():
            clear(former)
        self.folder = folder
        try:
            self._start()
        except BaseException:
            clear(folder)
            raise

    def _start(self) -> None:
        folder = self.folder
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(parents=True)
        (folder / "munge").chmod(0o700)
        host = socket.gethostname().partition(".")[0]
        self._write("slurm.conf", CONFIGURATION.format(host=host, folder=folder))
        self._write("gres.conf", "".join(f"NodeName={host} Name=gpu File={file}\n" for file in GPUS))
        key = folder / "munge/key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        at = {name: f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")}
        output_of("munged", "--force", f"--socket={folder}/munge/socket", *at.values())
        output_of("slurmctld")
        self.start_node()

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        SYSTEM.mkdir(exist_ok=True)
        (SYSTEM / name).unlink(missing_ok=True)
        (SYSTEM / name).symlink_to(self.folder / name)

    def stop(self) -> None:
        """End it all."""
        output_of("scancel", "--user=root")
        clear(self.folder)

    def start_node(self) -> None:
        """Start the node's daemon, and wait until it takes jobs."""
        output_of("slurmd")
        wait_until(lambda: self.node() in ("idle", "mixed", "allocated"))

    def lose_node(self) -> None:
        """As when its power is cut: the daemon and everything that it started are gone at once."""
        number = int((self.folder / "slurmd.pid").read_text())
        daemons = [number, *_steps()]
        children = [child for daemon in daemons for child in _descendants(daemon)]
        # The daemons first, or they report that a job has failed.
        for process in [*daemons, *children]:
            _kill_if_there(process)
        wait_until(lambda: self.node().startswith("down"))

    def node(self) -> str:
        """The node's state, as ``sinfo`` has it."""
        return output_of("sinfo", "--noheader", "--format=%T")

    def jobs(self, rule: str = "") -> list[Job]:
        """All jobs so far, or those of one rule, in their order."""
        lines = output_of(
            "squeue", "--states=all", "--noheader", "--format=%i|%T|%k|%m|%l|%S|%e|%Z"
        ).splitlines()
        found = []
        for line in lines:
            number, state, comment, memory, limit, *times, folder = line.split("|")
            gpus = re.search(r"TresPerJob=gres:gpu:(\d+)", output_of("scontrol", "show", "job", number))
            requested = int(gpus[1]) if gpus else 0
            start, end = map(_seconds, times)
            found.append(
                Job(number, state, comment, requested, _megabytes(memory), limit, start, end, Path(folder))
            )
        found.sort(key=lambda job: int(job.number))
        return [job for job in found if job.rule.startswith(f"rule_{rule}")]

    def running(self, rule: str) -> Job | None:
        """The job of a rule that runs now."""
        return next((job for job in self.jobs(rule) if job.state == "RUNNING"), None)


def output_of(*command: str) -> str:
    """Return the output of a command, which must succeed."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"
    return done.stdout.strip()


def _megabytes(text: str) -> int:
    return round(float(text[:-1]) * {"M": 1, "G": 1024, "T": 1024**2}[text[-1]])


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text[:1].isdigit() else float("nan")


def _steps() -> list[int]:
    """The processes that hold the steps of jobs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() == "slurmstepd":
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _descendants(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (*_descendants(child), child)]


def _kill_if_there(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
