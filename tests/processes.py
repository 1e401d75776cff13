"""Processes of a checkout and the progress of a training, for tests that kill processes."""

import os
import pickle
import signal
import time
from collections.abc import Callable
from pathlib import Path

import torch
from checkout import Checkout

SECONDS = 180  # to wait for anything; a test that fails takes this long


def wait_until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Return once ``condition`` holds; fail if it does not within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.01)


def processes(checkout: Checkout, *, script: str = "") -> list[int]:
    """Ids of the processes that run in a checkout, of one script's only if it is named."""
    ids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            inside = (folder / "cwd").readlink() == checkout.root
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        python = b"python" in command[0]
        if inside and (
            not script or (python and any(part.endswith(f".{script}.py".encode()) for part in command))
        ):
            ids.append(int(folder.name))
    return ids


def kill_everything(checkout: Checkout) -> None:
    """As the power cut does: Snakemake, the shells and the jobs at once."""
    for process in processes(checkout):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: not processes(checkout))


def kill_job(number: signal.Signals, script: str) -> Callable[[Checkout], None]:
    """As a machine short of memory (SIGKILL) or a cluster at the end of its time (SIGTERM) does: the job alone."""

    def kill(checkout: Checkout) -> None:
        (process,) = processes(checkout, script=script)
        os.kill(process, number)

    return kill


def epoch_of(state: Path) -> int:
    """Finished epochs of a training that has its state in a file; 0 if there is none."""
    try:
        epoch: int = torch.load(state, weights_only=True)["progress"]["epoch"]
    except (FileNotFoundError, pickle.UnpicklingError):
        return 0
    return epoch
