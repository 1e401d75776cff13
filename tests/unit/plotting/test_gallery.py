"""Figures of the report: what is drawn is what the tables hold, named, and equal whenever drawn."""

import struct
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import gallery, titles
from saliency_assay.plotting.style import readable, save, styled
from saliency_assay.report.pages.models_page import training_curves
from saliency_assay.studies.bam.figures import metric_bars

NAN = float("nan")

# --- figures ------------------------------------------------------------------------------------------------


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
    """Heights and half lengths of whiskers of the bars of each colour, from left to right."""
    found = []
    for container in figure.axes[0].containers:
        if hasattr(container, "patches"):
            found.append([patch.get_height() for patch in container.patches])
            segments = container.errorbar.lines[2][0].get_segments()
            found.append([np.ptp(segment[:, 1]) / 2 if len(segment) else NAN for segment in segments])
    return found


def with_variants(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """X_os, and two variants in which every method scores less, some more than others."""
    table = metrics(seeds)
    fewer = {"edge": 0.1, "guided_gradcam": 0.5, "random": 0.02}
    scale = table.assign(data="d_os_scale", score=table["score"] - table["method"].map(fewer), spread=0.04)
    location = table.assign(data="d_os_location", score=table["score"] - 0.01, baseline=0.99)
    return pd.concat([table, scale, location], ignore_index=True)


@pytest.mark.parametrize(("metric", "scale"), [("mcs", 1), ("idr", 100), ("iir", 100)])
def test_bars_are_the_table_best_method_first(metric: str, scale: int) -> None:
    figure = metric_bars(metrics(), metric)
    heights, whiskers, baseline, baseline_whiskers = bars(figure)
    assert heights == pytest.approx([scale * value for value in (0.6, 0.2, 0.1)])
    assert baseline == pytest.approx([scale * value for value in (0.06, 0.02, 0.01)])
    assert whiskers == pytest.approx([scale * 0.02] * 3)
    assert baseline_whiskers == pytest.approx([scale * 0.03] * 3)
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["guided gradcam", "edge", "random"]


def test_bars_of_what_is_better_lower_begin_with_the_lowest() -> None:
    table = metrics()
    table.loc[table["method"] == "edge", "score"] = np.inf  # a change of what was nothing
    figure = metric_bars(table, "iir_difference")
    assert bars(figure)[0] == pytest.approx([0.1, 0.6, NAN], nan_ok=True)
    assert figure.axes[0].get_ylabel() == "relative change of concept attribution\n(lower is better)"
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["random", "guided gradcam", "edge"]
    assert not [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]


def test_variants_stand_beside_their_methods_bar_in_its_order() -> None:
    figure = metric_bars(with_variants(), "mcs")
    first, _, scale, scale_whiskers, location, _, baseline, _ = bars(figure)
    assert first == pytest.approx([0.6, 0.2, 0.1])  # the order is that of the first set
    assert scale == pytest.approx([0.1, 0.1, 0.08])
    assert scale_whiskers == pytest.approx([0.04] * 3)
    assert location == pytest.approx([0.59, 0.19, 0.09])
    assert baseline == pytest.approx([0.06, 0.02, 0.01])  # of the first set
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    variants = ["robustness: other sizes", "robustness: other places"]
    assert named == ["object's mask", *variants, "baseline: as many random pixels"]
    groups = [container for container in figure.axes[0].containers if hasattr(container, "patches")]
    looks = {(patch.get_facecolor(), patch.get_hatch()) for group in groups for patch in group.patches}
    assert len(looks) == 4
    edges = [group.patches[0].get_x() for group in groups]
    assert edges == pytest.approx([-0.4, -0.2, 0.0, 0.2])
    assert groups[-1].patches[0].get_x() + groups[-1].patches[0].get_width() == pytest.approx(0.4)


def test_seeds_of_variants_are_dots_too() -> None:
    axes = metric_bars(with_variants(seeds=(0, 4)), "mcs").axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == 9
    assert list(dots[3].get_xdata()) == pytest.approx([-0.1, -0.1])
    assert list(dots[3].get_ydata()) == pytest.approx([0.1, 0.14])


def test_a_variant_that_lacks_a_method_has_a_cross() -> None:
    table = with_variants()
    table = table[(table["data"] != "d_os_scale") | (table["method"] != "edge")]
    figure = metric_bars(table, "mcs")
    assert bars(figure)[2] == pytest.approx([0.1, NAN, 0.08], nan_ok=True)
    crosses = [text.get_position() for text in figure.axes[0].texts if text.get_text() == "×"]
    assert crosses == [(pytest.approx(0.9), 0)]


def test_a_table_without_the_metric_can_be_drawn(tmp_path: Path) -> None:
    with styled():
        figure = metric_bars(metrics().iloc[:0], "iir")
        save(figure, tmp_path / "iir.svg")
    assert figure.axes[0].get_xlabel() == "method; 0 images a method, 0 training seeds"


def test_bars_say_what_they_are() -> None:
    mcs, idr = metric_bars(metrics(), "mcs"), metric_bars(metrics(seeds=(0, 5)), "idr")
    assert mcs.axes[0].get_ylabel() == "MCS: difference of concept attribution\n(saliency on a 0–1 scale)"
    assert mcs.axes[0].get_xlabel() == "method; 20 images a method, 1 training seed"
    assert idr.axes[0].get_ylabel() == "IDR: share of images (%)"
    assert idr.axes[0].get_xlabel() == "method; 20–25 images a method, 2 training seeds"
    named = [text.get_text() for text in mcs.legends[0].get_texts()]
    assert named == ["object's mask", "baseline: as many random pixels"]
    assert "50 %: no preference" in [text.get_text() for text in idr.legends[0].get_texts()]
    assert [line.get_ydata()[0] for line in idr.axes[0].lines if line.get_linestyle() == "--"] == [50]


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
        for metric in ("mcs", "idr"):
            figure = metric_bars(metrics().assign(**dict.fromkeys(MEANS, NAN)), metric)
            save(figure, tmp_path / f"{metric}.svg")
            assert len([text for text in figure.axes[0].texts if text.get_text() == "×"]) == 6


def curve(first: float, validation: float = NAN) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": [1, 2],
            "train_accuracy": [first + 0.1, 0.75],
            "validation_accuracy": [validation, NAN],
            "test_accuracy": [first, 0.5],
        }
    )


def test_training_curves_are_the_tables() -> None:
    curves = {("f_o", 3): curve(0.1), ("f_o", 1): curve(0.2), ("f_s", 1): curve(0.3)}
    axes = training_curves(curves).axes[0]
    assert axes.get_xlabel() == "epoch"
    assert axes.get_ylabel() == "accuracy (%)"
    solid, dashed = ([line for line in axes.lines if line.get_linestyle() == style] for style in ("-", "--"))
    assert [list(line.get_ydata()) for line in solid] == [pytest.approx([f, 50]) for f in (10, 20, 30)]
    assert [list(line.get_ydata()) for line in dashed] == [pytest.approx([f, 75]) for f in (20, 30, 40)]
    assert all(list(line.get_xdata()) == [1, 2] for line in axes.lines)
    assert [line.get_color() for line in solid] == [line.get_color() for line in dashed]
    assert solid[0].get_color() == solid[1].get_color() != solid[2].get_color()
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["f_o", "f_s"]
    assert legend.get_title().get_text() == "solid: test, dashed: training"


def test_a_model_that_was_not_trained_here_has_no_curve_but_is_named() -> None:
    given = curve(0.1).iloc[:0]
    axes = training_curves({("f_o", 0): curve(0.2, 0.5), ("mine", 0): given}).axes[0]
    assert axes.get_title() == "with weights as they were given, not trained here: mine"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["f_o"]
    alone = training_curves({("mine", 0): given, ("mine", 1): given}).axes[0]
    assert (alone.lines[:], alone.get_legend(), list(alone.get_xticks())) == ([], None, [])
    assert alone.get_title() == "with weights as they were given, not trained here: mine"


def test_training_curves_of_models_that_have_validation_images() -> None:
    axes = training_curves({("f_o", 3): curve(0.1, 0.4), ("f_s", 1): curve(0.3)}).axes[0]
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [list(line.get_ydata()) for line in dotted] == [pytest.approx([40, NAN], nan_ok=True)]
    assert dotted[0].get_color() == axes.lines[0].get_color()
    assert axes.get_legend().get_title().get_text() == "solid: test, dashed: training, dotted: validation"


# --- the gallery --------------------------------------------------------------------------------------------

SIDE = 6


def pictures(count: int = 2, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, channels, SIDE, SIDE), dtype=np.uint8)


def raw_maps(count: int = 2) -> torch.Tensor:
    return torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(3))


def visual(maps: torch.Tensor) -> np.ndarray:
    return reduce(maps, "visual").numpy()


def grid(figure: Figure, columns: int) -> np.ndarray:
    return np.array(figure.axes, dtype=object).reshape(-1, columns)


def test_gallery_puts_images_in_rows_and_methods_in_columns() -> None:
    images, edge, gradient = pictures(), visual(raw_maps()), visual(raw_maps().flip(0)) / 2
    shown = grid(
        gallery(images, {"f_o": {"edge": edge, "guided_backprop": gradient}}, titles=["dog", "cat"]), 3
    )
    assert shown.shape == (2, 3)
    for item in range(2):
        image, first, second = (axes.images[0] for axes in shown[item])
        np.testing.assert_array_equal(image.get_array(), images[item].transpose(1, 2, 0))
        np.testing.assert_array_equal(first.get_array(), edge[item])
        np.testing.assert_array_equal(second.get_array(), gradient[item])
        assert first.get_clim() == second.get_clim() == (0, 1)  # one scale for all maps
    assert [axes.get_title() for axes in shown[0]] == ["dog", "edge", "guided\nbackprop"]
    assert [axes.get_title() for axes in shown[1]] == ["cat", "", ""]
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["f_o", "f_o"]


def test_gallery_of_two_models_has_two_rows_an_image() -> None:
    maps = {"f_o": {"edge": visual(raw_maps())}, "f_s": {"edge": visual(raw_maps().flip(0))}}
    shown = grid(gallery(pictures(), maps, titles=["dog", "cat"]), 2)
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["f_o", "f_s", "f_o", "f_s"]
    assert [axes.get_title() for axes in shown[:, 0]] == ["dog", "", "cat", ""]
    for row, (item, model) in enumerate(((0, "f_o"), (0, "f_s"), (1, "f_o"), (1, "f_s"))):
        np.testing.assert_array_equal(shown[row, 1].images[0].get_array(), maps[model]["edge"][item])


def test_gallery_of_many_methods_has_them_in_rows() -> None:
    maps = {f"method_{i}": visual(raw_maps()) * (i + 1) / 13 for i in range(13)}
    images = pictures()
    figure = gallery(images, {"f_o": maps}, titles=["dog, track", "cat"])
    shown = grid(figure, 2)
    assert shown.shape == (14, 2)
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["image", *(f"method {i}" for i in range(13))]
    assert [axes.get_title() for axes in shown[0]] == ["dog,\ntrack", "cat"]
    for item in range(2):
        np.testing.assert_array_equal(shown[0, item].images[0].get_array(), images[item].transpose(1, 2, 0))
        for row, drawn in enumerate(maps.values(), start=1):
            np.testing.assert_array_equal(shown[row, item].images[0].get_array(), drawn[item])


def test_gallery_of_digits_is_grey_from_black_to_white() -> None:
    images = pictures(1, channels=1)
    shown = grid(gallery(images, {"d": {"edge": visual(raw_maps(1))}}, titles=["7"]), 2)
    image = shown[0, 0].images[0]
    np.testing.assert_array_equal(image.get_array(), images[0, 0])
    assert (image.get_clim(), image.get_cmap().name) == ((0, 255), "gray")


@pytest.mark.parametrize(
    "broken",
    [
        lambda maps: torch.full_like(maps, 0.25),
        lambda maps: -maps,
        lambda maps: torch.where(maps == maps.max(), torch.nan, maps),
        lambda maps: torch.where(maps == maps.max(), torch.inf, maps),
    ],
    ids=["constant", "nowhere positive", "one NaN", "one infinity"],
)
def test_a_map_that_cannot_be_shown_is_a_cross(broken: Callable[[torch.Tensor], torch.Tensor]) -> None:
    maps = torch.cat([broken(raw_maps(1)), raw_maps(1)])
    masks = np.zeros((2, SIDE, SIDE), dtype=bool)
    masks[:, 2:4, 2:4] = True
    figure = gallery(pictures(), {"d": {"edge": visual(maps)}}, titles=["7", "8"], masks=masks)
    cross, defined = grid(figure, 2)[:, 1]
    assert ([text.get_text() for text in cross.texts], len(cross.images)) == (["×"], 0)
    assert ([text.get_text() for text in defined.texts], len(defined.images)) == ([], 1)


def test_masks_are_outlined() -> None:
    masks = np.zeros((2, SIDE, SIDE), dtype=bool)
    masks[0, 1:3, 2:5] = True
    shown = grid(gallery(pictures(), {"d": {"edge": visual(raw_maps())}}, titles=["7", "8"], masks=masks), 2)
    for axes in shown[0]:
        corners = np.concatenate([path.vertices for path in axes.collections[0].get_paths()])
        assert (corners.min(0).tolist(), corners.max(0).tolist()) == ([1.5, 0.5], [4.5, 2.5])  # x, y
    assert [len(axes.collections) for axes in shown[1]] == [0, 0]  # an empty mask has no outline


def test_titles_name_the_classes() -> None:
    labels = {"label_object": np.array([1, 0]), "label_scene": np.array([0, 1])}
    classes = {"object": ["dog", "stop sign"], "scene": ["corn_field", "track"]}
    assert titles(labels, classes) == ["stop sign, corn field", "dog, track"]


# --- files --------------------------------------------------------------------------------------------------

DRAWN: dict[str, Callable[[], Figure]] = {
    "bars": lambda: metric_bars(metrics(seeds=(0, 1)), "idr"),
    "variants": lambda: metric_bars(with_variants(), "mcs"),
    "curves": lambda: training_curves({("f_o", 0): curve(0.1), ("f_s", 0): curve(0.2)}),
    "gallery": lambda: gallery(
        pictures(),
        {"d": {"edge": visual(torch.cat([raw_maps(1), -raw_maps(1)]))}},
        titles=["7", "8"],
        masks=np.tri(SIDE, dtype=bool)[None].repeat(2, axis=0),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_equal_figures_give_equal_files(tmp_path: Path, name: str, ending: str) -> None:
    paths = [tmp_path / "one" / f"a.{ending}", tmp_path / "two" / f"b.{ending}"]
    for path in paths:
        with styled():
            save(DRAWN[name](), path)
    one, two = (path.read_bytes() for path in paths)
    assert one == two


def test_files_have_no_date(tmp_path: Path) -> None:
    with styled():
        for ending in ("svg", "png"):
            save(DRAWN["curves"](), tmp_path / f"a.{ending}")
    svg = ET.parse(tmp_path / "a.svg")
    assert not [element.tag for element in svg.iter() if element.tag.endswith("}date")]
    links = [value for element in svg.iter() for key, value in element.items() if key.endswith("}href")]
    assert {value[0] for value in links} == {"#"}  # all within the file
    assert "IHDR" in chunks(tmp_path / "a.png")
    assert not {"tIME", "tEXt", "iTXt"} & set(chunks(tmp_path / "a.png"))


def chunks(path: Path) -> list[str]:
    """Types of a PNG's chunks."""
    content, at, found = path.read_bytes(), 8, []
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        found.append(content[at + 4 : at + 8].decode())
        at += 12 + length
    return found


def test_style_ends_with_its_block() -> None:
    before = dict(mpl.rcParams)
    with styled():
        assert mpl.rcParams["svg.hashsalt"] == "saliency-assay"
    assert dict(mpl.rcParams) == before


def test_readable() -> None:
    assert readable("guided_grad_cam") == "guided grad cam"
