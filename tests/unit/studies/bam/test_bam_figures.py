"""Bars of BAM's metrics: they show what the table holds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from saliency_assay.plotting.style import save, styled
from saliency_assay.studies.bam.figures import metric_bars

NAN = float("nan")
MEANS = ["score", "spread", "baseline", "baseline_spread"]
COLUMNS = ["metric", "data", "method", "seed", *MEANS, "images", "undefined"]


def metrics(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    rows = [
        (metric, "d_os", method, seed, at + 0.01 * seed, 0.02, 0.1 * at, 0.03, 20 + seed, 0)
        for metric in ("mcs", "idr", "iir", "iir_difference")
        for method, at in (("edge", 0.2), ("guided_gradcam", 0.6), ("random", 0.1))
        for seed in seeds
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def bars(figure: Figure) -> list[list[float]]:
    """Heights and half lengths of whiskers of the bars of each color, from left to right."""
    values = []
    for container in figure.axes[0].containers:
        if hasattr(container, "patches"):
            values.append([patch.get_height() for patch in container.patches])
            segments = container.errorbar.lines[2][0].get_segments()
            values.append([np.ptp(segment[:, 1]) / 2 if len(segment) else NAN for segment in segments])
    return values


def with_variants(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """X_os, and two variants in which every method scores less, some more than others."""
    table = metrics(seeds)
    fewer = {"edge": 0.1, "guided_gradcam": 0.5, "random": 0.02}
    scale = table.assign(data="d_os_scale", score=table["score"] - table["method"].map(fewer), spread=0.04)
    location = table.assign(data="d_os_location", score=table["score"] - 0.01, baseline=0.99)
    return pd.concat([table, scale, location], ignore_index=True)


@pytest.mark.parametrize(("metric", "scale"), [("mcs", 1), ("idr", 100)])
def test_bars_are_the_table_best_method_first(metric: str, scale: int) -> None:
    figure = metric_bars(metrics(), metric)
    heights, whiskers, baseline, baseline_whiskers = bars(figure)
    assert heights == pytest.approx([scale * value for value in (0.6, 0.2, 0.1)])
    assert baseline == pytest.approx([scale * value for value in (0.06, 0.02, 0.01)])
    assert whiskers == pytest.approx([scale * 0.02] * 3)
    assert baseline_whiskers == pytest.approx([scale * 0.03] * 3)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["guided_gradcam", "edge", "random"]


def test_bars_of_what_is_better_lower_begin_with_the_lowest() -> None:
    table = metrics()
    table.loc[table["method"] == "edge", "score"] = np.inf  # a change of what was nothing
    figure = metric_bars(table, "iir_difference")
    assert bars(figure)[0] == pytest.approx([0.1, 0.6, NAN], nan_ok=True)
    assert figure.axes[0].get_ylabel() == "relative change of concept attribution\n(lower is better)"
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["random", "guided_gradcam", "edge"]
    assert not [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]


def test_variants_stand_beside_their_methods_bar_in_its_order() -> None:
    figure = metric_bars(with_variants(), "mcs")
    first, _, scale, scale_whiskers, location, _, baseline, _ = bars(figure)
    assert first == pytest.approx([0.6, 0.2, 0.1])  # the order is that of the first set
    assert scale == pytest.approx([0.1, 0.1, 0.08])
    assert scale_whiskers == pytest.approx([0.04] * 3)
    assert location == pytest.approx([0.59, 0.19, 0.09])
    assert baseline == pytest.approx([0.06, 0.02, 0.01])  # of the first set
    groups = [container for container in figure.axes[0].containers if hasattr(container, "patches")]
    looks = {(patch.get_facecolor(), patch.get_hatch()) for group in groups for patch in group.patches}
    assert len(looks) == 4
    assert [group.patches[0].get_x() for group in groups] == pytest.approx([-0.4, -0.2, 0.0, 0.2])


def test_several_seeds_are_dots_around_their_mean() -> None:
    figure = metric_bars(metrics(seeds=(0, 4)), "mcs")
    assert bars(figure)[0] == pytest.approx([0.62, 0.22, 0.12])
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [list(dot.get_ydata()) for dot in dots] == [
        pytest.approx([at, at + 0.04]) for at in (0.6, 0.2, 0.1)
    ]
    assert not [line for line in metric_bars(metrics(), "mcs").axes[0].lines if line.get_marker() == "o"]


def test_a_score_that_is_undefined_is_a_cross() -> None:
    table = metrics()
    table.loc[table["method"] == "edge", ["score", "spread"]] = NAN
    figure = metric_bars(table, "mcs")
    assert bars(figure)[0] == pytest.approx([0.6, 0.1, NAN], nan_ok=True)  # last, not first
    crosses = [text.get_position() for text in figure.axes[0].texts if text.get_text() == "×"]
    assert crosses == [(pytest.approx(1.8), 0)]


def test_no_score_at_all_can_be_drawn(tmp_path: Path) -> None:
    with styled():
        for table, crosses in ((metrics().assign(**dict.fromkeys(MEANS, NAN)), 6), (metrics().iloc[:0], 0)):
            figure = metric_bars(table, "mcs")
            save(figure, tmp_path / "mcs.svg")
            assert len([text for text in figure.axes[0].texts if text.get_text() == "×"]) == crosses
