"""Snapshots of results folders, and results of several studies in one folder."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import yaml
from run_folders import CONFIGURATION, IMAGES, random_scores, write_run

from saliency_assay.cli import main
from saliency_assay.runs.compare import compare
from saliency_assay.runs.keep import keep
from saliency_assay.storage import score_tables

SCORE = "scores/infidelity/net/seed0/set/gradient.parquet"
MAPS = {"gradient": np.ones((IMAGES, 1, 4, 4))}


def files_in(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def finished(folder: Path) -> Path:
    """A results folder with files of each kind."""
    write_run(folder, random_scores(), maps=MAPS)
    for name in (
        "logs/score.log",
        "models/net/seed0/weights.pt",
        "models/net/seed0/evaluation.json",
        ".lock~",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def test_kept_results_survive_changes_of_the_original(tmp_path: Path) -> None:
    results = finished(tmp_path / "results")
    keep(results, "before")
    kept = tmp_path / "results_kept/before"
    before = files_in(kept)
    assert (kept / SCORE).samefile(results / SCORE)
    assert not (kept / "logs/score.log").samefile(results / "logs/score.log")
    assert "models/net/seed0/weights.pt" not in before
    assert before["models/net/seed0/evaluation.json"] == b"{}"
    assert compare(kept, results).is_equal
    table = score_tables.read([results / SCORE])
    (results / SCORE).unlink()  # as Snakemake does before a job
    score_tables.write(results / SCORE, table.assign(score=table["score"] + 1))
    with (results / "logs/score.log").open("w") as log:
        log.write("again")
    assert files_in(kept) == before
    rows = compare(kept, results).scores.rows
    assert rows[["method", "metric"]].to_numpy().tolist() == [["gradient", "infidelity"]]


def test_all_files_are_kept_on_request(tmp_path: Path) -> None:
    results = finished(tmp_path / "results")
    assert main(["keep", "all", "--results", str(results), "--all"]) == 0
    assert (tmp_path / "results_kept/all/models/net/seed0/weights.pt").is_file()


def test_the_configuration_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "elsewhere")
    Path("study.yaml").write_text("results: elsewhere\n")
    assert main(["keep", "one", "study.yaml"]) == 0
    assert (tmp_path / "elsewhere_kept/one" / SCORE).is_file()


def test_a_kept_folder_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = finished(tmp_path / "results")
    assert main(["keep", "before", "--results", str(results)]) == 0
    capsys.readouterr()
    before = files_in(tmp_path / "results_kept")
    for name in ("before", "../results", "", ".hidden", "a/b"):
        assert main(["keep", name, "--results", str(results)]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("NAME: ")
    assert files_in(tmp_path / "results_kept") == before
    assert main(["keep", "one", "--results", str(tmp_path / "absent")]) == 1
    assert not (tmp_path / "absent").exists()


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError("no hard links")

    results = finished(tmp_path / "results")
    monkeypatch.setattr("saliency_assay.runs.links.os.link", refuse)
    keep(results, "before")
    kept = tmp_path / "results_kept/before"
    assert not (kept / SCORE).samefile(results / SCORE)
    assert compare(kept, results).is_equal


def study_of(name: str, **entries: object) -> dict[str, object]:
    configuration = deepcopy(CONFIGURATION)
    configuration["studies"] = {name: {"kind": "fidelity", "model": "net"}}
    return {**configuration, **entries}


def test_studies_are_joined(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_run(
        one, {"infidelity": random_scores()["infidelity"]}, maps=MAPS, study="a", configuration=study_of("a")
    )
    configuration = study_of("b", device="cpu", methods={"gradient": {}, "random": {}})
    write_run(
        other,
        {"faithfulness": random_scores()["faithfulness"]},
        maps=MAPS,
        study="b",
        configuration=configuration,
    )
    for folder in (one, other):
        (folder / "report.html").write_text(str(folder))
    merged = tmp_path / "merged"
    assert main(["merge", str(one), str(other), "--output", str(merged)]) == 0
    expected = {name for name in {**files_in(one), **files_in(other)} if name != "report.html"}
    assert set(files_in(merged)) == {*expected, ".state/code.json", ".state/digests.json"}
    joint = yaml.safe_load((merged / "configuration.yaml").read_text())
    assert joint["results"] == str(merged)
    assert joint["methods"] == {"gradient": {}, "gradcam": {"relu": True}, "random": {}}
    assert {name: study["methods"] for name, study in joint["studies"].items()} == {
        "a": ["gradient", "gradcam"],
        "b": ["gradient", "random"],
    }
    compared = compare(one, merged)
    assert (len(compared.scores.rows), compared.scores.equal, compared.scores.only_old) == (0, 2, [])
    assert len(compared.scores.only_new) == 2
    times = {(merged / name).stat().st_mtime for name in expected if name != "configuration.yaml"}
    assert len(times) == 1


def test_conflicts_are_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = random_scores()
    one = write_run(tmp_path / "one", scores, maps=MAPS)
    scores["infidelity"]["gradient"][0] += 1
    configuration = deepcopy(CONFIGURATION) | {"seeds": [1]}
    configuration["methods"]["gradcam"] = {"relu": False}
    other = write_run(tmp_path / "other", scores, maps=MAPS, configuration=configuration)
    before = files_in(tmp_path)
    assert main(["merge", str(one), str(other), "--output", str(tmp_path / "merged")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    for conflict in (SCORE, "seeds", "methods.gradcam"):
        assert conflict in line
    assert "gradient.zarr.zip" not in line
    assert files_in(tmp_path) == before


def test_at_most_ten_conflicts_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = tuple(f"method{number}" for number in range(20))
    one = write_run(tmp_path / "one", random_scores(0, methods))
    other = write_run(tmp_path / "other", random_scores(1, methods))
    assert main(["merge", str(one), str(other), "--output", str(tmp_path / "merged")]) == 1
    error = capsys.readouterr().err
    assert error.count(".parquet") + error.count(".csv") == 10
    assert "31 more" in error


@pytest.mark.parametrize("mistake", ["one", "output", "absent", "unfinished"])
def test_folders_that_cannot_be_merged(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, output = write_run(tmp_path / "one", random_scores()), tmp_path / "other", tmp_path / "merged"
    if mistake != "absent":
        write_run(other, random_scores())
    if mistake == "output":
        output.mkdir()
    if mistake == "unfinished":
        (other / "configuration.yaml").unlink()
    folders = [str(one), *([str(other)] if mistake != "one" else [])]
    assert main(["merge", *folders, "--output", str(output)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert {"one": "FOLDER", "output": str(output), "absent": str(other), "unfinished": str(other)}[
        mistake
    ] in line
    assert not any(output.glob("*"))


def test_results_in_use_are_not_kept(tmp_path: Path) -> None:
    results = finished(tmp_path / "results")
    code = "import sys; from pathlib import Path; from saliency_assay.runtime.lock import hold; hold(Path(sys.argv[1]))"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print(flush=True); input()", str(results)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        with pytest.raises(ValueError, match="another run"):
            keep(results, "before")
    finally:
        process.communicate("\n")
    keep(results, "before")
