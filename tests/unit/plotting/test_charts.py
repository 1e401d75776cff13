"""Charts: what their specifications contain, and the static files."""

import json
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from saliency_assay.plotting.charts import COLUMNS, LineChart, Panel, PointChart, line_rows
from saliency_assay.plotting.palette import BASELINE_DASHES, CYCLE, GRAY, SHAPES, look, looks
from saliency_assay.plotting.style import save
from saliency_assay.registry.labels import Labels

NAN = float("nan")


def chart(*, faint: bool = False) -> LineChart:
    rows = line_rows(
        "a <b>",
        np.arange(3.0),
        np.array([0.123456789, NAN, 3.0]),
        np.array([0.0, NAN, 2.5]),
        np.array([0.5, NAN, 3.5]),
        images=np.array([4, 0, 3]),
        faint=np.array([faint, False, False]),
    )
    panel = Panel("Scores", "x\nn = 4", "y", rows, ticks=["model", 'layer "1"', "é"])
    return LineChart([panel, panel], {"a <b>": look(0), "other": look(-1)}, "Curves of scores")


def values(data: dict[str, Any]) -> pd.DataFrame:
    return pd.read_csv(StringIO(data["values"]))


def test_rows_are_data_of_the_chart_with_five_digits() -> None:
    (first, second) = chart().specification()["concat"]
    table = values(first["data"])
    assert list(table) == COLUMNS
    assert list(table["mean"]) == pytest.approx([0.12346, NAN, 3], nan_ok=True, abs=1e-12)
    assert list(table["images"]) == [4, 0, 3]
    assert first["data"]["format"]["parse"] == dict.fromkeys(COLUMNS[1:], "number")
    assert first["encoding"]["x"]["title"] == ["x", "n = 4"]
    assert second["data"] == first["data"]


def test_all_channels_have_the_same_series_and_one_legend() -> None:
    layers = chart().specification()["concat"][0]
    color, dash, shape = (
        layers["encoding"]["color"],
        *(layers["layer"][place]["encoding"][name] for place, name in ((1, "strokeDash"), (2, "shape"))),
    )
    assert color["scale"] == {"domain": ["a <b>", "other"], "range": [CYCLE[0], GRAY]}
    assert dash["scale"]["range"] == [[], list(BASELINE_DASHES[1])]
    assert color["scale"]["domain"] == dash["scale"]["domain"] == shape["scale"]["domain"]
    assert color["legend"] == dash["legend"] == shape["legend"]


def test_the_static_file_contains_the_specification(tmp_path: Path) -> None:
    save(chart(), tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    metadata = root.find("{http://www.w3.org/2000/svg}metadata")
    assert metadata is not None
    assert json.loads(metadata.text or "") == chart().specification()
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a <b>", "other", "model", 'layer "1"', "é", "xn = 4"} <= set(texts)
    first = (tmp_path / "chart.svg").read_bytes()
    save(chart(), tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_bytes() == first


def test_a_marker_is_at_every_step_from_the_offset() -> None:
    rows = line_rows("a", np.arange(50.0), np.zeros(50), offset=0.5)
    assert list(np.flatnonzero(rows["marked"])) == [5, 15, 25, 35, 45]
    assert line_rows("a", np.arange(3.0), np.zeros(3), offset=0.9)["marked"].all()


def test_points_can_be_under_any_two_scores(tmp_path: Path) -> None:
    rows = pd.DataFrame({"series": ["a", "b"]})
    for index in range(3):
        for end, shift in (("mean", 0.0), ("low", -1.0), ("high", 1.0)):
            rows[f"{end}{index}"] = np.array([1.0, NAN if index == 2 else 2.0]) + shift + index
    points = PointChart(rows, ["first", "second", "third"], looks(["a", "b"], Labels()), "Points", (0, 2))
    specification = points.specification()
    selected = {param["name"]: (param["value"], param["bind"]["labels"]) for param in specification["params"]}
    names = ["first", "second", "third"]
    assert selected == {"x_score": (0, names), "y_score": (2, names)}
    pd.testing.assert_frame_equal(values(specification["data"]), rows, check_dtype=False)
    save(points, tmp_path / "points.svg")
    image = (tmp_path / "points.svg").read_text(encoding="utf-8")
    assert ">first<" in image
    assert ">third<" in image
    assert ">second<" not in image


# --- looks --------------------------------------------------------------------------------------------------


def test_24_methods_and_their_baselines_differ_in_color_and_in_gray() -> None:
    all_looks = [look(place) for place in range(-3, 24)]
    assert len({(one.color, one.dash) for one in all_looks}) == 27
    assert len({(one.dash, one.shape) for one in all_looks[3:]}) == 24
    assert {one.color for one in all_looks[:3]} == {GRAY}
    assert GRAY not in CYCLE
    assert len(set(CYCLE)) == len(SHAPES) == 8


def test_a_method_has_the_look_of_its_place_in_every_study() -> None:
    labels = Labels(places={"a": 3, "b": -1})
    assert looks(["b", "a"], labels)["a"] == looks(["a"], labels)["a"] == look(3)
    assert looks(["b"], labels)["b"].color == GRAY
    assert looks(["x", "y"], labels)["y"] == look(1)  # without a place
