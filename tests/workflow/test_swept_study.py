"""A study with swept methods and metrics: its tables and figures, and the jobs that another value adds."""

import pandas as pd
import pytest
from checkout import Checkout

pytestmark = pytest.mark.slow

STUDY = """
data: {digits: {kind: digits, size: 8, max_explained_images: 30}}
models:
  net: {architecture: resnet8, width: 4, data: digits, trained_on: class, training: {epochs: 2, learning_rate: 0.1}}
methods: {gradient: {}, smoothgrad: {samples: 2, sweep: {noise: [0.05, 0.5]}}, random: {}}
metrics: {deletion: {steps: 8, sweep: {fill: [black, mean]}}, complexity: {}}
studies: {swept: {kind: fidelity, model: net}}
"""
NOISE = ["smoothgrad_noise_0.05", "smoothgrad_noise_0.5"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.finished(tmp_path_factory.mktemp("sweeps"), STUDY)


def table(checkout: Checkout, name: str) -> pd.DataFrame:
    return pd.read_csv(checkout.root / f"results/tables/swept/{name}.csv")


def test_ranks_have_one_row_for_a_family_on_half_of_the_images(done: Checkout) -> None:
    order = table(done, "order")
    assert set(order["method"]) == {"gradient", "smoothgrad", "random"}
    assert set(order["all_images"]) == set(order["selection_images"]) == {15}
    selected = order.set_index("method").loc["smoothgrad", "selected"]
    assert set(selected) <= set(NOISE)
    assert set(table(done, "pairs")["other_selected"].dropna()) | set(
        table(done, "pairs")["selected"].dropna()
    ) == set(selected)


def test_tables_and_figures_have_all_values(done: Checkout) -> None:
    sweeps = table(done, "sweeps")
    assert set(sweeps["method"]) == set(NOISE)
    assert set(sweeps["images"]) == {30}
    assert len(table(done, "metric_sweeps")) == 1
    figures = done.root / "results/figures/swept"
    for name in ("methods_sweep_smoothgrad", "metrics_sweep_deletion"):
        assert (figures / f"{name}.svg").read_text().startswith("<?xml")
    assert "Ranks refer to 15 images" in (figures / "study.html").read_text()


def computed(checkout: Checkout, job: str) -> list[str]:
    """Return the parts of a combined job that its last run has computed, not restored."""
    lines = checkout.log(f"combined/{job}.log").splitlines()
    parts = zip(lines[::2], lines[1::2], strict=True)
    return [part.partition(": ")[2] for part, result in parts if result != "unchanged"]


def test_another_value_computes_only_its_maps_and_scores(done: Checkout) -> None:
    data_and_model = [
        done.root / "results" / name for name in ("data/digits.zarr.zip", "models/net/seed0/weights.pt")
    ]
    before = [path.stat().st_mtime_ns for path in data_and_model]
    done.configure(methods__smoothgrad__sweep__noise=[0.05, 0.2, 0.5])
    done.make()
    assert [path.stat().st_mtime_ns for path in data_and_model] == before
    new = "net 0 digits smoothgrad_noise_0.2"
    assert computed(done, "attribute__net__seed0__digits") == [f"attribute {new}"]
    for metric in ("deletion_fill_black", "deletion_fill_mean", "complexity"):
        assert computed(done, f"score__{metric}__net__seed0__digits") == [f"score {metric} {new}"]
    assert set(table(done, "sweeps")["method"]) == {*NOISE, "smoothgrad_noise_0.2"}
    assert set(table(done, "order")["method"]) == {"gradient", "smoothgrad", "random"}
