"""A study of parts from its images to its report."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkout import Checkout
from display_names import keys_in, keys_of, texts_of_figure, texts_of_page

pytestmark = pytest.mark.slow

METHODS = ("gradient_x_input", "edge")
STUDY = """
data: {birds: {kind: birds, size: 32, class_count: 6, images_per_class: 20, test_share: 0.3, object_count: 2}}
models:
  net: {architecture: resnet8, width: 4, data: birds, trained_on: class, training: {epochs: 3, batch_size: 16}}
methods: {gradient_x_input: {}, edge: {}}
studies: {birds: {kind: parts, model: net}}
report: {gallery_images: 3}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout.finished(tmp_path_factory.mktemp("parts"), STUDY)


def table(checkout: Checkout, name: str) -> pd.DataFrame:
    return pd.read_csv(checkout.root / f"results/tables/birds/{name}.csv")


def test_means_are_those_of_the_scores_of_images(done: Checkout) -> None:
    protocols = table(done, "protocols").set_index("method")
    assert list(protocols.index) == list(METHODS)
    summary = table(done, "summary").set_index(["metric", "method"])["mean"]
    for method in METHODS:
        assert protocols.loc[method, "correctness"] == pytest.approx(summary["single_deletion", method])
        assert protocols.loc[method, "completeness"] == pytest.approx(summary["part_completeness", method])
    assert protocols["threshold"].between(0.01, 0.5).all()
    assert protocols["background_independence"].nunique() == 1  # of the model


def test_methods_have_rank_sets_under_each_score(done: Checkout) -> None:
    order = table(done, "order")
    assert set(order["metric"]) <= set(table(done, "summary")["metric"])
    assert set(order["method"]) == set(METHODS)


def test_pages_and_figures_have_labels_and_no_keys(done: Checkout) -> None:
    keys = keys_of(yaml.safe_load(STUDY))
    folder: Path = done.root / "results/figures/birds"
    for path, texts_of in (
        (folder / "protocols.html", texts_of_page),
        (folder / "protocols.svg", texts_of_figure),
    ):
        assert list(keys_in(texts_of(path.read_text(encoding="utf-8")), keys)) == []


def test_another_dilation_scores_the_same_maps_again(done: Checkout) -> None:
    done.edit("tiny.yaml", lambda text: text.replace("kind: parts,", "kind: parts, dilation: 2,"))
    jobs = done.planned()
    assert {job for job in jobs if job.startswith(("train", "attribute", "evaluate_interventions"))} == set()
    assert len({job for job in jobs if job.startswith("score_parts")}) in (1, len(METHODS))
