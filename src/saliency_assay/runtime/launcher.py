"""The program that starts a job's processes, waits for them and says why they failed: ``python -m`` this, N, script.

Processes are torchrun's; what differs is what comes of a fault. Its own command ends in a report of fifty lines and
status 1 whatever happened; here the terminal gets one line, and the status is that of the process which failed first.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from saliency_assay.runtime.launch import FAULT


def run(processes: int, command: Sequence[str]) -> int:
    """Run a Python script and its arguments, ``command``, in so many processes; the status to exit with.

    Each has torchrun's environment variables. When one fails, or a signal asks this process to stop, all are sent
    SIGTERM and have torchrun's half minute to end; the status is then that of the first to fail, or the signal's.
    """
    logging.disable()  # torchrun's word on what is told below
    with tempfile.TemporaryDirectory(prefix="saliency_assay_") as folder:
        fault = Path(folder, "fault")
        os.environ[FAULT] = str(fault)
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id="job",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",  # a port that is free
            local_addr="localhost",  # whatever names the machine has, or lacks
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        try:
            elastic_launch(config, sys.executable)(*command)
        except SignalException as stopped:
            return 128 + stopped.sigval
        except ChildFailedError as failed:
            return _heard(failed.failures, fault, Path(command[0]).stem.rpartition(".")[2])
    return 0


def _heard(failures: Mapping[int, ProcessFailure], fault: Path, name: str) -> int:
    """Say why the processes in ``failures`` failed; the status of the first of them."""
    first = min(failures.values(), key=lambda failure: failure.timestamp)
    for process, failure in failures.items():
        # Killed without a word, and what others tell follows from it; those that torchrun has to kill come later.
        by, late = -failure.exitcode, failure.timestamp > first.timestamp + 1
        if by > 0 and by != signal.SIGTERM and not late:
            print(f"{name}: process {process} was ended by {signal.Signals(by).name}", file=sys.stderr)
            return 128 + by
    if fault.exists():
        print(fault.read_text(encoding="utf-8"), end="", file=sys.stderr)
    return first.exitcode if first.exitcode > 0 else 128 - first.exitcode


if __name__ == "__main__":
    raise SystemExit(run(int(sys.argv[1]), sys.argv[2:]))
