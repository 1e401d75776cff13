"""TCAV's rows, table and figure: layers that fail the test are shown, marked and left out of the mean."""

from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from saliency_assay.plotting.palette import BLUE, ORANGE
from saliency_assay.storage import WHOLE_SET, score_tables
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.tcav import rows_of
from saliency_assay.studies.bam.tcav_figures import concept_figure
from saliency_assay.studies.bam.tcav_tables import COLUMNS, concepts_table

NAN = float("nan")

Layers = dict[str, tuple[list[float], list[float]]]

CLEAR = ([0.9, 1.0, 0.95], [0.4, 0.5, 0.6])
UNCLEAR = ([0.4, 0.9, 0.5], [0.4, 0.5, 0.6])
CONSTANT = ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])


def measured(model: str, seed: int, layers: Layers, images: int = 57) -> pd.DataFrame:
    scores = {
        layer: {"concept": np.array(concept), "random": np.array(random)}
        for layer, (concept, random) in layers.items()
    }
    of_all = {"study": "bam", "data": "bam_os", "model": model, "seed": seed, "method": "tcav"}
    return rows_of(scores, images).assign(**of_all)


def study() -> pd.DataFrame:
    """The scene model has no layer that passes; its name comes first in the alphabet, not in the table."""
    return pd.concat(
        [
            measured("f_o", 3, {"layer 2": CLEAR, "layer1": UNCLEAR, "fc": CONSTANT}),
            measured("a_s", 3, {"layer 2": UNCLEAR, "layer1": UNCLEAR, "fc": UNCLEAR}, images=31),
        ],
        ignore_index=True,
    )


# --- rows ---------------------------------------------------------------------------------------------------


def test_rows_are_a_score_table(tmp_path: Path) -> None:
    rows = measured("f_o", 0, {"layer1": ([0.25, 0.5], [0.75, NAN])}, images=4)
    score_tables.write(tmp_path / "scores.parquet", rows)
    table = score_tables.read([tmp_path / "scores.parquet"])
    assert (table["image"] == WHOLE_SET).all()
    assert table["metric"].tolist() == ["tcav"] * 4 + ["tcav_images"]
    expected = ["layer1 concept 0", "layer1 concept 1", "layer1 random 0", "layer1 random 1", ""]
    assert table["variant"].tolist() == expected
    assert table["score"].tolist() == pytest.approx([0.25, 0.5, 0.75, NAN, 4], nan_ok=True)


# --- the table ----------------------------------------------------------------------------------------------


def test_the_table_has_each_layer_and_the_mean_of_those_that_pass() -> None:
    table = concepts_table(study(), significance=0.01)
    assert list(table.columns) == COLUMNS
    assert table["model"].tolist() == ["f_o"] * 4 + ["a_s"] * 4
    assert table["layer"].tolist() == ["layer 2", "layer1", "fc", "mean"] * 2
    assert table["seed"].tolist() == [3] * 8
    assert table["images"].tolist() == [57] * 4 + [31] * 4
    assert table["experiments"].tolist() == [3] * 8
    f_o = table.iloc[:4]
    assert f_o["score"].tolist() == pytest.approx([0.95, 0.6, 1.0, (0.95 + 1.0) / 2])
    assert f_o["random"].tolist() == pytest.approx([0.5, 0.5, 0.0, 0.25])
    p_values = [float(stats.ttest_ind(*values).pvalue) for values in (CLEAR, UNCLEAR)]
    assert f_o["p_value"].tolist() == pytest.approx([*p_values, 0, NAN], nan_ok=True)
    assert f_o["kept"].tolist() == [True, False, True, True]
    mean = table.iloc[-1]  # no layer passes
    assert mean[["score", "random"]].isna().all()
    assert not mean["kept"]


def test_without_images_under_test_all_is_undefined() -> None:
    none = [NAN, NAN]
    table = concepts_table(measured("f_s", 0, {"layer1": (none, none)}, images=0), significance=0.01)
    assert table[["score", "random", "p_value"]].isna().all(axis=None)
    assert table["kept"].tolist() == [False, False]
    assert table["images"].tolist() == [0, 0]


def test_seeds_are_apart_and_names_may_be_categories() -> None:
    parts = [measured("f_o", seed, {"fc": ([score, score], [0, 0])}) for seed, score in ((4, 0.5), (1, 1.0))]
    table = concepts_table(pd.concat(parts).astype({"model": "category"}), significance=0.01)
    assert table["seed"].tolist() == [4, 4, 1, 1]
    assert table["score"].tolist() == [0.5, 0.5, 1, 1]


# --- the figure ---------------------------------------------------------------------------------------------


def dots(figure: Figure, panel: int) -> list[tuple[list[float], list[bool]]]:
    """Heights of the dots of concept and random CAVs, and whether each is filled."""
    by_kind = []
    for collection in figure.axes[panel].collections:
        if isinstance(collection, PathCollection):
            heights = [float(height) for height in np.asarray(collection.get_offsets())[:, 1]]
            faces = [to_hex(face) for face in collection.get_facecolor()]
            assert set(faces) <= {BLUE.lower(), ORANGE.lower(), "#ffffff"}
            by_kind.append((heights, [face != "#ffffff" for face in faces]))
    return by_kind


def whiskers(figure: Figure, panel: int) -> list[list[float]]:
    """Half lengths of the whiskers of concept and random CAVs."""
    containers = figure.axes[panel].containers
    segments = [container.lines[2][0].get_segments() for container in containers]
    return [[float(np.ptp(segment[:, 1])) / 2 for segment in of_kind] for of_kind in segments]


def texts(figure: Figure, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]


def figure_of(scores: pd.DataFrame) -> Figure:
    """The figure beside the table as it is read from its file."""
    written = StringIO(concepts_table(scores, significance=0.01).to_csv(index=False))
    return concept_figure(scores, read_table(written), significance=0.01)


def test_the_figure_is_the_table() -> None:
    figure = figure_of(study())
    concept, random = dots(figure, 0)
    assert concept == (pytest.approx([0.95, 0.6, 1.0]), [True, False, True])
    assert random == (pytest.approx([0.5, 0.5, 0.0]), [True, False, True])
    assert dots(figure, 1)[0] == (pytest.approx([0.6] * 3), [False] * 3)
    deviations = [np.std(values, ddof=1) for values in (CLEAR[0], UNCLEAR[0], CONSTANT[0])]
    assert whiskers(figure, 0)[0] == pytest.approx(deviations)
    assert whiskers(figure, 0)[1] == pytest.approx([0.1, 0.1, 0])
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["layer 2", "layer1", "fc"]


def test_the_figure_says_p_and_mean() -> None:
    figure = figure_of(study())
    p_values = [float(stats.ttest_ind(*values).pvalue) for values in (CLEAR, UNCLEAR)]
    assert texts(figure, 0) == [f"p={p_values[0]:.2g}", f"p={p_values[1]:.2g}", "p<0.001"]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["f_o: 0.97 (57 images)", "a_s: × (31 images)"]


def test_several_seeds_are_one_panel() -> None:
    layers = [{"fc": CONSTANT, "layer1": CLEAR}, {"fc": ([0.5] * 3, [0.5] * 3), "layer1": UNCLEAR}]
    parts = [measured("f_o", seed, each, 50 + seed) for seed, each in enumerate(layers)]
    figure = figure_of(pd.concat(parts, ignore_index=True))
    assert len(figure.axes) == 1
    assert dots(figure, 0)[0] == (pytest.approx([0.75, (0.95 + 0.6) / 2]), [True, True])
    assert whiskers(figure, 0)[0][0] == pytest.approx(np.std([1, 1, 1, 0.5, 0.5, 0.5], ddof=1))
    assert texts(figure, 0) == ["1 of 2", "1 of 2"]
    assert figure.axes[0].get_title() == "f_o: 0.97 (50–51 images)"  # the second seed has no mean
