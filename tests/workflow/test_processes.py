"""Jobs that train in two processes: asked for by a resource, told once, and no reason to train again."""

import re

import pandas as pd
import pytest
import torch
from checkout import Checkout

from saliency_assay.models.weights import read_state

pytestmark = pytest.mark.slow

MODEL = "results/models/searched/seed0"
RETRAINED = "results/remask/retrain/iteroar/gradient/mean/seed0/iteration1"
TWO = ("--set-resources", "train:processes=2", "trial:processes=2", "retrain:processes=2")


@pytest.mark.exhaustive
def test_two_processes_give_what_one_gives(finished_once: Checkout, fresh: Checkout) -> None:
    """Every script that trains; how exactly they do is tested without Snakemake."""
    fresh.make(f"{RETRAINED}/predictions.parquet", *TWO)
    for log in (
        "train/searched/seed0",
        "trial/searched/trial1",
        "retrain/retrain/iteroar/gradient/mean/seed0/iteration1",
    ):
        lines = fresh.log(f"{log}.log.process1").splitlines()
        device, normalized, precision, *_ = lines  # some CPUs add a line about the memory format
        assert device.endswith(" device cpu, threads 1")
        assert " images are normalized with mean " in normalized
        assert precision.endswith(" precision: auto selects float32 on this device")
        assert "images/s" in fresh.log(f"{log}.log")
    for folder in (MODEL, RETRAINED):
        one, two = (read_state(checkout.root / folder / "weights.pt") for checkout in (finished_once, fresh))
        assert two.keys() == one.keys()
        for name, value in one.items():
            # float32, in which a ReLU may change sides with the order of a sum
            torch.testing.assert_close(two[name], value, rtol=1e-2, atol=1e-2)
        curves = [pd.read_csv(checkout.root / folder / "training.csv") for checkout in (finished_once, fresh)]
        pd.testing.assert_frame_equal(*curves, rtol=1e-2)
    assert fresh.saved_states() == set()


def test_the_number_of_processes_is_no_reason_to_train_again(finished: Checkout) -> None:
    assert finished.planned(*TWO) == set()


def test_a_batch_that_does_not_part_evenly_is_told_once(fresh: Checkout) -> None:
    fresh.configure(models__digits__training__batch_size=127)
    status, output = fresh.snakemake("results/models/digits/seed0/weights.pt", *TWO)
    assert status == 1
    line = "train: batch_size: found 127, expected a multiple of 2, the number of processes"
    assert len(re.findall(f"^{line}$", output, re.MULTILINE)) == 1
    assert "Traceback" not in output
    assert not (fresh.root / "results/models/digits/seed0/weights.pt").exists()
