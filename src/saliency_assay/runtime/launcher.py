"""Program that starts N processes of a script and reports failures: ``python -m …launcher N SCRIPT``.

It runs torchrun and differs only in the error report. After a failure, the command torchrun prints fifty lines and
exits with status 1; this program prints one line and exits with the status of the first process that failed.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from saliency_assay.runtime.launch import FAULT


def run(processes: int, command: Sequence[str]) -> int:
    """Run ``command``, a Python script and its arguments, in several processes and return the exit status.

    When one fails, or this process receives a signal to stop, all receive SIGTERM and have 30 seconds to end, as with
    torchrun; the status is that of the first failure or of the signal.
    """
    logging.disable()  # torchrun would log the failures that are reported below
    with tempfile.TemporaryDirectory(prefix="saliency_assay_") as folder:
        error_file = Path(folder, "fault")
        os.environ[FAULT] = str(error_file)
        # The local address makes it independent of the machine's host name.
        options = [
            "--standalone",
            "--local-addr=localhost",
            f"--nproc-per-node={processes}",
            f"--log-dir={folder}",
        ]
        try:
            torchrun.run(torchrun.parse_args([*options, *command]))  # type: ignore[no-untyped-call]
        except SignalException as stopped:
            return 128 + stopped.sigval
        except ChildFailedError as failed:
            return _report_failure(failed.failures, error_file, Path(command[0]).stem.rpartition(".")[2])
    return 0


def _report_failure(failures: Mapping[int, ProcessFailure], error_file: Path, name: str) -> int:
    """Print why the processes in ``failures`` failed and return the status of the first failure."""
    first = min(failures.values(), key=lambda failure: failure.timestamp)
    for process, failure in failures.items():
        # A process that a signal kills writes no report, and the others then fail. Those that torchrun itself kills
        # end later and are not the cause.
        signum, late = -failure.exitcode, failure.timestamp > first.timestamp + 1
        if signum > 0 and signum != signal.SIGTERM and not late:
            print(f"{name}: process {process} was killed by {signal.Signals(signum).name}", file=sys.stderr)
            return 128 + signum
    if error_file.exists():
        print(error_file.read_text(encoding="utf-8"), end="", file=sys.stderr)
    return first.exitcode if first.exitcode > 0 else 128 - first.exitcode


if __name__ == "__main__":
    raise SystemExit(run(int(sys.argv[1]), sys.argv[2:]))
