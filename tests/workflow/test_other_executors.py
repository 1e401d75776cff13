"""Runs through other executors and on object storage, killed and resumed, against a local run."""

import os
import signal
from pathlib import Path

import pytest
import yaml
from checkout import SMALLEST, Checkout
from processes import kill_everything, wait_until

pytestmark = pytest.mark.slow

DATA = "results/data/digits.zarr.zip"
GENERIC = ("--profile", "profiles/generic")
# A PBS that runs each job at once, in a process group of its own, as jobs on nodes outlive a Snakemake that is killed.
COMMANDS = {
    "qsub": """for script; do :; done
number=$(($(ls "$QUEUE"/*.request 2> /dev/null | wc -l) + 1)).simulated
echo "$*" > "$QUEUE/$number.request"
PBS_JOBID=$number setsid sh "$script" > /dev/null 2>&1 &
echo $! > "$QUEUE/$number"
echo $number""",
    "qstat": 'kill -s 0 -- "-$(cat "$QUEUE/$1")"',
    "qdel": 'for job; do kill -s TERM -- "-$(cat "$QUEUE/$job")"; done',
}


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The commands of a simulated PBS, and its folder with a file of the process group for each job."""
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    queue, commands = tmp_path / "queue", tmp_path / "commands"
    queue.mkdir()
    commands.mkdir()
    for name, text in COMMANDS.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("QUEUE", str(queue))
    return queue


def jobs_in(queue: Path) -> dict[str, int]:
    """Process groups of the jobs that were submitted, by id."""
    return {file.name: int(file.read_text()) for file in queue.glob("*.simulated") if file.read_text()}


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_through_cluster_generic_is_killed_with_a_job_and_resumed(
    pbs: Path, smallest_once: Checkout, tmp_path: Path
) -> None:
    """One Snakemake and one job are killed at once; the next run waits for the jobs that continue, and repeats it."""
    checkout = Checkout.fresh(tmp_path / "project", SMALLEST)
    site = {
        "batch-system": "pbs",
        "default-resources": {"queue": "short"},
        "gpu": {"gpu": 0, "queue": "devices"},
        # Results are equal bit for bit for an equal number of threads.
        "set-threads": {"train": 1},
        "set-resources": {"train": {"mem_mb": 1234, "runtime": 77}},
    }
    (checkout.root / "site.yaml").write_text(yaml.safe_dump(site))
    arguments = ("--jobs=4", "--latency-wait=5", "--seconds-between-status-checks=1")
    running = checkout.start(*arguments, profile=GENERIC)
    wait_until(lambda: (checkout.root / DATA).exists() and any(map(is_alive, jobs_in(pbs).values())))
    running.kill()
    running.communicate()
    before = jobs_in(pbs)
    alive = [group for group in before.values() if is_alive(group)]
    os.killpg(alive[0], signal.SIGKILL)
    status, output = checkout.snakemake("--unlock", profile=GENERIC)
    assert status == 0, output
    status, output = checkout.snakemake(*arguments, profile=GENERIC)
    assert status == 0, output
    assert checkout.files("results/tables") == smallest_once.files("results/tables")
    assert len(jobs_in(pbs)) > len(before)
    requests = [file.read_text() for file in pbs.glob("*.request")]
    (train,) = (each for each in requests if "assay_train " in each)
    assert "mem=1234mb" in train
    assert "walltime=4620" in train
    assert "-q devices" in train
    assert "ngpus" not in train
    assert any("-q short" in each for each in requests)


def test_a_run_on_object_storage_is_killed_and_resumed(smallest_once: Checkout, tmp_path: Path) -> None:
    """Finished results in storage are not computed again; a map that was being written is."""
    pytest.importorskip("snakemake_storage_plugin_s3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    boto3 = pytest.importorskip("boto3")
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys)
    client.create_bucket(Bucket="assay")
    checkout = Checkout.fresh(tmp_path / "project", SMALLEST)
    options = {"endpoint-url": f"http://{host}:{port}", "access-key": "a", "secret-key": "b"}
    storage = ["--default-storage-provider=s3", "--default-storage-prefix=s3://assay/run"]
    storage += [f"--storage-s3-{name}={value}" for name, value in options.items()]

    def stored() -> dict[str, object]:
        listed = client.list_objects_v2(Bucket="assay").get("Contents", [])
        return {each["Key"].removeprefix("run/"): each["LastModified"] for each in listed}

    try:
        running = checkout.start("--cores=2", *storage)
        wait_until(lambda: any(name.startswith("results/maps/") for name in stored()), 600)
        kill_everything(checkout)
        running.communicate()
        before = stored()
        status, output = checkout.snakemake("--unlock", *storage)
        assert status == 0, output
        checkout.make(*storage)
        after = stored()
        assert "results/report.html" in after
        kept = {name for name in before if name.startswith(("results/data/", "results/models/"))}
        assert len(kept) >= 3
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
        for name, content in smallest_once.files("results/tables").items():
            body = client.get_object(Bucket="assay", Key=f"run/results/tables/{name}")["Body"]
            assert body.read() == content, name
        assert checkout.planned(*storage) == set()
    finally:
        for name in stored():  # all servers of a process share their objects
            client.delete_object(Bucket="assay", Key=f"run/{name}")
        server.stop()
