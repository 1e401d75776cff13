"""Failures of methods and metrics that jobs record in their outputs, pass on or leave out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from jobs import snakemake_of
from PIL import Image

from saliency_assay.pipeline.paths import Paths
from saliency_assay.runtime import failure
from saliency_assay.runtime.failure import Failure
from saliency_assay.runtime.job import Files, run_job
from saliency_assay.storage import csv_tables, score_tables, zarr_store

WILDCARDS = {"model": "net", "seed": "0", "data": "digits", "method": "gradient", "shard": ""}
FAILURE = Failure(
    "attribute", {"method": "gradient"}, "too -- bright & <b>", "mine.py, line 3", "Traceback …"
)


def record(path: Path) -> Path:
    failure.write([path], FAILURE, {})
    return path


def fail(error: BaseException, *, is_cause: bool) -> None:
    try:
        raise error
    except BaseException as cause:
        if is_cause:
            raise RuntimeError("no map") from cause
        raise


def test_an_exception_of_a_method_is_recorded_in_all_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {"maps": tmp_path / "maps.zarr.zip", "cost": tmp_path / "cost.json"}
    outputs["maps"].write_text("half")
    with run_job(snakemake_of("attribute", tmp_path / "log", {}, (), outputs, **WILDCARDS)):
        raise ValueError("an image is too bright\nand more")
    (recorded,) = {repr(failure.read(path)): failure.read(path) for path in outputs.values()}.values()
    assert recorded is not None
    assert (recorded.rule, recorded.reason) == ("attribute", "an image is too bright")
    assert recorded.wildcards == {key: value for key, value in WILDCARDS.items() if value}
    assert recorded.place.startswith("test_failure.py, line ")
    assert "ValueError: an image is too bright\nand more" in recorded.traceback
    line = "Not computed: attribute net 0 digits gradient: an image is too bright"
    assert capsys.readouterr().err == f"{line}\n"
    assert (tmp_path / "log").read_text().splitlines()[-1] == line


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        OSError(28, "No space left on device"),
        FileNotFoundError("weights.pt"),
        SystemExit(143),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_cause", [False, True], ids=["raised", "cause"])
def test_what_may_be_due_to_the_environment_fails_the_job(
    tmp_path: Path, error: BaseException, is_cause: bool
) -> None:
    output = tmp_path / "maps.zarr.zip"
    job = snakemake_of("attribute", tmp_path / "log", {}, (), [output], **WILDCARDS)
    with pytest.raises((SystemExit, KeyboardInterrupt)), run_job(job):
        fail(error, is_cause=is_cause)
    assert not output.exists()


@pytest.mark.parametrize("settings", [{}, {"environment": {"torch": "0.0"}}], ids=["input", "environment"])
def test_damaged_inputs_and_changed_environments_fail_the_job(tmp_path: Path, settings: Any) -> None:
    output, data = tmp_path / "maps.zarr.zip", tmp_path / "data.zarr.zip"
    data.write_text("damaged")
    job = snakemake_of("attribute", tmp_path / "log", settings, [data], [output], **WILDCARDS)
    with pytest.raises(SystemExit) as stopped, run_job(job):
        zarr_store.open_store(data, kind="data")
    assert stopped.value.code == 1
    assert not output.exists()


def test_jobs_of_other_rules_and_of_several_processes_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "output"
    figure = {"study": "s", "metric": "aopc", "figure": "curves"}
    for rule, wildcards in {"tabulate_bam": {"study": "s"}, "plot_metric": figure}.items():
        job = snakemake_of(rule, tmp_path / "log", {}, (), [output], **wildcards)
        with pytest.raises(SystemExit), run_job(job):
            raise ValueError("no table")
    monkeypatch.setenv("SALIENCY_ASSAY_FAULT", str(tmp_path / "fault"))
    monkeypatch.setenv("RANK", "0")
    job = snakemake_of("finetune", tmp_path / "log", {}, (), [output], metric="rise")
    with pytest.raises(SystemExit), run_job(job):
        raise ValueError("diverged")
    assert not output.exists()


def test_a_job_of_the_method_passes_the_failure_on(tmp_path: Path) -> None:
    outputs = [tmp_path / "scores.parquet", tmp_path / "curves.zarr.zip"]
    files = {"data": tmp_path / "data.zarr.zip", "maps": record(tmp_path / "maps.zarr.zip")}
    job = snakemake_of("score", tmp_path / "log", {}, files, outputs, metric="aopc", method="gradient")
    with pytest.raises(SystemExit) as stopped, run_job(job):
        raise AssertionError
    assert stopped.value.code == 0
    assert [failure.read(path) for path in outputs] == [FAILURE, FAILURE]


def collected(
    tmp_path: Path, files: Mapping[str, Any], failed: str, needs: tuple[str, ...] | None = None
) -> tuple[Files, Any]:
    """Run a job of a table with ``files`` of which one has failed; return its inputs and settings."""
    record(tmp_path / failed)
    settings = {"methods": ["gradient", "random"]}
    job = snakemake_of(
        "plot", tmp_path / "log", settings, files, [tmp_path / "page.html", tmp_path / "a.csv"], study="s"
    )
    with run_job(job, needs=needs) as running:
        assert list(running.failed) == [tmp_path / failed]
        return running.input, running.settings


def test_a_method_is_left_out_of_a_metric_if_one_of_its_files_failed(tmp_path: Path) -> None:
    path = f"{tmp_path}/scores/{{metric}}/net/seed{{seed}}/digits/{{method}}.shard{{shard}}of2.parquet"
    every = [
        Path(path.format(metric=metric, seed=seed, method=method, shard=shard))
        for metric in ("aopc", "mcs")
        for method in ("gradient", "random")
        for seed in (0, 1)
        for shard in (1, 2)
    ]
    left, settings = collected(tmp_path, {"scores": every}, str(every[2].relative_to(tmp_path)))
    assert left.scores == list(left) == [each for each in every if each not in every[:4]]
    assert left.every("scores") == every
    assert settings["methods"] == ["random"]


def test_a_job_without_a_needed_input_passes_the_failure_on(tmp_path: Path) -> None:
    failed = "tables/s/order.csv"
    files = {"order": tmp_path / failed, "pairs": tmp_path / "tables/s/pairs.csv"}
    left, _ = collected(tmp_path, files, failed, needs=("pairs",))
    assert dict(left.items()) == {"pairs": files["pairs"]}
    assert left.get("order") is None
    for needs in (None, ("order",)):
        with pytest.raises(SystemExit) as stopped:
            collected(tmp_path, files, failed, needs)
        assert stopped.value.code == 0
        assert failure.read(tmp_path / "page.html") == failure.read(tmp_path / "a.csv") == FAILURE


@pytest.mark.parametrize("suffix", [".zarr.zip", ".parquet", ".pt", ".json", ".csv", ".svg", ".html", ".png"])
def test_a_failure_is_read_from_files_of_all_kinds(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    assert failure.read(path) is None
    path.write_bytes(b"other")
    assert failure.read(path) is None
    failure.write([path], FAILURE, {"methods": {"gradient": "Gradient"}})
    assert failure.read(path) == FAILURE
    if suffix == ".svg":
        text = "".join(ElementTree.fromstring(path.read_text()).itertext())
        assert text == "Not computed: Gradient: too -- bright & <b>"
    if suffix == ".html":
        assert "<p>Not computed: Gradient: too -- bright &amp; &lt;b&gt;</p>" in path.read_text()
    if suffix == ".png":
        with Image.open(path) as image:
            assert (image.size, image.getpixel((0, 0))) == ((1, 1), 255)


def test_readers_refuse_a_failure_in_one_line(tmp_path: Path) -> None:
    path = record(tmp_path / "result")
    for read in (
        csv_tables.read_table,
        lambda path: zarr_store.open_store(path, kind="maps"),
        lambda path: score_tables.read([path]),
    ):
        with pytest.raises(ValueError, match="result: not computed, because attribute failed: too -- bright"):
            read(path)


def test_results_of_methods_are_known_by_their_paths() -> None:
    wildcards = {
        **{"model": "net", "seed": 0, "data": "digits_os", "study": "s", "metric": "aopc", "method": "grad"},
        **{"protocol": "roar", "fill": "mean", "iteration": 2, "setting": "difull"},
    }
    known = {}
    for name, pattern in vars(Paths("some/results")).items():
        if "{method}" in pattern and name != "arm":
            for shard in ("", ".shard1of2"):
                path = pattern.format(**wildcards, shard=shard)
                path = f"{path}/masks.zarr.zip" if name == "retrained" else path
                known[name] = failure.entry_of(path)
    assert {name: entry[1] for name, entry in known.items() if entry and entry[0] == "grad"} == {
        **{"maps": "", "costs": "", "scores": "aopc", "curves": "aopc", "bam_scores": "bam"},
        **{"series_scores": "series", "delta_scores": "independence", "validity_scores": "aopc"},
        **{"retrained": "", "masks": "", "leakage": "", "retrain_scores": "", "parts_scores": "parts"},
        **{"grid_scores": "difull", "grid_maps": "difull"},
        **{"retrained": "", "masks": "", "leakage": "", "retrain_scores": ""},
    }
    others = ("tables/s/order.csv", "responses/aopc/net/seed0/digits.zarr.zip", "data/maps.zarr.zip")
    assert [failure.entry_of(f"results/{path}") for path in others] == [None] * 3
