"""Curves of the report against plain loops over images: means, bands, and what stands on the axes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from plotted import chart_lines, half_widths
from spaced import SPACED

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.reliability.variance import mean_of
from saliency_assay.studies.fidelity.curves import (
    aopc_curves,
    band,
    randomization_curves,
    removal_curves,
    subset_curves,
)

NAN = float("nan")
IMAGES = 4
RNG = np.random.default_rng(8)
Curves = Mapping[str, Mapping[str, np.ndarray]]


def metric_results(
    curves: Curves,
    variants: Mapping[str, Sequence[str]],
    *,
    seeds: Sequence[int] = (0,),
    responses: Mapping[str, np.ndarray] | None = None,
    higher: Sequence[str] = (),
    output: str = "probability",
) -> MetricResults:
    """``variants`` are the sub-variants of each score; scores themselves are no part of these figures."""
    rows = [
        ("s", "d", "net", seed, method, score, f"entry {sub}".strip(), image, 0.5)
        for method in curves
        for seed in seeds
        for score, subs in variants.items()
        for sub in subs
        for image in range(IMAGES)
    ]
    columns = ["study", "data", "model", "seed", "method", "metric", "variant", "image", "score"]
    return MetricResults(
        entry="entry",
        parameters={"output": output},
        scores=pd.DataFrame(rows, columns=columns),
        labels={score: f"the {score}" for score in variants},
        directions={score: "higher" if score in higher else "lower" for score in variants},
        curves=curves,
        responses=responses or {},
        methods=list(curves),
        names=SPACED,
    )


def half_width(values: np.ndarray) -> np.ndarray:
    return 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))


# --- AOPC ---------------------------------------------------------------------------------------------------

LENGTH = 6
ORDERS = 40


def aopc(outputs: np.ndarray, length: int) -> float:
    """AOPC_L of f(x⁰), f(x¹), …, term by term."""
    total = 0.0
    for k in range(1, length + 1):
        total += outputs[0] - outputs[k]
    return total / (length + 1)


def aopc_results(seeds: Sequence[int] = (0,)) -> MetricResults:
    rows = IMAGES * len(seeds)
    curves = {
        method: {name: RNG.uniform(size=(rows, LENGTH + 1)) for name in ("morf", "lerf")}
        for method in ("guided_backprop", "one_missing", "never")
    }
    for name in ("morf", "lerf"):
        curves["one_missing"][name][1] = NAN
        curves["never"][name][:] = NAN
    for of in curves.values():
        of["defined"] = np.isfinite(of["morf"]).all(1)  # a store of curves holds this too
    responses = {
        "random_curve": RNG.uniform(size=(rows, LENGTH + 1)),
        "random_aopc": RNG.normal(0.1, 0.3, size=(rows, ORDERS, 3)),
    }
    subs = ["L=2", "L=4", "L=6"]
    return metric_results(
        curves,
        {"aopc_morf": subs, "aopc_lerf": subs},
        seeds=seeds,
        responses=responses,
        higher=["aopc_morf"],
    )


@pytest.mark.parametrize("seeds", [(0,), (3, 9)])
@pytest.mark.parametrize(("place", "name"), [(0, "morf"), (1, "lerf")])
def test_aopc_curves_are_aopc_less_that_of_random_orders(
    place: int, name: str, seeds: tuple[int, ...]
) -> None:
    """An image counts once, however many seeds scored it."""
    results = aopc_results(seeds)
    panel = aopc_curves(results).panels[place]
    _, *lines = chart_lines(panel).values()
    for line, method in zip(lines, ("guided_backprop", "one_missing"), strict=True):  # none without a curve
        rows = zip(results.curves[method][name], results.responses["random_curve"], strict=True)
        differences = [
            [aopc(curve, length) - aopc(random, length) for length in range(LENGTH + 1)]
            for curve, random in rows
        ]
        images = np.tile(range(IMAGES), len(seeds))
        by_image = pd.DataFrame(differences).groupby(images).mean().dropna().to_numpy()
        assert len(by_image) == (3 if method == "one_missing" and len(seeds) == 1 else 4)
        np.testing.assert_array_equal(line["x"], range(LENGTH + 1))
        assert set(line["images"]) == {len(by_image)}
        np.testing.assert_allclose(line["mean"], by_image.mean(0), atol=1e-12)
        np.testing.assert_allclose(half_widths(line), half_width(by_image), atol=1e-12)
    undefined = (LENGTH + 1) * (1 + len(seeds) * IMAGES)  # of "one_missing" and "never"
    assert f"{undefined} of {(LENGTH + 1) * 3 * len(seeds) * IMAGES} values undefined" in panel.x_title


def test_random_orders_have_a_band_of_their_own_around_zero() -> None:
    results = aopc_results()
    chart = aopc_curves(results)
    means = results.responses["random_aopc"].mean(axis=0)
    label = "random orders: central 95 % of 40"
    for panel in chart.panels:
        line = chart_lines(panel)[label]
        assert list(line["x"]) == [0, 2, 4, 6]
        assert not line["mean"].any()
        assert (line["low"][0], line["high"][0]) == (0, 0)
        for prefix in range(3):
            around = means[:, prefix] - means[:, prefix].mean()
            band = line["low"][prefix + 1], line["high"][prefix + 1]
            assert band == pytest.approx(tuple(np.percentile(around, (2.5, 97.5))))
            assert band[0] < 0 < band[1]
    assert list(chart.looks) == ["guided backprop", "one missing", "never: no score", label]


def test_curves_of_unequal_seeds_are_refused() -> None:
    short = {"a": {"curve": RNG.uniform(size=(11, 3))}}
    with pytest.raises(ValueError, match=r"^curves: found 11 rows, expected a multiple of 3, the seeds$"):
        removal_curves(metric_results(short, {"deletion": [""]}, seeds=(0, 1, 2)))


# --- removal ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "verb", "side"),
    [("deletion", "removed", "← lower is better"), ("insertion", "inserted", "higher is better →")],
)
def test_deletion_and_insertion_run_from_nothing_to_all_pixels(score: str, verb: str, side: str) -> None:
    curves = {method: {"curve": RNG.uniform(size=(IMAGES, 5))} for method in ("a", "b_c")}
    chart = removal_curves(metric_results(curves, {score: [""]}, higher=["insertion"], output="logit"))
    (panel,) = chart.panels
    for line, of in zip(chart_lines(panel).values(), curves.values(), strict=True):
        assert list(line["x"]) == [0, 25, 50, 75, 100]
        np.testing.assert_allclose(line["mean"], of["curve"].mean(0))
        np.testing.assert_allclose(half_widths(line), half_width(of["curve"]))
    assert panel.x_title == f"pixels {verb} (%)\nmean and its 95 % band, n = 4 images"
    assert panel.y_title == f"output (logit)\n{side}"
    assert list(chart.looks) == ["a", "b c"]


def test_road_leaves_some_of_the_image() -> None:
    curves = {"a": {"morf": RNG.uniform(size=(IMAGES, 4)), "lerf": RNG.uniform(size=(IMAGES, 4))}}
    chart = removal_curves(
        metric_results(curves, {"road_morf": [""], "road_lerf": [""]}, higher=["road_lerf"])
    )
    for panel, name in zip(chart.panels, ("morf", "lerf"), strict=True):
        line = chart_lines(panel)["a"]
        assert list(line["x"]) == [0, 25, 50, 75]  # i / (points + 1) for 3 points
        np.testing.assert_allclose(line["mean"], curves["a"][name].mean(0))
        assert panel.title == f"the road_{name}"
    assert [panel.y_title.split("\n")[1] for panel in chart.panels] == [
        "← lower is better",
        "higher is better →",
    ]


def test_curves_of_one_image_have_no_band() -> None:
    results = metric_results({"a": {"curve": np.full((1, 3), 0.5)}}, {"deletion": [""]})
    (panel,) = removal_curves(results).panels
    line = chart_lines(panel)["a"]
    assert list(line["mean"]) == [0.5] * 3
    assert np.isnan(line["low"]).all()
    assert np.isnan(line["high"]).all()
    assert panel.x_title.endswith("n = 1 images")


def test_bands_are_those_of_groups() -> None:
    values = np.array([[0.0, 1, NAN], [2, 1, NAN], [4, 1, 3], [9, 1, 5]])
    groups = np.array([0, 0, 1, 1])
    mean, half = band(values, {"groups": groups})
    np.testing.assert_allclose(mean, [3.75, 1, 4])
    low, high = mean_of(values[:, 0], {"groups": groups}).interval()
    assert half[:2] == pytest.approx([(high - low) / 2, 0])
    assert half[0] > half_width(values)[0]
    assert np.isnan(half[2])  # two images of one group
    curves = {"a": {"curve": RNG.uniform(size=(IMAGES, 3))}}
    results = metric_results(curves, {"deletion": [""]})
    grouped = replace(
        results, scores=results.scores.assign(group=lambda rows: rows["image"].clip(upper=1).astype(str))
    )
    assert "n = 4 images of 2 groups" in removal_curves(grouped).panels[0].x_title


def test_nothing_defined_says_so() -> None:
    chart = removal_curves(
        metric_results({"a": {"curve": np.full((IMAGES, 3), NAN)}, "b": {}}, {"deletion": [""]})
    )
    assert chart.panels[0].x_title == "pixels removed (%)\nno score"
    assert list(chart.looks) == ["a: no score", "b: no score"]
    assert not len(chart.panels[0].rows)


# --- subsets ------------------------------------------------------------------------------------------------


def test_subset_curves_stand_at_the_sizes_of_the_variants() -> None:
    correlation = RNG.uniform(-1, 1, size=(IMAGES, 3))
    correlation[2, 1] = NAN
    results = metric_results(
        {"a": {"correlation": correlation}}, {"sensitivity_n": ["", "n=1", "n=7", "n=50"]}
    )
    (panel,) = subset_curves(results).panels
    line = chart_lines(panel)["a"]
    assert list(line["x"]) == [1, 7, 50]
    assert list(line["images"]) == [4, 3, 4]
    np.testing.assert_allclose(
        line["mean"], [correlation[:, 0].mean(), np.nanmean(correlation[:, 1]), correlation[:, 2].mean()]
    )
    assert half_widths(line)[1] == pytest.approx(half_width(correlation[[0, 1, 3], 1]))
    assert panel.logarithmic
    assert panel.x_title.endswith("n = 3–4 images per point\n1 of 12 values undefined")


# --- randomization ------------------------------------------------------------------------------------------

MEASURES = ("spearman", "spearman_absolute", "ssim")
LAYERS = ("fc", "layer3.a b", "a.very.long.path.to.the.first.conv")


def randomized(layers: Sequence[str] = LAYERS) -> MetricResults:
    curves = {
        method: {
            f"{kind}_{measure}": np.hstack([np.ones((IMAGES, 1)), RNG.uniform(size=(IMAGES, len(layers)))])
            for kind in ("cascading", "independent")
            for measure in MEASURES
        }
        for method in ("a", "b")
    }
    subs = [
        f"{kind} {number} {layer}".strip()
        for kind, named in (("cascading", layers), ("independent", layers[::-1]))
        for number, layer in enumerate(named, start=1)
    ]
    scores = {f"randomization_{measure}": subs for measure in MEASURES}
    return replace(metric_results(curves, scores), directions=dict.fromkeys(scores, "target 0"))


def test_randomization_curves_begin_with_the_model_and_name_the_layers() -> None:
    results = randomized()
    grid = np.array(randomization_curves(results).panels, dtype=object).reshape(2, 3)
    for row, kind in zip(grid, ("cascading", "independent"), strict=True):
        for panel, measure in zip(row, MEASURES, strict=True):
            for method, line in chart_lines(panel).items():
                assert list(line["x"]) == [0, 1, 2, 3]
                np.testing.assert_allclose(line["mean"], results.curves[method][f"{kind}_{measure}"].mean(0))
                assert line["mean"][0] == 1
            names = ["fc", "layer3.a b", "…ath.to.the.first.conv"]
            assert panel.ticks == ["model", *(names if kind == "cascading" else names[::-1])]
            assert panel.title.startswith(f"{kind}: ")


def test_a_point_of_few_images_is_faint_and_counted() -> None:
    curve = np.tile([1.0, 0.5, 0.9, 0.8], (20, 1))
    curve[2:, 2] = NAN  # 2 of 20
    curve[:10, 3] = NAN  # half of them are enough
    curve[:2, 2] = 0.1
    results = randomized(layers=["one", "two", "three"])
    names = results.curves["a"]
    curves = {"a": dict.fromkeys(names, curve), "b": dict.fromkeys(names, np.full((20, 4), 0.3))}
    panel = randomization_curves(replace(results, curves=curves)).panels[0]
    first, second = chart_lines(panel).values()
    np.testing.assert_allclose(first["mean"], [1, 0.5, 0.1, 0.8])
    assert list(first["faint"]) == [0, 0, 1, 0]
    assert list(np.isnan(first["low"])) == [False, False, True, False]
    np.testing.assert_allclose(second["mean"], 0.3)
    assert not second["faint"].any()
    assert not np.isnan(second["low"]).any()
    assert "n = 2–20 images per point\n28 of 160 values undefined\n" in panel.x_title


def test_half_is_of_the_images_that_a_method_has() -> None:
    curve = np.full((10, 3), NAN)
    curve[:4] = 0.5  # six images without any value
    curve[:2, 1] = NAN
    results = metric_results({"a": {"curve": curve}}, {"deletion": [""]})
    (panel,) = removal_curves(results).panels
    assert not panel.rows["faint"].any()
    assert panel.x_title.endswith("n = 2–4 images per point\n20 of 30 values undefined")
    curve[2, 1] = NAN
    (panel,) = removal_curves(results).panels
    assert list(panel.rows["faint"]) == [0, 1, 0]


# --- files --------------------------------------------------------------------------------------------------
