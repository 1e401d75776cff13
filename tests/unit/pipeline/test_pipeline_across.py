"""Studies whose orders of methods are compared across models and data sets."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pipelines import TINY, inputs, params

METHODS = ["gradient", "gradcam", "smooth"]


def studies(**changed: Any) -> dict[str, Any]:
    """Return a configuration with two studies of different models, the second one ``changed``."""
    first = {
        "kind": "fidelity",
        "model": "digits",
        "methods": [*METHODS, "random"],
        "metrics": ["faithfulness"],
    }
    second = {**first, "model": "f_o", "methods": ["random", *METHODS], **changed}
    return {
        **deepcopy(TINY),
        "studies": {"one": first, "look": {"kind": "gallery", "model": "f_o"}, "two": second},
    }


def test_studies_of_two_models_have_a_page_with_inputs_of_both() -> None:
    of = inputs(studies())
    assert of.across_tasks("pairs") == ["results/tables/one/pairs.csv", "results/tables/two/pairs.csv"]
    assert [Path(page).name for page in of.pages()[:3]] == ["overview.html", "trust.html", "across.html"]
    labels = params(studies()).compare_tasks({})["labels"]
    assert labels["models"].keys() >= {"digits", "f_o"}


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "digits"},
        {"metrics": ["sensitivity"]},
        {"methods": ["random", "edge", *METHODS[:2]]},
    ],
    ids=["same task", "other metrics", "two common methods beside baselines"],
)
def test_studies_that_cannot_be_compared_have_no_page(changed: dict[str, Any]) -> None:
    of = inputs(studies(**changed))
    assert of.across_tasks("order") == []
    assert "results/figures/across.html" not in of.pages()


def test_the_tiny_run_has_no_tasks_to_compare() -> None:
    assert inputs(TINY).across_tasks("order") == []
