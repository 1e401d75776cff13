"""A study of designed networks, which are not trained."""

import pandas as pd
import pytest
from checkout import Checkout

pytestmark = pytest.mark.slow

STUDY = """
device: cpu
data: {designed: {kind: designed, images: 40, max_explained_images: 12}}
models:
  counting: {architecture: designed/counting, data: designed, trained_on: counting}
  saturated: {architecture: designed/saturated, data: designed, trained_on: saturated}
methods: {truth: {}, gradient: {}, gradient_x_input: {}, integrated_gradients: {steps: 400}, random: {}}
metrics: {truth_agreement: {}, faithfulness: {fill: black, output: logit}}
studies:
  designed: {kind: designed, models: [counting, saturated]}
report: {gallery_images: 2}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.finished(tmp_path_factory.mktemp("designed"), STUDY)


def table(checkout: Checkout, name: str) -> pd.DataFrame:
    return pd.read_csv(checkout.root / f"results/tables/designed/{name}.csv")


def test_methods_against_the_truth(done: Checkout) -> None:
    closeness = table(done, "method_truth").query("metric == 'truth_correlation'")
    means = closeness.pivot(index="method", columns="model", values="mean")
    assert means.loc["truth"].tolist() == pytest.approx([1, 1])
    assert means.loc["gradient_x_input"].tolist() == pytest.approx([1, 0])
    assert means.loc["integrated_gradients"].tolist() == pytest.approx([1, 1], abs=0.01)


def test_metrics_against_the_truth(done: Checkout) -> None:
    faithfulness = table(done, "metric_truth").set_index("model")
    assert faithfulness["metric"].unique().tolist() == ["faithfulness"]
    assert faithfulness.loc["counting", "first"]
    # No single pixel has an effect, so that no method has a score.
    assert faithfulness.loc["saturated", ["rank_low", "rho"]].isna().all()


def test_accuracy_is_perfect_and_the_report_has_the_figures(done: Checkout) -> None:
    figures = done.root / "results/figures/designed"
    assert {"method_truth.svg", "metric_truth.svg", "truth_tables.html"} <= {
        path.name for path in figures.iterdir()
    }
    page = (figures / "study.html").read_text()
    assert "weights set by hand; test accuracy 100.0 %" in page
    assert "trained on the" not in page
    done.make("table")
    assert (done.root / "results/export/designed/metric_truth.csv").exists()
    models = pd.read_csv(done.root / "results/export/models.csv")
    assert (models["accuracy (%)"] == 100).all()
