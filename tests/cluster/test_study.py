"""A whole study through ``snakemake --profile slurm``: the results of one machine, and GPUs for who needs them."""

from importlib.metadata import version
from pathlib import Path

import pytest
from checkout import Checkout
from slurm import GPUS, GROUPS, Job, Slurm
from studies import PROFILE, change_profile, profile_of, small_study

SAME = ("data", "models", "maps", "scores", "curves", "responses", "remask", "tables")
"""Folders of results that hold nothing but results; the others tell how long it took, and where."""
WEIGHTS = "results/models/digits/seed0/weights.pt"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The small study on this machine."""
    checkout = small_study(tmp_path_factory.mktemp("local") / "project")
    checkout.make()
    return checkout


@pytest.fixture(scope="module")
def on_cluster(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The same on the cluster."""
    checkout = small_study(tmp_path_factory.mktemp("cluster") / "project")
    running = checkout.start(profile=PROFILE)
    output, _ = running.communicate()
    assert running.returncode == 0, output
    return checkout


@pytest.fixture(scope="module")
def jobs(slurm: Slurm, on_cluster: Checkout) -> list[Job]:
    """Return Slurm's records of the run's jobs."""
    return [job for job in slurm.jobs() if job.folder == on_cluster.root]


@pytest.mark.parametrize("folder", SAME)
def test_results_equal_those_of_one_machine(folder: str, local: Checkout, on_cluster: Checkout) -> None:
    here, there = local.files(f"results/{folder}"), on_cluster.files(f"results/{folder}")
    assert len(here) > 0
    assert sorted(there) == sorted(here)
    assert [name for name, content in here.items() if there[name] != content] == []


def test_there_is_a_report(local: Checkout, on_cluster: Checkout) -> None:
    sizes = [(checkout.root / "results/report.html").stat().st_size for checkout in (local, on_cluster)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_jobs_that_run_a_model_got_a_gpu(on_cluster: Checkout, jobs: list[Job]) -> None:
    on_gpu = {
        rule for rule, requested in profile_of(on_cluster)["set-resources"].items() if "gpu" in requested
    }
    ran = {path.name for path in (on_cluster.root / "results/logs").iterdir() if path.is_dir()}
    assert {"train", "retrain", "remask", "attribute", "respond", "score", "evaluate"} <= on_gpu & ran
    for rule in on_gpu & ran:
        for log in (on_cluster.root / "results/logs" / rule).rglob("*.log"):
            output = log.read_text()
            assert any(f"CUDA_VISIBLE_DEVICES={number}\n" in output for number in range(len(GPUS))), output
    assert {(job.gpus, job.first_rule in on_gpu) for job in jobs} == {(1, True), (0, False)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The small study with its data alone, and a device that is a GPU where there is one."""
    checkout = small_study(tmp_path_factory.mktemp("built") / "project")
    checkout.configure(device="auto")
    checkout.make("results/data/digits.zarr.zip")
    return checkout


@pytest.fixture
def untrained(built: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it."""
    return built.copy(tmp_path / "project")


def test_a_job_that_requests_a_gpu_and_finds_none_fails(slurm: Slurm, untrained: Checkout) -> None:
    """The GPUs of these tests are pretend ones, which Slurm hands out and CUDA does not see."""
    before = len(slurm.jobs("train"))
    status, _ = untrained.snakemake(WEIGHTS, "--retries=0", profile=PROFILE)
    assert status == 1
    (job,) = slurm.jobs("train")[before:]
    assert (job.state, job.gpus) == ("FAILED", 1)
    assert "ValueError: device: the job requests a GPU, but PyTorch finds none on " in untrained.log(
        "train/digits/seed0.log"
    )
    assert not (untrained.root / WEIGHTS).exists()


def test_a_rule_may_say_that_it_needs_no_gpu(slurm: Slurm, untrained: Checkout) -> None:
    before = len(slurm.jobs("train"))
    requested = profile_of(untrained)["set-resources"]
    change_profile(untrained, **{"set-resources": requested | {"train": requested["train"] | {"gpu": 0}}})
    status, message = untrained.snakemake(WEIGHTS, profile=PROFILE)
    assert status == 0, message
    (job,) = slurm.jobs("train")[before:]
    assert (job.state, job.gpus) == ("COMPLETED", 0)


def test_nothing_is_submitted_when_the_command_line_replaced_the_profile_s_requests(
    slurm: Slurm, untrained: Checkout
) -> None:
    before = len(slurm.jobs())
    status, message = untrained.snakemake(
        WEIGHTS, "--set-resources", "train:save_seconds=10", profile=PROFILE
    )
    assert status == 1
    assert "\nset-resources: found no gpu for train; valid: " in message
    assert len(slurm.jobs()) == before


def test_a_job_refuses_an_environment_that_changed_since_the_plan(
    slurm: Slurm, untrained: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submitted job plans itself once more, so it is held to what its run announced."""
    untrained.configure(device="cpu")
    installed = untrained.root / "site/torch-99.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n")
    monkeypatch.setenv("PYTHONPATH", str(untrained.root / "site"))
    # Once the run is planned, torch 99.0 is replaced by the one that is there.
    begun = "begin_submitting(Path.cwd())\n"
    removal = f"{begun}        import shutil\n\n        shutil.rmtree('site')\n"
    untrained.edit("workflow/rules/cluster.smk", lambda text: text.replace(begun, removal, 1))
    status, _ = untrained.snakemake(WEIGHTS, "--retries=0", profile=PROFILE)
    assert status == 1
    fault = f"environment: found torch {version('torch')}, expected 99.0, with which this run was planned"
    assert fault in untrained.log("train/digits/seed0.log")


def test_never_more_gpus_at_once_than_there_are(jobs: list[Job]) -> None:
    on_gpu = [job for job in jobs if job.gpus]
    at_once = [sum(other.start <= job.start < other.end for other in on_gpu) for job in on_gpu]
    assert max(at_once) == len(GPUS)


def test_short_jobs_of_a_chain_are_one(on_cluster: Checkout, jobs: list[Job]) -> None:
    # The report is made by Snakemake itself.
    made = len(list((on_cluster.root / "results/logs").rglob("*.log"))) - 1
    grouped = [job for job in jobs if job.first_rule in GROUPS]
    assert len(grouped) == 3
    assert len(jobs) < 0.6 * made
    assert all(job.gpus == 0 for job in grouped)


def test_a_site_may_take_nothing_but_gres(slurm: Slurm, on_cluster: Checkout, tmp_path: Path) -> None:
    """As docs/cluster.md says: one line of the profile."""
    checkout = on_cluster.copy(tmp_path / "project")
    requested = profile_of(checkout)["set-resources"]
    gres = {key: value for key, value in requested["evaluate"].items() if key != "gpu"} | {"gres": "'gpu:1'"}
    change_profile(checkout, **{"set-resources": requested | {"evaluate": gres}})
    target = "results/models/digits/seed0/evaluation.json"
    (checkout.root / target).unlink()
    running = checkout.start(target, "--forcerun=evaluate", profile=PROFILE)
    output, _ = running.communicate()
    assert running.returncode == 0, output
    assert "CUDA_VISIBLE_DEVICES" in checkout.log("evaluate/digits/seed0.log")
