"""Figures of reliability."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from report_tables import order_rows
from spaced import SPACED

from saliency_assay.plotting.charts import PointChart
from saliency_assay.plotting.palette import cell_colors
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.figures import (
    agreement_figure,
    consistency_figure,
    grouped,
    order_figure,
    reliability_figure,
    score_pairs_chart,
    scored_names,
)

NAN = float("nan")


def drawn(figure: Figure, folder: Path) -> Figure:
    with styled():
        save(figure, folder / "figure.svg")
    assert (folder / "figure.svg").stat().st_size > 1000
    return figure


def reliability_rows(kinds: tuple[str, ...] = ("with", "without"), seeds: int = 1) -> pd.DataFrame:
    rows = [
        {
            **{"metric": metric, "variant": variant, "seed": seed, "baselines": kind},
            **{"images": 20, "correlation_images": 18},
            **{"alpha": 0.3 + 0.1 * seed, "alpha_low": 0.2, "alpha_high": 0.4 + 0.1 * seed},
            **{"correlation": 0.5, "correlation_low": 0.4, "correlation_high": 0.6},
        }
        for metric, variant in (("aopc", "aopc MoRF"), ("infidelity", "squares"))
        for seed in range(seeds)
        for kind in kinds
    ]
    return pd.DataFrame(rows)


def whiskers(axes: Axes) -> list[tuple[float, ...]]:
    """Ends of the horizontal lines that are no grid line and no mark."""
    lines = [line for line in axes.lines if line.get_marker() == "None" and len(set(line.get_ydata())) == 1]
    return [tuple(map(float, line.get_xdata())) for line in lines if line.get_linestyle() == "-"]


@pytest.mark.parametrize("kinds", [("with", "without"), ("none",)])
def test_reliability_has_an_interval_for_every_metric(kinds: tuple[str, ...], tmp_path: Path) -> None:
    figure = drawn(reliability_figure(reliability_rows(kinds), level=0.999), tmp_path)
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["aopc MoRF", "infidelity squares"]
    for axes, ends in ((left, (0.2, 0.4)), (right, (0.4, 0.6))):
        assert whiskers(axes) == [ends] * 2 * len(kinds)


def test_one_seed_without_an_interval_leaves_no_whiskers(tmp_path: Path) -> None:
    """The other seed's interval is not that of both."""
    rows = reliability_rows(("none",), seeds=2)
    rows.loc[rows["seed"] == 1, ["alpha_low", "alpha_high"]] = np.nan
    left, right = drawn(reliability_figure(rows, level=0.999), tmp_path).axes
    assert np.isnan(whiskers(left)).all()
    assert np.isfinite(whiskers(right)).all()
    rows.loc[:, "alpha"] = np.nan
    left, _ = drawn(reliability_figure(rows, level=0.999), tmp_path).axes
    assert not [line for line in left.lines if line.get_marker() == "o"]


def test_the_order_has_a_rank_set_for_every_method(tmp_path: Path) -> None:
    rows = order_rows({"grad_cam": (1, 1), "edge": (2, 3), "broken": (np.nan, np.nan)})
    figure = drawn(order_figure(rows, SPACED), tmp_path)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "no rank", "2–3"]
    shown = [cell_colors(1, 1, 2)[0], "white", cell_colors(2, 3, 2)[0]]
    np.testing.assert_allclose(figure.axes[0].images[0].get_array()[:, 0], [to_rgb(color) for color in shown])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["grad cam", "broken", "edge"]


def test_consistency_is_the_mean_over_methods_without_baselines(tmp_path: Path) -> None:
    rows = [
        {
            **{"method": method, "metric": "aopc", "variant": "aopc", "agreement": agreement},
            **{"other_metric": "road", "other_variant": "road"},
        }
        for method, agreement in (("one", 0.2), ("two", 0.4), ("edge", -1.0))
    ]
    figure = drawn(consistency_figure(pd.DataFrame(rows), ["edge"]), tmp_path)
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), [[1, 0.3], [0.3, 1]])
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00", "0.30", "0.30", "1.00"]


def test_what_agrees_stands_together() -> None:
    agreement = np.eye(4)
    agreement[0, 2] = agreement[2, 0] = 0.9
    agreement[1, 3] = agreement[3, 1] = 0.8
    agreement[0, 1] = agreement[1, 0] = np.nan
    order = grouped(agreement)
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


def test_names_are_short_and_many_variants_become_the_last_of_each_score() -> None:
    pairs = [
        *(("aopc_morf", f"aopc L={length}") for length in (20, 100)),
        ("aopc_lerf", "aopc L=100"),
        ("n_ord", "necessity_sufficiency"),
        ("infidelity", "infidelity_square"),
    ]
    table = pd.DataFrame(pairs, columns=["metric", "variant"])
    labels = Labels(
        scores={"aopc_morf": "AOPC (MoRF)"},
        entry_scores={
            "aopc": {"aopc_morf": "AOPC (MoRF)", "aopc_lerf": "AOPC (LeRF)"},
            "necessity_sufficiency": {"n_ord": "N-Ord"},
            "infidelity_square": {"infidelity": "INFD (squares)"},
        },
        sub_variants={"aopc": {"L=(.+)": "(L = {})"}},
    )
    names = ["AOPC (MoRF, L = 20)", "AOPC (MoRF, L = 100)", "AOPC (LeRF, L = 100)", "N-Ord", "INFD (squares)"]
    assert list(scored_names(table, labels, most=5).values()) == names
    assert list(scored_names(table, labels, most=4).values()) == names[1:]


def agreement_rows() -> pd.DataFrame:
    rows = [
        ("mcs", "mcs", "classes", 10, 0.5, 0.1, 0.9),
        ("mcs", "mcs", "halves", 2, 0.8, 0.6, 1.0),
        ("mcs", "mcs scale", "classes", 9, np.nan, np.nan, np.nan),
        ("mcs", "mcs scale", "halves", 2, 0.7, 0.6, 0.9),
        ("mcs", "", "variants", 2, 0.4, 0.4, 0.4),
    ]
    columns = ["metric", "variant", "between", "raters", "correlation", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(methods=5)


def test_agreement_has_a_mark_with_whiskers_for_every_kind_of_rater(tmp_path: Path) -> None:
    figure = drawn(agreement_figure(agreement_rows()), tmp_path)
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["mcs", "mcs scale", "mcs, all variants"]
    marks = [line for line in axes.lines if line.get_marker() != "None"]
    places = [(float(line.get_xdata()[0]), round(float(line.get_ydata()[0]), 3)) for line in marks]
    assert places == [(0.5, -0.175), (0.8, 0.175), (0.7, 1), (0.4, 2)]
    assert whiskers(axes) == [(0.1, 0.9), (0.6, 1), (0.6, 0.9), (0.4, 0.4)]


def test_figures_of_nothing_say_so(tmp_path: Path) -> None:
    for figure in (
        agreement_figure(agreement_rows().assign(correlation=np.nan)),
        reliability_figure(reliability_rows().head(0), level=0.9),
        order_figure(order_rows({"a": (1, 1)}).head(0)),
    ):
        assert "score" in drawn(figure, tmp_path).axes[0].texts[0].get_text()


def test_pairs_of_scores_have_the_means_and_intervals_of_the_rank_table() -> None:
    methods = {"a": (1, 2), "b": (1, 3), "random": (3, 3)}
    second = {"metric": "infidelity", "variant": "squares", "direction": "lower"}
    second["mean"] = {"a": 0.5, "b": NAN}
    table = pd.concat([order_rows(methods), order_rows(methods, **second)])
    chart = score_pairs_chart(table, SPACED)
    assert isinstance(chart, PointChart)
    names = list(scored_names(table, SPACED, most=30))
    assert len(chart.axes) == len(names) > 1
    for index, (metric, variant) in enumerate(names):
        of_name = table[(table["metric"] == metric) & (table["variant"] == variant)].set_index("method")
        assert of_name["direction"].iloc[0] in chart.axes[index]
        for end in ("mean", "low", "high"):
            expected = of_name[end].reindex(list(dict.fromkeys(table["method"])))
            np.testing.assert_array_equal(chart.rows[f"{end}{index}"], expected)
    assert chart.selected == (0, 1)
