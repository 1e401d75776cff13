"""Faults of clusters: the run always ends with the files of an undisturbed run."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from checkout import Checkout
from processes import epoch_of, kill_job, wait_until
from slurm import Slurm, output_of
from studies import PROFILE, change_profile, profile_of, small_study

pytestmark = pytest.mark.exhaustive

EPOCHS = 80
"""Ten seconds or so: long enough to be caught in the middle."""
DATA = "results/data/digits.zarr.zip"
STATE = "results/.state/train/digits/seed0.pt"
WEIGHTS = "results/models/digits/seed0/weights.pt"
MAPS = "results/maps/digits/seed0/digits/gradient.zarr.zip"
TABLES = ["results/tables/digits/scores.parquet", "results/tables/digits/summary.csv"]
COMPARED = [WEIGHTS, MAPS, *TABLES]


@pytest.fixture(scope="session")
def undisturbed(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One method of one model, on this machine and in one go."""
    checkout = small_study(tmp_path_factory.mktemp("undisturbed") / "project")
    checkout.configure(models__digits__training__epochs=EPOCHS, studies__digits__methods=["gradient"])
    checkout.make(*TABLES)
    return checkout


@pytest.fixture
def prepared(undisturbed: Checkout, tmp_path: Path) -> Checkout:
    """The same with its data alone, and a profile in which a training saves its state after every step."""
    checkout = undisturbed.copy(tmp_path / "project")
    for path in (checkout.root / "results").iterdir():
        if path.name != "data":
            shutil.rmtree(path)
    site(checkout, save_seconds=0)
    return checkout


def site(checkout: Checkout, **train: Any) -> None:
    """Change what the checkout's profile asks for a training."""
    requested = profile_of(checkout)["set-resources"]
    change_profile(checkout, **{"set-resources": requested | {"train": requested["train"] | train}})


def start(checkout: Checkout, *targets: str) -> "subprocess.Popen[str]":
    return checkout.start(*(targets or TABLES), profile=PROFILE)


def finish(running: "subprocess.Popen[str]") -> str:
    """Return the output of the run, which must have succeeded."""
    output, _ = running.communicate()
    assert running.returncode == 0, output
    return output


def half_way(checkout: Checkout, running: "subprocess.Popen[str]") -> None:
    """Wait until the training is in the midst of it, and hold it there: Slurm wakes up what it ends."""

    def reached() -> bool:
        assert running.poll() is None, running.communicate()[0]
        return epoch_of(checkout.root / STATE) >= EPOCHS // 8

    wait_until(reached)
    kill_job(signal.SIGSTOP, "train")(checkout)


def check_goes_on(checkout: Checkout) -> None:
    """The last attempt to train went on from a state that an earlier one had saved."""
    output = checkout.log("train/digits/seed0.log")
    match = re.search(rf"{re.escape(STATE)}: resuming after step \d+ of epoch (\d+)", output)
    assert match, output
    assert EPOCHS // 8 < int(match[1]) < EPOCHS


def check_same(checkout: Checkout, undisturbed: Checkout, files: Sequence[str] = COMPARED) -> None:
    for file in files:
        assert (checkout.root / file).read_bytes() == (undisturbed.root / file).read_bytes(), file
    assert not (checkout.root / STATE).exists()


def end_of_time(slurm: Slurm, job: str) -> None:
    output_of("scontrol", "update", f"JobId={job}", "EndTime=now+1")


def cancelled(slurm: Slurm, job: str) -> None:
    output_of("scancel", job)


def requeued(slurm: Slurm, job: str) -> None:
    """As on a partition where jobs of higher priority push others back into the queue."""
    output_of("scontrol", "requeue", job)


def node_vanishes(slurm: Slurm, job: str) -> None:
    slurm.lose_node()
    slurm.start_node()


STATES = {
    end_of_time: ["TIMEOUT", "COMPLETED"],
    cancelled: ["CANCELLED", "COMPLETED"],
    requeued: ["COMPLETED"],
    node_vanishes: ["COMPLETED"],  # by default Slurm itself puts the job back into the queue
}


@pytest.mark.parametrize("fault", STATES, ids=lambda fault: fault.__name__)
def test_a_training_goes_on(
    fault: Callable[[Slurm, str], None], slurm: Slurm, prepared: Checkout, undisturbed: Checkout
) -> None:
    before = len(slurm.jobs("train"))
    running = start(prepared, WEIGHTS)
    half_way(prepared, running)
    (job,) = [job for job in slurm.jobs("train") if job.state == "RUNNING"]
    fault(slurm, job.number)
    finish(running)
    jobs = slurm.jobs("train")[before:]
    assert [job.state for job in jobs] == STATES[fault]
    if len(jobs) > 1:
        assert [job.memory for job in jobs] == [32000, 64000]  # twice as much for the second attempt
        assert jobs[1].limit == "1-08:00:00"
    check_goes_on(prepared)
    check_same(prepared, undisturbed, [WEIGHTS])


def test_a_training_that_is_killed_goes_on(slurm: Slurm, prepared: Checkout, undisturbed: Checkout) -> None:
    running = start(prepared, WEIGHTS)
    half_way(prepared, running)
    kill_job(signal.SIGKILL, "train")(prepared)
    finish(running)
    assert [job.state for job in slurm.jobs("train")[-2:]] == ["FAILED", "COMPLETED"]
    check_goes_on(prepared)
    check_same(prepared, undisturbed, [WEIGHTS])


def test_a_training_is_told_before_its_time_is_over(slurm: Slurm, prepared: Checkout) -> None:
    """By the profile's lead time, not by the signal that Slurm sends at the end itself."""
    site(prepared, save_seconds=3600)
    prepared.configure(models__digits__training__epochs=100 * EPOCHS)
    running = prepared.start(WEIGHTS, "--retries=0", profile=PROFILE)
    wait_until(lambda: slurm.running("train"))
    job = slurm.running("train")
    assert job is not None
    log = prepared.root / "results/logs/train/digits/seed0.log"
    wait_until(lambda: log.exists() and "images/s" in log.read_text())
    output_of("scontrol", "update", f"JobId={job.number}", "EndTime=now+100")
    running.communicate()
    assert "state saved" in log.read_text()
    assert epoch_of(prepared.root / STATE) > 0
    (ended,) = [each for each in slurm.jobs("train") if each.number == job.number]
    assert ended.state == "FAILED"  # it ended by itself, and was not ended


def test_one_that_runs_out_of_memory_gets_more(
    slurm: Slurm, prepared: Checkout, undisturbed: Checkout
) -> None:
    site(prepared, mem_mb="300 * attempt ** 3")
    before = len(slurm.jobs("train"))
    finish(start(prepared))
    jobs = slurm.jobs("train")[before:]
    assert len(jobs) >= 2
    assert jobs[-1].state == "COMPLETED"
    assert [job.memory for job in jobs] == [300 * attempt**3 for attempt in range(1, len(jobs) + 1)]
    check_same(prepared, undisturbed)


def test_snakemake_is_killed_and_started_again(
    slurm: Slurm, prepared: Checkout, undisturbed: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(prepared)
    half_way(prepared, running)
    built = (prepared.root / DATA).stat().st_mtime_ns
    running.kill()
    running.communicate()
    job = slurm.running("train")
    assert job is not None

    # Its lock is left behind, and so is its job.
    status, output = prepared.snakemake(*TABLES, profile=PROFILE)
    assert status != 0
    assert "--unlock" in output
    prepared.make("--unlock")
    status, output = prepared.snakemake(*TABLES, profile=PROFILE)
    assert status != 0
    assert (
        f"Slurm jobs of an earlier run are still running in {prepared.root}: {job.number}; wait until they end"
        in output
    )

    # Nor does it begin when Slurm does not say if there are any.
    broken = tmp_path / "broken/squeue"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no answer >&2\nexit 1\n")
    broken.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(broken.parent), prepend=os.pathsep)
        status, output = prepared.snakemake(*TABLES, profile=PROFILE)
    assert status != 0
    assert "squeue: no answer; jobs of an interrupted run may still be running" in output

    output_of("scancel", job.number)
    wait_until(
        lambda: [each.state for each in slurm.jobs("train") if each.number == job.number] == ["CANCELLED"]
    )
    finish(start(prepared))
    assert (prepared.root / DATA).stat().st_mtime_ns == built
    check_goes_on(prepared)
    check_same(prepared, undisturbed)


def test_a_disk_is_full(slurm: Slurm, prepared: Checkout, undisturbed: Checkout) -> None:
    """While a store is written: what is there afterwards is whole, and with more room it goes on."""
    folder = prepared.root / "results/maps"
    folder.mkdir()
    output_of("mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder))
    try:
        status, _ = prepared.snakemake(*TABLES, "--retries=0", profile=PROFILE)
        assert status != 0
        assert not (prepared.root / MAPS).exists()
        assert "No space left on device" in prepared.log("attribute/digits/seed0/digits/gradient.log")
        trained = (prepared.root / WEIGHTS).stat().st_mtime_ns
        output_of("mount", "-o", "remount,size=50m", str(folder))
        finish(start(prepared))
        assert (prepared.root / WEIGHTS).stat().st_mtime_ns == trained
        check_same(prepared, undisturbed)
    finally:
        output_of("umount", str(folder))


def test_a_store_is_truncated(slurm: Slurm, undisturbed: Checkout, tmp_path: Path) -> None:
    """The job that reads it names it in its error; without the file, the store is computed again."""
    checkout = undisturbed.copy(tmp_path / "project")
    file = checkout.root / MAPS
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    status, _ = checkout.snakemake(*TABLES, "--retries=0", profile=PROFILE)
    assert status != 0
    assert f"{MAPS}: truncated, or not a Zarr store" in checkout.log(
        "score/faithfulness/digits/seed0/digits/gradient.log"
    )
    file.unlink()
    # Existing tables need no maps.
    finish(checkout.start(MAPS, *TABLES, profile=PROFILE))
    check_same(checkout, undisturbed)
