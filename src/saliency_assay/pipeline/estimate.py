"""Estimate of the jobs, models, time and storage of each study, as if no results existed and no jobs were combined."""

import argparse
import csv
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, prod
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from saliency_assay.config.models import Model
from saliency_assay.data.download.catalog import DOWNLOADS
from saliency_assay.pipeline.combined import SEPARATE
from saliency_assay.pipeline.dry_run import plan_run
from saliency_assay.pipeline.image_sizes import class_count, explained_count, image_shape
from saliency_assay.runtime.project import RESULTS
from saliency_assay.runtime.shards import SUFFIX, shard_of
from saliency_assay.runtime.user_files import Source, UserFiles

RULE_SECONDS = Path(__file__).with_name("assets") / "rule_seconds.json"
FROM_DEMO, UNKNOWN = "from the demo", "unknown"
"""Marks of estimates that are no times of jobs that have run here."""
COLUMNS = ("", "jobs", "models", "model time", "other time", "storage, GB")
PLACEHOLDERS = {
    **dict.fromkeys(("path", "coco", "miniplaces"), "images"),
    **{"masks": "masks", "weights": "weights"},
}
"""Keys of a configuration that are paths of data and weights, and the empty data that replaces missing ones."""

TimedAs = Mapping[str, Sequence[tuple[str, float]]]
"""For rules whose time depends on the study: benchmark folders with a factor, in order of preference.

The factor is the duration of one job of the rule divided by that of one job in the folder, where the jobs of all shards
of a set count as one."""


def seconds_of(
    rule: str, timed_as: TimedAs, benchmarks: Path, demo: Mapping[str, float]
) -> tuple[float, str]:
    """Return the estimated seconds of a job of ``rule``, and a mark, which is empty if such jobs have run here.

    The estimate is the mean of the first folder in ``timed_as`` with benchmarks, otherwise that of ``demo``, the
    seconds of the demo's jobs by rule, or 0 if it has none.
    """
    folders = timed_as.get(rule, [(rule, 1)])
    for folder, factor in folders:
        if measured := benchmark_seconds(benchmarks / folder):
            return factor * fmean(measured), ""
    for folder, factor in folders:
        if seconds := demo.get(folder.partition("/")[0]):
            return factor * seconds, FROM_DEMO
    return 0, UNKNOWN


def benchmark_seconds(folder: Path) -> list[float]:
    """Return the column ``s`` of all benchmark files below ``folder``, for one shard times the number of shards."""
    seconds: list[float] = []
    for file in sorted(folder.rglob("*.tsv")):
        shard = SUFFIX.search(file.name)
        shards = int(shard[2]) if shard else 1
        with file.open(encoding="utf-8", newline="") as lines:
            seconds += [shards * float(row["s"]) for row in csv.DictReader(lines, delimiter="\t")]
    return seconds


def time_text(jobs: Mapping[str, int], estimates: Mapping[str, tuple[float, str]]) -> str:
    """Return the time of ``jobs``, numbers by rule, as text, which begins with ``>`` if an estimate has a mark."""
    seconds = sum(count * estimates[rule][0] for rule, count in jobs.items())
    return f"{'> ' if any(estimates[rule][1] for rule in jobs) else ''}{duration_text(seconds)}"


def duration_text(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.3g} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"


def mask_bytes(images: int, shape: Sequence[int], masks: int) -> int:
    """Return the bytes of a store with ``masks`` masks for each of ``images`` images of ``shape`` C, H, W.

    An image has one bit for each mask and pixel, one byte for each mask and channel (fill colors), and one flag.
    """
    channels, *size = shape
    return images * (ceil(masks * prod(size) / 8) + masks * channels + 1)


def weight_bytes(file: Path, model: Model, classes: int, channels: int) -> int:
    """Return the bytes of a weights file, or of the weights of a new network if the file does not exist yet."""
    if file.is_file():
        return file.stat().st_size
    import torch

    from saliency_assay.models.classifier import Blueprint, build
    from saliency_assay.models.state import tensors_of

    blueprint = Blueprint(
        model.architecture,
        model.function,
        model.parameters,
        output=model.output,
        multi_label=model.multi_label,
    )
    normalization = [0.5] * channels
    generator = torch.Generator().manual_seed(0)
    network = build(blueprint, classes=classes, mean=normalization, std=normalization, generator=generator)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(network).values())


def stored_bytes(workload: Mapping[str, Any], jobs: Sequence[Any], params: Any) -> float:
    """Return the bytes of the images, masks, float32 maps with all channels, and weights of a study's jobs.

    Raises:
        KeyError: the size of a set is unknown.
    """
    config, path = params.config, params.paths.data
    model = config.models[config.studies[workload["name"]].models[0]]
    written = {str(file) for job in jobs for file in job.output}
    shapes = {
        name: image_shape(config, name)
        for name in (*config.sets, *params.studies.pair_sets)
        if path.format(data=name) in written or name == model.data
    }
    count, *image = shapes[model.data]
    maps = sum(
        explained_count(config, job.wildcards.data) / shard_of(job.wildcards.get("shard", "")).of
        for job in jobs
        if job.rule.name == "attribute"
    )
    masks = sum(stores * mask_bytes(count, image, each) for stores, each in workload["mask_stores"])
    trainings = sum(job.rule.name in workload["weights_by"] for job in jobs)
    weights = weight_bytes(Path(workload["weights"]), model, class_count(config, model), image[0])
    images = sum(prod(shape) * (1 if _has_bytes(config, name) else 4) for name, shape in shapes.items())
    stored: float = images + masks + 4 * prod(image) * maps + weights * trainings
    return stored


def _has_bytes(config: Any, name: str) -> bool:
    """Return True if the pixels of a set are stored in 8 bits; sets of image pairs are."""
    return name not in config.sets or config.sets[name].has_bytes


def study_rows(workflow: Any, demo: Mapping[str, float]) -> tuple[list[list[str]], dict[str, set[str]]]:
    """Return a row of ``COLUMNS`` for each study, and the rules with each mark.

    A study has the jobs that make its figures, and all jobs before them.
    """
    dag, params = workflow.dag, workflow.globals["PARAMS"]
    maker = {str(file): job for job in dag.jobs for file in job.output}
    rows, marks = [], defaultdict[str, set[str]](set)
    for workload in params.study_workloads():
        jobs = list(
            dag.bfs(dag.dependencies, *{maker[target] for target in workload["targets"] if target in maker})
        )
        counts = Counter(job.rule.name for job in jobs)
        models = sum(count * workload["models_each"].get(rule, 0) for rule, count in counts.items())
        benchmarks = Path(params.paths.benchmarks)
        estimates = {rule: seconds_of(rule, workload["timed_as"], benchmarks, demo) for rule in counts}
        for rule, (_, mark) in estimates.items():
            marks[mark].add(rule)
        on_device = Counter({rule: counts[rule] for rule in counts if rule in params.settings.on_device})
        times = [time_text(part, estimates) for part in (on_device, counts - on_device)]
        try:
            gigabytes = stored_bytes(workload, jobs, params) / 1e9
            storage = f"{gigabytes:,.0f}" if gigabytes >= 100 else f"{gigabytes:.3g}"
        except KeyError:
            storage = "?"  # custom data
        rows.append([workload["name"], f"{len(jobs):,}", f"{models:,}", *times, storage])
    return rows, marks


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of fixed width with the header ``COLUMNS``."""
    first, *widths = (max(map(len, column)) + 2 for column in zip(COLUMNS, *rows, strict=True))
    return "\n".join(
        row[0].ljust(first) + "".join(map(str.rjust, row[1:], widths)) for row in (COLUMNS, *rows)
    )


def placeholders(configuration: Any, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Create empty data in ``folder``; return entries of a configuration with their paths, and the missing paths.

    Only data and weights that no job makes and no earlier run has seen are replaced. Invalid entries are ignored.
    """
    for name in ("images/train2017", "images/annotations", "masks"):
        (folder / name).mkdir(parents=True)
    for name in ("images/annotations/instances_train2017.json", "weights"):
        (folder / name).touch()
    content = configuration if isinstance(configuration, dict) else {}
    results = str(content.get("results", RESULTS))
    known = UserFiles(Path(results) / ".state/digests.json")
    sections = {name: content[name] for name in ("data", "models") if isinstance(content.get(name), dict)}
    replaced: dict[str, Any] = {name: defaultdict(dict) for name in sections}
    missing = set()
    for section, entries in sections.items():
        for name, entry in entries.items():
            paths = {key: entry.get(key) for key in PLACEHOLDERS} if isinstance(entry, dict) else {}
            for key, path in paths.items():
                if not isinstance(path, str) or Path(path).is_relative_to(results):
                    continue
                if not Path(path).exists() and not known.is_known(Source(key, path)):
                    replaced[section][name][key] = str(folder / PLACEHOLDERS[key])
                    missing.add(path)
    return replaced, sorted(missing)


def missing_text(missing: Iterable[str]) -> str:
    """Return lines that list missing data and how to get those that are public."""
    public = [
        download
        for download in DOWNLOADS
        if any(f"{path}/".startswith(f"data/{download.layout.partition('/')[0]}/") for path in missing)
    ]
    lines = [f"not found: {', '.join(missing)}; the estimate uses published sizes"]
    if names := [download.name for download in public if download.files]:
        lines.append(f'  make download DATA="{" ".join(names)}"')
    return "\n".join([*lines, *(f"  {each.page}: {each.by_hand}" for each in public if each.by_hand)])


def main(arguments: Sequence[str]) -> int:
    """Print the estimate for the command line ``arguments`` of Snakemake; return the exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", required=True)
    parser.add_argument("--config", "-C", nargs="*", default=[])
    options, others = parser.parse_known_args(arguments)
    configuration = yaml.safe_load(Path(options.configfile[-1]).read_text(encoding="utf-8"))
    demo = json.loads(RULE_SECONDS.read_text(encoding="utf-8"))
    os.environ[SEPARATE] = "1"
    with TemporaryDirectory() as folder:
        replaced, missing = placeholders(configuration, Path(folder))
        paths = [f"{section}={json.dumps(entries)}" for section, entries in replaced.items() if entries]
        command = ["--configfile", *options.configfile, "--config", *options.config, *paths, *others]
        rows, marks = study_rows(plan_run([*command, "--forceall", "--nolock"]), demo["seconds"])
    print(table_text(rows))
    if marks[FROM_DEMO]:
        print(
            f"> at the speed of the demo's jobs ({demo['machine']}, {demo['date']}), for rules that have not"
        )
        print(
            "  run here; larger images and networks, or more passes, turn seconds into hours (docs/scaling.md)"
        )
    if marks[UNKNOWN]:
        print(f"> without the rules {', '.join(sorted(marks[UNKNOWN]))}, of which no job has been measured")
    if missing:
        print(missing_text(missing))
    return 0
