"""Times of rules that the package contains."""

import json
import sys
from pathlib import Path

import pytest

from saliency_assay.pipeline.estimate import RULE_SECONDS
from tools import rule_seconds
from tools.check_workflow import RULES


def test_the_median_of_each_rule_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("train/m/seed0", 4), ("train/m/seed1", 1), ("train/m/seed2", 3), ("score/a", 2)):
        file = tmp_path / f"results/benchmarks/{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"s\th:m:s\n{seconds}\t0:00:01\n")
    monkeypatch.setattr(rule_seconds, "RULE_SECONDS", tmp_path / "seconds.json")
    monkeypatch.setattr(sys, "argv", ["rule_seconds", str(tmp_path / "results"), "two cores"])
    rule_seconds.main()
    content = json.loads((tmp_path / "seconds.json").read_text())
    assert (content["machine"], content["seconds"]) == ("two cores", {"score": 2, "train": 3})
    assert set(content["versions"]) == {"python", "torch", "snakemake", "numpy"}
    monkeypatch.setattr(sys, "argv", ["rule_seconds", str(tmp_path), "two cores"])
    with pytest.raises(SystemExit, match="found no benchmark files"):
        rule_seconds.main()


def test_the_package_has_a_time_for_rules_of_this_project_alone() -> None:
    content = json.loads(RULE_SECONDS.read_text())
    assert set(content["seconds"]) <= set(RULES)
    assert min(content["seconds"].values()) > 0
