"""Tables and figures of the retrain study against plain loops over rows."""

from collections.abc import Callable, Sequence
from io import StringIO
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from plotted import chart_lines
from scipy.stats import norm, t

from saliency_assay.plotting.palette import ORANGE, PURPLE, SKY, VERMILION
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.score_tables import COLUMNS
from saliency_assay.studies.retrain.curves import accuracy_curves, overlap_curves
from saliency_assay.studies.retrain.leakage_figures import displayed_leakage, leakage_bars
from saliency_assay.studies.retrain.leakage_tables import leakage_table, p_above
from saliency_assay.studies.retrain.mask_figures import iteration_images, overlap_matrices
from saliency_assay.studies.retrain.retrain_tables import (
    KEYS,
    expected,
    means,
    summary,
    summary_tables,
)

NAN = float("nan")
AREA, OCCLUDED, ITERATIONS, CLASSES = 40, 10, 3, 5
SIZES = {"area": AREA, "occluded": OCCLUDED, "iterations": ITERATIONS}
METHODS = ("smoothgrad", "random", "edge")  # not in the alphabet's order
ARMS = (("iteroar", "zero"), ("iteroar", "mean"), ("roar", "zero"))
FILLS = ("zero", "mean")
IMAGES = (3, 4, 8, 9)
Row = tuple[int, str, str, str, int, float]


def scored(rows: Sequence[Row]) -> pd.DataFrame:
    """A score table of rows ``seed, method, metric, variant, image, score``."""
    columns = ["seed", "method", "metric", "variant", "image", "score"]
    table = pd.DataFrame(rows, columns=columns).assign(study="s", data="d", model="net")
    return table[list(COLUMNS)]


def study(
    seeds: Sequence[int] = (0, 7), iterations: int = ITERATIONS, methods: Sequence[str] = METHODS
) -> pd.DataFrame:
    """Numbers at random; in ROAR masks are disjoint."""
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for method, (protocol, fill), seed, i in product(methods, ARMS, seeds, range(iterations + 1)):
        scores: list[tuple[str, object, int, float]] = [
            ("accuracy_train", i, -1, rng.uniform(0.8, 1)),
            ("accuracy_validation", i, -1, rng.uniform(0.6, 0.9)),
            *(("accuracy", i, image, rng.random() < 0.7) for image in IMAGES),
        ]
        for image in IMAGES if i < iterations else ():
            least = (i + 1) * OCCLUDED if protocol == "roar" else OCCLUDED + i
            scores.append(("cma", i, image, rng.integers(least, (i + 1) * OCCLUDED + 1)))
            pairs = [("overlap", f"{i}-{second}") for second in range(i + 1, iterations)]
            pairs += [("mmo", str(i)), ("mamo", str(i))] if i < iterations - 1 else []
            scores += [(metric, at, image, rng.integers(0, OCCLUDED + 1)) for metric, at in pairs]
        rows += [
            (seed, method, metric, f"{protocol}/{fill}/{at}", image, float(score))
            for metric, at, image, score in scores
        ]
    return scored(rows)


def scores_where(table: pd.DataFrame, **where: object) -> list[float]:
    """Scores of the rows with these values."""
    rows = np.ones(len(table), bool)
    for name, value in where.items():
        rows &= table[name].to_numpy() == value
    return list(table["score"].to_numpy()[rows])


# --- means --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True])
def test_means_of_arms_one_by_one_are_those_of_all(compact: bool) -> None:
    table = study()
    table.loc[table.index[::17], "score"] = NAN
    text = [name for name, kind in COLUMNS.items() if kind == "str"]
    arms = [part for _, part in table.groupby([table["method"], table["variant"].str[:10]], sort=False)]
    parts = [arm.astype(dict.fromkeys(text, "category")) if compact else arm for arm in arms]
    whole, one_by_one = means(table), pd.concat(map(means, parts), ignore_index=True)
    order = [*text, "seed"]
    pd.testing.assert_frame_equal(
        one_by_one.sort_values(order, ignore_index=True), whole.sort_values(order, ignore_index=True)
    )
    assert list(one_by_one["method"].unique()) == list(METHODS)
    for row in whole.to_dict("records")[::7]:
        at = {name: row[name] for name in ("method", "metric", "variant")}
        scores = np.array(scores_where(table, seed=row["seed"], **at))
        kept = scores[np.isfinite(scores)]
        assert row["score"] == pytest.approx(kept.mean() if len(kept) else NAN, nan_ok=True)
        if row["metric"] in ("accuracy_train", "accuracy_validation"):
            assert row["images"] == 0
            assert np.isnan(row["images_sd"])
            continue
        assert row["images"] == len(kept)
        by_image = [np.array(scores_where(table, image=image, **at)) for image in IMAGES]
        of_images = [np.nanmean(values) for values in by_image if np.isfinite(values).any()]
        assert row["images_sd"] == pytest.approx(np.std(of_images, ddof=1))


# --- the summary --------------------------------------------------------------------------------------------


def test_summary_is_means_and_spreads_of_rows() -> None:
    table = study()
    rows = summary(means(table), **SIZES, classes=CLASSES).to_dict("records")
    order = product(ARMS, METHODS, range(ITERATIONS + 1))
    assert [tuple(row[key] for key in KEYS) for row in rows] == [(*arm, name, i) for arm, name, i in order]
    for row in rows:
        i = row["iteration"]
        arm = {"method": row["method"], "variant": f"{row['protocol']}/{row['fill']}/{i}"}
        for metric in ("accuracy", "accuracy_train", "accuracy_validation"):
            of_seeds = [np.mean(scores_where(table, metric=metric, seed=seed, **arm)) for seed in (0, 7)]
            name = "accuracy_test" if metric == "accuracy" else metric
            assert row[name] == pytest.approx(sum(of_seeds) / 2)
            assert row[f"{name}_sd"] == pytest.approx(abs(of_seeds[0] - of_seeds[1]) / 2**0.5)
        for metric, last, whole in (("mmo", 1, OCCLUDED), ("mamo", 1, OCCLUDED), ("cma", 2, AREA)):
            measured = [row[f"{metric}{end}"] for end in ("", "_sd", "_share", "_sd_share")]
            if i > last:
                assert np.isnan([*measured, row[f"{metric}_random"], row[f"{metric}_random_share"]]).all()
                continue
            by_image = [np.mean(scores_where(table, metric=metric, image=image, **arm)) for image in IMAGES]
            mean, deviation = np.mean(by_image), np.std(by_image, ddof=1)
            assert measured == pytest.approx([mean, deviation, mean / whole, deviation / whole])
            assert row[f"{metric}_random"] == expected(metric, i, area=AREA, occluded=OCCLUDED)
            assert row[f"{metric}_random_share"] == pytest.approx(row[f"{metric}_random"] / whole)
        assert row["nominal"] == i * OCCLUDED / AREA
        before = {**arm, "variant": f"{row['protocol']}/{row['fill']}/{i - 1}"}
        occluded = np.mean(scores_where(table, metric="cma", **before)) / AREA if i else 0
        assert row["masked"] == pytest.approx(occluded)
        most = (i + 1) * OCCLUDED if i < ITERATIONS else NAN
        expected_most = [most, row["cma"] / most]
        assert [row["cma_most"], row["cma_of_most"]] == pytest.approx(expected_most, nan_ok=True)
        assert (row["seeds"], row["images"], row["chance"]) == (2, 4, 0.2)


def test_summary_of_one_seed_has_no_spread_over_seeds_and_what_is_missing_is_nan() -> None:
    table = study(seeds=[0])
    gone = table["metric"].isin(["accuracy_validation", "mamo"]) | (
        (table["metric"] == "cma") & (table["variant"] == "roar/zero/0")
    )
    rows = summary(means(table[~gone]), **SIZES, classes=CLASSES)
    assert rows["accuracy_test_sd"].isna().all()
    assert rows["accuracy_validation"].isna().all()
    assert rows[["mamo", "mamo_sd", "mamo_random_share"]].isna().all(axis=None)
    assert rows["accuracy_test"].notna().all()
    assert set(rows["seeds"]) == {1}
    unknown = rows[rows["masked"].isna()]
    assert set(zip(unknown["protocol"], unknown["iteration"], strict=True)) == {("roar", 1)}


def test_random_masks_expect_what_sets_of_pixels_have() -> None:
    """Against all masks of 2 of 4 pixels, each beside each."""
    masks = [set(pixels) for pixels in combinations(range(4), 2)]
    trios = list(product(masks, repeat=3))
    assert expected("mmo", 0, area=4, occluded=2) == np.mean([len(a & b) for a, b, _ in trios])
    assert expected("mamo", 1, area=4, occluded=2) == np.mean([len((a | b) & c) for a, b, c in trios])
    assert expected("cma", 2, area=4, occluded=2) == np.mean([len(a | b | c) for a, b, c in trios])
    assert expected("cma", 9, area=1000, occluded=50) == pytest.approx(401.263, abs=1e-3)


def test_tables_to_read_are_in_percent() -> None:
    rows = summary(means(study()), **SIZES, classes=CLASSES)
    accuracy, overlap = summary_tables(rows, "name").values()
    assert (len(accuracy), len(overlap)) == (len(rows), 27)  # not f_I, of which no mask is generated
    assert list(accuracy["protocol"].unique()) == ["IteROAR", "ROAR"]
    masked = rows[rows["iteration"] < ITERATIONS]
    for table, source, name, column in (
        (accuracy, rows, "occluded, nominal (%)", "nominal"),
        (accuracy, rows, "occluded, measured (%)", "masked"),
        (accuracy, rows, "test accuracy (%)", "accuracy_test"),
        (overlap, masked, "MMO (% of k)", "mmo_share"),
        (overlap, masked, "MAMO: sd over images (% of k)", "mamo_sd_share"),
        (overlap, masked, "CMA (% of (i + 1)·k)", "cma_of_most"),
    ):
        np.testing.assert_allclose(table[name], 100 * source[column])
    np.testing.assert_allclose(overlap["CMA (pixels)"], masked["cma"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: pd.concat([table, table.assign(model="other")]),
            "scores: found 2 combinations of study",
        ),
        (
            lambda table: table.assign(variant=table["variant"].replace("roar/zero/1", "roar/zero")),
            "variant: found 'roar/zero', expected protocol/fill/iteration$",
        ),
        (
            lambda table: table.assign(variant=table["variant"].replace("iteroar/mean/3", "iteroar/mean/4")),
            "iteration: found 4, expected at most 3$",
        ),
    ],
)
def test_scores_of_another_kind_are_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        summary(means(change(study())), **SIZES, classes=CLASSES)


# --- leakage ------------------------------------------------------------------------------------------------

OWN = {"leaky": [0.41, 0.45, 0.38, 0.44], "mute": [0.21, 0.18, 0.22, 0.19], "single": [0.3]}
TESTED = 200
PERMUTED = {"leaky": [0.2, 0.22, 0.19, 0.23], "mute": [0.2, 0.23, 0.18, 0.22], "single": [0.2]}


def leaking(
    own: dict[str, list[float]], permuted: dict[str, list[float]], iterations: Sequence[int] = (3,)
) -> pd.DataFrame:
    """Two repeats a seed; losses are 3 − 2 · accuracy, and seed 0 has test accuracies of ``TESTED`` images."""
    arms = list(product(own, ("roar", "iteroar"), iterations))
    rows = [
        (place // 2, method, f"leakage{name}{end}", f"{protocol}/zero/{i}/repeat{place % 2}", -1, score)
        for method, protocol, i in arms
        for end, values in (("", own[method]), ("_random", permuted[method]))
        for place, value in enumerate(values)
        for name, score in (("", value), ("_loss", 3 - 2 * value))
    ]
    images = [
        (0, method, "accuracy", f"{protocol}/zero/{i}", image, float(image % 2))
        for method, protocol, i in arms
        for image in range(TESTED)
    ]
    return scored(rows + images)


def p_by_hand(own: Sequence[float], permuted: Sequence[float], images: int, chance: float) -> float:
    m, n = len(own), len(permuted)
    a = (sum(own) / m + sum(permuted) / n) / 2
    s = max(a * (1 - a), chance * (1 - chance)) / images
    spread, other = (
        sum((x - sum(of) / len(of)) ** 2 for x in of) / (len(of) - 1) / len(of) for of in (own, permuted)
    )
    excess = max(0, other - s / n)
    variance = spread + s + s / n + excess
    freedom = variance**2 / (spread**2 / (m - 1) + excess**2 / (n - 1))
    return float(t.sf((sum(own) / m - sum(permuted) / n) / variance**0.5, freedom))


def test_leakage_table_tests_all_repeats_and_seeds_together() -> None:
    table = leakage_table(means(leaking(OWN, PERMUTED)), CLASSES, 0.01)
    assert list(table["protocol"]) == ["roar"] * 3 + ["iteroar"] * 3
    rows = table[table["protocol"] == "roar"].set_index("method")
    assert list(rows.index) == ["leaky", "mute", "single"]
    for method in ("leaky", "mute"):
        row, own, permuted = rows.loc[method], OWN[method], PERMUTED[method]
        assert row["accuracy"] == pytest.approx(np.mean(own))
        assert row["accuracy_sd"] == pytest.approx(np.std(own, ddof=1))
        assert row["random"] == pytest.approx(np.mean(permuted))
        assert row["random_sd"] == pytest.approx(np.std(permuted, ddof=1))
        assert (row["accuracy_values"], row["random_values"], row["chance"]) == (4, 4, 0.2)
        assert row["loss"] == pytest.approx(3 - 2 * np.mean(own))
        assert row["loss_sd"] == pytest.approx(2 * np.std(own, ddof=1))
        assert row["random_loss"] == pytest.approx(3 - 2 * np.mean(permuted))
        assert row["random_loss_sd"] == pytest.approx(2 * np.std(permuted, ddof=1))
        assert row["images"] == TESTED
        assert row["p"] == pytest.approx(p_by_hand(own, permuted, TESTED, 0.2), rel=1e-9)
        assert row["reason"] == ""
    assert list(rows["leaks"]) == [True, False, False]
    # The factor is the number of tests, four.
    assert rows.loc["leaky", "p_holm"] == pytest.approx(4 * rows.loc["leaky", "p"])
    assert rows.loc["mute", "p_holm"] == 1
    assert np.isnan(rows.loc["single", "p_holm"])
    single = rows.loc["single"]
    assert np.isnan(single["p"])
    assert single["reason"] == "found 1 with labels, 1 with permuted ones, expected at least 2 of each"


def test_leakage_is_displayed_in_percent() -> None:
    table = leakage_table(means(leaking(OWN, PERMUTED)), CLASSES, 0.01)
    shown = displayed_leakage(table)
    assert list(shown["leaks"])[:2] == ["leaks", "no"]
    assert list(shown["protocol"].unique()) == ["ROAR", "IteROAR"]
    np.testing.assert_allclose(shown["accuracy on masks (%)"], 100 * table["accuracy"])
    np.testing.assert_allclose(shown["loss with permuted labels (nats)"], table["random_loss"])
    assert (shown["p"].iloc[2], shown["p (Holm)"].iloc[2]) == ("–", "–")


def test_leaks_are_below_alpha() -> None:
    scores = means(leaking(OWN, PERMUTED))
    first = leakage_table(scores, CLASSES, 0.5).set_index(["protocol", "method"])
    p = first.loc[("roar", "leaky"), "p_holm"]
    for alpha, leaks in ((p, False), (p * 1.001, True)):
        table = leakage_table(scores, CLASSES, alpha).set_index(["protocol", "method"])
        assert table.loc[("roar", "leaky"), "leaks"] == leaks


def test_leakage_without_test_accuracy_is_refused() -> None:
    scores = leaking(OWN, PERMUTED)
    gone = (
        (scores["metric"] == "accuracy") & (scores["variant"] == "roar/zero/3") & (scores["method"] == "mute")
    )
    message = "accuracy: found none of roar/zero/mute/3, expected one per test image"
    with pytest.raises(ValueError, match=f"^{message}$"):
        leakage_table(means(scores[~gone]), CLASSES, 0.01)


@pytest.mark.parametrize("images", [30, 500])
def test_without_spread_the_test_images_alone_decide(images: int) -> None:
    """(0.3 − 0.1) over the root of 0.2 · 0.8 / n · (1 + 1/3): three times 0.1 has another mean than 0.1."""
    z = 0.2 / (0.2 * 0.8 / images * 4 / 3) ** 0.5
    own, permuted = np.array([0.3] * 3), np.array([0.1] * 3)
    assert p_above(own, permuted, images=images, chance=0.1) == pytest.approx(norm.sf(z))
    assert p_above(permuted, own, images=images, chance=0.1) == pytest.approx(norm.sf(-z))
    assert p_above(own, own, images=images, chance=0.1) == 0.5
    # Chance has the larger variance, a quarter.
    wide = 0.2 / (0.25 / images * 4 / 3) ** 0.5
    assert p_above(own, permuted, images=images, chance=0.5) == pytest.approx(norm.sf(wide))


@pytest.mark.parametrize(("own", "permuted"), [([0.3], [0.1, 0.2]), ([0.3, 0.4], [0.1]), ([], [])])
def test_too_few_values_have_no_p(own: list[float], permuted: list[float]) -> None:
    assert np.isnan(p_above(np.array(own), np.array(permuted), images=50, chance=0.1))


def test_spread_of_either_side_counts() -> None:
    """With so many images nothing but Welch's test is left; t has the 3 degrees of freedom of the side that varies."""
    varied, equal = np.array([0.1, 0.1, 0.3, 0.3]), np.array([0.1] * 5)
    u = 0.1 / (0.04 / 3 / 4) ** 0.5 / 3**0.5
    # The distribution function of Student's t with 3 degrees of freedom in closed form.
    tail = 0.5 - (u / (1 + u * u) + np.arctan(u)) / np.pi
    assert p_above(varied, equal, images=10**12, chance=0.1) == pytest.approx(tail)
    assert p_above(equal, varied, images=10**12, chance=0.1) == pytest.approx(1 - tail)
    for images in (20, 200, 2000):
        p = p_above(varied, np.array([0.05, 0.2]), images=images, chance=0.1)
        assert p == pytest.approx(p_by_hand(list(varied), [0.05, 0.2], images, 0.1))


@pytest.mark.parametrize(("shared", "images", "values"), [(0.9, 200, 3), (0.5, 10_000, 6)])
def test_masks_that_do_not_leak_are_rarely_flagged(shared: float, images: int, values: int) -> None:
    """Repeats whose errors are correlated by ``shared``: an image's answer is the common one with its root."""
    rng, trials, copied = np.random.default_rng(1), 3_000, shared**0.5
    flagged = 0
    for _ in range(trials):
        common = rng.binomial(images, 0.1)
        right = rng.binomial(common, copied + 0.1 * (1 - copied), values)
        own = (right + rng.binomial(images - common, 0.1 * (1 - copied), values)) / images
        permuted = rng.binomial(images, 0.1, values) / images
        flagged += p_above(own, permuted, images=images, chance=0.1) < 0.01
    assert flagged / trials <= 0.01


def test_undefined_leakage_is_left_out() -> None:
    own, permuted = {"a": [0.4, NAN, 0.5]}, {"a": [0.2, 0.1, NAN]}
    row = leakage_table(means(leaking(own, permuted)), CLASSES, 0.01).iloc[0]
    assert (row["accuracy"], row["random"]) == (pytest.approx(0.45), pytest.approx(0.15))
    assert (row["accuracy_values"], row["random_values"]) == (2, 2)
    assert row["p"] == pytest.approx(p_by_hand([0.4, 0.5], [0.2, 0.1], TESTED, 0.2))


def words(axes: Axes) -> dict[float, str]:
    """Return the texts in the axes by their position on the vertical axis."""
    return {text.get_position()[1]: text.get_text() for text in axes.texts if text.get_text()}


def bars_of(table: pd.DataFrame) -> Figure:
    """The bars beside the table as it is read from its file."""
    written = StringIO(leakage_table(table, CLASSES, 0.01).to_csv(index=False))
    return leakage_bars(table, read_table(written, "reason"), alpha=0.01)


def test_leakage_bars_show_means_values_bands_and_verdicts() -> None:
    figure = bars_of(means(leaking(OWN, PERMUTED, iterations=(2, 1))))
    visible = [axes for axes in figure.axes if axes.get_visible()]
    titles = [f"{protocol}, zero fill, {data}" for protocol in ("ROAR", "IteROAR") for data in ("D₁", "D₂")]
    assert [axes.get_title() for axes in visible] == titles
    for axes in visible:
        assert axes.get_xlabel() == "test accuracy (%)"
        bars = axes.patches[::2]
        assert [bar.get_width() for bar in bars] == pytest.approx(
            [100 * np.mean(values) for values in OWN.values()]
        )
        assert [to_hex(bar.get_facecolor()).upper() for bar in bars] == [VERMILION, SKY, SKY]
        for band, values in zip(axes.patches[1::2], PERMUTED.values(), strict=True):
            assert band.get_x() == pytest.approx(100 * min(values))
            assert band.get_width() == pytest.approx(100 * (max(values) - min(values)))
        dots = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
        for drawn, values in zip(dots, OWN.values(), strict=True):
            np.testing.assert_allclose(drawn, 100 * np.array(values))
        middles = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "None"][:3]
        assert middles == pytest.approx([100 * np.mean(values) for values in PERMUTED.values()])
        assert axes.lines[-1].get_xdata()[0] == 20  # chance
        assert words(axes) == {0: "leaks", 2: "?"}
    assert [label.get_text() for label in visible[0].get_yticklabels()] == list(OWN)


# --- curves -------------------------------------------------------------------------------------------------


def test_accuracy_is_plotted_against_what_is_occluded() -> None:
    chart = accuracy_curves(means(study()), **SIZES, classes=CLASSES)
    assert [panel.title for panel in chart.panels] == [
        *(f"IteROAR, {fill} fill: {share} share" for share in ("nominal", "measured") for fill in FILLS),
        *(f"ROAR, {fill} fill: nominal share" for fill in FILLS),
    ]
    assert chart.panels[-1].x_title.endswith("\nno score")
    rows = summary(means(study()), **SIZES, classes=CLASSES).set_index(["protocol", "fill", "method"])
    for panel, fill in zip(chart.panels[:4], FILLS * 2, strict=True):
        share, lines = "masked" if "measured" in panel.x_title else "nominal", chart_lines(panel)
        for method in METHODS:
            arm, line = rows.loc[("iteroar", fill, method)], lines[method]
            np.testing.assert_allclose(line["mean"], 100 * arm["accuracy_test"])
            np.testing.assert_allclose(line["x"], 100 * arm[share])
            spread = 100 * arm["accuracy_test_sd"] / 2**0.5  # of two seeds, half of their distance
            np.testing.assert_allclose(line["high"] - line["mean"], spread, atol=1e-9)
            np.testing.assert_allclose(line["mean"] - line["low"], spread, atol=1e-9)
        assert list(lines["chance: 20 %"]["mean"]) == [20, 20]
    assert "2 seeds; n = 4 test images; masks of k = 10 of A = 40 pixels" in chart.legend_title
    assert list(chart.looks) == [*METHODS, "chance: 20 %"]


def test_overlap_is_plotted_beside_that_of_random_masks() -> None:
    table = study()
    chart = overlap_curves(means(table), **SIZES)
    titles = ["IteROAR, zero fill", "IteROAR, mean fill", "ROAR, zero fill"]
    assert [panel.title for panel in chart.panels] == [title for title in titles for _ in range(3)]
    panels = zip(chart.panels, product(ARMS, ("mmo", "mamo", "cma")), strict=True)
    for panel, ((protocol, fill), metric) in panels:
        assert panel.y_title.startswith(f"{metric.upper()}:")
        whole, count = (AREA, ITERATIONS) if metric == "cma" else (OCCLUDED, ITERATIONS - 1)
        lines = chart_lines(panel)
        for method, i in product(METHODS, range(count)):
            at = {"metric": metric, "method": method, "variant": f"{protocol}/{fill}/{i}"}
            of_seeds = [100 * np.mean(scores_where(table, seed=seed, **at)) / whole for seed in (0, 7)]
            point = [lines[method][name][i] for name in ("x", "mean", "low", "high")]
            assert point == pytest.approx([i, np.mean(of_seeds), min(of_seeds), max(of_seeds)])
        by_hand = [100 * expected(metric, i, area=AREA, occluded=OCCLUDED) / whole for i in range(count)]
        np.testing.assert_allclose(lines["expected of random masks"]["mean"], by_hand)
        assert ("no overlap: (i + 1)·k" in lines) == (metric == "cma")
        if metric == "cma":
            np.testing.assert_allclose(lines["no overlap: (i + 1)·k"]["mean"], [25, 50, 75])


def test_overlap_of_two_iterations_and_of_one() -> None:
    chart = overlap_curves(means(study(iterations=2)), area=AREA, occluded=OCCLUDED, iterations=2)
    random = chart_lines(chart.panels[0])["expected of random masks"]
    np.testing.assert_allclose(random["mean"], [25, 25])
    assert np.ptp(random["x"]) > 0.5
    assert chart.panels[0].ticks == ["0"]
    chart = overlap_curves(means(study(iterations=1)), area=AREA, occluded=OCCLUDED, iterations=1)
    assert ["no score" in panel.x_title for panel in chart.panels[:3]] == [True, True, False]


# --- masks --------------------------------------------------------------------------------------------------


def test_matrices_hold_every_two_masks() -> None:
    table = study()
    figure = overlap_matrices(means(table), protocol="iteroar", fill="mean", **SIZES)
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().split("\n")[0] for axes in panels] == list(METHODS)
    drawn = []
    for axes, method in zip(panels, METHODS, strict=True):
        matrix = np.ma.filled(axes.images[0].get_array(), NAN)
        assert matrix.shape == (ITERATIONS, ITERATIONS)
        assert np.isnan(np.diag(matrix)).all()
        written = {text.get_position(): text.get_text() for text in axes.texts}
        spreads = []
        for first, second in ((0, 1), (0, 2), (1, 2)):
            at = {"metric": "overlap", "method": method, "variant": f"iteroar/mean/{first}-{second}"}
            by_image = [100 * np.mean(scores_where(table, image=image, **at)) / OCCLUDED for image in IMAGES]
            spreads.append(round(np.std(by_image, ddof=1)))
            assert matrix[first, second] == matrix[second, first] == pytest.approx(np.mean(by_image))
            assert written[second, first] == written[first, second] == f"{np.mean(by_image):.0f}"
        assert len(written) == 6
        assert axes.get_title().split("\n")[1] == f"sd {min(spreads)}–{max(spreads)} %"
        drawn.append(np.nanmax(matrix))
    bar = figure.axes[-1]
    assert bar.get_ylim() == pytest.approx((0, max(drawn)))
    assert [line.get_ydata()[0] for line in bar.lines if len(line.get_ydata()) == 2][-1] == 25


def test_one_iteration_has_no_two_masks() -> None:
    table, sizes = means(study(iterations=1)), {**SIZES, "iterations": 1}
    figure = overlap_matrices(table, protocol="iteroar", fill="zero", **sizes)
    assert [text.get_text() for text in figure.texts] == ["one iteration: no pairs of masks"]


def example() -> tuple[np.ndarray, np.ndarray]:
    """Two methods, two iterations of a 2 × 4 image: the second method's masks share a pixel."""
    masks = np.zeros((2, 2, 2, 4), bool)
    masks[0, 0, 0, :2] = masks[0, 1, 1, :2] = True
    masks[1, 0, 0, :2] = masks[1, 1, 0, 1:3] = True
    images = np.full((2, 3, 3, 2, 4), 100, np.uint8)
    for method in range(2):
        for i in range(2):
            images[method, i + 1] = np.where(masks[method, i], 0, images[method, i])
    return images, masks


def test_images_show_the_last_masks_the_earlier_and_both() -> None:
    images, masks = example()
    figure = iteration_images(images, masks, names=["one", "guided gradcam again"], title="a title")
    grid = np.array(figure.axes).reshape(2, 3)
    plain = np.full(3, 100 / 255)
    new, earlier, again = (0.8 * np.array(to_rgb(color)) for color in (ORANGE, SKY, PURPLE))  # over black
    expected_pixels = {
        (0, 1): [[new, new, plain, plain], [plain] * 4],
        (0, 2): [[earlier, earlier, plain, plain], [new, new, plain, plain]],
        (1, 2): [[earlier, again, new, plain], [plain] * 4],
    }
    for place, pixels in expected_pixels.items():
        np.testing.assert_allclose(grid[place].images[0].get_array(), np.array(pixels))
    for row in range(2):
        np.testing.assert_allclose(grid[row, 0].images[0].get_array(), np.broadcast_to(plain, (2, 4, 3)))
    assert [axes.get_xlabel() for axes in grid.flat] == ["0 %", "25 %", "50 %", "0 %", "25 %", "37.5 %"]


def test_images_of_one_channel_and_fill_mean_are_seen_through_the_color() -> None:
    images, masks = example()
    gray = np.where(np.arange(3)[None, :, None, None, None] > 0, 200, images[:, :, :1]).astype(np.uint8)
    figure = iteration_images(gray, masks, names=["one", "two"], title="")
    pixels = figure.axes[1].images[0].get_array()
    np.testing.assert_allclose(pixels[0, 0], 0.2 * 200 / 255 + 0.8 * np.array(to_rgb(ORANGE)))
    np.testing.assert_allclose(pixels[1, 3], 200 / 255)


# --- the drawn page -----------------------------------------------------------------------------------------
