"""Slurm's times against the counted hours of the papers' configurations."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from checkout import PROJECT

MARGIN = 1.3
"""Allowed ratio of the hours of a job to its counted hours, which assume published speeds."""
ATTEMPTS = {"measure_mask_leakage": 2}
"""Attempts among which the work of a rule is divided, where one would be longer than partitions allow; it resumes."""
OTHERS = ("caption", "criteria", "infidelity", "metric_reliability")
CONFIGURATIONS = ["bam", "iteroar", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in OTHERS)]


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    """The program that counts."""
    spec = importlib.util.spec_from_file_location("scaling", PROJECT / "benchmarks/scaling.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module  # where dataclasses look up their own annotations
    spec.loader.exec_module(module)
    return module


def hours_of(rule: str) -> float:
    """The time of a rule in the profile, of all the attempts that it is given."""
    profile = yaml.safe_load((PROJECT / "profiles/slurm/config.yaml").read_text())
    resources = {**profile["default-resources"], **profile["set-resources"].get(rule, {})}
    minutes, times, attempt = resources["runtime"].split()
    assert (times, attempt) == ("*", "attempt")
    return float(minutes) / 60 * sum(range(1, ATTEMPTS.get(rule, 1) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_jobs_fit_into_their_times(name: str, scaling: ModuleType, tmp_path: Path) -> None:
    """With one seed, because the jobs of all seeds take equally long."""
    configuration = yaml.safe_load((PROJECT / f"config/{name}.yaml").read_text())
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump({**configuration, "seeds": [0]}))
    _, hours = scaling.counted(file)
    longest: dict[str, float] = {}
    for job, each in hours.items():
        longest[job.rule] = max(each, longest.get(job.rule, 0))
    assert max(longest.values()) > 0
    too_long = {
        rule: (each, hours_of(rule)) for rule, each in longest.items() if MARGIN * each > hours_of(rule)
    }
    assert too_long == {}


def test_rules_that_need_several_attempts_are_told_before_their_time_is_over() -> None:
    """So do all others that save a state."""
    profile = yaml.safe_load((PROJECT / "profiles/slurm/config.yaml").read_text())
    resuming = {"train", "trial", "finetune", "retrain", "measure_mask_leakage", "remask"}
    warned = {
        rule
        for rule, resources in profile["set-resources"].items()
        if "--signal=TERM@" in resources.get("slurm_extra", "")
    }
    assert warned == resuming
    assert set(ATTEMPTS) <= resuming
