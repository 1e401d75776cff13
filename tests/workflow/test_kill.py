"""Jobs that are killed half-way: nothing looks finished, and running again ends as if nothing had happened."""

import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from checkout import Checkout
from processes import epoch_of, kill_everything, kill_job, wait_until

from saliency_assay.storage.zarr_store import open_store

WEIGHTS = "results/models/digits/seed0/weights.pt"
CURVE = "results/models/digits/seed0/training.csv"
STATE = "results/.state/train/digits/seed0.pt"
MAPS = "results/maps/digits/seed0/digits/slow.zarr.zip"
EPOCHS = 24


@pytest.fixture(scope="module")
def undisturbed(smallest_once: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One model trained for more epochs than in other tests, in one go."""
    checkout = smallest_once.copy(tmp_path_factory.mktemp("undisturbed") / "project")
    checkout.configure(models__digits__training__epochs=EPOCHS)
    checkout.make(WEIGHTS)
    return checkout


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(kill_everything, id="SIGKILL to all"),
        pytest.param(
            kill_job(signal.SIGKILL, "train"), id="SIGKILL to the job", marks=pytest.mark.exhaustive
        ),
        pytest.param(kill_job(signal.SIGTERM, "train"), id="SIGTERM to the job"),
    ],
)
def test_a_killed_training_goes_on(
    kill: Callable[[Checkout], None], undisturbed: Checkout, smallest: Checkout
) -> None:
    smallest.configure(models__digits__training__epochs=EPOCHS)
    state, log = smallest.root / STATE, "train/digits/seed0.log"
    assert not state.exists()

    # A state after every step, instead of one a minute, so that there is one soon.
    running = smallest.start(WEIGHTS, "--cores=2", "--set-resources=train:save_seconds=0")
    wait_until(lambda: epoch_of(state) >= EPOCHS // 4)
    kill(smallest)
    output, _ = running.communicate()
    assert running.returncode != 0, output
    reached = epoch_of(state)
    assert EPOCHS // 4 <= reached < EPOCHS
    assert not (smallest.root / WEIGHTS).exists()
    assert not (smallest.root / CURVE).exists()

    if kill is kill_everything:  # Snakemake's own lock is still there
        smallest.make("--unlock")
    smallest.make(WEIGHTS)
    assert f"{STATE}: resuming after step" in smallest.log(log)
    assert int(smallest.log(log).partition(" of epoch ")[2].split()[0]) == reached + 1
    for file in (WEIGHTS, CURVE):
        assert (smallest.root / file).read_bytes() == (undisturbed.root / file).read_bytes()
    assert not state.exists()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_killed_training_with_other_settings_starts_anew(undisturbed: Checkout, smallest: Checkout) -> None:
    smallest.configure(models__digits__training__epochs=EPOCHS, models__digits__training__learning_rate=0.3)
    state = smallest.root / STATE
    running = smallest.start(WEIGHTS, "--cores=2", "--set-resources=train:save_seconds=0")
    wait_until(lambda: epoch_of(state) >= 1)
    kill_job(signal.SIGTERM, "train")(smallest)
    running.communicate()
    assert state.exists()
    smallest.configure(models__digits__training__learning_rate=None)
    smallest.make(WEIGHTS)
    assert f"{STATE}: discarded, found fingerprint" in smallest.log("train/digits/seed0.log")
    assert (smallest.root / WEIGHTS).read_bytes() == (undisturbed.root / WEIGHTS).read_bytes()


def test_how_often_the_state_is_saved_is_no_reason_to_train_again(smallest: Checkout) -> None:
    assert smallest.planned("--set-resources=train:save_seconds=0") == set()


def appeared(checkout: Checkout, pattern: str) -> list[Path]:
    return list(checkout.root.glob(pattern))


@pytest.mark.slow
def test_maps_killed_while_they_are_written_do_not_look_finished(smallest: Checkout) -> None:
    smallest.configure(methods__slow={"method": "smoothgrad", "samples": 1000})
    smallest.configure(models__digits__batch_size=8)
    target = smallest.root / MAPS
    half_written = partial(appeared, smallest, "results/maps/digits/seed0/digits/.slow.zarr.zip.*.writing")
    running = smallest.start(MAPS, "--cores=2")
    wait_until(half_written)
    kill_everything(smallest)
    output, _ = running.communicate()
    assert running.returncode == -signal.SIGKILL, output
    assert [path.is_dir() for path in half_written()] == [True]
    assert not target.exists()

    smallest.make("--unlock")
    smallest.make(MAPS)
    with open_store(target, kind="maps") as maps:
        assert len(maps) == 20
    assert half_written() == []


ARM = "results/remask/retrain/iteroar/gradient"
TABLES = [f"results/tables/retrain/{name}" for name in ("scores.parquet", "summary.csv", "leakage.csv")]
RETRAINED = [
    f"{ARM}/mean/seed0/iteration{step}/{name}"
    for step in (1, 2)
    for name in ("weights.pt", "predictions.parquet")
]
MASKS = [f"{ARM}/shared/seed0/iteration0/masks.zarr.zip", f"{ARM}/mean/seed0/iteration1/masks.zarr.zip"]
HALF_WAY = {
    "retrain": (
        RETRAINED[-1],
        "results/.state/retrain/retrain/iteroar/gradient/mean/seed0/iteration2.pt",
    ),
    "measure_mask_leakage": (
        TABLES[-1],
        "results/.state/measure_mask_leakage/retrain/iteroar/gradient/mean/seed0/iteration2/1_own.pt",
    ),
}
"""For each rule, the target of the run in which its job is killed, as other jobs go on, and the state that it saved."""


@pytest.mark.slow
def test_a_retrain_study_that_is_killed_at_every_turn_ends_as_if_never(
    finished: Checkout, finished_once: Checkout
) -> None:
    """Half-way through a training and the last but one classifier of masks; for masks see test_remask_shards."""
    for folder in ("remask", "scores/retrain", "tables/retrain"):
        shutil.rmtree(finished.root / "results" / folder)
    every_step = (
        "--cores=1",
        "--set-resources",
        "retrain:save_seconds=0",
        "measure_mask_leakage:save_seconds=0",
    )
    for script, (target, trace) in HALF_WAY.items():
        running = finished.start(target, *every_step)
        wait_until(partial(appeared, finished, trace))
        kill_job(signal.SIGKILL, script)(finished)
        output, _ = running.communicate()
        assert running.returncode != 0, output
        assert not (finished.root / target).exists()
    finished.make(*TABLES)
    for step in (
        "retrain/retrain/iteroar/gradient/mean/seed0/iteration2",
        "measure_mask_leakage/retrain/iteroar/gradient/mean/seed0/iteration2",
    ):
        assert "resuming after step" in finished.log(f"{step}.log")
    for file in (*MASKS, *RETRAINED, *TABLES):
        assert (finished.root / file).read_bytes() == (finished_once.root / file).read_bytes(), file
    assert finished.saved_states() == set()
