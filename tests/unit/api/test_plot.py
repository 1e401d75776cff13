"""Figures for notebooks show the numbers of the API, with labels in place of keys."""

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.text import Text
from plotted import bands
from support import CLASSES, ConvNet, with_random_state

import saliency_assay
from saliency_assay import plot
from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.palette import GRAY, VERMILION
from saliency_assay.plotting.style import styled

RNG = np.random.default_rng(5)
IMAGES = RNG.random((6, 3, 8, 8), dtype=np.float32)
TARGETS = np.arange(6) % CLASSES
NETWORK = with_random_state(ConvNet(3), 1, torch.float32)
MAPS = {
    **{
        method: saliency_assay.attribute(method, NETWORK, IMAGES, TARGETS)
        for method in ("gradient_x_input", "random")
    },
    "my_map": RNG.normal(size=(6, 8, 8)),
}
LABELS = ["Gradient × Input", "Random", "My map"]


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    plt.close("all")


def scores_under(metric: str, **parameters: Any) -> dict[str, saliency_assay.Scores]:
    return {
        method: saliency_assay.score(metric, NETWORK, IMAGES, TARGETS, maps, **parameters)
        for method, maps in MAPS.items()
    }


def texts(axes: Axes) -> str:
    assert axes.figure is not None
    return "\n".join(text.get_text() for text in axes.figure.findobj(Text))


def tick_labels(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_ranks_are_plotted_with_their_sets_the_best_first() -> None:
    noise = RNG.normal(size=(3, 40))
    scores = dict(zip(MAPS, noise + np.array([[0.0], [9.0], [9.1]]), strict=True)) | {
        "edge": np.full(40, np.nan)
    }
    assessed = saliency_assay.assess(scores, direction="lower", resamples=10, rank_level=0.9)
    axes = plot.ranks(assessed)
    order = assessed.order.sort_values("rank")
    assert tick_labels(axes)[0] == "Gradient × Input"
    assert tick_labels(axes)[3] == "Edge detection"
    lines: Any = axes.lines
    sets, points = lines[::2], lines[1::2]
    np.testing.assert_array_equal(
        [line.get_xdata() for line in sets], order[["rank_low", "rank_high"]].to_numpy()
    )
    np.testing.assert_array_equal(np.ravel([line.get_xdata() for line in points]), order["rank"])
    assert [1, 1] in [list(line.get_xdata()) for line in sets]
    assert [2, 3] in [list(line.get_xdata()) for line in sets]
    assert axes.get_xlabel() == "rank (1 is best)\nwith simultaneous 90 % confidence sets"
    assert [text.get_text() for text in axes.texts] == ["no rank"]
    baseline = sets[tick_labels(axes).index("Random")]
    assert baseline.get_color() == GRAY


def test_all_figures_take_axes_and_name_no_keys() -> None:
    scores = scores_under("deletion", steps=8)
    assessed = saliency_assay.assess(scores, resamples=10)
    _, grid = plt.subplots(2, 2)
    returned = [
        plot.ranks(assessed, grid[0, 0]),
        plot.curves(scores, ax=grid[0, 1]),
        plot.maps(IMAGES, MAPS, grid[1, 0]),
        plot.agreement(assessed, ax=grid[1, 1]),
    ]
    assert returned == list(grid.flat)
    shown = texts(returned[0])
    assert not re.search("|".join(MAPS), shown)
    assert all(label in shown for label in [*LABELS, "Deletion", "rank under Deletion (1 is best)"])


@pytest.mark.parametrize(
    ("metric", "parameters", "curve", "x", "x_label", "y_label", "title"),
    [
        ("deletion", {"steps": 4}, "", [0, 25, 50, 75, 100], "pixels removed (%)", "← lower", "Deletion"),
        ("road", {"points": 3}, "lerf", [0, 25, 50, 75], "pixels removed (%)", "higher", "ROAD (LeRF)"),
        (
            *("aopc", {"steps": 3, "every": 1, "fill": "black", "output": "logit"}, ""),
            *([0, 1, 2, 3], "perturbed pixels", "output (logit), mean and 95 % band\n← lower", "AOPC (MoRF)"),
        ),
    ],
)
def test_curves_are_means_over_images(
    metric: str, parameters: dict[str, Any], curve: str, x: list[int], x_label: str, y_label: str, title: str
) -> None:
    scores = scores_under(metric, **parameters)
    axes = plot.curves(scores, curve=curve)
    name = curve or next(iter(scores["random"].curves))
    lines: Any = axes.lines
    for line, band, of_method in zip(lines, bands(axes), scores.values(), strict=True):
        values = of_method.curves[name]
        np.testing.assert_allclose(line.get_xdata(), x)
        np.testing.assert_allclose(line.get_ydata(), values.mean(0))
        half = 1.96 * values.std(0, ddof=1) / len(values) ** 0.5
        np.testing.assert_allclose([band[place][1] - band[place][0] for place in x], 2 * half, atol=1e-6)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == LABELS  # type: ignore[union-attr]
    assert axes.get_xlabel() == x_label
    assert y_label in axes.get_ylabel()
    assert axes.get_title() == title


def test_a_method_without_scores_has_a_note_in_the_legend() -> None:
    constant = saliency_assay.score("deletion", NETWORK, IMAGES, TARGETS, np.ones((6, 8, 8)), steps=4)
    axes = plot.curves({**scores_under("deletion", steps=4), "constant": constant})
    assert [text.get_text() for text in axes.get_legend().get_texts()][3].endswith(": no score")  # type: ignore[union-attr]


def test_a_gallery_shows_images_and_visual_maps() -> None:
    maps = {**MAPS, "constant": np.ones((6, 8, 8))}
    mask = np.zeros((6, 8, 8), dtype=bool)
    mask[:, 2:5, 2:5] = True
    axes = plot.maps(IMAGES, maps, titles=np.arange(6), mask=mask)
    tiles: Any = np.array(axes.child_axes, dtype=object).reshape(6, 5)
    assert [tile.get_title() for tile in tiles[0]] == ["image", *LABELS, "Constant"]
    assert [tile.get_ylabel() for tile in tiles[:, 0]] == list("012345")
    visual = reduce(torch.from_numpy(MAPS["random"]), "visual")
    for row in range(6):
        np.testing.assert_array_equal(tiles[row, 2].images[0].get_array(), visual[row])
        np.testing.assert_array_equal(
            tiles[row, 0].images[0].get_array(), (255 * IMAGES[row]).round().transpose(1, 2, 0)
        )
        assert [text.get_text() for text in tiles[row, 4].texts] == ["×"]
        assert len(tiles[row, 1].collections) == 1  # the outline
    torch_axes = plot.maps(torch.from_numpy(IMAGES), {"a": torch.from_numpy(MAPS["random"])})
    np.testing.assert_array_equal(torch_axes.child_axes[1].images[0].get_array(), visual[0])


def test_only_undefined_maps_have_a_cross() -> None:
    sparse = np.full((6, 8, 8), -1.0)
    sparse[:, 0, 0] = 2
    maps = {"negative": -RNG.random((6, 8, 8)), "sparse": sparse, "constant": -np.ones((6, 8, 8))}
    axes = plot.maps(IMAGES, maps)
    _, negative, one_pixel, constant = axes.child_axes[:4]
    assert [text.get_text() for text in negative.texts] == ["−"]
    np.testing.assert_array_equal(negative.images[0].get_array(), np.zeros((8, 8)))
    assert not one_pixel.texts
    np.testing.assert_array_equal(one_pixel.images[0].get_array(), sparse[0] > 0)
    assert [text.get_text() for text in constant.texts] == ["×"]
    (note,) = axes.texts
    assert "−: no positive values" in note.get_text()
    assert "×: constant or not finite" in note.get_text()
    assert not plot.maps(IMAGES, {"random": MAPS["random"]}).texts


def test_one_method_is_highlighted() -> None:
    scores = scores_under("deletion", steps=8)
    axes = plot.curves(scores, highlight="my_map")
    assert [line.get_color() for line in axes.lines] == [GRAY, GRAY, VERMILION]
    axes = plot.ranks(saliency_assay.assess(scores, resamples=10), highlight="my_map")
    assert [each.get_text() for each in axes.get_yticklabels() if each.get_fontweight() == "bold"] == [
        "My map"
    ]
    with pytest.raises(ValueError, match=r"highlight: .*my_map"):
        plot.curves(scores, highlight="my_mop")


def test_agreement_is_the_correlation_of_pairs() -> None:
    assessed = saliency_assay.assess(scores_under("deletion", steps=8), resamples=10)
    axes = plot.agreement(assessed)
    labels = tick_labels(axes)
    keys = [list(MAPS)[LABELS.index(label)] for label in labels]
    np.testing.assert_array_equal(axes.images[0].get_array(), assessed.correlations.loc[keys, keys])
    assert sorted(labels) == sorted(LABELS)
    assert "Spearman's ρ over images of Deletion" in texts(axes)


def test_interactive_mode_is_kept_but_no_other_setting() -> None:
    """A notebook's backend is loaded with the first figure and turns interactive mode on."""
    size = plt.rcParams["font.size"]
    assert not plt.isinteractive()
    with styled():
        plt.ion()
        plt.rcParams["font.size"] = size + 1
    try:
        assert plt.isinteractive()
        assert plt.rcParams["font.size"] == size
    finally:
        plt.ioff()


def test_figures_that_do_not_fit() -> None:
    deletion, aopc = scores_under("deletion", steps=4), scores_under("aopc", steps=4, every=2, fill="black")
    faults: list[tuple[Any, dict[str, Any], str]] = [
        ({}, {}, "scores: found {}, expected results of score under one of deletion, "),
        ({**deletion, "edge": aopc["random"]}, {}, "scores: found {'gradient_x_input': 'deletion', "),
        ({"random": deletion["random"]["deletion"]}, {}, "scores: found {'random': 'ndarray'}, "),
        (scores_under("infidelity_shap"), {}, "scores: found {'gradient_x_input': 'infidelity_shap', "),
        (aopc, {"curve": "mort"}, r"unknown curve 'mort'; did you mean 'morf'\? valid: lerf, morf"),
    ]
    for scores, options, message in faults:
        with pytest.raises(ValueError, match=f"^{message}"):
            plot.curves(scores, **options)
    with pytest.raises(ValueError, match=r"^titles: found 1, expected one for each of 6 images"):
        plot.maps(IMAGES, MAPS, titles=["dog"])
    with pytest.raises(ValueError, match=r"^maps: found none, expected those of at least one method"):
        plot.maps(IMAGES, {})
    with pytest.raises(ValueError, match=r"^images: found \[6, 2, 8, 8\], expected one or three channels"):
        plot.maps(IMAGES[:, :2], {"a": MAPS["my_map"]})


@pytest.mark.parametrize(
    ("titles", "shown"),
    [
        (torch.arange(6), list("012345")),
        (torch.tensor([0.1, 1, 2, 3, 4, 5]), ["0.1", "1.0", "2.0", "3.0", "4.0", "5.0"]),
        (np.array([0.1, 1, 2, 3, 4, 5], np.float32), ["0.1", "1.0", "2.0", "3.0", "4.0", "5.0"]),
        (
            [np.int64(3), np.array(4), torch.tensor(5), 6, "seven", True],
            ["3", "4", "5", "6", "seven", "True"],
        ),
    ],
    ids=str,
)
def test_titles_are_plain_numbers(titles: Any, shown: list[str]) -> None:
    axes = plot.maps(IMAGES, {"random": MAPS["random"]}, titles=titles)
    assert [tile.get_ylabel() for tile in axes.child_axes[::2]] == shown


def test_an_alias_has_the_label_of_the_method() -> None:
    axes = plot.maps(IMAGES, {"ig": MAPS["random"], "sg": MAPS["random"]})
    assert [tile.get_title() for tile in axes.child_axes[:3]] == [
        "image",
        "Integrated Gradients",
        "SmoothGrad",
    ]
