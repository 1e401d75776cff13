"""One call for many methods and metrics: its scores, inputs, ranks, files, interruptions and failures."""

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from plotted import assert_apart
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import saliency_assay
from saliency_assay import Benchmark
from saliency_assay.plotting.palette import GRAY, VERMILION
from saliency_assay.reliability.variance import mean_of
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store

METHODS = ["gradient", "smoothgrad", "random"]
METRICS: list[Any] = ["deletion", {"metric": "sensitivity_max", "samples": 2}]
SIDE, CLASSES = 6, 4


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * SIDE**2, CLASSES)
    return nn.Sequential(*layers)


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.rand(12, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def labels() -> Tensor:
    return torch.arange(12) % CLASSES


def run(*arguments: Any, **options: Any) -> Benchmark:
    return saliency_assay.benchmark(*arguments, **{"progress": False, **options})


@pytest.fixture(scope="module")
def result(network: nn.Module, images: Tensor, labels: Tensor) -> Benchmark:
    return run(network, (images, labels), METHODS, METRICS)


def values(result: Benchmark, method: str, metric: str) -> np.ndarray:
    table = result.scores
    rows = table[(table["method"] == method) & (table["metric"] == metric)]
    return rows.sort_values(["seed", "image"])["score"].to_numpy()


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_those_of_single_calls_with_the_seeds_of_the_workflow(
    method: str, result: Benchmark, network: nn.Module, images: Tensor, labels: Tensor
) -> None:
    seed = saliency_assay.workflow_seed(0, model="model", data="data", method=method)
    maps = saliency_assay.attribute(method, network, images, labels, seed=seed)
    for metric, options in (("deletion", {}), ("sensitivity_max", {"samples": 2})):
        of_metric = saliency_assay.workflow_seed(0, model="model", data="data", metric=metric)
        passed: dict[str, Any] = {**options, "method": method, "method_seed": seed} if options else {}
        expected = saliency_assay.score(metric, network, images, labels, maps, seed=of_metric, **passed)
        np.testing.assert_array_equal(values(result, method, metric), expected[metric])


def test_ranks_and_pairs_are_those_of_assess(result: Benchmark) -> None:
    by_method = {method: values(result, method, "deletion") for method in METHODS}
    assessed = saliency_assay.assess(by_method, direction="lower")
    ranks = result.ranks[result.ranks["metric"] == "deletion"].set_index("method")
    columns = ["mean", "low", "high", "win_rate", "rank", "rank_low", "rank_high"]
    pd.testing.assert_frame_equal(ranks[columns], assessed.order[columns])
    pairs = result.pairs[result.pairs["metric"] == "deletion"].reset_index(drop=True)
    assert pairs["wins_p"].tolist() == assessed.pairs["wins_p"].tolist()
    alpha = result.agreement.images.query("metric == 'deletion' and baselines == 'with'")["alpha"].item()
    assert alpha == pytest.approx(assessed.alpha.value)
    [pair] = result.agreement.metrics[["metric", "other_metric"]].to_numpy().tolist()
    assert pair == ["deletion", "sensitivity_max"]


def as_batches(images: Tensor, labels: Tensor) -> Iterator[Any]:
    for first in range(0, len(images), 5):
        yield images[first : first + 5], labels[first : first + 5]


FORMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "arrays": lambda images, labels: (images.numpy(), labels.numpy()),
    "list": lambda images, labels: [images, labels],
    "data set": TensorDataset,
    "data loader": lambda images, labels: DataLoader(TensorDataset(images, labels), batch_size=7),
    "generator": as_batches,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_images_has_the_same_scores(
    form: str, result: Benchmark, network: nn.Module, images: Tensor, labels: Tensor
) -> None:
    other = run(network, FORMS[form](images, labels), METHODS, METRICS)
    pd.testing.assert_frame_equal(other.scores, result.scores)


def test_blocks_of_a_long_stream_have_the_noise_of_the_whole_set(network: nn.Module) -> None:
    count = BLOCK + 30
    images = torch.rand(count, 1, SIDE, SIDE)
    labels = torch.arange(count) % CLASSES
    streamed = run(network, as_batches(images, labels), ["smoothgrad"], ["complexity"], keep=0)
    seed = saliency_assay.workflow_seed(0, model="model", data="data", method="smoothgrad")
    maps = saliency_assay.attribute("smoothgrad", network, images, labels, seed=seed)
    expected = saliency_assay.score("complexity", network, images, labels, maps)["complexity"]
    np.testing.assert_array_equal(values(streamed, "smoothgrad", "complexity"), expected)
    assert streamed.images["source"].tolist() == list(range(count))


def test_targets(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    def explained(**options: Any) -> list[int]:
        data = options.pop("data", (images, labels))
        return run(network, data, ["gradient"], ["complexity"], **options).images["target"].tolist()

    predicted = network(images).argmax(1).tolist()
    assert explained() == explained(targets="label") == labels.tolist()
    assert explained(targets="predicted") == explained(data=images) == predicted
    assert explained(targets=2) == explained(data=(images, 2)) == [2] * len(images)
    assert explained(targets=labels.flip(0)) == labels.flip(0).tolist()


def test_several_targets_of_an_image_are_one_group(network: nn.Module, images: Tensor) -> None:
    several = np.stack([np.arange(12) % 4, (np.arange(12) + 1) % 4], axis=1)
    result = run(network, images, ["gradient", "random"], ["deletion"], targets=several)
    assert result.images["source"].tolist() == np.repeat(np.arange(12), 2).tolist()
    assert result.images["target"].tolist() == several.flatten().tolist()
    assert set(result.ranks["images"]) == {24}
    assert set(result.ranks["groups"]) == {12}


def test_groups_widen_intervals_as_clusters_do(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    groups = np.arange(12) // 2
    result = run(network, (images, labels), METHODS, ["deletion"], groups=groups)
    by_method = {method: values(result, method, "deletion") for method in METHODS}
    assessed = saliency_assay.assess(by_method, direction="lower", clusters={"patients": groups})
    np.testing.assert_allclose(result.ranks["high"], assessed.order["high"])


def test_seeds_change_only_what_is_random(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    result = run(network, (images, labels), ["gradient", "smoothgrad"], ["complexity"], seeds=[0, 1])
    gradient, smooth = (
        values(result, name, "complexity").reshape(2, 12) for name in ("gradient", "smoothgrad")
    )
    np.testing.assert_array_equal(gradient[0], gradient[1])
    assert (smooth[0] != smooth[1]).all()


def test_entries_have_names_parameters_and_labels(network: nn.Module, images: Tensor) -> None:
    methods = {"few": {"method": "smoothgrad", "samples": 2, "label": "Few samples"}, "gradient": {}}
    metrics = {"black": {"metric": "deletion", "fill": "black"}, "insertion": {}}
    result = run(network, images, methods, metrics)
    assert result.labels.method("few") == "Few samples"
    assert set(result.scores["variant"]) == {"black", "insertion"}
    seed = saliency_assay.workflow_seed(0, model="model", data="data", method="smoothgrad")
    targets = network(images).argmax(1)
    maps = saliency_assay.attribute("smoothgrad", network, images, targets, seed=seed, samples=2)
    expected = saliency_assay.score("deletion", network, images, targets, maps, fill="black")
    np.testing.assert_array_equal(values(result, "few", "deletion"), expected["deletion"])


def test_aliases_have_the_results_of_the_registered_name(network: nn.Module, images: Tensor) -> None:
    result = run(network, images, ["IG", "InputXGradient"], ["Complexity", "GiniIndex"])
    assert set(result.scores["method"]) == {"integrated_gradients", "gradient_x_input"}
    assert set(result.scores["metric"]) == {"complexity", "sparseness"}
    assert result.labels.method("integrated_gradients") == "Integrated Gradients"


def test_one_of_a_kind_is_in_the_singular(network: nn.Module, images: Tensor) -> None:
    result = run(network, images[:1], ["gradient"], ["complexity"])
    assert "1 method, 1 metric, 1 image>" in repr(result)
    assert "1 pair of a method and a metric is complete, of 1 method and up to 1 image" in result.state_text()
    assert "2 methods, 2 metrics" in repr(
        run(network, images, ["gradient", "random"], ["complexity", "sparseness"])
    )


def test_masks_come_with_the_data_or_as_an_argument(
    network: nn.Module, images: Tensor, labels: Tensor
) -> None:
    masks = torch.zeros(12, SIDE, SIDE, dtype=torch.bool)
    masks[:, 2:4, 2:4] = True
    with_data = run(network, (images, labels, masks), ["gradient"], ["pointing_game"])
    apart = run(network, (images, labels), ["gradient"], ["pointing_game"], masks=masks)
    pd.testing.assert_frame_equal(with_data.scores, apart.scores)
    with pytest.raises(ValueError, match="mask"):
        run(network, images, ["gradient"], ["pointing_game"])


def test_the_object_mask_is_no_baseline_and_needs_masks(
    network: nn.Module, images: Tensor, labels: Tensor
) -> None:
    masks = torch.zeros(12, SIDE, SIDE, dtype=torch.bool)
    masks[:, 2:4, 2:4] = True
    methods = ["gradient", "object_mask", "random"]
    result = run(network, (images, labels, masks), methods, ["pointing_game"])
    assert values(result, "object_mask", "pointing_game").tolist() == [1] * 12
    assert result.baselines == ["random"]
    assert set(result.ranks["method"]) == set(result.compared_scores["method"]) == {"gradient", "random"}
    controls = result.controls.set_index("method")
    assert controls["control"].to_dict() == {"gradient": "", "object_mask": "upper", "random": "lower"}
    assert (controls["upper_mean"] == 1).all()
    assert [row.method for row in result.heat_map.best] == ["Object mask"]
    with pytest.raises(ValueError, match="masks: missing for object_mask"):
        run(network, images, methods, ["deletion"])
    maps = saliency_assay.attribute("object_mask", network, images, 0, mask=masks)
    assert torch.equal(maps[:, 0] == 1, masks)
    with pytest.raises(ValueError, match="mask: gradient takes none; valid: object_mask"):
        saliency_assay.attribute("gradient", network, images, 0, mask=masks)


def test_a_custom_method_and_metric(network: nn.Module, images: Tensor) -> None:
    def brightness(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
        return images

    def center(predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: Any) -> Tensor:
        return maps[:, 0, 2, 2]

    metric = {"metric": center, "direction": "higher"}
    result = run(network, images, ["gradient", brightness], {"center": metric})
    np.testing.assert_array_equal(values(result, "brightness", "center"), images[:, 0, 2, 2])
    with pytest.raises(ValueError, match="direction"):
        run(network, images, [brightness], [center])


COUNTS = {"explained": 0, "scored": 0, "calls until interruption": -1}


def counted_method(model: Any, images: Tensor, targets: Tensor, *, generator: Any, scale: int = 1) -> Tensor:
    COUNTS["explained"] += len(images)
    return scale * images


def counted_metric(predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: Any) -> Tensor:
    if COUNTS["calls until interruption"] == 0:
        raise KeyboardInterrupt
    COUNTS["calls until interruption"] -= 1
    COUNTS["scored"] += len(images)
    return maps.flatten(1).mean(1)


COUNTED = {name: {"method": counted_method, "scale": scale} for scale, name in enumerate("abc", 1)}
COUNTED_METRICS = {name: {"metric": counted_metric, "direction": "higher"} for name in ("one", "two")}


@pytest.mark.parametrize("calls", range(6))
def test_an_interrupted_benchmark_returns_what_is_complete_and_computes_nothing_twice(
    calls: int, network: nn.Module, images: Tensor, tmp_path: Path
) -> None:
    def counted(path: Path | None) -> Benchmark:
        return run(network, images, COUNTED, COUNTED_METRICS, path=path)

    COUNTS.update({"explained": 0, "scored": 0, "calls until interruption": calls})
    with pytest.warns(UserWarning, match="interrupted"):
        interrupted = counted(tmp_path / "run")
    assert not interrupted.complete
    assert len(interrupted.scores) == 12 * calls
    COUNTS["calls until interruption"] = -1
    resumed = counted(tmp_path / "run")
    assert COUNTS["explained"] == 3 * 12
    assert COUNTS["scored"] == 3 * 2 * 12
    assert resumed.complete
    pd.testing.assert_frame_equal(resumed.scores, counted(None).scores)
    COUNTS.update({"explained": 0, "scored": 0})
    pd.testing.assert_frame_equal(counted(tmp_path / "run").scores, resumed.scores)
    assert COUNTS["explained"] == COUNTS["scored"] == 0


def test_only_what_changed_is_computed_again(network: nn.Module, images: Tensor, tmp_path: Path) -> None:
    def explained(methods: Any, data: Tensor = images, model: nn.Module = network) -> tuple[int, Benchmark]:
        COUNTS.update({"explained": 0, "scored": 0, "calls until interruption": -1})
        return COUNTS["explained"], run(model, data, methods, COUNTED_METRICS, path=tmp_path / "run")

    explained(COUNTED)
    explained({**COUNTED, "b": {"method": counted_method, "scale": 5}})
    assert COUNTS["explained"] == 12
    _, added = explained({"d": {"method": counted_method, "scale": 7}})
    assert COUNTS["explained"] == 12
    assert sorted(set(added.scores["method"])) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(values(added, "b", "one"), 5 * images.flatten(1).mean(1))
    for data in (1 - images, images[:6]):
        with pytest.raises(ValueError, match="path"):
            explained({"e": {"method": counted_method, "scale": 9}}, data=data)
    _, kept = explained({"d": {"method": counted_method, "scale": 7}})
    assert COUNTS["explained"] == 0
    pd.testing.assert_frame_equal(kept.scores, added.scores)


def test_an_interruption_keeps_earlier_results_of_later_images(network: nn.Module, tmp_path: Path) -> None:
    images = torch.rand(BLOCK + 20, 1, SIDE, SIDE)

    def counted(methods: Any, calls: int = -1) -> Benchmark:
        COUNTS.update({"explained": 0, "scored": 0, "calls until interruption": calls})
        return run(network, images, methods, COUNTED_METRICS, path=tmp_path / "run", batch_size=BLOCK)

    first = {name: COUNTED[name] for name in "ab"}
    before = counted(first)
    with pytest.warns(UserWarning, match="interrupted"):
        interrupted = counted(COUNTED, calls=1)
    assert interrupted.scores["image"].max() < BLOCK
    after = counted(COUNTED)
    assert COUNTS["explained"] == 20  # of method c, whose maps of the first block were saved
    old = after.scores[after.scores["method"] != "c"].reset_index(drop=True)
    pd.testing.assert_frame_equal(old, before.scores)


def test_other_names_have_other_noise(network: nn.Module, images: Tensor, tmp_path: Path) -> None:
    def noisy(name: str) -> np.ndarray:
        result = run(network, images, ["random"], ["complexity"], path=tmp_path / name, model_name=name)
        return values(result, "random", "complexity")

    assert (noisy("one") != noisy("two")).all()


def test_a_failure_is_a_result(network: nn.Module, images: Tensor, tmp_path: Path) -> None:
    def failing(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
        raise RuntimeError("out of order\nwith details")

    with pytest.warns(UserWarning, match="out of order"):
        result = run(network, images, ["gradient", "random", failing], ["deletion"], path=tmp_path / "run")
    assert result.complete
    assert result.failures.to_numpy().tolist() == [["failing", "", "RuntimeError: out of order"]]
    assert set(result.ranks["method"]) == {"gradient", "random"}
    with pytest.raises(ValueError, match="out of order"), pytest.warns(UserWarning, match="out of order"):
        run(network, images, [failing], ["deletion"])


def test_methods_that_fail_under_a_metric_share_a_warning(network: nn.Module, images: Tensor) -> None:
    metrics = ["complexity", {"metric": "faithfulness", "pixels": SIDE**2 + 1, "fill": "black"}]
    with pytest.warns(UserWarning, match="4 methods, faithfulness") as warned:
        result = run(network, images, ["gradient", "edge", "sensitivity", "random"], metrics)
    assert len(warned) == 1
    assert len(result.failures) == 4


def test_missing_scores_are_reported_once_with_the_method(
    network: nn.Module, images: Tensor, caplog: pytest.LogCaptureFixture
) -> None:
    run(network, images, ["gradient", "constant"], ["insertion", "deletion"], seeds=[0, 1])
    [text] = [each.getMessage() for each in caplog.records]
    assert all(part in text for part in ("Constant", "12 of 12", "Insertion", "Deletion"))
    caplog.clear()
    saliency_assay.score("deletion", network, images, [0] * 12, torch.zeros(12, SIDE, SIDE))
    assert len(caplog.records) == 1  # other calls still report it


def test_saving_and_loading(result: Benchmark, images: Tensor, tmp_path: Path) -> None:
    result.save(tmp_path / "saved")
    loaded = Benchmark.load(tmp_path / "saved")
    for name in ("scores", "ranks", "pairs", "images", "failures"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(result, name))
    assert loaded._repr_html_() == result._repr_html_()
    pixels, maps, _, targets = loaded.kept()
    np.testing.assert_array_equal(pixels, images[:8])
    np.testing.assert_array_equal(maps["Gradient"], result.kept()[1]["Gradient"])
    assert targets == result.images["target"].tolist()[:8]
    np.testing.assert_array_equal(
        loaded.curve("deletion")[1]["random"], result.curve("deletion")[1]["random"]
    )
    table = score_tables.read([tmp_path / "saved/scores.parquet"])
    assert sorted(table["score"]) == sorted(result.scores["score"])
    with open_store(tmp_path / "saved/maps/seed0/smoothgrad.zarr.zip", kind="maps") as store:
        assert store["map"].shape == (8, 1, SIDE, SIDE)


def test_damaged_and_foreign_folders_are_refused(
    result: Benchmark, network: nn.Module, images: Tensor, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="benchmark"):
        Benchmark.load(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    for action in (lambda: result.save(tmp_path), lambda: run(network, images, path=tmp_path)):
        with pytest.raises(ValueError, match="path"):
            action()
    result.save(tmp_path / "saved")
    (tmp_path / "saved/benchmark.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        Benchmark.load(tmp_path / "saved")


def test_curves_are_means_over_blocks(network: nn.Module) -> None:
    images = torch.rand(BLOCK + 10, 1, SIDE, SIDE)
    labels = torch.arange(len(images)) % CLASSES
    result = run(network, (images, labels), ["gradient"], [{"metric": "deletion", "steps": 4}], keep=0)
    maps = saliency_assay.attribute("gradient", network, images, labels)
    name, means = result.curve("deletion")
    curves = saliency_assay.score("deletion", network, images, labels, maps, steps=4).curves[name]
    mean, half = means["gradient"]
    np.testing.assert_allclose(mean, curves.mean(0), rtol=1e-6)
    np.testing.assert_allclose(half, 1.96 * curves.std(0, ddof=1) / np.sqrt(len(images)), rtol=1e-5)


def deletion_curves(network: nn.Module, images: Tensor, labels: Tensor, seed: int = 0) -> np.ndarray:
    maps = saliency_assay.attribute("gradient", network, images, labels, seed=seed)
    (curves,) = saliency_assay.score("deletion", network, images, labels, maps, steps=4).curves.values()
    return curves


def test_bands_respect_groups_that_span_blocks(network: nn.Module) -> None:
    images = torch.rand(BLOCK + 24, 1, SIDE, SIDE)
    labels, groups = torch.arange(len(images)) % CLASSES, np.arange(len(images)) % 20
    images += 2.0 * torch.from_numpy(groups)[:, None, None, None] / 20  # images of one group are alike
    data, metrics = (images / 3, labels), [{"metric": "deletion", "steps": 4}]
    _, means = run(network, data, ["gradient"], metrics, groups=groups, keep=0).curve("deletion")
    curves = deletion_curves(network, images / 3, labels)
    mean, half = means["gradient"]
    for point in range(curves.shape[1]):
        expected = mean_of(curves[:, point], {"groups": groups})
        low, high = expected.interval()
        np.testing.assert_allclose(mean[point], expected.value, rtol=1e-5)
        np.testing.assert_allclose(2 * half[point], high - low, rtol=1e-3)


def test_seeds_do_not_count_as_further_images(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    metrics = [{"metric": "deletion", "steps": 4}]
    halves = [
        run(network, (images, labels), ["gradient"], metrics, seeds=seeds).curve("deletion")[1]["gradient"][1]
        for seeds in ([0], [0, 1])
    ]
    np.testing.assert_allclose(halves[1], halves[0], rtol=0.1)


def test_one_method_is_highlighted(result: Benchmark) -> None:
    for axes in (result.plot.ranks("deletion", highlight="random"), result.plot.heat_map(highlight="random")):
        bold = [each.get_text() for each in axes.get_yticklabels() if each.get_fontweight() == "bold"]
        assert [text.removesuffix(" (baseline)") for text in bold] == ["Random"]
    axes = result.plot.curves("deletion", highlight="gradient")
    colors = {line.get_label(): line.get_color() for line in axes.lines}
    assert colors == {"Gradient": VERMILION, "SmoothGrad": GRAY, "Random": GRAY}
    for plot in (result.plot.ranks, result.plot.curves):
        with pytest.raises(ValueError, match=r"highlight: .*gradient"):
            plot("deletion", highlight="gradeint")
    with pytest.raises(ValueError, match=r"highlight: .*gradient"):
        result.plot.heat_map(highlight="gradeint")
    plt.close("all")


def test_labels_of_many_methods_and_metrics_do_not_overlap(network: nn.Module, images: Tensor) -> None:
    methods = {f"method_{index}": {"method": "random", "label": f"Method {index}"} for index in range(24)}
    metrics = {
        f"metric_{index}": {"metric": "complexity", "label": f"Effective complexity {index}"}
        for index in range(9)
    }
    many = run(network, images, methods, metrics)
    for axes in (many.plot.heat_map(), many.plot.ranks("metric_0")):
        figure = axes.figure
        figure.canvas.draw()
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            assert_apart([label.get_window_extent() for label in labels if label.get_visible()], figure)
    plt.close("all")


def test_figures(result: Benchmark) -> None:
    figure = result.plot.heat_map()
    assert [text.get_text() for text in figure.get_yticklabels()][:2] == ["Gradient", "SmoothGrad"]
    assert [each.get_text() for each in result.plot.ranks("deletion").get_yticklabels()] == [
        result.labels.method(name)
        for name in result.ranks.query("metric == 'deletion'").sort_values("win_rate", ascending=False)[
            "method"
        ]
    ]
    assert len(result.plot.curves("deletion").lines) == len(METHODS)
    assert len(result.plot.maps(images=2).child_axes) == 2 * (1 + len(METHODS))
    assert len(result.plot.maps(images=2, methods=["random"]).child_axes) == 2 * 2
    assert "probability" in result.plot.curves("deletion").get_ylabel()
    plt.close("all")


def test_a_notebook_shows_the_rank_sets_and_the_answer(result: Benchmark) -> None:
    html = result._repr_html_()
    assert html.count("<tr>") == len(METHODS) + 2
    assert result.summary[0] in html.replace("&#39;", "'")


def test_exports(result: Benchmark, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv")
    np.testing.assert_allclose(table["mean"], result.ranks["mean"])
    assert r"\begin{tabular}" in result.to_latex()
    text = result.to_latex(label="tab:mine", caption=r"My $\alpha$.")
    assert r"\label{tab:mine}" in text
    assert r"\caption{My $\alpha$.}" in text


def test_tables_for_latex_escape_names(network: nn.Module, images: Tensor) -> None:
    methods = {"mine": {"method": "gradient", "label": "50% of α_1 & #2"}, "random": "random"}
    text = run(network, images, methods, ["complexity"]).to_latex()
    assert r"50\% of $\alpha$\_1 \& \#2" in text.replace("\n", " ")


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "unknown method": ({"methods": ["gradeint"]}, "gradient"),
    "unknown metric": ({"metrics": ["deletoin"]}, "deletion"),
    "no method": ({"methods": []}, "methods"),
    "method twice": ({"methods": ["gradient", "gradient"]}, "gradient"),
    "parameter": ({"methods": [{"method": "smoothgrad", "sample": 3}]}, "samples"),
    "name": ({"methods": {"a/b": "gradient"}}, "a/b"),
    "class": ({"targets": CLASSES}, "targets"),
    "length of targets": ({"targets": np.zeros(5, np.int64)}, "targets"),
    "word of targets": ({"targets": "truth"}, "targets"),
    "targets without labels": ({"targets": "label"}, "label"),
    "groups": ({"groups": [0, 1]}, "groups"),
    "seeds": ({"seeds": [0, 0]}, "seeds"),
    "keep": ({"keep": -1}, "keep"),
    "batch size": ({"batch_size": 0}, "batch_size"),
    "device": ({"device": "cuda:99"}, "device"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments_are_refused(case: str, network: nn.Module, images: Tensor) -> None:
    options, place = INVALID[case]
    with pytest.raises(ValueError, match=place):
        run(network, images, **{"methods": ["gradient"], "metrics": ["complexity"], **options})


@pytest.mark.parametrize(
    "data", [[], np.zeros((0, 1, 6, 6)), torch.rand(6, 6), "images", 3, {"image": 1}, [1, 2]]
)
def test_invalid_data_are_refused(data: Any, network: nn.Module) -> None:
    with pytest.raises(ValueError, match="data"):
        run(network, data, ["gradient"], ["complexity"])


def test_a_function_as_the_model(images: Tensor) -> None:
    weights = torch.rand(SIDE**2, 3)

    def predict(batch: Tensor) -> Tensor:
        return batch.flatten(1) @ weights

    result = run(predict, images, ["occlusion", "random"], ["deletion"])
    assert set(result.ranks["method"]) == {"occlusion", "random"}


def test_images_normalized_in_advance_name_the_remedy(network: nn.Module, images: Tensor) -> None:
    with pytest.raises(ValueError, match=r"saliency_assay\.wrap"):
        run(network, images * 4 - 2, ["gradient"], ["complexity"])


def counted_network(network: nn.Module) -> tuple[nn.Module, list[int]]:
    copy, rows = deepcopy(network), list[int]()
    copy.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    return copy, rows


RESUMED_METRICS: dict[str, Any] = {
    "deletion": {"steps": 3},
    "faithfulness": {"pixels": 4, "fill": "black"},
    "stopping": COUNTED_METRICS["one"],
    "sensitivity_max": {"samples": 2},
}


@pytest.mark.parametrize("calls", range(4))
def test_the_model_makes_no_pass_twice_for_several_seeds(
    calls: int, network: nn.Module, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    def passes(path: Path | None, calls: int = -1) -> tuple[int, Benchmark]:
        COUNTS["calls until interruption"] = calls
        rows.clear()
        result = run(model, (images, labels), METHODS[:2], RESUMED_METRICS, path=path, seeds=[0, 1])
        return sum(rows), result

    model, rows = counted_network(network)
    passes(None)  # with further trials of the network, in the first call only
    uninterrupted, expected = passes(None)
    with pytest.warns(UserWarning, match="interrupted"):
        first, interrupted = passes(tmp_path / "run", calls)
    second, resumed = passes(tmp_path / "run")
    trial, _ = passes(tmp_path / "run")
    assert not interrupted.complete
    assert trial < len(images)
    assert first + second == uninterrupted + trial
    pd.testing.assert_frame_equal(resumed.scores, expected.scores)


def test_earlier_seeds_are_kept(network: nn.Module, images: Tensor, tmp_path: Path) -> None:
    def seeded(seeds: Any, methods: Any = ("random", "gradient")) -> Benchmark:
        return run(network, images, methods, ["complexity"], path=tmp_path / "run", seeds=seeds)

    both = seeded([0, 1])
    alone = seeded(1)
    pd.testing.assert_frame_equal(alone.scores, both.scores)
    assert alone.seeds == [1, 0]
    np.testing.assert_array_equal(alone.kept(0)[1]["Random"], both.kept(0)[1]["Random"])
    added = seeded(2, ["edge"])
    loaded = Benchmark.load(tmp_path / "run")
    assert set(zip(loaded.scores["method"], loaded.scores["seed"], strict=True)) == {
        *((name, seed) for name in ("random", "gradient") for seed in (0, 1)),
        ("edge", 2),
    }
    pd.testing.assert_frame_equal(added.scores, loaded.scores)
    pd.testing.assert_frame_equal(added.ranks, loaded.ranks)


FAILING = {"from image": 0}


def fails_later(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
    if FAILING["from image"] <= 0:
        raise RuntimeError("out of order")
    FAILING["from image"] -= len(images)
    return images


def test_a_method_that_fails_on_later_images_has_no_result(network: nn.Module, tmp_path: Path) -> None:
    def failing(methods: Any, images_before: int, **options: Any) -> Benchmark:
        FAILING["from image"] = images_before
        arguments = {"path": tmp_path / "run", "batch_size": BLOCK, **options}
        return run(network, (images, labels), methods, [{"metric": "deletion", "steps": 2}], **arguments)

    images = torch.rand(BLOCK + 10, 1, SIDE, SIDE)
    labels = torch.arange(len(images)) % CLASSES
    with pytest.warns(UserWarning, match="out of order"):
        result = failing(["gradient", fails_later], BLOCK)
    assert list(result.curve("deletion")[1]) == list(result.scores["method"].unique()) == ["gradient"]
    assert "Fails_later" not in result.state_text()
    with pytest.warns(UserWarning, match="out of order"):  # not requested, but not lost either
        kept = failing(["random"], BLOCK)
    assert set(kept.scores["method"]) == {"gradient", "random"}
    assert kept.failures.equals(result.failures)
    mended = failing([fails_later], len(images), seeds=1)
    assert mended.failures.empty
    of_method = mended.scores[mended.scores["method"] == "fails_later"]
    assert of_method[["seed", "image"]].to_numpy().tolist() == [[1, image] for image in range(len(images))]
    only = {"path": None, "methods": [fails_later]}
    with (
        pytest.raises(ValueError, match="RuntimeError: out of order"),
        pytest.warns(UserWarning, match="out of order"),
    ):
        failing(images_before=BLOCK, **only)


def test_the_summary_names_failures(network: nn.Module, images: Tensor) -> None:
    def failing(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
        return {}["key"]

    metrics = ["complexity", {"metric": "faithfulness", "pixels": SIDE**2 + 1, "fill": "black"}]
    with pytest.warns(UserWarning, match="KeyError|pixels"):
        result = run(network, images, ["gradient", "random", failing], metrics)
    of_method, of_metric = result.summary[1:3]
    assert all(part in of_method for part in ("1 of 3", "Failing", "KeyError", "'key'"))
    assert all(part in of_metric for part in ("2 of 3", "Faithfulness", "Gradient", "Random", "ValueError"))
    assert of_method in str(result)
    assert of_metric in str(result)


def test_causes_of_missing_scores_are_named(
    network: nn.Module, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    def negative(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
        return -images

    def sentences(masks: Tensor) -> list[str]:
        methods = ["gradient", "constant", negative]
        result = run(network, (images, labels, masks), methods, ["mask_attribution"], path=tmp_path / name)
        assert "no score" in str(result)
        assert Benchmark.load(tmp_path / name).summary == result.summary
        return [text for text in result.summary if text.startswith("No score")]

    name = "all"
    [text] = sentences(torch.zeros(12, SIDE, SIDE, dtype=torch.bool))
    assert all(part in text for part in ("any method", "12 images with an empty mask", "mass", "rank"))
    name = "some"
    masks = torch.zeros(12, SIDE, SIDE, dtype=torch.bool)
    masks[:8, 2:4, 2:4] = True
    constant, of_negative = sentences(masks)
    assert all(
        part in constant for part in ("Constant", "4 images with an empty", "8 images with a constant")
    )
    assert all(part in of_negative for part in ("Negative", "mass", "without a positive value"))
    assert "rank" not in of_negative


@pytest.mark.parametrize("activation", [nn.Softmax(1), nn.Identity()])
@pytest.mark.parametrize("wrapped", [True, False])
def test_outputs_that_look_like_probabilities_are_warned_of_once(
    activation: nn.Module, wrapped: bool, network: nn.Module, images: Tensor
) -> None:
    model: nn.Module = nn.Sequential(network, activation)
    if wrapped:
        model = saliency_assay.wrap(model, classes=CLASSES, mean=[0.0], std=[1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(model, images, ["gradient", "random"], ["deletion"])
    messages = [str(each.message) for each in caught if "probabilities" in str(each.message)]
    if isinstance(activation, nn.Identity):
        assert not messages
    else:
        [message] = messages
        assert "output='softmax'" in message
        assert [each.filename for each in caught if "probabilities" in str(each.message)] == [__file__]


def test_known_probabilities_and_functions_are_not_warned_of(network: nn.Module, images: Tensor) -> None:
    ending = nn.Sequential(network, nn.Softmax(1))
    run(lambda batch: ending(batch), images, ["random"], ["deletion"])
    for output, model in (("softmax", ending), ("logits", network)):
        wrapped = saliency_assay.wrap(model, classes=CLASSES, mean=[0.0], std=[1.0], output=output)
        run(wrapped, images, ["gradient"], ["deletion"])


@pytest.mark.parametrize(
    ("name", "metric"),
    [("randomized_model", "emprt"), ("finetuned_model", {"metric": "f_fidelity", "fill": "black"})],
)
def test_another_network_with_the_weights_of_the_model_is_refused(
    name: str, metric: Any, network: nn.Module, images: Tensor
) -> None:
    for other in (network, deepcopy(network)):
        with pytest.raises(ValueError, match=rf"{name}: .*saliency_assay\.{name[:8]}"):
            run(network, images, ["gradient"], [metric], **{name: other})


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([[0, 1], [1], *[[0]] * 10], "targets: found rows of different lengths"),
        (torch.zeros(12), r"targets: found float32 \[12\].*: np\.asarray\(targets, int\)"),
        (
            np.eye(4, dtype=int)[[0] * 12],
            r"targets: found int64 \[12, 4\].*: targets\.argmax\(1\) of one-hot",
        ),
        (np.eye(4)[[0] * 12], r"targets: found float64 \[12, 4\].*: targets\.argmax\(1\)"),
    ],
)
def test_targets_of_other_forms_are_refused(
    targets: Any, message: str, network: nn.Module, images: Tensor
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        run(network, images, ["gradient"], ["complexity"], targets=targets)
    with pytest.raises(ValueError, match=f"^{message}"):
        run(network, (images, targets), ["gradient"], ["complexity"])


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:x", [1]])
def test_an_unknown_device_is_refused_with_the_valid_ones(
    device: Any, network: nn.Module, images: Tensor
) -> None:
    with pytest.raises(ValueError, match=r"^device: found .*valid: 'cpu', 'cuda'.*'mps'"):
        run(network, images, ["gradient"], ["complexity"], device=device)


def test_another_benchmark_is_not_overwritten(network: nn.Module, images: Tensor, tmp_path: Path) -> None:
    result = run(network, images, ["gradient"], ["complexity"])
    result.save(tmp_path / "saved")
    result.save(tmp_path / "saved")
    other = deepcopy(network)
    with torch.no_grad():
        next(other.parameters()).mul_(2)
    for model, pixels, options in (
        (other, images, {}),
        (network, 1 - images, {}),
        (network, images, {"data_name": "b"}),
    ):
        with pytest.raises(ValueError, match="path: found results of other images"):
            run(model, pixels, ["gradient"], ["complexity"], **options).save(tmp_path / "saved")
    pd.testing.assert_frame_equal(Benchmark.load(tmp_path / "saved").scores, result.scores)
    assert run(network, images, ["random"], ["complexity"], path=tmp_path / "saved").complete


def test_scores_that_were_not_computed_have_not_failed(network: nn.Module, images: Tensor) -> None:
    COUNTS.update({"explained": 0, "scored": 0, "calls until interruption": 3})
    with pytest.warns(UserWarning, match="interrupted"):
        result = run(network, images, COUNTED, COUNTED_METRICS)
    assert result.table.iloc[1, 1] == "not computed"
    assert "not computed" in str(result)
    assert "not computed" in result._repr_html_()
    ax = result.plot.heat_map()
    assert "not computed" in [text.get_text() for text in ax.texts]
    plt.close(ax.figure)
    for text in (str(result), result._repr_html_()):
        assert "failed" not in text
    assert "Interrupted: 3 pairs" in result.to_latex()


def test_all_sentences_are_printed(network: nn.Module, images: Tensor) -> None:
    result = run(network, images[:3], ["gradient", "random"], ["deletion"])
    assert len(result.summary) > 1
    assert str(result).endswith("\n".join(result.summary))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["vanilla gradients"]}, "unknown method .*did you mean 'gradient'"),
        ({"metrics": ["Pixel Flipping"]}, "unknown metric .*did you mean"),
        ({"groups": {"patient": [0] * 12, "scanner": [0] * 12}}, "groups: found patient, scanner"),
        (
            {"metrics": ["emprt"], "randomized_model": nn.Sequential(nn.Flatten(), nn.Linear(9, 3))},
            "randomized_model: found a network with other layers",
        ),
    ],
)
def test_mistakes_are_refused_before_any_computation(
    options: dict[str, Any], message: str, network: nn.Module, images: Tensor
) -> None:
    with pytest.raises(ValueError, match=message):
        run(network, images, **{"methods": ["gradient"], "metrics": ["complexity"], **options})


def test_groups_may_have_a_name(network: nn.Module, images: Tensor) -> None:
    groups = [number // 2 for number in range(12)]
    named, plain = (
        run(network, images, ["gradient", "random"], ["complexity"], groups=each)
        for each in ({"patient": groups}, groups)
    )
    pd.testing.assert_frame_equal(named.ranks, plain.ranks)


def test_another_number_of_classes_is_refused_at_once(images: Tensor) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 4))
    model = saliency_assay.wrap(network, classes=10, mean=[0.0], std=[1.0])
    with pytest.raises(ValueError, match=r"model: .*classes=4"):
        run(model, images, ["gradient"], ["complexity"])


def test_a_last_sigmoid_is_named(images: Tensor) -> None:
    linear = nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 3))
    network = nn.Sequential(linear, nn.Sigmoid())
    with pytest.warns(UserWarning, match="multi_label=True, output='sigmoid'"):
        run(network, images, ["gradient"], ["complexity"])
    wrapped = saliency_assay.wrap(
        network, classes=3, mean=[0.0], std=[1.0], output="sigmoid", multi_label=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(wrapped, images, ["gradient"], ["complexity"])


class Probabilities(nn.Module):
    """The sigmoid of each of ``outputs`` logits, by a function."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(SIDE**2, outputs)

    def forward(self, images: Tensor) -> Tensor:
        return torch.sigmoid(self.linear(images.flatten(1)))


@pytest.mark.parametrize(
    ("outputs", "declared", "expected"),
    [
        (3, {}, "multi_label=True, output='sigmoid'"),
        (3, {"multi_label": True}, "multi_label=True, output='sigmoid'"),
        (1, {"output": "logit"}, "classes=2, output='sigmoid'"),
    ],
)
def test_probabilities_declared_as_logits_are_named(
    images: Tensor, outputs: int, declared: dict[str, Any], expected: str
) -> None:
    model = saliency_assay.wrap(
        Probabilities(outputs), classes=max(outputs, 2), mean=[0.0], std=[1.0], **declared
    )
    with pytest.warns(UserWarning, match=expected):
        run(model, images, ["gradient"], ["complexity"])


def test_a_metric_with_several_scores_is_counted_with_them(network: nn.Module, images: Tensor) -> None:
    metrics = [{"metric": "aopc", "fill": "black", "steps": 4, "every": 4}]
    assert "2 methods, 1 metric with 2 scores, 12 images" in repr(
        run(network, images, ["gradient", "random"], metrics)
    )
