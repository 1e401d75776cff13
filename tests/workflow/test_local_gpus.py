"""GPUs of one machine, which need not be there: as many jobs at once as are visible, each on its own."""

import re
from datetime import datetime
from itertools import combinations
from pathlib import Path

import pytest
from checkout import Checkout

pytestmark = pytest.mark.slow

SEEDS = range(3)
WEIGHTS = [f"results/models/digits/seed{seed}/weights.pt" for seed in SEEDS]
BEGIN = re.compile(
    r"^(?P<time>\S+ \S+),(?P<ms>\d+) device cpu, threads 1(?:, .*CUDA_VISIBLE_DEVICES=(?P<gpu>\S*))?",
    re.MULTILINE,
)


@pytest.fixture
def trainings(tmp_path: Path) -> Checkout:
    """A study of three seeds, with its data alone."""
    checkout = Checkout.fresh(tmp_path / "project", Path(__file__).parents[1] / "cluster/small.yaml")
    checkout.configure(seeds=list(SEEDS), device="auto")
    checkout.make("results/data/digits.zarr.zip")
    return checkout


def jobs(checkout: Checkout) -> list[tuple[float, float, str]]:
    """Return for each training when it got its GPU, when its results were written, and the GPU."""
    trained = []
    for seed, weights in zip(SEEDS, WEIGHTS, strict=True):
        line = BEGIN.search(checkout.log(f"train/digits/seed{seed}.log"))
        assert line
        begin = datetime.fromisoformat(line["time"]).timestamp() + int(line["ms"]) / 1000
        trained.append((begin, (checkout.root / weights).stat().st_mtime, line["gpu"]))
    return trained


def run(checkout: Checkout, *arguments: str) -> str:
    """Run Snakemake and return its output."""
    status, message = checkout.snakemake(*WEIGHTS, "--cores=4", *arguments)
    assert status == 0, message
    return message


def at_once(checkout: Checkout) -> int | None:
    """Return the number of GPUs to which the last run limited its jobs, or None if it did not."""
    log = max((checkout.root / ".snakemake/log").iterdir())
    limit = re.search(r"^Provided resources: .*gpu\D*(\d+)", log.read_text(), re.MULTILINE)
    return int(limit[1]) if limit else None


def test_jobs_at_once_have_a_gpu_each(trainings: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    message = run(trainings)
    assert at_once(trainings) == 2
    trained = jobs(trainings)
    assert {gpu for _, _, gpu in trained} <= {"4", "7"}
    together = [pair for pair in combinations(trained, 2) if max(pair)[0] < min(end for _, end, _ in pair)]
    assert together
    assert all(one[2] != other[2] for one, other in together)
    # PyTorch cannot use them: the terminal and each job's log state so, and the jobs run on the CPU.
    fault = "device: this job runs on the CPU, because PyTorch cannot use 4, 7 on "
    assert message.count(fault) == len(SEEDS)
    assert all(fault in trainings.log(f"train/digits/seed{seed}.log") for seed in SEEDS)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")
    assert trainings.planned(*WEIGHTS) == set()  # how many there are is no reason to train again


@pytest.mark.exhaustive
def test_a_user_may_allow_more_jobs_than_gpus(trainings: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    run(trainings, "--resources", "gpu=3")
    assert at_once(trainings) == 3
    assert {gpu for _, _, gpu in jobs(trainings)} == {"4", "7"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("device", "visible"), [("auto", ""), ("cpu", "4,7")])
def test_jobs_on_cpus_are_limited_by_cores_alone(
    device: str, visible: str, trainings: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    trainings.configure(device=device)
    message = run(trainings)
    assert at_once(trainings) is None
    assert "device: " not in message
    assert {gpu for _, _, gpu in jobs(trainings)} == {visible}
