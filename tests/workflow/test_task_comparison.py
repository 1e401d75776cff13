"""Comparison of the tasks of a run: when it is made, its tables and its page."""

import pandas as pd
import pytest
from checkout import Checkout
from parsed_pages import Page

from saliency_assay.reliability.across import Orders, across_tasks
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.storage import score_tables


@pytest.mark.slow
def test_two_models_with_a_common_order_are_compared(smallest: Checkout) -> None:
    assert "compare_tasks" not in smallest.planned("--forceall")
    methods = ["gradient", "smooth", "input"]
    model = {
        "architecture": "resnet8",
        "width": 8,
        "data": "digits",
        "trained_on": "class",
        "label": "Wide model",
    }
    smallest.configure(
        methods__input={"method": "gradient_x_input"},
        models__wide={**model, "training": {"epochs": 1}},
        studies__digits__methods=methods,
        studies__wide={"kind": "fidelity", "model": "wide", "methods": methods, "metrics": ["faithfulness"]},
    )
    planned = smallest.planned()
    assert "compare_tasks" in planned
    assert not {
        job for job in planned if job.startswith(("train digits", "attribute digits 0 digits gradient"))
    }
    smallest.make()
    results = smallest.root / "results"
    tasks = {}
    for study in ("digits", "wide"):
        scores = score_tables.read([results / f"tables/{study}/scores.parquet"])
        scores = scores[scores["metric"] == "faithfulness"]
        tasks[f"{study} on digits"] = Orders(*order_tables(scores, {"faithfulness": "higher"}))
    expected = across_tasks(tasks)
    agreement = pd.read_csv(results / "tables/task_agreement.csv", keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(agreement.fillna({"other": ""}), expected.agreement, check_dtype=False)
    pairs = pd.read_csv(results / "tables/task_pairs.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(pairs, expected.pairs, check_dtype=False)
    text = (results / "figures/across.html").read_text(encoding="utf-8")
    assert "Wide model" in text
    assert Page(text).tags.count("h1") == 1
    assert "Across tasks" in (results / "report.html").read_text(encoding="utf-8")
    assert smallest.planned() == set()
