"""Sweeps in one call: families of methods and metrics, their tables, figures and files."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay import Benchmark

NOISE = ["smoothgrad_noise_0.05", "smoothgrad_noise_1"]
SMOOTH = {"smoothgrad": {"samples": 2, "sweep": {"noise": [0.05, 1.0]}}}
METHODS: dict[str, Any] = {"gradient": {}, **SMOOTH, "integrated_gradients": {"steps": 3}, "random": {}}
METRICS: dict[str, Any] = {"deletion": {"steps": 4, "sweep": {"fill": ["black", "gray"]}}, "complexity": {}}


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.rand(13, 1, 6, 6, generator=torch.Generator().manual_seed(1))


def run(
    network: nn.Module, images: Tensor, methods: Any = METHODS, metrics: Any = METRICS, **options: Any
) -> Benchmark:
    return saliency_assay.benchmark(network, images, methods, metrics, progress=False, **options)


@pytest.fixture(scope="module")
def result(network: nn.Module, images: Tensor) -> Benchmark:
    return run(network, images)


def test_members_have_the_scores_of_methods_with_their_values(
    result: Benchmark, network: nn.Module, images: Tensor
) -> None:
    single = {
        name: {"method": "smoothgrad", "samples": 2, "noise": value}
        for name, value in zip(NOISE, (0.05, 1.0), strict=True)
    }
    separate = run(network, images, single, ["complexity"])
    swept = result.scores[result.scores["method"].isin(NOISE) & (result.scores["metric"] == "complexity")]
    assert swept["score"].to_numpy() == pytest.approx(separate.scores["score"].to_numpy(), abs=0)
    assert result.labels.method(NOISE[0]) == "SmoothGrad (noise 0.05)"
    assert result.labels.score("deletion", "deletion_fill_gray") == "Deletion (fill gray)"


def test_ranks_refer_to_images_that_did_not_select(result: Benchmark) -> None:
    ranks = result.ranks[result.ranks["metric"] == "complexity"].set_index("method")
    assert list(ranks.index) == ["gradient", "smoothgrad", "integrated_gradients", "random"]
    selecting = np.random.default_rng(0).permutation(13)[:6]
    scores = result.scores[result.scores["metric"] == "complexity"].pivot(
        index="image", columns="method", values="score"
    )
    difference = scores[NOISE[0]] - scores[NOISE[1]]
    best = NOISE[0] if (difference[selecting] < 0).mean() >= 0.5 else NOISE[1]
    assert ranks["selected"].tolist() == ["", best, "", ""]
    assert ranks.loc["smoothgrad", "mean"] == pytest.approx(scores[best].drop(selecting).mean())
    assert set(ranks["all_images"]) == {7}
    assert list(result.table.index) == ["Gradient", "SmoothGrad", "Integrated Gradients", "Random (baseline)"]
    assert any("7 images" in text and "SmoothGrad" in text for text in result.summary)


def test_tables_of_sweeps_have_all_members(result: Benchmark) -> None:
    assert set(result.sweeps["method"]) == set(NOISE)
    assert result.sweeps.groupby(["metric", "variant"])["selected"].sum().eq(1).all()
    (row,) = result.metric_sweeps.to_dict("records")
    assert (row["member"], row["other"], row["methods"]) == ("deletion_fill_black", "deletion_fill_gray", 4)


def test_exports_name_the_selected_values(result: Benchmark, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "result.csv")
    table = pd.read_csv(tmp_path / "result.csv").set_index("method")
    assert set(table.loc["smoothgrad", "selected"]) <= set(NOISE)
    assert set(table["selection_images"]) == {6}
    assert "Parameters of SmoothGrad were selected" in result.to_latex()


def test_figures_show_a_family(result: Benchmark) -> None:
    axes = result.plot.sweep("smoothgrad", metric="complexity")
    assert (axes.get_xlabel(), axes.get_title()) == ("noise", "SmoothGrad under Complexity")
    ranks = result.plot.sweep("deletion")
    assert ranks.get_title() == "Ranks under Deletion"
    assert [tick.get_text() for tick in ranks.get_xticklabels()] == ["black", "gray"]
    plt.close("all")
    with pytest.raises(ValueError, match=r"family.*'gradient'.*smoothgrad"):
        result.plot.sweep("gradient")
    with pytest.raises(ValueError, match=r"metric: found ''.*Complexity|complexity"):
        result.plot.sweep("smoothgrad")


def test_families_are_saved_and_a_further_value_computes_only_its_scores(
    network: nn.Module, images: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(network, images, SMOOTH, ["complexity"], path=tmp_path / "saved")
    assert Benchmark.load(tmp_path / "saved").families == first.families
    computed: list[str] = []
    original = saliency_assay.api.benchmark._Run._maps

    def counted(self: Any, method: Any, *arguments: Any) -> Any:
        computed.append(method.entry.name)
        return original(self, method, *arguments)

    monkeypatch.setattr("saliency_assay.api.benchmark._Run._maps", counted)
    more = {"smoothgrad": {"samples": 2, "sweep": {"noise": [0.05, 0.5, 1.0]}}}
    second = run(network, images, more, ["complexity"], path=tmp_path / "saved")
    assert computed == ["smoothgrad_noise_0.5"]
    assert len(second.families[0].members) == 3


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ({"smoothgrad": {"sweep": {"noise": []}}}, r"methods\.smoothgrad\.sweep\.noise: found 0 values"),
        ({"smoothgrad": {"noise": 1, "sweep": {"noise": [1, 2]}}}, r"sweep\.noise: found a value"),
        ({"smoothgrad": {"sweep": {"nois": [1, 2]}}}, "'nois'.*'noise'"),
        ({"smoothgrad": {"sweep": {"noise": [2, 2.0]}}}, r"sweep\.noise: found \[2, 2\.0\]"),
        ({"a": {"method": "smoothgrad", "sweep": {"noise": [1, 2]}}, "a_noise_1": "gradient"}, "a_noise_1"),
    ],
)  # fmt: skip
def test_faults_are_named(methods: Any, expected: str, network: nn.Module, images: Tensor) -> None:
    with pytest.raises(ValueError, match=expected):
        run(network, images, methods, ["complexity"])


def test_too_few_images_to_divide_are_refused(network: nn.Module, images: Tensor) -> None:
    with pytest.raises(ValueError, match="found 3 images, expected at least 4"):
        run(network, images[:3], SMOOTH, ["complexity"])
