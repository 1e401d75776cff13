"""Estimate of the jobs, models, time and storage of each study before a configuration is run.

The plan counts the jobs that Snakemake would run if no results existed, before any are combined. Times are estimated
from the benchmark files of jobs that have run here, or for rules without any, from the times of the demo's jobs that
the package contains (``tools/rule_seconds.py``). Stand-ins replace missing data.
"""

import argparse
import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import yaml

from saliency_assay.config.configuration import Configuration as Config
from saliency_assay.config.models import Model
from saliency_assay.models.classifier import Blueprint, build
from saliency_assay.models.state import tensors_of
from saliency_assay.pipeline.combined import SEPARATE, base_rule
from saliency_assay.pipeline.planned import with_plan
from saliency_assay.pipeline.stand_ins import (
    class_count,
    explained_count,
    image_shape,
    missing_sources,
    missing_text,
    stand_ins,
)
from saliency_assay.runtime.shards import SUFFIX, shard_of
from saliency_assay.storage import zarr_store

RULE_SECONDS = Path(__file__).with_name("assets") / "rule_seconds.json"
UNKNOWN, MORE, FROM_DEMO = "?", "+", ">"
COLUMNS = {
    "jobs": "jobs",
    "models": "models",
    "device": "model time",  # of jobs that run a model, on a GPU where there is one
    "other": "other time",
    "storage": "storage, GB",
}


@dataclass(frozen=True)
class Study:
    """Numbers of one study from which its row of the plan is computed."""

    name: str
    jobs: Mapping[str, int]
    """Number of jobs by rule."""
    like: Mapping[str, Sequence[Sequence[Any]]]
    """For rules whose time depends on the study: pairs of a benchmark folder and a factor, in order of preference.

    The factor is the duration of one job of the rule divided by that of one job in the folder, where the jobs of all
    shards of a set count as one.
    """
    models_each: Mapping[str, int]
    """Number of models that one job of a rule trains."""
    storage: float | None
    """Bytes of storage; None if unknown."""


def seconds_of(rule: str, study: Study, benchmarks: Path) -> float | None:
    """Return the estimated seconds of a job of ``rule`` from jobs that have run here; None if there are none.

    The estimate is the mean of the first folder in ``study.like`` with benchmarks. Rules without an entry there use the
    benchmarks of their jobs in all studies.
    """
    for folder, times in study.like.get(rule, [(rule, 1)]):
        if measured := benchmark_seconds(benchmarks / folder):
            return float(times) * fmean(measured)
    return None


def demo_seconds_of(rule: str, study: Study, demo: Mapping[str, float]) -> float | None:
    """Return the seconds of a job of ``rule`` from those of the ``demo``'s jobs by rule; None if it has none."""
    for folder, times in study.like.get(rule, [(rule, 1)]):
        if seconds := demo.get(folder.partition("/")[0]):
            return float(times) * seconds
    return None


def benchmark_seconds(folder: Path) -> list[float]:
    """Return the column ``s`` of all benchmark files below ``folder``, for one shard times the number of shards."""
    seconds: list[float] = []
    for file in sorted(folder.rglob("*.tsv")):
        shard = SUFFIX.search(file.name)
        shards = int(shard[2]) if shard else 1
        with file.open(encoding="utf-8", newline="") as lines:
            seconds += [shards * float(row["s"]) for row in csv.DictReader(lines, delimiter="\t")]
    return seconds


def mask_bytes(images: int, shape: Sequence[int], masks: int) -> int:
    """Return the bytes of a store with ``masks`` masks for each of ``images`` images of ``shape`` C, H, W.

    An image has one bit for each mask and pixel, one byte for each mask and channel (fill colors), and one flag.
    """
    channels, *size = shape
    return images * (ceil(masks * prod(size) / 8) + masks * channels + 1)


def storage_of(shape: Sequence[int], mask_stores: Iterable[tuple[int, int]], maps: int, weights: int) -> int:
    """Return the bytes of uint8 images of ``shape`` N, C, H, W, mask stores, float32 maps, and ``weights`` bytes.

    ``mask_stores`` are pairs of a number of stores and the number of masks of each image in one of them. ``maps`` is
    the number of maps, which are counted with all channels.
    """
    count, *image = shape
    masks = sum(stores * mask_bytes(count, image, masks_per_image) for stores, masks_per_image in mask_stores)
    return count * prod(image) + masks + 4 * prod(image) * maps + weights


def row_of(
    study: Study, on_device: Iterable[str], benchmarks: Path, demo: Mapping[str, float]
) -> dict[str, Any]:
    """Return a row of the plan: ``COLUMNS``, with times in seconds and storage in GB as pairs of value and mark.

    The mark of a time is ``FROM_DEMO`` if any of its jobs is estimated from ``demo``, the seconds of the demo's jobs by
    rule, and else ``MORE`` if a rule has no estimate. The entry ``unmeasured`` lists the rules without an estimate.
    """
    here = {rule: seconds_of(rule, study, benchmarks) for rule in study.jobs}
    estimates = {
        rule: demo_seconds_of(rule, study, demo) if here[rule] is None else here[rule] for rule in here
    }
    device_rules = set(on_device)
    times = {}
    for name, rules in (("device", device_rules & here.keys()), ("other", here.keys() - device_rules)):
        from_demo = any(here[rule] is None and estimates[rule] is not None for rule in rules)
        incomplete = any(estimates[rule] is None for rule in rules)
        mark = FROM_DEMO if from_demo else MORE if incomplete else ""
        times[name] = (sum((estimates[rule] or 0) * study.jobs[rule] for rule in rules), mark)
    return {
        "study": study.name,
        "jobs": sum(study.jobs.values()),
        "models": sum(jobs * study.models_each.get(rule, 0) for rule, jobs in study.jobs.items()),
        **times,
        "storage": ((study.storage or 0) / 1e9, MORE if study.storage is None else ""),
        "unmeasured": [rule for rule, seconds in estimates.items() if seconds is None],
    }


def plan_text(rows: Sequence[Mapping[str, Any]], machine: str) -> str:
    """Return the plan as a table of fixed width with one line for each study, and notes on its values below it.

    ``machine`` describes where and when the demo's jobs were measured.
    """
    cells = [[row["study"], *(_cell_text(name, row[name]) for name in COLUMNS)] for row in rows]
    table = [["", *COLUMNS.values()], *cells]
    widths = [max(len(line[column]) for line in table) + 2 for column in range(len(table[0]))]
    lines = []
    for name, *numbers in table:
        aligned = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("".join([name.ljust(widths[0]), *aligned]))
    if any(row[name][1] == FROM_DEMO for row in rows for name in ("device", "other")):
        lines += [
            f"{FROM_DEMO} at the speed of the demo's jobs ({machine}), for rules of which no job has run here yet;",
            "  larger images and networks, or more passes, turn seconds into hours (docs/scaling.md)",
        ]
    else:
        lines.append("times: of jobs that have run here")
    if missing := sorted({rule for row in rows for rule in row["unmeasured"]}):
        lines.append(f"times without the rules {', '.join(missing)}: none of their jobs has been measured")
    if any(row["storage"][1] for row in rows):
        lines.append(f"storage {UNKNOWN}: the size of the data set is unknown until it is built")
    return "\n".join(lines)


def _cell_text(name: str, quantity: int | tuple[float, str]) -> str:
    """Return a count, or a value with its mark, as text."""
    if isinstance(quantity, int):
        return f"{quantity:,}"
    value, mark = quantity
    if mark == MORE and not value:
        return UNKNOWN
    if name == "storage":
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{mark} {duration_text(value)}" if mark == FROM_DEMO else f"{duration_text(value)}{mark}"


def duration_text(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.3g} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"


def weight_bytes(file: Path, model: Model, classes: int, channels: int) -> int:
    """Return the bytes of a weights file, or of the weights of a new network if the file does not exist yet."""
    if file.is_file():
        return file.stat().st_size
    blueprint = Blueprint(model.architecture, model.function, model.parameters, "", ())
    normalization = [0.5] * channels
    generator = torch.Generator().manual_seed(0)
    network = build(blueprint, classes=classes, mean=normalization, std=normalization, generator=generator)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(network).values())


def _shape(file: Path, config: Config, name: str) -> tuple[int, ...]:
    """Return the shape N, C, H, W of the images of a set, from its file or, if it was not built, by its published size.

    Raises:
        KeyError: the size of the set is unknown.
    """
    if not file.is_file():
        return image_shape(config, name)
    with zarr_store.open_store(file, kind="data") as data:
        return tuple(data["image"].shape)


def _storage(plan: Mapping[str, Any], jobs: Sequence[Any], params: Any) -> float | None:
    """Return the bytes that the jobs of a study write; None if the size of one of its data sets is unknown."""
    config, path = params.config, params.paths.data
    model = config.models[config.studies[plan["name"]].models[0]]
    written = {str(file) for job in jobs for file in job.output}
    try:
        shapes = {
            name: _shape(Path(file), config, name)
            for name in (*config.sets, *params.studies.pair_sets)
            if (file := path.format(data=name)) in written or name == model.data
        }
    except KeyError:
        return None
    shape = shapes.pop(model.data)
    others = sum(map(prod, shapes.values()))
    weights = weight_bytes(Path(plan["weights"]), model, class_count(config, model), shape[1])
    maps = sum(
        explained_count(config, job.wildcards.data) / shard_of(job.wildcards.get("shard", "")).of
        for job in jobs
        if job.rule.name == "attribute"
    )
    trainings = sum(base_rule(job.rule.name) in plan["weights_by"] for job in jobs)
    return others + storage_of(shape, plan["mask_stores"], round(maps), weights * trainings)


def study_rows(workflow: Any, demo: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the rows of the plan: for each study the jobs that make its figures, with all jobs before them."""
    dag, params = workflow.dag, workflow.globals["PARAMS"]
    maker = {str(file): job for job in dag.jobs for file in job.output}
    rows = []
    for plan in params.study_plans():
        last = {maker[target] for target in plan["targets"]}
        jobs = list(dag.bfs(dag.dependencies, *last))
        count = Counter(base_rule(job.rule.name) for job in jobs)
        storage = _storage(plan, jobs, params)
        study = Study(plan["name"], count, plan["like"], plan["models_each"], storage)
        rows.append(row_of(study, params.settings.on_device, Path(params.paths.benchmarks), demo))
    return rows


def main(arguments: Sequence[str]) -> int:
    """Print the plan for the command line ``arguments`` of Snakemake; return the exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=["config/config.yaml"])
    files = parser.parse_known_args(arguments)[0].configfile
    configuration = yaml.safe_load(Path(files[-1]).read_text(encoding="utf-8"))
    missing = missing_sources(configuration if isinstance(configuration, dict) else {})
    demo = json.loads(RULE_SECONDS.read_text(encoding="utf-8"))

    def show(workflow: Any) -> None:
        print(plan_text(study_rows(workflow, demo["seconds"]), f"{demo['machine']}, {demo['date']}"))
        if missing:
            print(missing_text(missing))

    os.environ[SEPARATE] = "1"
    with stand_ins(missing):
        return with_plan([*arguments, "--forceall", "--nolock"], show)
