"""Labels are settings of figures, tables and pages, and of no job that trains, explains or scores."""

import json
from copy import deepcopy
from typing import Any

import pytest
from pipelines import TINY, params

MAP = {"model": "digits", "seed": "0", "data": "digits", "method": "gradient", "shard": ""}
ARM = {"study": "retrain", "protocol": "roar", "method": "gradient", "fill": "mean", "seed": "0", "shard": ""}


def labeled() -> dict[str, Any]:
    """``TINY`` with a label for every entry."""
    raw = deepcopy(TINY)
    for section in ("data", "models", "methods", "metrics", "studies"):
        for name in raw[section]:
            raw[section][name] = {**raw[section][name], "label": f"The {section} {name}"}
    return raw


def settings(configuration: dict[str, Any], kind: str, rule: str, wildcards: dict[str, str]) -> Any:
    of = params(configuration)
    return getattr(of.of_kind(kind) if kind else of, rule)(wildcards)


@pytest.mark.parametrize(
    ("kind", "rule", "wildcards"),
    [
        ("", "collect_bam", {"collection": "bam"}),
        ("", "compose_bam", {"data": "bam_os"}),
        ("", "build_data", {"data": "digits"}),
        ("", "train", MAP),
        ("", "trial", {"model": "searched", "trial": "0"}),
        ("", "evaluate", MAP),
        ("", "attribute", MAP),
        ("", "respond", {**MAP, "metric": "infidelity"}),
        ("", "score", {**MAP, "metric": "sensitivity"}),
        ("", "tabulate_reliability", {"study": "digits"}),
        ("", "export_scores", {"study": "digits"}),
        ("bam", "score_bam", {"study": "bam", "seed": "0", "method": "edge"}),
        ("bam", "tabulate_bam", {"study": "bam"}),
        ("bam", "score_concepts", {"study": "bam", "seed": "0", "model": "f_o"}),
        ("retrain", "remask", {**ARM, "iteration": "0"}),
        ("retrain", "retrain", {**ARM, "iteration": "1"}),
        ("fidelity", "tabulate_scores", {"study": "digits"}),
    ],
)
def test_results_do_not_depend_on_labels(kind: str, rule: str, wildcards: dict[str, str]) -> None:
    assert settings(labeled(), kind, rule, wildcards) == settings(TINY, kind, rule, wildcards)


@pytest.mark.parametrize(
    ("kind", "rule", "wildcards"),
    [
        ("", "plot_gallery", {"study": "digits"}),
        ("", "plot_training", {}),
        ("", "plot_reliability", {"study": "digits"}),
        ("", "summarize", {"study": "digits"}),
        ("", "document_methods", {}),
        ("", "overview", {}),
        ("", "table", {}),
        ("bam", "plot_bam", {"study": "bam"}),
        ("bam", "plot_series", {"study": "bam"}),
        ("bam", "plot_concepts", {"study": "bam"}),
        ("bam", "plot_independence", {"study": "bam"}),
        ("bam", "plot_pairs", {"study": "bam"}),
        ("bam", "check_claims", {"study": "bam"}),
        ("caption", "plot_caption", {"study": "captions"}),
        ("fidelity", "plot_metric", {"study": "digits", "metric": "infidelity", "figure": "scores"}),
        ("fidelity", "plot_scatter", {"study": "digits"}),
        ("fidelity", "plot_scores", {"study": "digits"}),
        ("retrain", "plot_retrain", {"study": "retrain"}),
        ("retrain", "plot_masks", {"study": "retrain", "fill": "mean"}),
        ("retrain", "plot_leakage", {"study": "retrain"}),
    ],
)
def test_figures_and_pages_depend_on_labels(kind: str, rule: str, wildcards: dict[str, str]) -> None:
    with_labels, without = (settings(raw, kind, rule, wildcards) for raw in (labeled(), TINY))
    assert with_labels != without
    texts = json.dumps(with_labels, ensure_ascii=False)
    assert "The models " in texts or "The methods " in texts


def test_entries_of_other_studies_do_not_rerun_a_figure() -> None:
    raw = deepcopy(TINY)
    raw["methods"]["constant"] = {"label": "A constant"}
    raw["studies"]["captions"] = {**raw["studies"]["captions"], "label": "Halves"}
    at = {"study": "digits"}
    assert settings(raw, "", "plot_gallery", at) == settings(TINY, "", "plot_gallery", at)


def test_other_metrics_of_the_study_do_not_rerun_the_figure_of_a_metric() -> None:
    raw = deepcopy(TINY)
    raw["studies"]["digits"] |= {"metrics": ["faithfulness", "infidelity"]}
    at = {"study": "digits", "metric": "infidelity", "figure": "scores"}
    assert settings(raw, "fidelity", "plot_metric", at) == settings(TINY, "fidelity", "plot_metric", at)


def test_other_methods_do_not_rerun_the_figure_of_concepts() -> None:
    raw = deepcopy(TINY)
    raw["studies"]["bam"]["methods"] = ["gradcam", "random"]
    concepts = (settings(each, "bam", "plot_concepts", {"study": "bam"}) for each in (raw, TINY))
    assert next(concepts) == next(concepts)
