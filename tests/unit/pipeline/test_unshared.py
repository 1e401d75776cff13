"""Files that jobs on machines without shared files get: those that Git tracks, and those on volumes."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from saliency_assay.pipeline.unshared import is_unshared, prepare
from saliency_assay.runtime.environment import announce
from saliency_assay.runtime.user_files import Source


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A workflow whose jobs get two files of the working directory, with a volume."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "clone/own.py",
        "clone/weights.pt",
        "clone/images/a.png",
        "clone/images/b.png",
        "volume/c.png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"0")
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("SALIENCY_ASSAY_PACKAGES", "")
    monkeypatch.setattr("saliency_assay.pipeline.unshared.installed_version", lambda name: "0.5.0")
    announce({"torch": "2 'a'"})
    return SimpleNamespace(
        remote_exec=False,
        dag=SimpleNamespace(get_sources=lambda: {"own.py", "weights.pt", "images/a.png"}),
        executor_settings=SimpleNamespace(
            persistent_volumes=[SimpleNamespace(name="images", path=tmp_path / "volume")]
        ),
        remote_execution_settings=SimpleNamespace(container_image="own", precommand=None),
        storage_settings=SimpleNamespace(shared_fs_usage=frozenset()),
    )


def test_jobs_get_what_is_tracked_and_mounted_and_the_versions_of_the_plan(
    workflow: Any, tmp_path: Path
) -> None:
    sources = [
        Source("models.a.weights", "weights.pt"),
        Source("data.b.path", str(tmp_path / "volume"), True),
    ]
    prepare(workflow, [tmp_path / "clone/own.py"], sources)
    expected = json.dumps({"torch": "2 'a'"}).replace("'", "'\"'\"'")
    assert workflow.remote_execution_settings.precommand == f"export SALIENCY_ASSAY_PACKAGES='{expected}'"


def test_all_files_that_jobs_do_not_get_are_named(workflow: Any, tmp_path: Path) -> None:
    with (tmp_path / "clone/weights.pt").open("wb") as file:
        file.truncate(10_000_001)
    code = [tmp_path / "other.py", tmp_path / "clone/new.py"]
    sources = [Source("models.a.weights", "weights.pt"), Source("data.b.path", "images", is_folder=True)]
    with pytest.raises(ValueError, match="jobs do not get") as refused:
        prepare(workflow, code, sources)
    places = [line.partition(":")[0] for line in str(refused.value).splitlines()]
    assert places == ["../other.py", "data.b.path", "models.a.weights", "new.py"]


def test_the_version_of_the_plugin_in_which_a_failed_job_ends_the_run_is_refused(
    workflow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saliency_assay.pipeline.unshared.installed_version", lambda name: "0.5.1")
    with pytest.raises(ValueError, match=r"^snakemake-executor-plugin-kubernetes: found 0\.5\.1"):
        prepare(workflow, [], [])
    del workflow.executor_settings.persistent_volumes  # of another executor
    prepare(workflow, [], [])


def test_the_image_of_snakemake_is_refused(workflow: Any) -> None:
    workflow.remote_execution_settings.container_image = "snakemake/snakemake:v9.27.1"
    with pytest.raises(ValueError, match=r"^container-image: found snakemake/snakemake:v9\.27\.1"):
        prepare(workflow, [], [])


@pytest.mark.parametrize(
    ("usage", "is_job", "expected"), [([], False, True), ([], True, False), (["SOURCES"], False, False)]
)
def test_only_runs_that_send_their_files_are_checked(
    workflow: Any, usage: list[str], is_job: bool, expected: bool
) -> None:
    workflow.remote_exec = is_job
    workflow.storage_settings.shared_fs_usage = [SimpleNamespace(name=name) for name in usage]
    assert is_unshared(workflow) is expected
