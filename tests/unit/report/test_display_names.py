"""Pages of a small report show the labels of entries; their keys are only in code, for those who edit them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from display_names import keys_in, keys_of, texts_of_figure, texts_of_page
from pipelines import TINY, params
from report_tables import order_rows, pair_rows, ranking_rows, reliability_rows

from saliency_assay.plotting.html import table_page, tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.figures import order_figure, reliability_figure
from saliency_assay.report.pages.catalog import cost_table, methods_page, metrics_page
from saliency_assay.report.pages.models_page import accuracy_table, displayed_accuracy, training_curves
from saliency_assay.report.pages.overview import build_page, overview_page, summary_page
from saliency_assay.report.pages.provenance import data_facts, packages_of, provenance_page, times
from saliency_assay.report.pages.reliability_page import page_tables
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.trust import trust_page

CONFIGURATION: dict[str, Any] = {
    **TINY,
    "metrics": {**TINY["metrics"], "aopc": {"steps": 4, "every": 2, "random_orders": 2}},
    "studies": {
        **TINY["studies"],
        "digits": {
            "kind": "fidelity",
            "model": "digits",
            "methods": ["gradient", "gradcam", "smooth", "random", "edge"],
            "metrics": ["aopc", "faithfulness", "sensitivity"],
        },
    },
}
SCORES = {
    ("aopc_morf", "aopc L=2"): "higher",
    ("aopc_morf", "aopc L=4"): "higher",
    ("faithfulness", "faithfulness"): "higher",
    ("sensitivity_max", "sensitivity"): "lower",
}
METHODS = {"gradient": (1, 2), "gradcam": (1, 2), "smooth": (3, 3), "random": (4, 5), "edge": (4, 5)}
EVALUATION = {
    "images": 40,
    "accuracy": 0.9,
    "balanced_accuracy": 0.9,
    "per_class": {"0": 0.8, "1": 1.0},
    "counts": {"0": {"correct": 16, "images": 20}, "1": {"correct": 20, "images": 20}},
}
CURVE = pd.DataFrame(
    {"epoch": [1], "train_accuracy": [0.9], "validation_accuracy": [np.nan], "test_accuracy": [0.8]}
)
ATTRIBUTES = {"classes": {"class": ["0", "1"]}, "digest": "ff"}
KEYS = keys_of(CONFIGURATION)
DESCRIPTIONS = params(CONFIGURATION).descriptions
LABELS = Labels(**DESCRIPTIONS.labels("digits"))


def scored(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows once for each score of the study."""
    pairs = SCORES.items()
    copies = [rows.assign(metric=metric, variant=variant) for (metric, variant), _ in pairs]
    return pd.concat(copies, ignore_index=True).assign(data="digits", model="digits")


def tables() -> dict[str, pd.DataFrame]:
    order = scored(order_rows(METHODS, above_baselines={"smooth": 0.0}, undefined={"gradcam": 0.5}))
    order["direction"] = [SCORES[pair] for pair in zip(order["metric"], order["variant"], strict=True)]
    rankings = ranking_rows({("a", "b"): 0.9}).assign(
        metric="aopc_morf", variant="aopc L=4", other_metric="faithfulness", other_variant="faithfulness"
    )
    agreement = pd.DataFrame({"between": ["halves"], "raters": [2], "methods": [5], "correlation": [0.9]})
    consistency = rankings.assign(seed=0, method="gradcam", agreement=0.9, printed=0.8)
    variance = scored(pd.DataFrame({"images": [60], "image": [0.2], "method": [np.nan]}))
    return {
        "order": order,
        "pairs": pair_rows(order).assign(data="digits", model="digits"),
        "reliability": scored(reliability_rows((0.9, 0.8, 1.0), baselines=("with", "without"), printed=0.8)),
        "rankings": rankings,
        "agreement": scored(agreement),
        "consistency": consistency,
        "variance": variance.drop(columns="method"),
    }


def study_result() -> StudyResult:
    description = DESCRIPTIONS.study("digits")
    named = tables()
    for name, column in (
        ("order", "method"),
        ("order", "lead_over"),
        ("pairs", "method"),
        ("pairs", "other"),
    ):
        named[name][column] = named[name][column].map(LABELS.method)
    return StudyResult(
        name="digits",
        label=description["label"],
        page=description["page"],
        labels=LABELS,
        question=description["question"],
        data=LABELS.data_set("digits"),
        models=[LABELS.model("digits")],
        score_summaries=description["score_summaries"],
        measured=description["measured"],
        methods=[LABELS.method(method) for method in description["methods"]],
        tables=named,
    )


def pages() -> Iterator[tuple[str, str]]:
    """Name and HTML of each page."""
    result, sets = study_result(), [data_facts(LABELS.data_set("digits"), (5, 3, 8, 8), ATTRIBUTES)]
    took = times(Path("none"))
    yield "overview", overview_page([result], seeds=[0], ran="")
    yield "study", summary_page(result)
    yield "trust", trust_page([result])
    yield "build", build_page(sets, [LABELS.model("digits")], seeds=[0], ran="")
    methods = [DESCRIPTIONS.method(DESCRIPTIONS.config.methods[name]) for name in METHODS]
    stores = [{"method": name, "model": "digits", "data": "digits", "batch": 4} for name in METHODS]
    measured = [[{"images": 8, "seconds": 1.0, "device": "cpu", "passes": 1}]] * len(stores)
    costs = cost_table(methods, stores, measured, {"digits": (8, 8)})
    yield "methods", methods_page(methods, costs, LABELS)
    metrics = [
        DESCRIPTIONS.metric(DESCRIPTIONS.config.metrics[name])
        for name in ("aopc", "faithfulness", "sensitivity")
    ]
    yield "metrics", metrics_page(metrics, tables()["reliability"].assign(study="digits"), LABELS)
    yield (
        "reliability",
        tables_page(page_tables(tables(), "Digits", LABELS, level=0.999), title="Digits", digits=3),
    )
    accuracy = accuracy_table({("digits", 0): {"digits": {"test": EVALUATION}}})
    yield "models", table_page(displayed_accuracy(accuracy, LABELS), title="Accuracy", digits=1)
    packages = packages_of({"maps": [{"torch": "2"}]})
    yield (
        "provenance",
        provenance_page("methods: {gradcam: {}}", versions={}, packages=packages, data=sets, took=took),
    )


PAGES = dict(pages())


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_labels_and_no_keys(name: str) -> None:
    assert list(keys_in(texts_of_page(PAGES[name]), KEYS)) == []


def test_pages_name_what_they_show() -> None:
    texts = {name: " ".join(text for _, text in texts_of_page(page)) for name, page in PAGES.items()}
    for name in ("overview", "study", "reliability"):
        for label in ("Grad-CAM", "Edge detection", "AOPC (MoRF, L = 4)", "Sensitivity"):
            assert label in texts[name], (name, label)
    assert all(label in texts["trust"] for label in ("AOPC (MoRF, L = 4)", "Sensitivity"))
    assert "<code>gradcam</code>" in PAGES["methods"]
    assert "<code>aopc_morf</code>" in PAGES["metrics"]


def test_figures_have_labels_and_no_keys(tmp_path: Path) -> None:
    with styled():
        for name, figure in {
            "order": order_figure(tables()["order"], LABELS),
            "reliability": reliability_figure(tables()["reliability"], level=0.999, labels=LABELS),
            "training": training_curves({("digits", 0): CURVE}, LABELS),
        }.items():
            save(figure, tmp_path / f"{name}.svg")
            texts = texts_of_figure((tmp_path / f"{name}.svg").read_text(encoding="utf-8"))
            assert texts
            assert list(keys_in(texts, KEYS)) == [], name


@pytest.mark.parametrize(
    ("html", "keys"),
    [
        ("<p>gradcam is first</p>", ["gradcam"]),
        ("<th>random</th>", ["random"]),
        ("<h2>sensitivity_max: scores</h2>", ["sensitivity_max"]),
        ('<img alt="aopc_morf">', ["aopc_morf"]),
        ("<p>random pixels, edge detection and gradients</p>", []),
        ("<td>Grad-CAM <small><code>gradcam</code></small></td>", []),
        ("<pre>methods: {gradcam: {}}</pre><script>gradcam</script>", []),
    ],
)
def test_keys_outside_code_are_listed(html: str, keys: list[str]) -> None:
    messages = list(keys_in(texts_of_page(html), KEYS))
    assert len(messages) == len(keys)
    for message, key in zip(messages, keys, strict=True):
        assert key in message


def test_the_page_of_a_study_has_no_colon() -> None:
    """A colon ends the name of a reStructuredText target, and Snakemake makes each page one."""
    named = {**CONFIGURATION["studies"]["digits"], "label": "Digits: 8 × 8 pixels"}
    studies = params({**CONFIGURATION, "studies": {**CONFIGURATION["studies"], "digits": named}}).studies
    assert studies.report_page({"study": "digits"}) == "Study Digits – 8 × 8 pixels"
