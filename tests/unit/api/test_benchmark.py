"""One call for many methods and metrics: its scores, inputs, ranks, files, interruptions and failures."""

from collections.abc import Callable, Iterator
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
    result = run(network, images, ["ig", "gxi"], ["complexity"])
    assert set(result.scores["method"]) == {"integrated_gradients", "gradient_x_input"}
    assert result.labels.method("integrated_gradients") == "Integrated Gradients"


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
    assert result.failures.to_numpy().tolist() == [["failing", "", "out of order"]]
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
        f"metric_{index}": {"metric": "complexity", "label": "Effective complexity"} for index in range(9)
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
