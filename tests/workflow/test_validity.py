"""A study of validity with a custom metric of ten lines in a user's folder."""

import pandas as pd
import pytest
from checkout import Checkout

pytestmark = pytest.mark.slow

MINE = '''"""Probability of the target with all pixels black except the strongest."""


def kept(predict, images, targets, maps, *, generator, share=0.5):
    strength = maps.sum(1).flatten(1)
    least = strength.topk(round(share * strength.shape[1]), dim=1).values[:, -1:]
    shown = (strength >= least).reshape(len(images), 1, *images.shape[2:])
    return predict(images * shown).softmax(1).gather(1, targets[:, None])[:, 0]
'''
STUDY = """
data: {digits: {kind: digits, size: 8, max_explained_images: 20}}
models:
  net: {architecture: resnet8, width: 8, data: digits, trained_on: class, training: {epochs: 8, learning_rate: 0.1}}
methods: {gradient_x_input: {}, gradient: {}, random: {}}
metrics:
  deletion: {steps: 16}
  deletion_mean: {metric: deletion, steps: 16, fill: mean}
  kept: {function: "mine:kept", direction: higher, label: Kept}
studies:
  trust:
    kind: validity
    model: net
    images: 12
    degraded_methods: [gradient_x_input]
    degradations: [noise, blur]
    levels: 3
    iterations: 2
    perturbations: 1
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    root = tmp_path_factory.mktemp("validity")
    study = root / "study.yaml"
    study.write_text(STUDY)
    checkout = Checkout.fresh(root / "project", study)
    (checkout.root / "mine.py").write_text(MINE)
    checkout.make()
    return checkout


def table(checkout: Checkout, name: str) -> pd.DataFrame:
    return pd.read_csv(checkout.root / f"results/tables/trust/{name}.csv")


def test_every_metric_has_a_recommendation(done: Checkout) -> None:
    recommendations = table(done, "recommendations").set_index("variant")
    assert list(recommendations.index) == ["deletion", "deletion_mean", "kept"]
    columns = ["rho", "rho_low", "rho_high", "alpha", "mc_model", "mc_input", "baseline_best", "passes"]
    assert recommendations[columns].notna().all(axis=None)
    assert recommendations["rho"].between(-1, 1).all()
    assert (recommendations["best_baseline"] == "random").all()
    assert recommendations["passes"].tolist() == [17, 17, 1]
    assert recommendations["verdict"].str.len().min() > 0


def test_the_other_tables(done: Checkout) -> None:
    order = table(done, "known_order")
    assert set(order["degradation"]) == {"all", "noise", "blur"}
    assert set(order["method"]) == {"gradient_x_input"}
    consistency = table(done, "meta_consistency")
    assert set(consistency["test"]) == {"model", "input"}
    assert (consistency["iterations"] == 2).all()
    assert set(table(done, "baselines")["baseline"]) == {"random", "blurred copy"}
    pairs = table(done, "settings_pairs")
    assert pairs[["variant", "other_variant", "setting"]].to_numpy().tolist() == [
        ["deletion", "deletion_mean", "fill"]
    ]


def test_the_figure_and_the_page_name_the_custom_metric(done: Checkout) -> None:
    figures = done.root / "results/figures/trust"
    assert "Kept" in (figures / "validity.html").read_text(encoding="utf-8")
    assert (figures / "validity.svg").stat().st_size > 10_000
    report = (done.root / "results/report.html").read_text(encoding="utf-8")
    assert "Reliability against validity" in report


def test_an_edited_metric_reruns_its_scores_alone(done: Checkout) -> None:
    done.edit("mine.py", lambda text: text + "\nADDED = 1\n")
    jobs = done.planned()
    scored = {job for job in jobs if job.startswith("score")}
    methods = ("gradient_x_input", "gradient", "random")
    assert scored == {
        *(f"score kept net 0 digits {method}" for method in methods),
        *(f"score_validity trust kept 0 {method}" for method in methods),
    }
    assert not {job for job in jobs if job.startswith(("attribute", "train"))}
