"""Combined jobs: which parts belong together, and which are too expensive."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from saliency_assay.catalog import CATALOG
from saliency_assay.config.read import read
from saliency_assay.pipeline.combined import Costs, Part, combine, group_of
from saliency_assay.pipeline.studies import Studies

TINY = Path(__file__).parents[2] / "workflow/tiny.yaml"


def part(rule: str, inputs: list[str], outputs: list[str], **wildcards: str) -> Part:
    return Part(rule, wildcards, inputs, outputs, "log", "benchmark")


def costs(**data: Any) -> Costs:
    """Return the costs under the tiny configuration with other values of its digits."""
    content = yaml.safe_load(TINY.read_text())
    content["data"]["digits"] |= data
    content["methods"]["own"] = {"function": "math:sqrt"}
    config = read(content, catalog=CATALOG, source="tiny.yaml")
    return Costs(config, CATALOG, Studies(config, CATALOG.study_kinds))


def test_parts_of_one_group_are_one_job() -> None:
    explained = {"model": "m", "seed": "0", "data": "d", "shard": ""}
    parts = [
        part("respond", ["weights"], ["responses"], metric="x", **explained),
        part("score", ["weights", "map a", "responses"], ["score a"], metric="x", method="a", **explained),
        part("score", ["weights", "map b", "responses"], ["score b"], metric="x", method="b", **explained),
        part("score", ["weights", "map a"], ["other"], metric="y", method="a", **explained),
    ]
    (job,) = combine(parts, lambda rule, wildcards: True)
    assert job.name == "score__x__m__seed0__d"
    assert job.inputs == ["weights", "map a", "map b"]
    assert job.outputs == ["responses", "score a", "score b"]
    assert job.rules == ["respond", "score"]
    assert combine(parts, lambda rule, wildcards: rule == "respond") == []


@pytest.mark.parametrize(
    ("rule", "wildcards", "group"),
    [
        (
            "attribute",
            {"model": "m", "seed": "1", "data": "d", "method": "a"},
            ("attribute", "m", "seed1", "d"),
        ),
        ("tabulate_bam", {"study": "s"}, ("tabulate", "s")),
        ("check_claims", {"study": "s"}, ("tabulate", "s")),
        ("plot_metric", {"study": "s", "metric": "x", "figure": "scores"}, ("plot", "s")),
        ("summarize", {"study": "s"}, ("plot", "s")),
        ("plot_training", {}, ("pages",)),
    ],
)
def test_groups(rule: str, wildcards: dict[str, str], group: tuple[str, ...]) -> None:
    assert group_of(rule, wildcards) == group


def test_expensive_jobs_remain_separate() -> None:
    explained = {"model": "digits", "seed": "0", "data": "digits", "shard": ""}

    def small(rule: str, *, method: str = "gradient", **data: Any) -> bool:
        return costs(**data).is_small(rule, {**explained, "method": method, "metric": "infidelity"})

    assert small("attribute")
    assert small("score")
    # 10,000 images of 64 x 64 pixels: 41 million pixels, one pass for the gradient and two for SmoothGrad of Grad-CAM.
    large = {"max_explained_images": 10_000, "size": 64}
    assert small("attribute", **large)
    assert not small("attribute", method="smooth", **large)
    assert not small("score", **large)
    assert not small("attribute", method="own")


def test_shards_remain_separate() -> None:
    wildcards = {
        "model": "digits",
        "seed": "0",
        "data": "digits",
        "method": "gradient",
        "shard": ".shard1of2",
    }
    assert not costs().is_small("attribute", wildcards)
