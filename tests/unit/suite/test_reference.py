"""The reference scores in the package, and the accepted entries."""

import io
import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saliency_assay.api.identity import model_digest
from saliency_assay.api.results import Failure
from saliency_assay.runtime.project import ROOT
from saliency_assay.suite import leaderboard, make
from saliency_assay.suite.entries import ENTRY, entries, problems, read_entry, written
from saliency_assay.suite.scores import LoadedTask, TaskScores, reference, score
from saliency_assay.suite.tasks import ASSETS, available, task_of

NAMES = [task.name for task in available()]
WITHOUT_DATA = [task.name for task in available() if not task.needs_data]
FOLDER = ROOT / "suite/entries"


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_complete(name: str) -> None:
    scores, task = reference(name), task_of(name)
    failed = {each.method for each in scores.failures if not each.metric}
    assert [each.name for each in scores.methods] == [*task.methods]
    assert [each.name for each in scores.metrics] == [*task.metrics]
    assert set(scores.table["method"].astype(str)) == set(task.methods) - failed
    counts = scores.table.groupby(["method", "metric", "variant", "seed"], observed=True)["image"].nunique()
    assert (counts == len(scores.targets)).all()
    limits = {score: ends for each in scores.metrics for score, ends in each.ranges.items()}
    for metric, rows in scores.table.groupby("metric", observed=True):
        low, high = limits[str(metric)]
        values = rows["score"].dropna().to_numpy(np.float64)
        assert ((values >= low - 1e-6) & (values <= high + 1e-6)).all()
    known = {(row["metric"], row["variant"]) for row in scores.known_order}
    assert known == set(
        zip(scores.table["metric"].astype(str), scores.table["variant"].astype(str), strict=True)
    )


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_images_and_networks_in_the_package_are_those_of_the_scores(name: str) -> None:
    loaded, scores = LoadedTask.load(task_of(name), Path()), reference(name)
    assert loaded.images.digest() == scores.images
    assert model_digest(loaded.model, with_code=False) == scores.model
    assert loaded.targets.tolist() == scores.targets


def test_the_package_stays_small() -> None:
    sizes = [file.stat().st_size for file in ASSETS.rglob("*") if file.is_file()]
    assert sum(sizes) < 5e6


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_single_methods_have_the_scores_of_the_reference(name: str, tmp_path: Path) -> None:
    loaded = LoadedTask.load(task_of(name), Path())
    metrics = {each: loaded.task.metrics[each] for each in ("complexity", "average_drop", "random_logit")}
    again = score(loaded, {"gradient": {}, "random": {}}, tmp_path, metrics=metrics, progress=False)
    before = reference(name)
    of_metrics = before.table[before.table["variant"].astype(str).str.partition(" ")[0].isin(metrics)]
    lines = make.differences(replace(before, table=of_metrics), again)
    assert [line for line in lines if "differ" in line or "only in one" in line] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_DATA[:1])
def test_a_tenth_of_the_methods_has_the_scores_of_the_reference(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = make.check([task_of(name)], Path(), tmp_path)
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("file", entries(FOLDER), ids=lambda file: file.name)
def test_accepted_entries_are_valid(file: Path) -> None:
    assert problems(file) == []


@pytest.mark.parametrize(
    "file",
    [each for each in entries(FOLDER) if each.with_suffix(".py").is_file()],
    ids=lambda file: file.name,
)
def test_the_code_of_an_entry_has_its_scores(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(file.parent))
    facts, of_tasks = read_entry(file)
    module, _, function = facts["method"].rpartition(":")
    monkeypatch.delitem(sys.modules, module, raising=False)
    for entered in of_tasks:
        task = task_of(entered.task)
        if task.needs_data:
            continue
        metrics = {name: task.metrics[name] for name in ("complexity", "average_drop")}
        entry = {"method": f"{file.stem}:{function}", **entered.settings[facts["name"]]}
        again = score(
            LoadedTask.load(task, Path()),
            {facts["name"]: entry},
            tmp_path / task.name,
            metrics=metrics,
            progress=False,
        )
        of_metrics = entered.table[entered.table["metric"].isin(set(again.table["metric"]))]
        lines = make.differences(replace(entered, table=of_metrics), again)
        assert [line for line in lines if "differ" in line or "only in one" in line] == []


@pytest.fixture
def entry() -> TaskScores:
    """Return an entry with the scores of a method of the reference under another name."""
    scores = reference("objects")
    of_method = scores.table[scores.table["method"].astype(str) == "gradcam"]
    method = next(each for each in scores.methods if each.name == "gradcam")
    return replace(
        scores,
        methods=[replace(method, name="mine", label="Mine")],
        table=of_method.assign(method="mine"),
        settings={"mine": {}},
        failures=[],
        known_order=[],
    )


def _file(folder: Path, scores: TaskScores, name: str = "mine") -> Path:
    path = folder / "entry.zip"
    path.write_bytes(
        written({"suite": scores.suite, "name": name, "label": "Mine", "method": "a:b"}, [scores])
    )
    return path


def test_a_valid_entry_has_no_problems(entry: TaskScores, tmp_path: Path) -> None:
    assert problems(_file(tmp_path, entry)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": "0" * 64}, "images: differs"),
        ({"model": "0" * 64}, "model: differs"),
        ({"targets": [0]}, "targets: differs"),
        ({"suite": "2020.1"}, "found suite 2020.1"),
    ],
)
def test_entries_of_other_inputs_are_refused(
    entry: TaskScores, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    assert any(message in line for line in problems(_file(tmp_path, replace(entry, **change))))


def test_scores_outside_of_their_range_are_refused(entry: TaskScores, tmp_path: Path) -> None:
    table = entry.table.copy()
    first = table.index[table["metric"].astype(str) == "pointing_game"][0]
    table.loc[first, "score"] = 2
    assert any(
        "pointing_game: found 2" in line for line in problems(_file(tmp_path, replace(entry, table=table)))
    )


def test_missing_and_repeated_images_are_refused(entry: TaskScores, tmp_path: Path) -> None:
    lines = problems(_file(tmp_path, replace(entry, table=entry.table.iloc[1:])))
    assert any("99 images" in line for line in lines)
    twice = replace(entry, table=entry.table.iloc[[0, *range(len(entry.table))]])
    assert any("two of an image" in line for line in problems(_file(tmp_path, twice)))


def test_the_name_of_a_reference_method_is_refused(entry: TaskScores, tmp_path: Path) -> None:
    taken = replace(
        entry,
        methods=[replace(entry.methods[0], name="gradient")],
        table=entry.table.assign(method="gradient"),
    )
    assert any("which the reference has" in line for line in problems(_file(tmp_path, taken, "gradient")))


@pytest.mark.parametrize(
    "change",
    [
        {"failures": [Failure("gradient", "", "error")]},
        {"failures": [Failure("mine", "no_metric", "error")]},
        {"settings": {"mine": {}, "smoothgrad": {"samples": 1}}},
    ],
)
def test_an_entry_cannot_change_the_reference(
    entry: TaskScores, tmp_path: Path, change: dict[str, object]
) -> None:
    assert len(problems(_file(tmp_path, replace(entry, **change)))) == 1


@pytest.mark.parametrize("change", [{"is_baseline": True}, {"label": "Gradient"}])
def test_an_entry_is_a_method_with_a_label_of_its_own(
    entry: TaskScores, tmp_path: Path, change: dict[str, object]
) -> None:
    changed = replace(entry, methods=[replace(entry.methods[0], **change)])
    assert len(problems(_file(tmp_path, changed))) == 1


@pytest.mark.parametrize("seed", [77, -1])
def test_other_seeds_are_refused(entry: TaskScores, tmp_path: Path, seed: int) -> None:
    assert any(
        "seeds" in line
        for line in problems(_file(tmp_path, replace(entry, table=entry.table.assign(seed=seed))))
    )


@pytest.mark.parametrize("name", ["../outside.json", "objects.json.exe"])
def test_files_of_other_names_are_refused(tmp_path: Path, name: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(ENTRY, json.dumps({"suite": "2026.12", "tasks": []}))
        archive.writestr(name, "x")
    path = tmp_path / "entry.zip"
    path.write_bytes(content.getvalue())
    assert len(problems(path)) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"text"])
def test_files_that_are_no_entries_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "entry.zip"
    path.write_bytes(content)
    assert len(problems(path)) == 1


def test_the_leaderboard_contains_entries(
    entry: TaskScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "available", lambda: [task_of("objects")])
    folder = tmp_path / "entries"
    folder.mkdir()
    _file(folder, entry)
    leaderboard.write_page(tmp_path / "leaderboard.html", folder)
    page = (tmp_path / "leaderboard.html").read_text(encoding="utf-8")
    assert "Entries: Mine" in page
    assert 'data-value="Mine"' in page
