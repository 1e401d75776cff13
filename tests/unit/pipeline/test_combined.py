"""Combined jobs: which parts belong together, and which are too expensive."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.pipeline.combined import LARGEST, LARGEST_SUM, Grouping, Part, combine
from saliency_assay.pipeline.studies import Studies

TINY = Path(__file__).parents[2] / "workflow/tiny.yaml"


def part(rule: str, inputs: list[str], outputs: list[str], **wildcards: str) -> Part:
    return Part(rule, wildcards, inputs, outputs, "log", "benchmark")


def groups(**data: Any) -> Grouping:
    """Return the groups under the tiny configuration with other values of its digits."""
    content = yaml.safe_load(TINY.read_text())
    content["data"]["digits"] |= data
    content["methods"] |= {
        "own": {"function": "math:sqrt"},
        "scorecam": {},  # a pass for each channel of the model
        "smooth_scorecam": {"method": "smoothgrad", "base": "scorecam"},
    }
    content["metrics"]["own"] = {"function": "math:sqrt", "direction": "higher"}
    config = read(content, catalog=CATALOG, source="tiny.yaml")
    return Grouping(config, CATALOG, Studies(config, CATALOG.study_kinds))


EXPLAINED = {"model": "digits", "seed": "0", "data": "digits", "shard": ""}


def test_parts_of_one_group_are_one_job() -> None:
    def score(metric: str, method: str, *inputs: str) -> Part:
        files = ["weights", f"map {method}", *inputs]
        return part("score", files, [f"{metric} {method}"], metric=metric, method=method, **EXPLAINED)

    parts = [
        part("respond", ["weights"], ["responses"], metric="infidelity", **EXPLAINED),
        score("infidelity", "gradient", "responses"),
        score("infidelity", "smooth", "responses"),
        score("faithfulness", "gradient"),
    ]
    (job,) = combine(parts, groups())
    assert job.name == "score__infidelity__digits__seed0__digits"
    assert job.inputs == ["weights", "map gradient", "map smooth"]
    assert job.outputs == ["responses", "infidelity gradient", "infidelity smooth"]
    assert job.rules == ["respond", "score"]
    assert combine(parts, groups(max_explained_images=1797, size=256)) == []


@pytest.mark.parametrize(
    ("rule", "wildcards", "name"),
    [
        ("attribute", EXPLAINED | {"method": "gradient"}, "attribute__digits__seed0__digits"),
        ("evaluate", {"model": "digits", "seed": "0"}, "attribute__digits__seed0__digits"),
        ("tabulate_bam", {"study": "bam"}, "tabulate__bam"),
        ("check_claims", {"study": "bam"}, "tabulate__bam"),
        ("plot_metric", {"study": "digits", "metric": "x", "figure": "scores"}, "plot__digits"),
        ("summarize", {"study": "digits"}, "plot__digits"),
    ],
)
def test_names_of_combined_jobs(rule: str, wildcards: dict[str, str], name: str) -> None:
    assert groups().name(rule, wildcards) == name


def test_costs_are_pixels_times_passes() -> None:
    small, large = groups(), groups(max_explained_images=10_000, size=64)
    pixels = 20 * 8 * 8

    def cost(of: Grouping, rule: str, **wildcards: str) -> float | None:
        return of.cost(rule, EXPLAINED | {"method": "gradient", "metric": "infidelity"} | wildcards)

    assert cost(small, "attribute") == pixels
    assert cost(small, "attribute", method="smooth") == 2 * pixels
    assert cost(small, "score") == 100 * pixels
    assert cost(small, "score", metric="sensitivity", method="smooth") == 200 * pixels
    assert cost(small, "evaluate") == 1797 * 8 * 8
    assert cost(small, "tabulate_scores") == 0
    assert cost(large, "score") == 100 * 10_000 * 64 * 64 > LARGEST
    for method in ("own", "scorecam", "smooth_scorecam"):
        assert cost(small, "attribute", method=method) is None
    assert cost(small, "score", metric="own") is None
    assert cost(small, "attribute", shard=".shard1of2") is None


def test_a_group_whose_sum_is_expensive_stays_separate() -> None:
    images = int(0.9 * LARGEST / 8**2)
    parts = [
        part("attribute", [], [f"{number}"], method="gradient", **EXPLAINED)
        for number in range(int(LARGEST_SUM / LARGEST) + 2)
    ]
    assert len(combine(parts[:5], groups(max_explained_images=images))) == 1
    assert combine(parts, groups(max_explained_images=images)) == []
