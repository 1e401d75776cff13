"""Comparison of benchmarks in a notebook."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay import AcrossTasks, Benchmark
from saliency_assay.reliability.across import ALL, Orders, across_tasks

METHODS = ["gradient", "gradient_x_input", "smoothgrad", "random"]


def run(seed: int, name: str, metrics: list[str]) -> Benchmark:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    images = torch.rand(8, 1, 6, 6)
    data = (images, torch.arange(8) % 3)
    result = saliency_assay.benchmark(network, data, METHODS, metrics, progress=False)
    result.model = name
    return result


@pytest.fixture(scope="module")
def benchmarks() -> list[Benchmark]:
    return [
        run(0, "first", ["deletion", "insertion"]),
        run(1, "second", ["deletion"]),
        run(2, "third", ["deletion"]),
    ]


@pytest.fixture(scope="module")
def result(benchmarks: list[Benchmark]) -> AcrossTasks:
    return saliency_assay.across(benchmarks)


def test_tables_are_those_of_the_ranks_and_pairs(result: AcrossTasks, benchmarks: list[Benchmark]) -> None:
    names = [f"{each.model} on {each.data}" for each in benchmarks]
    orders = {name: Orders(each.ranks, each.pairs) for name, each in zip(names, benchmarks, strict=True)}
    expected = across_tasks(orders)
    pd.testing.assert_frame_equal(result.agreement, expected.agreement)
    pd.testing.assert_frame_equal(result.pairs, expected.pairs)
    assert result.tasks == names
    assert result.agreement["task"].tolist().count(ALL) == 1
    assert set(result.agreement["metric"]) == {"deletion"}
    assert set(result.pairs["baselines"]) == {"", "random"}


def test_notebooks_display_labels_and_a_figure(result: AcrossTasks) -> None:
    text = result._repr_html_()
    assert "Deletion" in text
    assert "<style" not in text
    assert "first" in repr(result)
    assert str(result).splitlines() == result.summary
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Deletion"]
    assert len(axes.get_xticklabels()) == 4
    plt.close(axes.figure)


def test_saved_benchmarks_and_names(benchmarks: list[Benchmark], result: AcrossTasks, tmp_path: Path) -> None:
    benchmarks[1].save(tmp_path / "saved")
    named = saliency_assay.across({"a": benchmarks[0], "b": tmp_path / "saved"})
    assert named.tasks == ["a", "b"]
    assert named.agreement["correlation"][0] == result.agreement["correlation"][0]


def test_mistakes_are_refused(benchmarks: list[Benchmark]) -> None:
    with pytest.raises(ValueError, match="found 1"):
        saliency_assay.across(benchmarks[:1])
    with pytest.raises(ValueError, match="2 times"):
        saliency_assay.across([benchmarks[0], benchmarks[0]])
    with pytest.raises(ValueError, match="found Benchmark"):
        saliency_assay.across(benchmarks[0])  # type: ignore[arg-type]
