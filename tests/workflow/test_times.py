"""Slurm's times against the counted hours of the papers' configurations."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
import yte
from checkout import PROJECT
from pipelines import params as params_of
from snakemake.utils import update_config

from saliency_assay.pipeline.estimate import placeholders
from saliency_assay.pipeline.params import Params

MARGIN = 1.3
"""Allowed ratio of the hours of a job to its counted hours, which assume published speeds."""
ATTEMPTS = {"measure_mask_leakage": 2}
"""Attempts among which the work of a rule is divided, where one would be longer than partitions allow; it resumes."""
TRAININGS = ("train", "trial", "finetune", "retrain")
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


def hours_of(rule: str, wildcards: Mapping[str, str], params: Params) -> float:
    """The time of a job in the profile for Slurm or, if it trains, in its rule, of all its attempts."""
    attempts = range(1, ATTEMPTS.get(rule, 1) + 1)
    if rule == "measure_mask_leakage":
        minutes = params.of_kind("retrain").leakage_minutes
        return sum(minutes(wildcards, attempt) for attempt in attempts) / 60
    if rule in TRAININGS:
        return sum(params.training_minutes(wildcards, attempt) for attempt in attempts) / 60
    profile = cluster_profile()
    resources = {**profile["default-resources"], **profile["set-resources"].get(rule, {})}
    limit, times, attempt = resources["runtime"].split()
    assert (times, attempt) == ("*", "attempt")
    return float(limit) / 60 * sum(attempts)


def planned(file: Path, folder: Path) -> Params:
    """Parameters of a configuration, with empty data in place of those that are missing."""
    configuration = yaml.safe_load(file.read_text())
    replaced, _ = placeholders(configuration, folder)
    update_config(configuration, replaced)
    return params_of(configuration)


def cluster_profile() -> dict[str, Any]:
    with (PROJECT / "profiles/slurm/config.yaml").open() as file:
        profile: dict[str, Any] = yte.process_yaml(file, require_use_yte=True)
    return profile


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_jobs_fit_into_their_times(name: str, scaling: ModuleType, tmp_path: Path) -> None:
    """With one seed, because the jobs of all seeds take equally long."""
    configuration = yaml.safe_load((PROJECT / f"config/{name}.yaml").read_text())
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump({**configuration, "seeds": [0]}))
    _, hours = scaling.counted(file)
    params = planned(file, tmp_path / "empty")
    assert max(hours.values()) > 0
    too_long = {
        (job.rule, *job.wildcards.values()): (each, limit)
        for job, each in hours.items()
        if MARGIN * each > (limit := hours_of(job.rule, job.wildcards, params))
    }
    assert too_long == {}


@pytest.mark.parametrize(
    ("name", "minutes", "megabytes"),
    [("config", 30, 8_009), ("iteroar", 960, 32_000), ("criteria", 30, 11_011)],
)
def test_training_jobs_request_what_their_images_and_epochs_need(
    name: str, minutes: int, megabytes: int, tmp_path: Path
) -> None:
    """Half an hour for digits; the most for ImageNet, and its memory for a network that is only evaluated."""
    params = planned(PROJECT / f"config/{name}.yaml", tmp_path)
    requests = {
        (params.training_minutes({"model": model}, 1), params.training_megabytes({"model": model}, 1))
        for model in params.config.models
    }
    assert max(requests) == (minutes, megabytes)
    model = next(iter(params.config.models))
    assert params.training_minutes({"model": model}, 2) == 2 * params.training_minutes({"model": model}, 1)


def test_rules_that_need_several_attempts_are_told_before_their_time_is_over() -> None:
    """So do all others that save a state."""
    profile = cluster_profile()
    resuming = {"train", "trial", "finetune", "retrain", "measure_mask_leakage", "remask"}
    warned = {
        rule
        for rule, resources in profile["set-resources"].items()
        if "--signal=TERM@" in resources.get("slurm_extra", "")
    }
    assert warned == resuming
    assert set(ATTEMPTS) <= resuming
