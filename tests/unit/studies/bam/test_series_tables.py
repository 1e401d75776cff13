"""Tables, figure and page of a commonality series against plain loops over rows."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from jobs import run_script
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import pearsonr
from spaced import SPACED

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.style import styled
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.series_figures import select_image, series_figure, series_maps
from saliency_assay.studies.bam.series_tables import (
    SeriesModel,
    commonality_table,
    correlation_table,
    series_table,
    series_tables,
)

NAN = float("nan")
SERIES = [SeriesModel(f"f_k{nn:02d}", f"bam_os_k{nn:02d}", nn / 10) for nn in (1, 3, 7, 10)]
MODELS = [member.model for member in SERIES]
WITHOUT = "bam_0s_k"
METHODS = ("gradcam", "edge", "NA")
SEEDS = (0, 7)
IMAGES = (2, 5, 6, 9, 11, 14)


def predictions(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """Test and training images of two scene classes, right or wrong at random."""
    rng = np.random.default_rng(3)
    rows = [
        (member.model, seed, data, image, split, label, label if rng.random() < 0.6 else 4)
        for seed in seeds
        for member in SERIES
        for data in (member.data, WITHOUT, "bam_os")
        for image, split, label in [
            *((image, "test", 0) for image in IMAGES),
            (7, "test", 1),
            (8, "train", 0),
            (10, "validation", 0),
        ]
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "data", "image", "split", "label", "predicted"])


def commonality(scene: str = "bamboo_forest", seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    return commonality_table(predictions(seeds), SERIES, without=WITHOUT, scene=scene)


def score_table(seeds: Sequence[int] = SEEDS, methods: Sequence[str] = METHODS) -> pd.DataFrame:
    """Scores at random, some undefined, with what does not count among them; ``edge`` is 0 throughout."""
    rng = np.random.default_rng(8)
    rows: list[tuple[Any, ...]] = []
    for seed in seeds:
        for method in methods:
            for place, member in enumerate(SERIES):
                for variant in ("object", "random"):
                    for image in IMAGES:
                        drawn = rng.normal(0.2 - 0.1 * place, 0.1)
                        rows.append(
                            (seed, method, member.model, "concept_attribution", variant, image, drawn)
                        )
                        if image == 9 or (method == "NA" and place == 1):
                            continue  # outside X_corr
                        score = NAN if image == 5 and method != "edge" else drawn
                        last = member is SERIES[-1] or method == "edge"
                        score = 0.0 if last and not math.isnan(score) else score
                        rows.append((seed, method, f"{member.model}-f_k10", "mcs", variant, image, score))
                    rows.append((seed, method, "f_o-f_s", "mcs", variant, 1, 99.0))
                    rows.append((seed, method, f"{member.model}-f_k10", "idr", variant, 1, 99.0))
    table = pd.DataFrame(rows, columns=["seed", "method", "model", "metric", "variant", "image", "score"])
    return table.drop_duplicates(["seed", "method", "model", "metric", "variant", "image"])


def concept_table(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    rows = [
        (model, seed, layer, rng.random(), rng.random(), 40 + place)
        for seed in seeds
        for place, model in enumerate([*MODELS, "f_o"])
        for layer in ("block1", "mean", "logits")
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "layer", "score", "random", "images"])


# ------------------------------------------------------------------------------------------------ tables


def test_accuracy_is_that_of_the_first_scenes_test_images() -> None:
    table, rows = commonality(), predictions()
    assert list(zip(table["seed"], table["model"], strict=True)) == [(s, m) for s in SEEDS for m in MODELS]
    assert table["k"].tolist() == [0.1, 0.3, 0.7, 1.0] * 2
    assert set(table["images"]) == {len(IMAGES)}
    right = rows[rows["image"].isin(IMAGES)].assign(right=lambda of: 100.0 * (of["predicted"] == 0))
    shares = right.groupby(["model", "seed", "data"])["right"].mean()
    for row in table.to_dict("records"):
        key = row["model"], row["seed"]
        with_object, without = shares[(*key, f"bam_os_k{round(10 * row['k']):02d}")], shares[(*key, WITHOUT)]
        assert (row["with_object"], row["without"]) == pytest.approx((with_object, without))
        assert row["drop"] == pytest.approx(with_object - without)
    assert table["drop"].nunique() > 3


def test_printed_values_are_those_of_the_paper() -> None:
    table = commonality()
    assert table["printed_with"].tolist() == [97, 96, 92, 95] * 2
    assert table["printed_without"].tolist() == [78, 81, 93, 93] * 2
    assert commonality(scene="bedroom")[["printed_with", "printed_without"]].isna().all(axis=None)
    # k = 3 · 0.1 is not 0.3 to the last bit; k = 0.25 is none of the paper's.
    odd = [SeriesModel("f_k01", "bam_os_k01", 0.25), SeriesModel("f_k03", "bam_os_k03", 3 * 0.1)]
    table = commonality_table(predictions(), odd, without=WITHOUT, scene="bamboo_forest")
    assert table["printed_with"].tolist() == pytest.approx([NAN, 96] * 2, nan_ok=True)


def test_predictions_that_do_not_fit_are_refused() -> None:
    rows = predictions()
    missing = rows[(rows["data"] != WITHOUT) | (rows["seed"] == 0)]
    others = rows[(rows["image"] != 5) | (rows["data"] != "bam_os_k03") | (rows["seed"] == 0)]
    for table, message in (
        (missing, r"f_k01, seed 7: found no test image of the first scene class in bam_0s_k"),
        (others, r"f_k03, seed 7: found 5 test images of bamboo_forest in bam_os_k03, 6 in bam_0s_k"),
    ):
        with pytest.raises(ValueError, match=f"^predictions: {message}"):
            commonality_table(table, SERIES, without=WITHOUT, scene="bamboo_forest")


def mean_and_standard_error(scores: pd.Series) -> tuple[float, float]:
    """Mean and standard error of what is not NaN."""
    return scores.mean(), scores.sem()


@pytest.mark.parametrize("images", [IMAGES, (2,)])
def test_series_are_means_over_the_images_of_x_corr(images: tuple[int, ...]) -> None:
    rows = score_table()
    rows = rows[rows["image"].isin(images)]
    table = series_table(rows, SERIES)
    expected = [(s, method, member.model) for s in SEEDS for method in METHODS for member in SERIES]
    assert list(zip(table["seed"], table["method"], table["model"], strict=True)) == expected
    mcs = rows[rows["metric"] == "mcs"]
    for row in table.to_dict("records"):
        of_row = mcs[(mcs["seed"] == row["seed"]) & (mcs["method"] == row["method"])]
        of_row = of_row[of_row["model"] == f"{row['model']}-f_k10"]
        scores = {
            variant: of_row.loc[of_row["variant"] == variant, "score"] for variant in ("object", "random")
        }
        measured = [row["mcs"], row["standard_error"], row["random"], row["random_standard_error"]]
        expected_values = [value for of in scores.values() for value in mean_and_standard_error(of)]
        assert measured == pytest.approx(expected_values, nan_ok=True)
        assert row["undefined"] == scores["object"].isna().sum()
        assert row["images"] + row["undefined"] == len(scores["object"])
    of_method = table[table["seed"] == 7].set_index(["method", "model"])
    if images == IMAGES:
        assert of_method.loc[("gradcam", "f_k01"), ["images", "undefined"]].tolist() == [4, 1]
    nothing = of_method.loc[("NA", "f_k03")]  # no image in X_corr
    assert nothing[["images", "undefined"]].tolist() == [0, 0]
    assert nothing[["mcs", "standard_error", "random"]].isna().all()


def test_tcav_is_a_difference_of_the_means_over_layers() -> None:
    concepts = concept_table()
    table = series_table(score_table(), SERIES, concepts)
    tcav = table[table["method"] == "tcav"].set_index(["seed", "model"])
    assert list(tcav.index) == [(s, m) for s in SEEDS for m in MODELS]
    means = concepts[concepts["layer"] == "mean"].set_index(["seed", "model"])
    for (seed, model), row in tcav.iterrows():  # type: ignore[misc]
        here, last = means.loc[(seed, model)], means.loc[(seed, "f_k10")]
        assert row["mcs"] == here["score"] - last["score"]
        assert row["random"] == here["random"] - last["random"]
        assert (row["images"], row["undefined"]) == (here["images"], 0)
    assert tcav[["standard_error", "random_standard_error"]].isna().all(axis=None)
    pd.testing.assert_frame_equal(
        table[table["method"] != "tcav"], series_table(score_table(), SERIES), check_dtype=False
    )


def test_tcav_without_a_layer_is_undefined() -> None:
    concepts = concept_table(seeds=(0,))
    for model, expected in (
        ("f_k03", [[40, 0], [0, 41], [42, 0], [43, 0]]),
        ("f_k10", [[0, 40], [0, 41], [0, 42], [0, 0]]),
    ):
        at = (concepts["layer"] == "mean") & (concepts["model"] == model)
        concepts.loc[at, ["score"] if model == "f_k03" else ["score", "images"]] = NAN
        tcav = series_table(score_table(seeds=(0,)), SERIES, concepts).query("method == 'tcav'")
        assert tcav[["images", "undefined"]].to_numpy().tolist() == expected
        assert (tcav["mcs"].isna() == (tcav["images"] == 0)).all()
    lacking = concept_table()
    lacking = lacking[(lacking["seed"] == 0) | (lacking["model"] != "f_k03")]
    with pytest.raises(ValueError, match=r"^concepts: found no mean of f_k03, seed 7"):
        series_table(score_table(), SERIES, lacking)


def test_correlation_is_pearsons_over_k() -> None:
    series, accuracy = series_table(score_table(), SERIES, concept_table()), commonality()
    table = correlation_table(series, accuracy)
    assert list(zip(table["method"], table["seed"], strict=True)) == [
        *((method, 0) for method in METHODS),
        *((method, 7) for method in METHODS),
        *(("tcav", seed) for seed in SEEDS),
    ]
    for row in table.to_dict("records"):
        of_pair = series[(series["method"] == row["method"]) & (series["seed"] == row["seed"])]
        mcs = of_pair["mcs"].to_numpy()
        drop = accuracy.loc[accuracy["seed"] == row["seed"], "drop"].to_numpy()
        defined = ~np.isnan(mcs)
        assert row["points"] == defined.sum() == (3 if row["method"] == "NA" else 4)
        if row["method"] == "edge":
            assert math.isnan(row["correlation"])
        else:
            expected = pearsonr(mcs[defined], drop[defined]).statistic
            assert row["correlation"] == pytest.approx(expected, abs=1e-12)


def test_correlation_needs_three_points_that_differ() -> None:
    series, accuracy = series_table(score_table(), SERIES), commonality()
    series.loc[(series["method"] == "NA") & (series["model"] == "f_k01"), "mcs"] = NAN
    table = correlation_table(series, accuracy).set_index(["method", "seed"])
    assert table.loc[("NA", 0), "points"] == 2
    assert table.loc["NA", "correlation"].isna().all()
    assert table.loc["gradcam", "correlation"].notna().all()
    level = correlation_table(series, accuracy.assign(drop=12.5))
    assert level["correlation"].isna().all()
    assert level["points"].max() == 4
    opposed = series.assign(mcs=3 - 0.01 * series.merge(accuracy, on=["seed", "model"])["drop"])
    np.testing.assert_allclose(correlation_table(opposed, accuracy)["correlation"], -1)


def test_tables_are_shown_beside_the_papers_values() -> None:
    accuracy, series = commonality(), series_table(score_table(), SERIES, concept_table())
    correlation = correlation_table(series, accuracy)
    first, on_object, on_random = series_tables(accuracy, series, correlation, scene="bamboo_forest").values()
    assert first["drop (points): this study / published"][1] == f"{accuracy['drop'][1]:.1f} / 15.0"
    for table, name in ((on_object, "mcs"), (on_random, "random")):
        values = series.pivot_table(index=["method", "seed"], columns="k", values=name, dropna=False)
        for row in table.to_dict("records"):
            shown = [row[f"k = {k:g}"] for k in (0.1, 0.3, 0.7, 1.0)]
            assert shown == pytest.approx(values.loc[(row["method"], row["seed"])].tolist(), nan_ok=True)
    assert on_object["images"].tolist()[:3] == ["4", "5", "0–4"]
    assert on_object["without score"].tolist()[:3] == [4, 0, 3]
    rho = correlation.set_index(["method", "seed"])["correlation"]
    expected = [rho[key] for key in zip(on_object["method"], on_object["seed"], strict=True)]
    assert on_object["ρ with the drop"].tolist() == pytest.approx(expected, nan_ok=True)


# ------------------------------------------------------------------------------------------------ figure


def plotted(seeds: Sequence[int] = SEEDS) -> tuple[Figure, pd.DataFrame, pd.DataFrame]:
    accuracy = commonality(seeds=seeds)
    series = series_table(score_table(seeds), SERIES, concept_table(seeds))
    correlation = correlation_table(series, accuracy)
    with styled():
        return series_figure(series, accuracy, correlation), series, correlation


def curves(figure: Figure) -> dict[str, Any]:
    """The lines against k by their colors and styles as the legend names them."""
    legend = figure.axes[2].get_legend()
    assert legend is not None
    lines = [line for axes in figure.axes[:2] for line in axes.lines]
    by_label = {}
    for handle, text in zip(legend.get_lines(), legend.get_texts(), strict=True):
        same = [
            line
            for line in lines
            if (to_hex(line.get_color()), line.get_linestyle(), line.get_marker())
            == (to_hex(handle.get_color()), handle.get_linestyle(), handle.get_marker())
        ]
        assert len(same) == 1, text.get_text()
        by_label[text.get_text()] = same[0]
    return by_label


@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_lines_are_means_over_seeds_with_their_range_or_the_standard_error(seeds: tuple[int, ...]) -> None:
    figure, series, _ = plotted(seeds)
    drop, *lines = curves(figure).items()
    at_first = series[series["k"] == 0.1].groupby("method")["mcs"].mean().sort_values(ascending=False)
    assert [name.lower() for name, _ in lines] == [str(name).lower() for name in at_first.index]
    for (name, line), method in zip([drop, *lines], ["drop", *at_first.index], strict=True):
        of_drop = commonality(seeds=seeds).assign(mcs=lambda table: table["drop"])
        rows = of_drop if method == "drop" else series[series["method"] == method]
        np.testing.assert_allclose(line.get_xdata(), [0.1, 0.3, 0.7, 1.0])
        np.testing.assert_allclose(line.get_ydata(), rows.groupby("k")["mcs"].mean())
        assert line.axes is figure.axes[method == "drop"]
        assert line.get_linestyle() == {"drop": "--", "tcav": ":"}.get(method, "-"), name
    first = series[(series["method"] == "gradcam") & (series["k"] == 0.1)]
    mean, error = first["mcs"].mean(), first["standard_error"].mean()
    ends = (first["mcs"].min(), first["mcs"].max()) if len(seeds) > 1 else (mean - error, mean + error)
    assert band(figure, 0) == pytest.approx(ends)
    assert ("× 2 seeds" in figure.axes[0].get_xlabel()) == (len(seeds) > 1)


def band(figure: Figure, place: int) -> tuple[float, float]:
    """The least and greatest height of a method's band at the smallest k."""
    vertices = np.concatenate([path.vertices for path in figure.axes[0].collections[place].get_paths()])
    heights = np.asarray(vertices)[np.isclose(np.asarray(vertices)[:, 0], 0.1), 1]
    return float(heights.min()), float(heights.max())


@pytest.mark.parametrize(
    ("sign", "drop"), [(1, (20.0, 5.0)), (1, (-3.0, 5.0)), (-1, (-3.0, -9.0)), (-1, (0.0, 0.0))]
)
def test_both_zeros_are_at_one_height(sign: int, drop: tuple[float, float]) -> None:
    _, series, correlation = plotted(seeds=(0,))
    series["mcs"] = sign * series["mcs"].abs()
    accuracy = commonality(seeds=(0,)).assign(drop=[*drop, *drop])
    left, right, *_ = series_figure(series, accuracy, correlation).axes
    heights = []
    for axes, values in ((left, series["mcs"]), (right, accuracy["drop"])):
        low, high = axes.get_ylim()
        assert low < min(values.min(), 0)
        assert high > max(values.max(), 0)
        heights.append(-low / (high - low))
        if np.any(values):
            assert high - low < 2.4 * (max(values.max(), 0) - min(values.min(), 0))
    assert heights[0] == pytest.approx(heights[1])


def bars(figure: Figure) -> tuple[list[str], list[float], list[str]]:
    axes = figure.axes[3]
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    heights = [patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
    return names, heights, [to_hex(patch.get_facecolor()) for patch in axes.patches]


def test_bars_are_correlations_best_method_first() -> None:
    figure, _, correlation = plotted()
    names, heights, colors = bars(figure)
    means = correlation.groupby("method")["correlation"].mean().sort_values(ascending=False)
    assert names == ["TCAV" if name == "tcav" else name for name in means.index]
    assert names[-1] == "edge"
    assert heights == pytest.approx(means.tolist(), nan_ok=True)
    assert colors == [to_hex(curves(figure)[name].get_color()) for name in names]
    texts = {text.get_text() for text in figure.axes[3].texts}
    assert texts == {"×", *(f"{mean:.2f}".replace("-", "−") for mean in means[:-1])}
    dots = [line for line in figure.axes[3].lines if line.get_marker() == "o"]
    assert [sorted(dot.get_ydata()) for dot in dots] == [
        pytest.approx(sorted(correlation.loc[correlation["method"] == name, "correlation"]))
        for name in means.index[:-1]
    ]
    figure, _, _ = plotted(seeds=(0,))
    assert not [line for line in figure.axes[3].lines if line.get_marker() == "o"]


# --------------------------------------------------------------------------------------------- one image


def test_the_image_is_the_one_that_most_models_know() -> None:
    rows = predictions()
    candidates = np.array([14, 2, 9, 11])
    image, right = select_image(rows, SERIES, seed=7, images=candidates)
    of_seed = rows[rows["seed"] == 7].assign(right=rows["predicted"] == rows["label"])
    by_key = of_seed.set_index(["model", "data", "image"])["right"]
    known = {
        candidate: [by_key[member.model, member.data, candidate] for member in SERIES]
        for candidate in sorted(candidates.tolist())
    }
    assert image == max(known, key=lambda candidate: sum(known[candidate]))  # the first of those
    assert right == known[image]
    even = rows.assign(predicted=rows["label"])
    assert select_image(even, SERIES, seed=0, images=candidates) == (2, [True] * 4)


SIDE = 6


def test_the_page_has_methods_in_rows_and_k_in_columns() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (3, SIDE, SIDE), dtype=np.uint8)
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    mask[1:4, 2:5] = True
    maps = {name: rng.random((3, SIDE, SIDE)) for name in ("guided_backprop", "edge")}
    maps["edge"][1] = NAN
    figure = series_maps(
        image, mask, maps, ks=[0.1, 0.5, 1.0], right=[True, False, True], title="image 3", labels=SPACED
    )
    composite, *cells = figure.axes
    np.testing.assert_array_equal(composite.images[0].get_array(), image.transpose(1, 2, 0))
    assert [axes.get_title().split("\n")[1] for axes in cells[:3]] == ["correct", "incorrect", "correct"]
    assert [axes.get_ylabel() for axes in cells] == ["guided\nbackprop", "", "", "edge", "", ""]
    for axes, saliency in zip(cells, [*maps["guided_backprop"], *maps["edge"]], strict=True):
        if np.isnan(saliency).any():
            assert [text.get_text() for text in axes.texts] == ["×"]
            assert not axes.images
            continue
        np.testing.assert_array_equal(axes.images[0].get_array(), saliency)
        assert axes.images[0].get_clim() == (0, 1)
        assert len(axes.collections) == 1  # the outline
        inside = [saliency[y, x] for y in range(1, 4) for x in range(2, 5)]
        assert axes.get_xlabel() == f"{sum(inside) / 9:.2f}"


# ----------------------------------------------------------------------------------------------- the job


def inputs(folder: Path) -> dict[str, Any]:
    """All that the job reads, in the order of its rule."""
    rng = np.random.default_rng(6)
    files: dict[str, Any] = {"scores": [], "predictions": [], "data": [], "maps": []}
    table, known = score_table(), predictions()
    for seed in SEEDS:
        for method in METHODS:
            rows = table[(table["seed"] == seed) & (table["method"] == method)]
            path = folder / f"scores_{seed}_{method}.parquet"
            score_tables.write(path, rows.assign(study="bam", data="any"))
            files["scores"].append(str(path))
    digests = {}
    for member in SERIES:
        for seed in SEEDS:
            path = folder / f"{member.model}_{seed}.parquet"
            known[(known["model"] == member.model) & (known["seed"] == seed)].to_parquet(path)
            files["predictions"].append(str(path))
        path = folder / f"{member.data}.zarr.zip"
        mask = np.zeros((16, 8, 8), dtype=bool)
        mask[:, 2:5, 1:6] = True
        block = {"image": rng.integers(0, 256, (16, 3, 8, 8), dtype=np.uint8), "mask": mask}
        zarr_store.write(path, [block], kind="data", attributes={})
        with zarr_store.open_store(path, kind="data") as opened:
            digests[member.data] = opened.attributes["digest"]
        files["data"].append(str(path))
    for method in METHODS:
        for member in SERIES:
            path = folder / f"{method}_{member.model}.zarr.zip"
            maps = rng.random((len(IMAGES), 3, 8, 8), dtype=np.float32)
            block = {"map": maps, "image": np.array(IMAGES)}
            zarr_store.write(path, [block], kind="maps", attributes={"data": digests[member.data]})
            files["maps"].append(str(path))
    files["concepts"] = str(folder / "concepts.csv")
    concept_table().to_csv(files["concepts"], index=False)
    return files


def run(folder: Path, files: dict[str, Any]) -> dict[str, Path]:
    """Tabulate and plot the series, and return the tables, the pages and the figure."""
    settings = {"models": MODELS, "without": WITHOUT, "scene": "bamboo_forest"}
    settings |= {"sets": [of.data for of in SERIES], "k": [of.k for of in SERIES]}
    tables = {name: folder / f"{name}.csv" for name in ("commonality", "series", "correlation")}
    read = {name: files[name] for name in ("scores", "predictions", "concepts")}
    run_script("tabulate_series", folder, settings, read, tables)
    names = {"accuracy": "html", "figure": "svg", "maps": "png"}
    shown = {name: folder / f"made_{name}.{kind}" for name, kind in names.items()}
    of_first = [path for path in files["predictions"] if path.endswith(f"_{SEEDS[0]}.parquet")]
    read = {**tables, "predictions": of_first, "data": files["data"], "maps": files["maps"]}
    settings |= {"methods": list(METHODS), "seed": SEEDS[0], "labels": {}}
    run_script("plot_series", folder, settings, read, shown, study="bam")
    return tables | shown


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def test_the_job_writes_tables_and_shows_the_chosen_image_of_the_first_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = inputs(tmp_path)
    arguments: dict[str, Any] = {}

    def spy(image: Any, mask: Any, maps: Any, **named: Any) -> Figure:
        arguments.update(image=image, mask=mask, maps=maps, **named)
        return series_maps(image, mask, maps, **named)

    monkeypatch.setattr("saliency_assay.studies.bam.series_figures.series_maps", spy)
    output = run(tmp_path, files)
    series = series_table(score_table(), SERIES, concept_table())
    pd.testing.assert_frame_equal(read(output["commonality"]), commonality())
    pd.testing.assert_frame_equal(read(output["series"]), series, check_dtype=False)
    pd.testing.assert_frame_equal(read(output["correlation"]), correlation_table(series, commonality()))
    assert "<td>tcav</td>" in output["accuracy"].read_text("utf-8")
    image, right = select_image(predictions(), SERIES, seed=0, images=np.array(IMAGES))
    assert f"test image {image}:" in arguments["title"]
    assert arguments["right"] == right
    assert arguments["ks"] == [0.1, 0.3, 0.7, 1.0]
    with zarr_store.open_store(Path(files["data"][-1]), kind="data") as data:
        np.testing.assert_array_equal(arguments["image"], data["image"][image])
        np.testing.assert_array_equal(arguments["mask"], data["mask"][image])
    assert list(arguments["maps"]) == list(METHODS)
    for place, path in enumerate(files["maps"]):
        with zarr_store.open_store(Path(path), kind="maps") as stored:
            raw = torch.from_numpy(stored["map"][[IMAGES.index(image)]])
        shown = arguments["maps"][METHODS[place // 4]][place % 4]
        np.testing.assert_array_equal(shown, reduce(raw, "visual")[0])


def test_the_job_refuses_maps_of_another_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = inputs(tmp_path)
    files["maps"][1], files["maps"][2] = files["maps"][2], files["maps"][1]
    with pytest.raises(SystemExit):
        run(tmp_path, files)
    assert re.match(
        r"plot_series: .*/gradcam_f_k07\.zarr\.zip: data is '\w+', expected '", capsys.readouterr().err
    )
