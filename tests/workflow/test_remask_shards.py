"""Masks that are made whole, in shards, and by jobs that are killed: everything that follows is the same."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from checkout import Checkout
from processes import kill_everything, kill_job, wait_until

from saliency_assay.storage.shards import open_stores
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

ARM = "retrain/iteroar/smooth"
FOLDERS = [f"results/remask/{ARM}/shared/seed0/iteration0", f"results/remask/{ARM}/mean/seed0/iteration1"]
FIRST = f"{FOLDERS[0]}/masks.zarr.zip"
SCORES = "results/scores/retrain/retrain/iteroar/smooth/mean/seed0.parquet"
LAST = f"results/remask/{ARM}/mean/seed0/iteration2"
SAME = [SCORES, *(f"{LAST}/{name}" for name in ("weights.pt", "training.csv", "predictions.parquet"))]
OFTEN = ("--cores=2", "--set-resources=remask:save_seconds=0")
CONFIGURATION = {
    "results": "results",
    "device": "cpu",
    "seeds": [0],
    "data": {"digits": {"kind": "digits", "size": 8, "max_explained_images": 20}},
    "models": {
        "digits": {
            "architecture": "resnet8",
            "width": 4,
            "data": "digits",
            "trained_on": "class",
            "target": "predicted",
            "batch_size": 50,
            "training": {"epochs": 1},
        }
    },
    # Slow enough to be killed half-way.
    "methods": {"smooth": {"method": "smoothgrad", "base": "gradient", "samples": 8}},
    "studies": {"retrain": {"kind": "retrain", "model": "digits", "fills": ["mean"], "percentile": 75}},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One arm of 1,797 images, its masks made by one job an iteration."""
    folder = tmp_path_factory.mktemp("remask")
    (folder / "study.yaml").write_text(yaml.safe_dump(CONFIGURATION))
    checkout = Checkout.fresh(folder / "project", folder / "study.yaml")
    checkout.make(*SAME)
    return checkout


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(kill_everything, id="SIGKILL to all"),
        pytest.param(kill_job(signal.SIGTERM, "remask"), id="SIGTERM to the job"),
    ],
)
def test_masks_of_a_killed_job_are_the_same_bytes(
    kill: Callable[[Checkout], None], whole: Checkout, tmp_path: Path
) -> None:
    checkout = whole.copy(tmp_path / "project")
    (checkout.root / FIRST).unlink()
    killed_half_way(checkout, kill, FIRST, f"results/.state/remask/{ARM}/shared/seed0/iteration0")
    checkout.make(FIRST)
    assert "iteration0: resuming after " in checkout.log(f"remask/{ARM}/shared/seed0/iteration0.log")
    assert (checkout.root / FIRST).read_bytes() == (whole.root / FIRST).read_bytes()
    assert checkout.saved_states() == set()


@pytest.mark.exhaustive
def test_what_follows_from_masks_in_shards_is_the_same(whole: Checkout, tmp_path: Path) -> None:
    """With one of the shards killed and resumed: weights, predictions and scores of the arm, byte for byte."""
    checkout = whole.copy(tmp_path / "project")
    shutil.rmtree(checkout.root / "results/remask")
    checkout.configure(studies__retrain__shards=3)
    name = "iteration0.shard2of3"
    shard = f"{FOLDERS[0]}/masks.shard2of3.zarr.zip"
    killed_half_way(checkout, kill_everything, shard, f"results/.state/remask/{ARM}/shared/seed0/{name}")
    checkout.make(*SAME)
    assert f"{name}: resuming after " in checkout.log(f"remask/{ARM}/shared/seed0/{name}.log")
    for file in SAME:
        assert (checkout.root / file).read_bytes() == (whole.root / file).read_bytes(), file
    for folder in FOLDERS:
        shards = [checkout.root / f"{folder}/masks.shard{number}of3.zarr.zip" for number in (1, 2, 3)]
        assert sorted((checkout.root / folder).glob("masks*")) == shards
        with (
            open_stores(shards, kind="masks") as gathered,
            open_store(whole.root / folder / "masks.zarr.zip", kind="masks") as one,
        ):
            assert len(gathered) == 1797
            for array in ("mask", "mean", "ranked"):
                np.testing.assert_array_equal(gathered[array][:], one[array][:])
    assert checkout.saved_states() == set()
    assert checkout.planned(*SAME) == set()


def test_more_shards_than_blocks_of_images_are_refused(whole: Checkout, tmp_path: Path) -> None:
    checkout = whole.copy(tmp_path / "project")
    checkout.configure(studies__retrain__shards=9)
    status, output = checkout.snakemake(f"{FOLDERS[0]}/masks.shard1of9.zarr.zip")
    assert status == 1
    fault = "found 9, expected at most 8: 1797 explained images are 8 blocks of 256"
    assert f"remask: shards: {fault}" in output


def killed_half_way(checkout: Checkout, kill: Callable[[Checkout], None], target: str, state: str) -> None:
    """The job that makes ``target``, killed as soon as some of it is saved in ``state``."""
    running = checkout.start(target, *OFTEN)
    wait_until((checkout.root / state / "1.pt").exists)
    kill(checkout)
    output, _ = running.communicate()
    assert running.returncode != 0, output
    assert not (checkout.root / target).exists()
    if kill is kill_everything:  # Snakemake's own lock is still there
        checkout.make("--unlock")
