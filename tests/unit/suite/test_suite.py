"""The reference suite: storage of scores, entry of a method, and the files of entry and report."""

import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.suite import VERSION, command, make, scores, tasks
from saliency_assay.suite import enter as entering
from saliency_assay.suite.scores import LoadedTask, TaskScores, score
from saliency_assay.suite.tasks import MissingData, Task, TaskImages

METHODS = {"gradient": {}, "gradient_x_input": {}, "random": {}}
METRICS = {"deletion": {"steps": 4}, "random_logit": {}, "complexity": {}}


def _load_model(data: Path) -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.ReLU(), nn.Linear(8, 3))
    return saliency_assay.wrap(network, classes=3, mean=[0.5] * 3, std=[0.25] * 3)


def _load_images(data: Path) -> TaskImages:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (12, 3, 4, 4), dtype=np.uint8)
    return TaskImages(pixels, None, pixels[:2])


def _missing(data: Path) -> TaskImages:
    raise MissingData("found no images, expected them: get them")


TASK = Task("tiny", "Tiny", "a network", "images", _load_model, _load_images, METHODS, METRICS)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> TaskScores:
    return score(LoadedTask.load(TASK, Path()), METHODS, tmp_path_factory.mktemp("known"), progress=False)


@pytest.fixture
def suite(known: TaskScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A suite of one tiny task, instead of the package's."""
    monkeypatch.setattr(scores, "ASSETS", tmp_path / "assets")
    known.save(tmp_path / "assets" / VERSION)
    monkeypatch.setattr(tasks, "TASKS", (TASK,))
    monkeypatch.setattr(entering, "available", lambda: [TASK])
    monkeypatch.chdir(tmp_path)
    return TASK


def negative_gradient(model, images, targets, *, generator):
    pixels = images.clone().requires_grad_(True)
    total = model(pixels).gather(1, targets[:, None]).sum()
    return -torch.autograd.grad(total, pixels)[0]


def noise(model, images, targets, *, generator):
    return torch.randn(images.shape, generator=generator)


def broken(model, images, targets, *, generator):
    raise RuntimeError("no luck")


def test_random_methods_have_three_seeds_and_others_one(known: TaskScores) -> None:
    seeds = known.table.groupby("method")["seed"].nunique()
    assert seeds.to_dict() == {"gradient": 1, "gradient_x_input": 1, "random": 3}


def test_scores_are_those_of_benchmark(known: TaskScores) -> None:
    images = _load_images(Path())
    model = _load_model(Path())
    with torch.no_grad():
        targets = model(torch.from_numpy(images.pixels).float() / 255).argmax(1)
    result = saliency_assay.benchmark(
        model,
        (torch.from_numpy(images.pixels), targets),
        METHODS,
        METRICS,
        seeds=[0, 1, 2],
        progress=False,
        model_name="tiny",
        data_name="suite",
    )
    keys = ["method", "metric", "variant", "seed", "image"]
    both = known.table.merge(result.scores, on=keys, suffixes=("_known", "_again"))
    assert len(both) == len(known.table)
    assert np.array_equal(both["score_known"], both["score_again"].astype(np.float32), equal_nan=True)


def test_a_saved_table_is_read_unchanged(known: TaskScores, tmp_path: Path) -> None:
    known.save(tmp_path)
    again = TaskScores.load(tmp_path, "tiny")
    columns = ["method", "metric", "variant"]
    pd.testing.assert_frame_equal(
        again.table.astype(dict.fromkeys(columns, str)),
        known.table.astype(dict.fromkeys(columns, str)),
        check_dtype=False,
    )
    assert replace(again, table=None) == replace(known, table=None)


def test_a_benchmark_has_the_means_of_all_seeds(known: TaskScores) -> None:
    table = known.benchmark().scores
    of_random = known.table[(known.table["method"] == "random") & (known.table["metric"] == "deletion")]
    expected = of_random.groupby("image")["score"].mean().to_numpy()
    means = table[(table["method"] == "random") & (table["metric"] == "deletion")]["score"].to_numpy()
    assert means == pytest.approx(expected, abs=1e-6)


def test_an_equal_method_is_not_distinguishable(suite: Task, tmp_path: Path) -> None:
    ((standing,), left_out) = entering.enter("gradient", "twin", output=tmp_path / "out", progress=False)
    assert not left_out
    for row in standing.places:
        assert "gradient" in row.same_as
        assert not row.better_than or "gradient" not in row.better_than
    pairs = standing.joined.pairs
    twins = pairs[(pairs["method"] == "gradient") & (pairs["other"] == "twin")]
    assert (twins["wins"] == 0.5).all()


def test_every_other_method_is_in_one_group_of_the_standing(suite: Task, tmp_path: Path) -> None:
    ((standing,), _) = entering.enter(negative_gradient, "mine", output=tmp_path / "out", progress=False)
    for row in standing.places:
        assert sorted([*row.better_than, *row.same_as, *row.worse_than]) == sorted(METHODS)
    logit = next(each for each in standing.places if each.metric == "random_logit")
    assert "random" not in logit.worse_than


def test_seeds_of_a_function_follow_from_its_maps(suite: Task, tmp_path: Path) -> None:
    for function, count in ((negative_gradient, 1), (noise, 3)):
        ((standing,), _) = entering.enter(
            function, "mine", output=tmp_path / function.__name__, progress=False
        )
        assert standing.scores.table["seed"].nunique() == count


def test_stored_maps_have_the_scores_of_their_method(suite: Task, known: TaskScores, tmp_path: Path) -> None:
    images, model = _load_images(Path()), _load_model(Path())
    maps = saliency_assay.attribute("gradient", model, images.pixels, np.array(known.targets))
    np.save(tmp_path / "tiny.npy", maps)
    ((standing,), _) = entering.enter(
        "", "stored", maps=str(tmp_path / "{task}.npy"), output=tmp_path / "out", progress=False
    )
    assert "random_logit" not in set(standing.scores.table["metric"])  # it computes further maps
    for metric in ("deletion", "complexity"):
        of_metric = known.table[known.table["metric"] == metric]
        expected = of_metric[of_metric["method"] == "gradient"]["score"].to_numpy()
        assert standing.scores.table[standing.scores.table["metric"] == metric][
            "score"
        ].to_numpy() == pytest.approx(expected, abs=1e-6)


def test_maps_that_do_not_fit_are_refused(suite: Task, tmp_path: Path) -> None:
    np.save(tmp_path / "tiny.npy", np.zeros((11, 4, 4)))
    with pytest.raises(ValueError, match=r"tiny\.npy.*11"):
        entering.enter(
            "", "stored", maps=str(tmp_path / "{task}.npy"), output=tmp_path / "out", progress=False
        )


def test_a_method_that_fails_is_named(suite: Task, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no luck"):
        entering.enter(broken, "mine", output=tmp_path / "out", progress=False)


def test_maps_with_nan_are_refused_by_image(suite: Task, tmp_path: Path) -> None:
    maps = np.zeros((12, 4, 4))
    maps[7, 1, 1] = np.nan
    np.save(tmp_path / "tiny.npy", maps)
    with pytest.raises(ValueError, match="image 7"):
        entering.enter(
            "", "stored", maps=str(tmp_path / "{task}.npy"), output=tmp_path / "out", progress=False
        )


def test_a_taken_name_is_refused(suite: Task, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name: found 'gradient'"):
        entering.enter(noise, "gradient", output=tmp_path / "out", progress=False)


def test_scores_of_other_images_are_not_joined(known: TaskScores) -> None:
    with pytest.raises(ValueError, match="another images"):
        known.joined(replace(known, images="other"))


def test_tasks_without_data_are_left_out_unless_requested(
    suite: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: TaskScores
) -> None:
    absent = replace(TASK, name="absent", load_images=_missing)
    replace(known, task="absent").save(tmp_path / "assets" / VERSION)
    monkeypatch.setattr(entering, "available", lambda: [TASK, absent])
    standings, left_out = entering.enter(noise, "mine", output=tmp_path / "out", progress=False)
    assert [each.task.name for each in standings] == ["tiny"]
    assert "get them" in left_out["absent"]
    with pytest.raises(MissingData, match="absent: found no images"):
        entering.enter(noise, "mine", tasks=[absent], output=tmp_path / "out", progress=False)


def test_results_of_another_entry_in_the_folder_are_not_taken(suite: Task, tmp_path: Path) -> None:
    entering.enter(negative_gradient, "first", output=tmp_path / "out", progress=False)
    ((standing,), _) = entering.enter(negative_gradient, "second", output=tmp_path / "out", progress=False)
    assert set(standing.scores.table["method"]) == {"second"}
    assert [each.name for each in standing.scores.methods] == ["second"]


def test_an_alias_is_the_registered_method(suite: Task, tmp_path: Path) -> None:
    ((standing,), _) = entering.enter(
        "sg", "mine", settings={"samples": 2}, output=tmp_path / "out", progress=False
    )
    assert standing.scores.table["seed"].nunique() == 3


def test_changed_code_has_another_digest(
    suite: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    digests = []
    for number, factor in enumerate((1, 2)):
        (tmp_path / f"version{number}.py").write_text(
            f"def scaled(model, images, targets, *, generator):\n    return images * {factor}\n"
        )
        ((standing,), _) = entering.enter(
            f"version{number}:scaled", "mine", output=tmp_path / str(number), progress=False
        )
        digests.append(standing.scores.code["mine"])
    assert digests[0] != digests[1]


def test_a_task_that_fails_leaves_the_others(
    suite: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: TaskScores
) -> None:
    changed = replace(TASK, name="changed")
    replace(known, task="changed", model="0" * 64).save(tmp_path / "assets" / VERSION)
    monkeypatch.setattr(entering, "available", lambda: [changed, TASK])
    standings, left_out = entering.enter(noise, "mine", output=tmp_path / "out", progress=False)
    assert [each.task.name for each in standings] == ["tiny"]
    assert "model: found" in left_out["changed"]
    with pytest.raises(ValueError, match=r"maps: found 'maps\.npy' for 2 tasks"):
        entering.enter("", "stored", maps="maps.npy", output=tmp_path / "out", progress=False)


@pytest.mark.parametrize("key", ["sweep", "label", "method"])
def test_settings_are_parameters(suite: Task, tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match=f"settings: found {key}"):
        entering.enter("smoothgrad", "mine", settings={key: 1}, output=tmp_path / "out", progress=False)


def test_an_interrupted_entry_writes_nothing_and_continues(
    suite: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_interrupted.py").write_text(
        "CALLS = []\n"
        "def stopping(model, images, targets, *, generator):\n"
        "    CALLS.append(len(images))\n"
        "    if len(CALLS) == 3:\n"
        "        raise KeyboardInterrupt\n"
        "    return images * 0.5\n"
    )
    arguments = ["enter", "my_interrupted.py:stopping", "--name", "mine"]
    assert command.main(arguments) == 130
    assert not (tmp_path / "entries/mine/entry.zip").exists()
    assert command.main(arguments) == 0
    sys.modules.pop("my_interrupted", None)
    assert (tmp_path / "entries/mine/entry.zip").is_file()


def test_a_taken_label_is_refused(suite: Task, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="label: found 'Gradient'"):
        entering.enter(noise, "mine", label="Gradient", output=tmp_path / "out", progress=False)


def test_the_command_writes_report_and_entry(
    suite: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_entry_method.py").write_text(
        "def half(model, images, targets, *, generator, scale=0.5, shift=0):\n    return images * scale + shift\n"
    )
    assert command.main(["enter", "my_entry_method.py:half", "--set", "scale=2", "--set", "shift=1"]) == 0
    sys.modules.pop("my_entry_method", None)
    folder = tmp_path / "entries/half"
    with zipfile.ZipFile(folder / "entry.zip") as archive:
        assert sorted(archive.namelist()) == ["entry.json", "tiny.json", "tiny.parquet"]
        facts = json.loads(archive.read("entry.json"))
        settings = json.loads(archive.read("tiny.json"))["settings"]
    assert (facts["name"], facts["suite"], facts["tasks"]) == ("half", VERSION, ["tiny"])
    assert settings["half"] == {"scale": 2, "shift": 1}
    assert "half in the reference suite" in (folder / "report.html").read_text(encoding="utf-8")
    assert "rank set" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a method or --maps"),
        (["no_such.py:f"], "no_such.py: no such file"),
        (["gradient", "--task", "tinny"], "task: found 'tinny'"),
        (["gradient", "--task", "tinny", "--task", "tiny"], "task: found 'tinny'"),
        (["gradient", "--name", "a/b"], "--name: found 'a/b'"),
        (["gradient", "--name", "mine", "--set", "a"], "--set: found 'a'"),
        (["gradeint", "--name", "mine"], "gradeint"),
    ],
)
def test_a_mistake_is_one_line(
    suite: Task, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert command.main(["enter", *arguments]) == 1
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1
    assert message in printed[0]


def test_differences_name_what_changed(known: TaskScores) -> None:
    assert make.differences(known, known) == []
    changed = known.table.copy()
    changed.loc[changed["method"] == "gradient", "score"] += 1
    again = replace(known, table=changed, versions={**known.versions, "torch": "9.9"})
    lines = make.differences(known, again)
    assert {line.partition(":")[0] for line in lines if "differ" in line} == {
        f"gradient, {metric}" for metric in METRICS
    }
    assert any("9.9" in line for line in lines)
