"""Runs with the profile for Kubernetes against a server that stands for a cluster, and storage that stands for S3.

Nothing here ran in a cluster: ``pods`` runs the commands of the jobs in folders of this machine, without an image and
without limits. What is shown is what is requested of Kubernetes, and that the jobs of a run need nothing but their
command, their secrets and the storage.
"""

import os
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from checkout import SMALLEST, Checkout
from pods import Pods

from saliency_assay.pipeline.unshared import BROKEN, KUBERNETES

pytestmark = pytest.mark.slow

PROFILE = ("--profile", "profiles/kubernetes")
IMAGE = "registry.example/saliency_assay:test"
ARGUMENTS = ("--jobs=4", "--latency-wait=5", "--seconds-between-status-checks=1")


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    pytest.importorskip("snakemake_executor_plugin_kubernetes")
    if version(KUBERNETES) == BROKEN:
        pytest.skip(f"{KUBERNETES} {BROKEN} is refused")
    pods = Pods(tmp_path / "pods")
    monkeypatch.setenv("KUBECONFIG", str(pods.kubeconfig))
    yield pods
    pods.close()


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The objects of a bucket."""
    pytest.importorskip("snakemake_storage_plugin_s3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    boto3 = pytest.importorskip("boto3")
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    for name, value in {"ENDPOINT_URL": address, "ACCESS_KEY": "a", "SECRET_KEY": "b"}.items():
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{name}", value)
    resource = boto3.resource(
        "s3",
        endpoint_url=address,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
    )
    bucket = resource.create_bucket(Bucket="assay")
    yield bucket
    if bucket.creation_date:  # a run that ends without results deletes it
        bucket.objects.all().delete()  # all servers of a process share their objects
    server.stop()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A clone with the settings of a site; Snakemake sends jobs what Git tracks."""
    checkout = Checkout.fresh(tmp_path / "project", SMALLEST)
    # The profile imports the package before the Snakefile does.
    monkeypatch.setenv("PYTHONPATH", str(checkout.root / "src"), prepend=os.pathsep)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=checkout.root, check=True)
    site = {
        "container-image": IMAGE,
        "default-storage-prefix": "s3://assay/run",
        # As in the run on this machine, since results depend on the number of threads.
        "set-threads": dict.fromkeys(("train", "evaluate", "attribute", "respond", "score"), 1),
    }
    (checkout.root / "site.yaml").write_text(yaml.safe_dump(site))
    return checkout


def test_a_run_needs_no_shared_files_and_repeats_a_killed_job_with_more_memory(
    pods: Pods, storage: Any, clone: Checkout, smallest_once: Checkout
) -> None:
    pods.is_killed = lambda rule, attempt: rule == "train" and attempt == 1
    status, output = clone.snakemake(*ARGUMENTS, profile=PROFILE)
    assert status == 0, output
    for name, content in smallest_once.files("results/tables").items():
        stored = storage.Object(f"run/results/tables/{name}").get()["Body"].read()
        read = pd.read_csv if name.endswith(".csv") else pd.read_parquet
        # The last digits of intervals differ.
        pd.testing.assert_frame_equal(*(read(BytesIO(table)) for table in (stored, content)), rtol=1e-9)
    first, second = (each["resources"] for each in pods.of_rule("train"))
    assert first["requests"]["cpu"] == "950m"
    assert first["requests"]["nvidia.com/gpu"] == first["limits"]["nvidia.com/gpu"] == "1"
    assert first["requests"]["memory"] == first["limits"]["memory"]
    assert int(second["limits"]["memory"][:-1]) > int(first["limits"]["memory"][:-1])
    (data,) = pods.of_rule("build_data")
    assert data["image"] == IMAGE
    assert "--default-storage-prefix 's3://assay/run'" in data["args"][-1]
    assert data["resources"]["limits"].keys() == {"cpu", "memory", "ephemeral-storage"}
    assert clone.planned(*ARGUMENTS, profile=PROFILE) == set()


def test_a_job_that_always_fails_ends_the_run(pods: Pods, storage: Any, clone: Checkout) -> None:
    pods.is_killed = lambda rule, attempt: rule == "build_data"
    status, output = clone.snakemake(*ARGUMENTS, "--retries=2", profile=PROFILE)
    assert status == 1
    memory = [each["resources"]["limits"]["memory"] for each in pods.of_rule("build_data")]
    assert memory == ["4000M", "8000M", "12000M"], output
    assert output.count("\nbuild_data: ended without an error message") == 3
    assert "0 of 29 jobs done, 1 failed" in output
    assert pods.secrets.keys() <= pods.deleted  # with the keys of the storage


def test_a_run_whose_jobs_would_lack_image_or_code_is_refused_before_the_first(
    pods: Pods, storage: Any, clone: Checkout
) -> None:
    clone.edit("site.yaml", lambda text: text.replace("container-image", "#"))
    status, output = clone.snakemake(*ARGUMENTS, profile=PROFILE)
    assert status == 1
    assert "\ncontainer-image: found snakemake/snakemake:" in output
    clone.edit("site.yaml", lambda text: text.replace("#", "container-image"))
    method = "src/saliency_assay/methods/gradient.py"
    subprocess.run(["git", "rm", "--quiet", "--cached", method], cwd=clone.root, check=True)
    status, output = clone.snakemake(*ARGUMENTS, profile=PROFILE)
    assert status == 1
    assert f"\n{method}: jobs do not get this code" in output
    assert not pods.manifests
