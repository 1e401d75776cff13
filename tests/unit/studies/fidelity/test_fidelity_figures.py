"""Boxes, densities, scatter and tables of scores: what is drawn and printed is what the scores are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from plotted import assert_apart
from spaced import SPACED

from saliency_assay.plotting.metric_results import MetricResults
from saliency_assay.plotting.palette import BLUE
from saliency_assay.plotting.statistics import mean_and_band, over_seeds
from saliency_assay.plotting.style import styled
from saliency_assay.reliability.clusters import with_clusters
from saliency_assay.reliability.printed import printed_values, score_tables, side_by_side
from saliency_assay.reliability.variance import mean_of
from saliency_assay.storage.score_tables import COLUMNS
from saliency_assay.studies.fidelity.fidelity_tables import summary
from saliency_assay.studies.fidelity.figures import boxes, distributions
from saliency_assay.studies.fidelity.scatter import infidelity_sensitivity

NAN = float("nan")
LADDER = np.arange(101.0)  # percentiles 5, 25, 50, 75, 95 are these numbers
Scores = Mapping[tuple[str, str, str, int], Sequence[float]]


def table(scores_of: Scores) -> pd.DataFrame:
    """Scores of images 0, 1, … by metric, variant, method and seed."""
    rows = [
        ("s", "some_data", "net", seed, method, metric, variant, image, score)
        for (metric, variant, method, seed), scores in scores_of.items()
        for image, score in enumerate(scores)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def metric_results(
    scores_of: Scores, entry: str = "entry", directions: Mapping[str, str] | None = None
) -> MetricResults:
    metrics = list(dict.fromkeys(metric for metric, *_ in scores_of))
    return MetricResults(
        entry=entry,
        parameters={},
        scores=table(scores_of),
        labels={metric: f"the {metric}" for metric in metrics},
        directions=directions or dict.fromkeys(metrics, "higher"),
        curves={},
        responses={},
        methods=list(dict.fromkeys(method for _, _, method, _ in scores_of)),
        names=SPACED,
    )


def three_methods(seeds: tuple[int, ...] = (0,)) -> MetricResults:
    scores_of = {}
    for seed in seeds:
        scores_of["m", "entry", "guided_backprop", seed] = LADDER + 10 * seed
        scores_of["m", "entry", "one_missing", seed] = [NAN, *(100 - LADDER)]
        scores_of["m", "entry", "never", seed] = [NAN] * 101
    return metric_results(scores_of)


def boxes_of(axes: Axes) -> list[tuple[float, ...]]:
    """The place of each box, then its left and right end, the ends of its whiskers, and its median."""
    ends = []
    for box in axes.patches:
        x, y = box.get_path().vertices.T
        place = (y.min() + y.max()) / 2
        at = [line for line in axes.lines if np.isclose(np.mean(line.get_ydata()), place)]
        caps = sorted(
            line.get_xdata()[0] for line in at if len(set(line.get_xdata())) == 1 and line_blue(line)
        )
        (median,) = (line.get_xdata()[0] for line in at if line.get_linewidth() == 1.6)
        ends.append((place, x.min(), x.max(), *caps, median))
    return ends


def line_blue(line: object) -> bool:
    return to_hex(line.get_color()).upper() == BLUE  # type: ignore[attr-defined]


def marks(axes: Axes, marker: str) -> list[list[tuple[float, float]]]:
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines]


def written(axes: Axes) -> list[tuple[str, float]]:
    return [(text.get_text(), text.get_position()[1]) for text in axes.texts]


# --- boxes --------------------------------------------------------------------------------------------------


def test_boxes_are_quartiles_and_whiskers_the_outer_percentiles() -> None:
    (axes,) = boxes(three_methods()).axes
    assert boxes_of(axes) == [
        pytest.approx((0, 25, 75, 5, 95, 50)),
        pytest.approx((1, 25, 75, 5, 95, 50)),
    ]
    assert marks(axes, "D") == [[(pytest.approx(50), 0)], [(pytest.approx(50), 1)]]
    assert not marks(axes, "o")  # one seed
    assert written(axes) == [("no score", 2)]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "guided backprop",
        "one missing (101 of 102)",
        "never",
    ]
    assert axes.get_ylim() == (2.5, -0.5)  # the first method on top
    assert axes.get_xscale() == "linear"  # only what is seen counts, and 95 is not a hundred times 5


def test_seeds_are_pooled_in_boxes_and_dots_below() -> None:
    figure = boxes(three_methods(seeds=(0, 3)))
    (axes,) = figure.axes
    both = np.concatenate([LADDER, LADDER + 30])
    ends = np.percentile(both, (25, 75, 5, 95, 50))
    assert boxes_of(axes)[0] == pytest.approx((0, *ends))
    assert marks(axes, "D")[0] == [(pytest.approx(65), 0)]
    assert marks(axes, "o") == [[(50, 0.38), (80, 0.38)], [(50, 1.38), (50, 1.38)]]
    assert "n = 101 images × 2 seeds\n" in axes.get_xlabel()
    assert figure.legends[0].get_texts()[-1].get_text() == "mean of one seed"


def test_n_counts_images_with_a_score_and_each_panel_says_whose_lack_some() -> None:
    scores_of: Scores = {
        ("first", "entry", "whole", 0): [1.0] * 10,
        ("first", "entry", "some", 0): [2.0] * 4 + [NAN] * 6,
        ("first", "entry", "never", 0): [NAN] * 10,
        ("second", "entry", "whole", 0): [3.0] * 9 + [NAN],
        ("second", "entry", "some", 0): [4.0] * 10,
        ("second", "entry", "never", 0): [5.0] * 10,
    }
    first, second = boxes(metric_results(scores_of)).axes
    assert first.get_xlabel().endswith("\nn = 4–10 images\n16 of 30 scores undefined")
    assert second.get_xlabel().endswith("\nn = 9–10 images\n1 of 30 scores undefined")
    assert names_of(first) == ["whole", "some (4 of 10)", "never"]
    assert names_of(second) == ["(9 of 10)", "", ""]
    assert first.get_ylim() == second.get_ylim()


def test_images_without_an_object_are_not_missing() -> None:
    """Of ten images, no method has a score for six, and one method lacks another."""
    scores_of: Scores = {
        ("first", "entry", "whole", 0): [1.0] * 4 + [NAN] * 6,
        ("first", "entry", "some", 0): [2.0] * 3 + [NAN] * 7,
    }
    (axes,) = boxes(metric_results(scores_of)).axes
    assert "n = 3–4 of 10 images\n1 of 8 scores undefined" in axes.get_xlabel()
    assert names_of(axes) == ["whole", "some (3 of 4)"]


def names_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def panels(scores_of: Scores) -> list[tuple[str, str, float]]:
    shown = [axes for axes in boxes(metric_results(scores_of)).axes if axes.axison]
    means = [marks(axes, "D")[0][0][0] for axes in shown]
    return [
        (axes.get_xlabel().split("\n")[0], axes.get_title(), mean)
        for axes, mean in zip(shown, means, strict=True)
    ]


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ({"L=20": [0, 20], "L=40": [0, 40]}, [("the m", "L=20", 10), ("the m", "L=40", 20)]),
        ({f"L={last}": [last] for last in range(1, 6)}, [("the m", "L=5 (last of 5)", 5)]),
        ({"": [0], **{f"n={size}": [size] for size in range(1, 5)}}, [("the m", "", 0)]),
    ],
)
def test_few_sub_variants_have_a_panel_each_and_many_one(
    variants: Mapping[str, Sequence[float]], expected: list[tuple[str, str, float]]
) -> None:
    assert panels({("m", f"entry {sub}".strip(), "a", 0): of for sub, of in variants.items()}) == expected


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([1, 1, 99, 99], "linear"),
        ([1, 1, 101, 101], "log"),
        ([0, 0, 1, 101], "symlog"),
        ([1e-9, 1e-9, 1, 200], "symlog"),  # rounding is no decade of its own
        ([0, 0, 0, 0], "linear"),
        ([NAN, NAN, NAN], "linear"),
        ([1e-6] + [0.1] * 6 + [0.5] * 3, "linear"),  # lower whiskers alone do not stretch an axis
    ],
)
def test_scores_over_decades_have_a_logarithmic_axis(scores: list[float], scale: str) -> None:
    (axes,) = boxes(metric_results({("m", "entry", "a", 0): np.repeat(scores, 25)})).axes
    assert axes.get_xscale() == scale


def test_rates_with_a_few_scores_outside_zero_and_one_are_boxes() -> None:
    """F-Fidelity⁻ of accuracies: 95 of 100 scores are 0, and the others below."""
    scores = np.zeros(100)
    scores[:5] = -0.1
    [axes] = boxes(metric_results({("m", "entry", "gradcam", 0): scores})).axes
    assert len(axes.patches) == 1


def test_hits_and_misses_have_a_rate_and_no_box() -> None:
    scores: Scores = {
        ("hit", "entry", "some", 0): [1, 0, 0, 0, NAN],
        ("hit", "entry", "some", 1): [1, 0, 1, 0, NAN],
        ("hit", "entry", "never", 0): [NAN],
    }
    (axes,) = boxes(metric_results(scores)).axes
    assert not axes.patches
    assert marks(axes, "D") == [[(pytest.approx(3 / 8), 0)]]
    whiskers = axes.containers[0].lines[2][0].get_segments()[0][:, 0]
    rate, images, z = 3 / 8, 4, 1.959964  # Wilson's interval of four images
    center = (rate + z**2 / (2 * images)) / (1 + z**2 / images)
    half = z / (1 + z**2 / images) * (rate * (1 - rate) / images + z**2 / (4 * images**2)) ** 0.5
    assert whiskers == pytest.approx([center - half, center + half])
    assert written(axes) == [("no score", 1)]
    boxed = boxes(metric_results({("hit", "entry", "some", 0): [1, 0, 0.5]}))
    assert len(boxed.axes[0].patches) == 1


# --- distributions ------------------------------------------------------------------------------------------


def test_intervals_are_those_of_groups() -> None:
    """Twelve images of three patients, equal within a patient."""
    results = metric_results({("first", "entry", "whole", 0): [1.0] * 8 + [0.0] * 4})
    grouped = replace(results, scores=results.scores.assign(group=np.repeat(["p", "q", "r"], 4)))
    cutouts, scenes = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    composed = replace(results, scores=with_clusters(results.scores, {"cutout": cutouts, "scene": scenes}))
    for each, factors, text in (
        (results, {}, "n = 12 images\n"),
        (grouped, {"groups": cutouts}, "n = 12 images of 3 groups\n"),
        (composed, {"cut-outs": cutouts, "scenes": scenes}, "n = 12 images\n"),
    ):
        (axes,) = boxes(each).axes
        assert text in axes.get_xlabel()
        [[(low, _), (high, _)]] = axes.containers[0].lines[2][0].get_segments()
        expected = mean_of(np.repeat([1.0, 1, 0], 4), factors).rate_interval()
        assert (low, high) == pytest.approx(expected)


def test_distributions_show_density_quartiles_mean_and_zero() -> None:
    scores_of = {
        ("m", "entry", "left_heavy", 0): [-0.5] * 30 + [-0.4] * 30 + [0.9],
        ("m", "entry", "single", 0): [0.25, NAN],
        ("m", "entry", "never", 0): [NAN, NAN],
        ("m", "entry", "constant", 0): [0.1, 0.1],
    }
    (axes,) = distributions(metric_results(scores_of)).axes
    heavy, constant = (
        np.concatenate([path.vertices for path in body.get_paths()]) for body in axes.collections
    )
    assert (heavy[:, 0].min(), heavy[:, 0].max()) == pytest.approx((-0.5, 0.9))
    widest = heavy[np.argmax(heavy[:, 1]), 0]
    assert -0.55 < widest < -0.35
    assert np.abs(constant[:, 1] - 3).max() < 0.5
    assert [mark[0] for mark in marks(axes, "D")] == [
        (pytest.approx((-0.5 * 30 - 0.4 * 30 + 0.9) / 61), 0),
        (0.25, 1),
        (pytest.approx(0.1), 3),
    ]
    assert [mark[0] for mark in marks(axes, "|")] == [(-0.4, 0), (0.25, 1), (0.1, 3)]
    bars = [tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 4]
    assert bars == [(-0.5, -0.4), (0.25, 0.25), (0.1, 0.1)]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [0]
    assert written(axes) == [("no score", 2)]
    assert axes.get_xlabel().endswith("n = 1–61 images\n3 of 67 scores undefined")


# --- tables -------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
SEVERAL: dict[tuple[str, str, str, int], Sequence[float]] = {}
for _method in ("zeta", "alpha"):  # files are read method by method; this is not the table's order
    for _seed in (7, 2):
        for _metric, _variant in (
            ("infidelity", "square"),
            ("infidelity", "subset"),
            ("aopc", "a L=9"),
            ("aopc", "a L=10"),
        ):
            SEVERAL[_metric, _variant, _method, _seed] = [*RNG.normal(size=5), NAN]


def test_summary_is_numpy_over_images_in_the_configured_order() -> None:
    rows = summary(table(SEVERAL), {})
    order = sorted(SEVERAL, key=lambda key: (key[0] != "infidelity", key[1] not in ("square", "a L=9")))
    assert list(rows[["metric", "variant", "method", "seed"]].itertuples(index=False, name=None)) == order
    for key, row in zip(order, rows.itertuples(index=False), strict=True):
        valid = np.array(SEVERAL[key])[:5]
        assert row[4:9] == pytest.approx((valid.mean(), valid.std(ddof=1), np.median(valid), 5, 1), abs=1e-12)
        assert np.isnan(row[9])


def test_summary_counts_what_has_no_score() -> None:
    rows = summary(table({("m", "e", "a", 0): [NAN, NAN], ("m", "e", "b", 0): [2, NAN]}), {})
    assert list(rows["undefined"]) == [2, 1]
    assert list(rows["images"]) == [0, 1]
    assert rows["mean"].to_list() == pytest.approx([NAN, 2], nan_ok=True)
    assert rows["standard deviation"].isna().all()  # one image has no spread


PAIRS = [
    ("infidelity", "infidelity_square"),
    ("aopc_morf", "aopc L=9"),
    ("aopc_morf", "aopc L=10"),
    ("deletion", "deletion"),
    ("deletion", "deletion_blur"),
    ("n_ord", "necessity_sufficiency"),
    ("tpn", "necessity_sufficiency"),
]


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("infidelity", ("infidelity", "infidelity_square")),  # the score's only variant
        ("tpn", ("tpn", "necessity_sufficiency")),
        ("deletion_blur", ("deletion", "deletion_blur")),
        ("deletion", ("deletion", "deletion")),  # the entry; the score has two variants
        ("aopc_morf aopc L=9", ("aopc_morf", "aopc L=9")),
    ],
)
def test_a_printed_value_is_of_one_score_and_variant(name: str, pair: tuple[str, str]) -> None:
    assert printed_values(PAIRS, {"a": {name: 2}}) == {("a", *pair): 2.0}


def test_of_two_names_the_one_in_full_counts_then_the_entry() -> None:
    names = {"infidelity": 3, "infidelity_square": 2, "infidelity infidelity_square": 1}
    key = ("a", "infidelity", "infidelity_square")
    for order in (list(names.items()), list(names.items())[::-1]):
        assert printed_values(PAIRS, {"a": dict(order)}) == {key: 1.0}
        assert printed_values(PAIRS, {"a": dict(item for item in order if " " not in item[0])}) == {key: 2.0}
    pairs = [("deletion", "plain"), ("insertion", "deletion")]  # the name of an entry and of another score
    assert printed_values(pairs, {"a": {"deletion": 2}}) == {("a", "insertion", "deletion"): 2.0}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aopc_morf", "aopc_morf has 2 scores, .*'aopc_morf aopc L=9'"),
        ("aopc L=9", "unknown score 'aopc L=9'; .*valid: aopc_morf aopc L=9"),
    ],
)
def test_a_printed_value_of_nothing_or_of_several_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^printed\.some: {message}"):
        printed_values(PAIRS, {"some": {name: 1.0}})


def test_summary_has_a_printed_value_in_the_one_row_it_is_of() -> None:
    printed = {"zeta": {"aopc a L=10": 3.0, "square": 4.0}, "alpha": {"infidelity subset": 5.0}}
    rows = summary(table(SEVERAL), printed).set_index(["variant", "method"])["printed"]
    assert rows["a L=10", "zeta"].tolist() == [3, 3]  # of both seeds
    assert rows["square", "zeta"].tolist() == [4, 4]
    assert rows["subset", "alpha"].tolist() == [5, 5]
    assert rows.notna().sum() == 6
    with pytest.raises(ValueError, match=r"^printed.zeta: infidelity has 2 scores, "):
        summary(table(SEVERAL), {"zeta": {"infidelity": 1}})


BESIDE: Scores = {
    ("infidelity", "square", "own", 0): [8, 8],
    ("infidelity", "square", "zero", 0): [0, 0],
    ("infidelity", "square", "grad", 0): [1, 3],
    ("infidelity", "square", "grad", 1): [3, 5],
    ("infidelity", "square", "grad_sg", 0): [1, 2],
    ("infidelity", "square", "never", 0): [NAN, NAN],
    ("sens", "sens", "own", 0): [0.5, 0.5],
    ("sens", "sens", "grad", 0): [0.25, 0.25],
    ("sens", "sens", "never", 0): [NAN, NAN],
    ("other", "other", "own", 0): [1, 1],
    ("other", "other", "grad", 0): [2, 2],
}
PRINTED = {
    "zero": {"square": 1.0},
    "grad": {"square": 4.0},
    "grad_sg": {"square": 1.0},
    "never": {"sens": 2.0},
}


def test_side_by_side_is_relative_to_the_first_method_with_both() -> None:
    summarized = summary(table(BESIDE), PRINTED)
    assert side_by_side(summarized).to_dict(
        "list"
    ) == {  # nothing of "own" or of the metric "other" is printed
        "method": ["zero", "grad", "grad_sg", "never"],
        "infidelity square: this study / published": ["0 / 1", "3 / 4", "1.5 / 1", "– / –"],
        "infidelity square: relative to grad": ["0 / 0.25", "1 / 1", "0.5 / 0.25", "– / –"],
        "sens: this study / published": ["– / –", "0.25 / –", "– / –", "– / 2"],
    }
    assert [len(rows) for rows in score_tables(summarized, "s").values()] == [4, len(summarized)]
    assert list(score_tables(summary(table(BESIDE), {}), "s")) == ["s: all scores"]


# --- scatter ------------------------------------------------------------------------------------------------

BOTH: Scores = {
    ("infidelity", "sq", "grad_sg", 0): [1, 2, 6],
    ("infidelity", "sq", "grad_sg", 1): [3, 4, NAN],
    ("infidelity", "sq", "gbp", 0): [8, 8, 8],
    ("infidelity", "sq", "gbp", 1): [8, 8, 8],
    ("infidelity", "sq", "never", 0): [NAN, NAN, NAN],
    ("infidelity", "sq", "half", 0): [1, 1, 1],
    ("sensitivity_max", "sens", "grad_sg", 0): [0.1, 0.2, 0.3],
    ("sensitivity_max", "sens", "gbp", 0): [0.5, 0.5, 0.5],
    ("sensitivity_max", "sens", "never", 0): [0.5, 0.5, 0.5],
    ("infidelity", "far", "grad_sg", 0): [1, 1, 1],
    ("infidelity", "far", "gbp", 0): [20, 20, 20],
    ("aopc", "aopc", "gbp", 0): [-1, -1, -1],
}


def test_scatter_has_a_point_for_each_method_with_intervals() -> None:
    first, second = infidelity_sensitivity(table(BOTH), [("sq", "sens"), ("far", "sens")]).axes
    by_image = [(1 + 3) / 2, (2 + 4) / 2, 6]  # an image is one replicate, however many seeds have scored it
    points = [bar.lines[0] for bar in first.containers]
    assert [(float(p.get_xdata()[0]), float(p.get_ydata()[0])) for p in points] == [
        pytest.approx((0.2, np.mean(by_image))),
        pytest.approx((0.5, 8)),
    ]
    across, up = (bars.get_segments()[0] for bars in first.containers[0].lines[2])
    half = 1.96 * np.std(by_image, ddof=1) / np.sqrt(3)
    assert np.ptp(up[:, 1]) / 2 == pytest.approx(half)
    assert np.ptp(across[:, 0]) / 2 == pytest.approx(1.96 * 0.1 / np.sqrt(3))
    assert (first.get_yscale(), second.get_yscale()) == ("linear", "log")  # 8/3.67 and 20
    assert "n = 3 images × 2 seeds" in first.get_xlabel()
    grouped = table(BOTH).assign(group=lambda rows: rows["image"].clip(upper=1).astype(str))
    (axes,) = infidelity_sensitivity(grouped, [("sq", "sens")]).axes
    assert "n = 3 images of 2 groups × 2 seeds" in axes.get_xlabel()


# --- what figures share -------------------------------------------------------------------------------------


def test_mean_and_band_are_those_of_what_is_defined() -> None:
    values = np.array([[1.0, NAN, NAN, 2], [3, 5, NAN, 2], [8, 6, NAN, NAN]])
    mean, half = mean_and_band(values)
    np.testing.assert_allclose(mean, [4, 5.5, NAN, 2])
    expected = [1.96 * np.sqrt(13 / 3), 1.96 * np.sqrt(0.5 / 2), NAN, 0]
    np.testing.assert_allclose(half, expected)
    assert np.isnan(mean_and_band(np.array([3.0]))[1])


def test_seeds_stand_one_after_another() -> None:
    rows = np.array([[1.0, 2], [3, NAN], [5, 6], [7, NAN]])
    np.testing.assert_allclose(over_seeds(rows, 2), [[3, 4], [5, NAN]])
    np.testing.assert_allclose(over_seeds(rows, 1), rows)
    with pytest.raises(ValueError, match=r"^curves: found 4 rows, expected a multiple of 3, the seeds$"):
        over_seeds(rows, 3)


@pytest.mark.parametrize(("scores", "scale"), [([0.2, 0.6], "linear"), ([1.0, 1.0, 1.0, 5000.0], "symlog")])
def test_the_target_is_marked_on_the_axis(scores: list[float], scale: str) -> None:
    """Outside the scores too, and as the 0 of an axis in powers of ten."""
    figure = boxes(metric_results({("m", "entry", "a", 0): scores}, directions={"m": "target 0"}))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_xlabel() == f"the m\ncloser to 0 is better\nn = {len(scores)} images\nall scores defined"
    (line,) = (line for line in axes.lines if line.get_linestyle() == ":")
    assert list(line.get_xdata()) == [0, 0]
    assert axes.get_xlim()[0] <= 0 < axes.get_xlim()[1]
    assert axes.get_xscale() == scale


def test_no_names_of_many_methods_overlap() -> None:
    names = [f"a_method_of_quite_a_long_name_{place:02}" for place in range(13)]
    scores: Scores = {("m", f"entry {kind}", name, 0): [1, 2, 9] for kind in ("one", "two") for name in names}
    with styled():
        figure = boxes(metric_results(scores))
        figure.draw_without_rendering()
    for axes in figure.axes:
        texts = [*axes.get_yticklabels(), *axes.texts, axes.xaxis.label, axes.title]
        assert_apart([text.get_window_extent() for text in texts if text.get_text()], figure)
