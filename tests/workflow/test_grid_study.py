"""A grid study: a method that works in all settings, one that works in two, and one of several layers."""

import json

import numpy as np
import pandas as pd
import pytest
from checkout import Checkout

from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

GRIDS, CELLS = 6, 2
STUDY = """
data: {digits: {kind: digits, size: 8, max_explained_images: 5}}
models:
  net: {architecture: resnet8, width: 8, data: digits, trained_on: class, training: {epochs: 6, learning_rate: 0.1}}
methods:
  gradient: {}
  fullgrad: {}
  gradcam: {sweep: {layer: [layer1, layer3]}}
  gradient_shap: {samples: 2, background: 3}
  constant: {}
studies:
  grid: {kind: grid, model: net, cells: 2, grids: 6, confidence: 0.5}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.finished(tmp_path_factory.mktemp("grid"), STUDY)


def localization(checkout: Checkout) -> pd.DataFrame:
    table = pd.read_csv(checkout.root / "results/tables/grid/localization.csv")
    return table.fillna({"layer": ""}).set_index(["metric", "method"])


def test_scores_of_all_settings(done: Checkout) -> None:
    table = localization(done)
    assert set(table.index.get_level_values("metric")) == {"gridpg", "difull", "dipart"}
    assert (table["images"] == GRIDS * CELLS**2).all()
    mean = table["mean"]
    assert mean["difull", "gradient"] == mean["difull", "gradient_shap"] == 1
    assert mean["difull", "gradcam_layer_layer1"] < 1
    assert np.allclose(mean[:, "constant"], 1 / CELLS**2)
    assert table["layer"]["gridpg"].to_dict() == {
        **dict.fromkeys(("gradient", "fullgrad", "gradient_shap", "constant"), ""),
        **{"gradcam_layer_layer1": "layer1", "gradcam_layer_layer3": "layer3"},
    }


def test_a_method_that_fails_in_a_setting_is_recorded_there_alone(done: Checkout) -> None:
    table = localization(done)
    assert ("gridpg", "fullgrad") in table.index
    assert ("difull", "fullgrad") in table.index
    assert ("dipart", "fullgrad") not in table.index
    failed = pd.read_csv(done.root / "results/tables/grid/not_computed.csv")
    assert failed["method"].tolist() == ["fullgrad"]


def test_a_grid_has_different_classes_and_no_image_is_in_two(done: Checkout) -> None:
    with open_store(done.root / "results/grids/grid.zarr.zip", kind="data") as grids:
        targets, sources = grids["target"][:].reshape(GRIDS, -1), grids["source"][:]
        assert np.array_equal(grids["label_class"][:], targets.ravel())
    assert all(len(set(row)) == CELLS**2 for row in targets.tolist())
    assert len(set(sources.tolist())) == GRIDS * CELLS**2
    predictions = pd.read_parquet(done.root / "results/models/net/seed0/predictions.parquet")
    chosen = predictions.set_index("image").loc[sources]
    assert (chosen["split"] == "test").all()
    assert (chosen["predicted"] == chosen["label"]).all()
    assert (chosen["probability"] >= 0.5).all()


def test_figures_and_pages(done: Checkout) -> None:
    figures = done.root / "results/figures/grid"
    assert (figures / "localization.svg").stat().st_size > 10_000
    assert all((figures / f"{name}_aggatt.png").stat().st_size > 5000 for name in ("gridpg", "difull"))
    assert "Grad-CAM" in (figures / "localization.html").read_text(encoding="utf-8")
    order = pd.read_csv(done.root / "results/tables/grid/order.csv")
    assert (order["over"] == "groups").all()
    evaluation = json.loads((done.root / "results/models/net/seed0/evaluation.json").read_text())
    assert evaluation["digits"]["test"]["accuracy"] > 0.5
