"""Comparisons of saved benchmarks: equal inputs, causes, failures, and damaged files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.cli import main
from saliency_assay.runs import results_folder
from saliency_assay.runs.compare import RunComparison, compare
from saliency_assay.runs.score_changes import _paired
from saliency_assay.runtime.shards import BLOCK

IMAGES = torch.rand(12, 1, 4, 4, generator=torch.Generator().manual_seed(1))
METHODS: dict[str, Any] = {"gradient": "gradient", "smooth": {"method": "smoothgrad", "samples": 2}}


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    def of(methods: Any = METHODS, images: Tensor = IMAGES, seed: int = 0, **options: Any) -> RunComparison:
        """Compare a benchmark of other arguments with that of the defaults."""
        common = {"metrics": ["complexity"], "progress": False}
        first = {**common, "path": tmp_path / "old", "targets": 0}
        saliency_assay.benchmark(network(), IMAGES, METHODS, **first)
        second = {**first, "path": tmp_path / "new", **options}
        saliency_assay.benchmark(network(seed), images, methods, **second)
        return compare(tmp_path / "old", tmp_path / "new")

    return of


def test_equal_benchmarks_are_equal_with_other_imports(
    compared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared().causes == {}
    versions = results_folder.score_tables.libraries_in

    def more_in_new(path: Path) -> dict[str, str]:
        return versions(path) | ({"imported-by-chance": "1.0"} if path.parent.name == "new" else {})

    monkeypatch.setattr(results_folder.score_tables, "libraries_in", more_in_new)
    assert compared().causes == {}


def test_the_number_of_kept_images_is_no_difference_of_scores(compared: Any) -> None:
    result = compared(keep=4)
    assert result.is_equal
    assert result.scores.images == {}


CHANGES: dict[str, dict[str, Any]] = {
    "weights": {"seed": 1},
    "targets": {"targets": 1},
    "without kept images": {"targets": 1, "keep": 0},
    "images that are not kept": {"images": torch.cat([IMAGES[:8], 1 - IMAGES[8:]])},
}


@pytest.mark.parametrize("case", CHANGES)
def test_other_inputs_are_a_cause_and_their_scores_are_compared(case: str, compared: Any) -> None:
    result = compared(**CHANGES[case])
    [line] = result.causes["Data"]
    assert "images, targets or weights in 1 of 1 blocks" in line
    assert set(result.scores.rows["images"]) == {12}
    assert "Code" not in result.causes


def test_other_kept_images_are_paired_by_their_pixels(compared: Any) -> None:
    result = compared(images=IMAGES.roll(1, 0))
    assert "7 of 12 images" in result.causes["Data"][1]
    # Images 0 to 6 of the old run are images 1 to 7 of the new one, whose gradients are equal.
    assert set(result.scores.rows["method"]) <= {"smooth"}
    assert result.scores.images == {"data": (5, 5)}


def test_blocks_with_equal_inputs_are_paired(tmp_path: Path) -> None:
    images = torch.rand(2 * BLOCK, 1, 4, 4)
    other = torch.cat([images[:BLOCK], 1 - images[BLOCK:]])
    for name, data in (("old", images), ("new", other)):
        saliency_assay.benchmark(
            network(), data, ["gradient"], ["complexity"], path=tmp_path / name, progress=False
        )
    result = compare(tmp_path / "old", tmp_path / "new")
    assert "in 1 of 2 blocks" in result.causes["Data"][0]


def test_other_settings_are_a_cause(compared: Any) -> None:
    result = compared({**METHODS, "smooth": {"method": "smoothgrad", "samples": 3}})
    assert result.causes == {"Code": ["settings or code of method smooth"]}
    assert set(result.scores.rows["method"]) == {"smooth"}


@pytest.mark.filterwarnings("ignore:smooth")
def test_failures_are_named(compared: Any) -> None:
    def smooth(model: Any, images: Tensor, targets: Tensor) -> Tensor:
        raise RuntimeError("no such layer")

    result = compared({**METHODS, "smooth": smooth})
    assert any(
        "failed only in the new run: smooth: RuntimeError: no such layer" in each for each in result.one_sided
    )


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": [{"x": 1}]},
        {"cells": [[1]]},
        {"inputs": []},
        {"failures": [3]},
        {"images": 5},
    ],
)
def test_a_damaged_file_is_named(
    change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    saliency_assay.benchmark(network(), IMAGES, ["gradient"], ["complexity"], path=folder, progress=False)
    file = folder / "benchmark.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert main(["compare", str(folder), str(folder)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert str(file) in line


@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
def test_groups_are_those_of_either_run(sides: tuple[bool, bool]) -> None:
    names = dict.fromkeys(("study", "data", "model", "method", "metric", "variant"), "a")
    table = pd.DataFrame({**names, "seed": 0, "image": np.arange(4), "score": 0.5})
    groups = np.array(["x", "x", "y", "y"])
    tables = [table.assign(group=groups) if has else table for has in sides]
    [(_, rows)] = _paired(*tables, {})
    assert rows["group"].tolist() == groups.tolist()
