"""Estimated cost of a configuration on GPUs, from counted work and published speeds.

Reports jobs, models, passes, hours and storage. Snakemake plans the configuration with empty placeholders for missing
data, and prints every job with its files. The work of a job is the number of images times that of passes through its
network, in units of a forward pass: three for each training image and epoch (forward, backward to activations and to
weights), two for a gradient with respect to pixels, one otherwise. Passes of a metric are counted by calling it on one
image. The work of a network is its number of multiplications, counted by PyTorch, relative to a ResNet-50 at 224 × 224
pixels, whose speeds are arguments. The default speeds are published by NVIDIA (docs/scaling.md has the source); nothing
here was measured on a GPU. The hours on N GPUs are between the larger of work / N and the longest chain of dependent
jobs, and the sum of both. Work on processors, such as reading images, and TCAV are not counted.

    python benchmarks/scaling.py config/bam.yaml config/iteroar.yaml
    python benchmarks/scaling.py config/iteroar.yaml --training 1200 --forward 1260
    python benchmarks/scaling.py --measure
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import yaml
from snakemake.utils import update_config
from torch.utils.flop_counter import FlopCounterMode

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.methods import Method
from saliency_assay.config.metrics import Metric
from saliency_assay.config.models import Model
from saliency_assay.methods.cost import Map, passes
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.pipeline.combined import SEPARATE
from saliency_assay.pipeline.estimate import mask_bytes, placeholders
from saliency_assay.pipeline.image_sizes import CLASSES, explained_count, image_counts, one_image_shape
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import declared
from saliency_assay.runtime.shards import shard_of
from saliency_assay.training.hyperparameters import finetuning

ROOT = Path(__file__).resolve().parents[1]
TRAINING_PASSES, GRADIENT_PASSES, FORWARD_PASSES = 3, 2, 1
TRAINING, FORWARD = 2470, 1261  # images/s, see docs/scaling.md
GPUS = (1, 8, 64)


@dataclass(frozen=True, eq=False)
class Job:
    """Planned job with its rule, wildcards and files."""

    rule: str
    wildcards: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def plan_jobs(file: Path, settings: list[str]) -> Iterator[Job]:
    """Yield all jobs of a configuration as printed by a dry run in the working directory, none of them combined.

    ``settings`` are values of Snakemake's option ``--config``.
    """
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "workflow/Snakefile"),
        "--dry-run",
        "--forceall",
        "--nolock",
    ]
    command += ["--profile", str(ROOT / "profiles/local"), "--configfile", str(file), "--config"]
    command += [*settings, "--nocolor"]
    environment = {**os.environ, SEPARATE: "1"}
    completed = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if completed.returncode:
        raise SystemExit(f"{file}: {(completed.stdout + completed.stderr).strip().splitlines()[-1]}")
    for block in re.split(r"\n(?=(?:local)?rule \w+:)", completed.stdout + completed.stderr):
        if header := re.match(r"(?:local)?rule (\w+):", block):
            fields = dict(re.findall(r"^    (\w+): (.*)$", block, re.MULTILINE))
            wildcards = dict(pair.split("=", 1) for pair in fields.get("wildcards", "").split(", ") if pair)
            files = [tuple(filter(None, fields.get(name, "").split(", "))) for name in ("input", "output")]
            yield Job(header[1], wildcards, *files)


@cache
def network(architecture: str, parameters: str, size: int, classes: int, channels: int) -> tuple[float, int]:
    """Return the multiplications per image relative to ResNet-50 at 224 pixels, and the number of weights."""
    flops, weights = _counted(architecture, parameters, size, classes, channels)
    return flops / _counted("resnet50", "{}", 224, 1000, 3)[0], weights


@cache
def _counted(architecture: str, parameters: str, size: int, classes: int, channels: int) -> tuple[int, int]:
    record = CATALOG.architectures[architecture]
    settings = yaml.safe_load(parameters)
    model = resolve(record.function)(
        classes=classes, channels=channels, generator=torch.Generator().manual_seed(0), **settings
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(torch.zeros(1, channels, size, size))
    return counter.get_total_flops(), sum(weight.numel() for weight in model.parameters())


class Counts:
    """Numbers of images, sizes and passes in one configuration."""

    def __init__(self, config: Configuration) -> None:
        self.config = config
        self._evaluations: dict[tuple[str, bool], int] = {}

    def images(self, name: str) -> tuple[int, int]:
        """Return the numbers of training and test images of a data set."""
        return image_counts(self.config, name)

    def size(self, name: str) -> tuple[int, int]:
        """Return the channels of a data set, and the side in pixels of the square of its images' area."""
        channels, height, width = one_image_shape(self.config, name)
        return channels, round((height * width) ** 0.5)

    def share(self, model: Model, *, masks: bool = False) -> float:
        """Return the multiplications of a model, or of its mask classifier, relative to ResNet-50 at 224 pixels."""
        return self._network(model, masks)[0]

    def weights(self, model: Model) -> int:
        """Return the bytes of a weights file."""
        return 4 * self._network(model, masks=False)[1]

    def _network(self, model: Model, masks: bool) -> tuple[float, int]:
        channels, size = self.size(model.data)
        classes = CLASSES.get(self.config.sets[model.data].name, 10)
        if self.config.sets[model.data].source:
            classes, size = 2, size * 2
        return network(
            model.architecture, yaml.safe_dump(model.parameters), size, classes, 1 if masks else channels
        )

    def map_passes(self, method: Method, model: Model) -> float:
        """Return the forward passes for the map of one image; 0 for a custom method, whose passes are unknown."""
        _, size = self.size(model.data)
        base = self.map_passes(method.smoothed, model) if method.smoothed else None
        if not (record := CATALOG.methods.get(method.method)):
            return 0
        unit = GRADIENT_PASSES if "gradients" in record.needs else FORWARD_PASSES
        share = 1 if base is None else base / GRADIENT_PASSES
        cost = Map(method.parameters, (size, size), model.batch_size, share, method.background)
        return unit * passes(record.passes, cost)

    def training(self, model: Model) -> float:
        """Return the forward passes of one training, including validation and test accuracy after its epochs."""
        train, test = self.images(model.data)
        settings = model.training
        validation, epochs = round(train * settings["validation_share"]), settings["epochs"]
        evaluations = epochs if settings["evaluate"] == "epoch" else min(epochs, 1)
        return float(TRAINING_PASSES * epochs * (train - validation) + evaluations * (validation + test))

    def scoring(self, metric: Metric, method: Method | None, model: Model) -> float:
        """Return the forward passes of a metric for one image, including those of a method whose maps it recomputes.

        See ``count_evaluations``.
        """
        map_passes = self.map_passes(method, model) if method else 0.0
        if metric.metric == "sensitivity_max":
            return metric.parameters["samples"] * map_passes
        if metric.metric == "randomization":
            return metric.parameters["stages"] * map_passes
        key = metric.name, method is None
        if key not in self._evaluations:
            self._evaluations[key] = count_evaluations(
                metric, *self.size(model.data), responding=method is None
            )
        return float(self._evaluations[key])


@cache
def _blank(channels: int) -> tuple[Classifier, list[int]]:
    """Return a tiny network, and a list whose only item counts the images passed through it."""
    parameters = {"width": 4, "stem_stride": 4}
    blueprint = Blueprint("resnet8", CATALOG.architectures["resnet8"].function, parameters, "", ())
    generator = torch.Generator().manual_seed(0)
    model = build(
        blueprint, classes=10, mean=[0.5] * channels, std=[0.25] * channels, generator=generator
    ).eval()
    count = [0]
    model.register_forward_pre_hook(lambda _, inputs: count.__setitem__(0, count[0] + len(inputs[0])))
    return model, count


def count_evaluations(metric: Metric, channels: int, size: int, *, responding: bool) -> int:
    """Return the model evaluations of a metric per image: for its model responses, or for scoring one map."""
    model, count = _blank(channels)
    image, label = torch.rand(1, channels, size, size), torch.zeros(1, dtype=torch.int64)

    def call(function: str, *positional: torch.Tensor, **optional: object) -> Any:
        arguments = {name: value for name, value in metric.parameters.items() if name in declared(function)}
        arguments |= {name: value for name, value in optional.items() if name in declared(function)}
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            return resolve(function)(model, image, label, *positional, generator=generator, **arguments)

    mean = torch.full((channels,), 0.5)
    before = count[0]
    responses = call(metric.responses, mean=mean) if metric.responses else None
    after_responses = count[0]
    if responding:
        return after_responses - before
    mask = torch.zeros(1, size, size, dtype=torch.bool)
    maps, optional = torch.rand(1, channels, size, size), {"mean": mean, "responses": responses, "mask": mask}
    call(metric.function, maps, **optional, finetuned_model=model)
    return count[0] - after_responses


def explained_images(job: Job, counts: Counts) -> int:
    """Return the number of images of a job of maps or scores: the explained images of its set, or of its shard."""
    count = explained_count(counts.config, job.wildcards["data"])
    images = shard_of(job.wildcards.get("shard", "")).slice_of(count)
    return int(images.stop - images.start)


def masked_images(job: Job, counts: Counts) -> int:
    """Return the number of images of a job of masks: all images of its set, or of its shard."""
    [name] = counts.config.studies[job.wildcards["study"]].models
    images = shard_of(job.wildcards.get("shard", "")).slice_of(
        sum(counts.images(counts.config.models[name].data))
    )
    return int(images.stop - images.start)


def job_work(job: Job, counts: Counts) -> tuple[float, float]:
    """Return the passes of a job at training speed and at float32 speed, relative to ResNet-50 at 224 pixels."""
    config, wildcards = counts.config, job.wildcards
    name = wildcards.get("model") or (
        config.studies[wildcards["study"]].models[0] if "study" in wildcards else ""
    )
    if job.rule in ("train", "trial", "finetune", "retrain", "measure_mask_leakage"):
        model = config.models[name]
        if job.rule == "finetune":
            changes = config.metrics[wildcards["metric"]].training
            model = replace(model, training=finetuning(model.training, changes))
        share, work = counts.share(model), counts.training(model)
        if job.rule == "measure_mask_leakage":
            retraining = config.studies[wildcards["study"]]
            return 2 * retraining.repeats * work * counts.share(model, masks=True), 0
        return work * share, (sum(counts.images(model.data)) * share if job.rule == "retrain" else 0)
    if job.rule in ("attribute", "respond", "score"):
        model = config.models[name]
        count = explained_images(job, counts)
        method = config.methods[wildcards["method"]] if "method" in wildcards else None
        if job.rule == "attribute":
            assert method is not None
            passes_per_image = counts.map_passes(method, model)
        else:
            passes_per_image = counts.scoring(config.metrics[wildcards["metric"]], method, model)
        return 0, count * passes_per_image * counts.share(model)
    if job.rule == "remask":
        model = config.models[name]
        passes_per_image = counts.map_passes(config.methods[wildcards["method"]], model) + (
            model.target == "predicted"
        )
        return 0, masked_images(job, counts) * passes_per_image * counts.share(model)
    if job.rule == "evaluate":
        sets = [Path(path).name.removesuffix(".zarr.zip") for path in job.inputs if "/data/" in path]
        return 0, sum(sum(counts.images(name_of_set)) for name_of_set in sets) * counts.share(
            config.models[name]
        )
    if job.rule == "optimize_patch":
        independence = config.studies[wildcards["study"]].independence
        patch_passes = config.metrics["iir"].parameters["steps"] * GRADIENT_PASSES * independence.images
        return 0, patch_passes * counts.share(config.models[independence.model])
    return 0, 0


def stored_bytes(jobs: list[Job], counts: Counts) -> float:
    """Return the bytes of images, masks, maps with all channels in float32, and weights."""
    total = 0.0
    for job in jobs:
        if job.rule in ("build_data", "compose_bam", "compose_caption"):
            channels, size = counts.size(job.wildcards["data"])
            total += sum(counts.images(job.wildcards["data"])) * channels * size**2
        elif job.rule == "attribute":
            channels, size = counts.size(job.wildcards["data"])
            total += 4 * explained_images(job, counts) * channels * size**2
        elif job.rule in ("train", "finetune", "retrain", "remask"):
            study = job.wildcards.get("study")
            model = counts.config.models[
                job.wildcards.get("model") or counts.config.studies[str(study)].models[0]
            ]
            if job.rule == "remask":
                retraining = counts.config.studies[str(study)]
                channels, size = counts.size(model.data)
                masks = retraining.iterations if job.wildcards["protocol"] == "roar" else 1
                total += mask_bytes(masked_images(job, counts), (channels, size, size), masks)
            else:
                total += counts.weights(model)
    return total


def longest_chain(jobs: list[Job], hours: Mapping[Job, float]) -> float:
    """Return the hours of the longest chain of dependent jobs."""
    producer = {path: job for job in jobs for path in job.outputs}
    ends: dict[Job, float] = {}
    for job in jobs:
        pending = [job]
        while pending:
            dependencies = {producer[path] for path in pending[-1].inputs if path in producer}
            if unfinished := [other for other in dependencies if other not in ends]:
                pending += unfinished
            else:
                last = pending.pop()
                ends[last] = hours[last] + max((ends[other] for other in dependencies), default=0.0)
    return max(ends.values(), default=0.0)


@cache
def planned(file: Path) -> tuple[Counts, list[Job]]:
    """Return the counts and all jobs of one configuration."""
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        replaced = placeholders(raw, Path(folder))[0]
        update_config(raw, replaced)
        settings = [f"{section}={json.dumps(entries)}" for section, entries in replaced.items() if entries]
        counts = Counts(read(raw, catalog=CATALOG, source=str(file)))
        return counts, list(plan_jobs(file.resolve(), settings))


def counted(
    file: Path, training: float = TRAINING, forward: float = FORWARD
) -> tuple[Counts, dict[Job, float]]:
    """Return the counts of one configuration and the hours of each job on a GPU with these speeds (images/s)."""
    counts, jobs = planned(file)
    hours = {}
    for job in jobs:
        training_passes, forward_passes = job_work(job, counts)
        hours[job] = (training_passes / TRAINING_PASSES / training + forward_passes / forward) / 3600
    return counts, hours


def report(file: Path, options: argparse.Namespace) -> None:
    """Print the estimated cost of one configuration."""
    counts, hours = counted(file, options.training, options.forward)
    jobs, by_rule, models = list(hours), defaultdict(list), 0
    for job in jobs:
        by_rule[job.rule].append(hours[job])
        models += job.rule in ("train", "trial", "finetune", "retrain")
        if job.rule == "measure_mask_leakage":
            models += 2 * counts.config.studies[job.wildcards["study"]].repeats
    total, chain = sum(hours.values()), longest_chain(jobs, hours)
    storage = f"{stored_bytes(jobs, counts) / 1e9:,.3g} GB"
    print(f"{file.name}: {len(jobs):,} jobs, {models:,} trainings, {total:,.3g} GPU hours, {storage}")
    for rule, times in sorted(by_rule.items(), key=lambda pair: -sum(pair[1])):
        if sum(times) > 0.005 * total:
            per_job = (
                f"{sum(times) / len(times):10.3g} h each, at most {max(times):8.3g}{sum(times) / total:7.0%}"
            )
            print(f"  {rule:12}{len(times):7,} jobs{sum(times):12,.3g} h{per_job}")
    print(f"  longest chain {chain:,.3g} h")
    for gpus in GPUS:
        least = max(total / gpus, chain)
        print(
            f"  on {gpus:3} GPUs  {least:,.3g} to {max(total / gpus + chain * (1 - 1 / gpus), least):,.3g} h"
        )


def measure(options: argparse.Namespace) -> None:
    """Print the speed of a ResNet-50 at 224 × 224 pixels on this processor."""
    torch.set_num_threads(options.threads)
    model = resolve(CATALOG.architectures["resnet50"].function)(
        classes=1000, channels=3, generator=torch.Generator().manual_seed(0)
    ).to(memory_format=torch.channels_last)
    images = torch.rand(16, 3, 224, 224).to(memory_format=torch.channels_last)
    for name, training in (("training", True), ("forward", False)):
        model.train(training)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            with torch.set_grad_enabled(training):
                model(images).sum().backward() if training else model(images)
            best = min(best, time.perf_counter() - start)
        print(
            f"this processor, {options.threads} thread(s), float32: {name} {len(images) / best:.1f} images/s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("configurations", type=Path, nargs="*", metavar="configuration")
    parser.add_argument(
        "--training", type=float, default=TRAINING, help="images/s that a GPU trains on, ResNet-50 at 224"
    )
    parser.add_argument(
        "--forward", type=float, default=FORWARD, help="images/s of forward passes in float32, the same"
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure both on this processor instead, in float32"
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.measure:
        measure(options)
    for file in options.configurations:
        report(file, options)


if __name__ == "__main__":
    main()
