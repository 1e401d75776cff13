"""Results of earlier calls in the folder of a benchmark: sweeps, names of scores, labels, seeds and torn files."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay import Benchmark
from saliency_assay.plotting.palette import VERMILION

SWEPT = {"method": "smoothgrad", "sweep": {"samples": [2, 3]}}
OTHERS = {"gradient": "gradient", "random": "random"}


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.rand(12, 1, 4, 4, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def run(network: nn.Module, images: Tensor, tmp_path: Path) -> Any:
    def benchmark(methods: Any, metrics: Any = ("deletion",), **options: Any) -> Benchmark:
        options = {"path": tmp_path / "saved", "progress": False, **options}
        chosen = metrics if isinstance(metrics, dict) else list(metrics)
        return saliency_assay.benchmark(network, images, methods, chosen, **options)

    return benchmark


def weights(model: Any, images: Tensor, targets: Tensor, maps: Tensor) -> Tensor:
    return maps.flatten(1).abs().sum(1).double()


def names(result: Benchmark) -> set[str]:
    return {each.name for each in result.methods}


MEMBERS = {"smoothgrad_samples_2", "smoothgrad_samples_3"}


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({"smoothgrad": "smoothgrad"}, {"smoothgrad": SWEPT}, MEMBERS),
        ({"smoothgrad": SWEPT}, {"smoothgrad": "smoothgrad"}, {"smoothgrad"}),
        ({"smoothgrad": {**SWEPT, "method": "vargrad"}}, {"smoothgrad": SWEPT}, MEMBERS),
        ({"smoothgrad": {**SWEPT, "noise": 0.5}}, {"smoothgrad": SWEPT}, MEMBERS),
        ({"smoothgrad": {**SWEPT, "sweep": {"noise": [0.1, 0.2]}}}, {"smoothgrad": SWEPT}, MEMBERS),
    ],
)
def test_entries_of_another_sweep_of_the_same_name_are_removed(
    before: Any, after: Any, kept: set[str], run: Any, tmp_path: Path
) -> None:
    run({**before, **OTHERS})
    result = run(after)
    assert names(result) == {*kept, *OTHERS}
    assert sorted(result.ranks["method"]) == ["gradient", "random", "smoothgrad"]
    result.summary  # noqa: B018  # complete without errors
    assert names(Benchmark.load(tmp_path / "saved")) == names(result)


def test_further_values_extend_a_family_under_its_new_label(run: Any) -> None:
    run({"sg": SWEPT, **OTHERS}, {"deletion": {"sweep": {"steps": [2, 4]}}})
    more = {**SWEPT, "sweep": {"samples": [4, 5]}, "label": "Smooth"}
    result = run({"sg": more}, {"deletion": {"sweep": {"steps": [3, 5]}, "label": "Removal"}})
    (methods,), (metrics,) = result.families, result.metric_families
    assert (methods.label, len(methods.members)) == ("Smooth", 4)
    assert (metrics.label, len(metrics.members)) == ("Removal", 4)
    assert result.labels.method("sg_samples_2") == "Smooth (samples 2)"
    assert result.labels.score("deletion", "deletion_steps_2") == "Removal (steps 2)"


def test_members_of_another_metric_sweep_are_removed(run: Any) -> None:
    methods = {**OTHERS, "occlusion": "occlusion"}
    run(methods, {"deletion": {"sweep": {"steps": [2, 4]}}})
    result = run(methods, {"deletion": {"sweep": {"fill": ["black", "gray"]}}})
    assert {each.name for each in result.metrics} == {"deletion_fill_black", "deletion_fill_gray"}
    assert len(result.metric_sweeps) == 1


def test_a_custom_metric_with_the_name_of_a_score_is_refused(run: Any) -> None:
    custom = {"metric": weights, "direction": "higher"}
    with pytest.raises(ValueError, match="complexity: found the name of a score of c"):
        run(OTHERS, {"complexity": custom, "c": "complexity"})
    run(OTHERS, {"c": "complexity"})
    with pytest.raises(ValueError, match="complexity: found the name of a score of c"):
        run(OTHERS, {"complexity": custom})


def test_a_seed_of_one_method_leaves_the_tests_of_all_pairs(run: Any) -> None:
    methods = {"smoothgrad": {"method": "smoothgrad", "noise": 0.5}, **OTHERS}
    before = run(methods)
    result = run({"smoothgrad": methods["smoothgrad"]}, seeds=1)
    assert "not tested" not in set(result.pairs["finding"])
    pairs = [each.pairs.set_index(["method", "other"])["wins"] for each in (before, result)]
    assert pairs[1]["gradient", "random"] == pairs[0]["gradient", "random"]
    of_method = result.scores[result.scores["method"] == "smoothgrad"]
    assert set(of_method["seed"]) == {0, 1}
    mean = result.ranks.set_index("method").loc["smoothgrad", "mean"]
    assert mean == pytest.approx(of_method["score"].mean())
    maps = result.kept()[1]
    assert list(maps) == ["SmoothGrad", "Gradient", "Random"]
    assert (maps["SmoothGrad"] == result.kept(1)[1]["SmoothGrad"]).all()


def test_scores_of_equal_seeds_are_compared_as_they_are(run: Any) -> None:
    result = run(OTHERS, seeds=[0, 1])
    assert result.compared_scores is result.scores


def test_equal_labels_are_refused_if_stated_and_otherwise_extended_by_names(run: Any) -> None:
    stated = {name: {"method": method, "label": "X"} for name, method in OTHERS.items()}
    with pytest.raises(ValueError, match="label 'X' of gradient and random"):
        run(stated)
    with pytest.raises(ValueError, match=r"label 'SmoothGrad \(samples 2\)'"):
        run({"smoothgrad": SWEPT, "a": {"method": "gradient", "label": "SmoothGrad (samples 2)"}})
    result = run(
        {"Gradient": "random", **OTHERS, "a_b": "gradient", "a__b": {"method": "random", "label": "A b"}}
    )
    assert [each.label for each in result.methods] == [
        "Gradient (Gradient)",
        "Gradient",
        "Random",
        "A b (a_b)",
        "A b",
    ]


def test_a_label_of_an_earlier_entry_is_extended_by_its_name(run: Any) -> None:
    run({"a": {"method": "gradient", "label": "X"}, "smoothgrad": {**SWEPT, "label": "Y"}})
    result = run({"b": {"method": "random", "label": "X"}, "c": {"method": "occlusion", "label": "Y"}})
    assert list(result.table.index) == ["Y", "X (a)", "Y (smoothgrad)", "X (baseline)"]
    assert {"X", "X (a)", "Y", "Y (smoothgrad, samples 2)"} <= set(result.kept()[1])


def test_scores_of_another_save_than_the_settings_are_ignored(run: Any, tmp_path: Path) -> None:
    def noise(value: float) -> Any:
        return {"m": {"method": "smoothgrad", "noise": value}}

    first = run(noise(0.01)).scores["score"].to_numpy()
    settings = (tmp_path / "saved/benchmark.json").read_text()
    run(noise(2.0))
    (tmp_path / "saved/benchmark.json").write_text(settings)
    with pytest.warns(UserWarning, match=r"scores\.parquet.* of another save"):
        again = run(noise(0.01))
    assert again.scores["score"].to_numpy() == pytest.approx(first, abs=0)
    assert len(Benchmark.load(tmp_path / "saved").scores) == len(first)


def test_too_few_groups_or_images_for_a_sweep_are_refused_before_the_computation(
    network: nn.Module, images: Tensor
) -> None:
    def never(model: Any, images: Tensor, targets: Tensor, *, k: int) -> Tensor:
        raise AssertionError

    def fails(data: Any, **options: Any) -> None:
        swept = {"f": {"method": never, "sweep": {"k": [1, 2]}}}
        saliency_assay.benchmark(network, data, swept, ["complexity"], progress=False, **options)

    with pytest.raises(ValueError, match="groups: found 3 groups, expected at least 4"):
        fails(images, groups=[0, 1, 2] * 4)
    with pytest.raises(ValueError, match="found 3 images, expected at least 4"):
        fails(iter([images[:3]]))
    with pytest.raises(ValueError, match="found 2 groups of images, expected at least 4"):
        fails(images[:2], targets=torch.tensor([[0, 1], [1, 2]]))


def test_a_family_is_highlighted(network: nn.Module, images: Tensor) -> None:
    methods = {"smoothgrad": SWEPT, **OTHERS}
    result = saliency_assay.benchmark(network, images, methods, ["deletion"], progress=False)
    ticks = result.plot.heat_map(highlight="smoothgrad").get_yticklabels()
    assert [each.get_text() for each in ticks if each.get_color() == VERMILION] == ["SmoothGrad"]
    with pytest.raises(ValueError, match=r"highlight.*'smoothgrad_samples_2'"):
        result.plot.heat_map(highlight="smoothgrad_samples_2")
    for name, count in {"smoothgrad": 2, "smoothgrad_samples_2": 1}.items():
        lines = result.plot.curves("deletion", highlight=name).get_lines()
        assert sum(line.get_color() == VERMILION for line in lines) == count
    plt.close("all")


@pytest.mark.filterwarnings("ignore:.*failed")
def test_a_family_without_scores_selects_nothing(network: nn.Module, images: Tensor) -> None:
    def fails(model: Any, images: Tensor, targets: Tensor, *, k: int) -> Tensor:
        raise RuntimeError

    def constant(model: Any, images: Tensor, targets: Tensor, *, k: int) -> Tensor:
        return torch.zeros_like(images)

    for function in (fails, constant):
        methods = {"f": {"method": function, "sweep": {"k": [1, 2]}}, **OTHERS}
        result = saliency_assay.benchmark(network, images, methods, ["deletion"], progress=False)
        assert not result.sweeps["selected"].any()
        assert not any("best values" in text for text in result.summary)
        with pytest.raises(ValueError, match="family: found f, which has no score under Deletion"):
            result.plot.sweep("f")
