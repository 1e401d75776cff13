"""What a configuration takes on GPUs, by counted work and a given speed: jobs, models, passes, hours, storage.

Snakemake plans the configuration with empty stand-ins for its data, and prints every job with its files. A job's work
is images times passes through its network: three forward passes' worth for each image and epoch that is trained on
(forward, backward to activations and to weights), two where a gradient of pixels is taken, one otherwise; what a metric
asks of a model is counted by calling it on one image. Networks are compared by their multiplications, counted by
PyTorch, to a ResNet-50 at 224 × 224 pixels, whose speeds are arguments. Their defaults are NVIDIA's published ones
(docs/scaling.md names the source); nothing here was measured on a GPU. The hours on N GPUs lie between the larger of
work / N and the longest chain of jobs that wait for each other, and the sum of both. What processors do, reading images
included, and TCAV are not counted.

    python benchmarks/scaling.py config/*.yaml
    python benchmarks/scaling.py config/iteroar.yaml --training 1200 --forward 1260
    python benchmarks/scaling.py --measure
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

from saliency_assay.catalogue import CATALOGUE
from saliency_assay.config.read import read
from saliency_assay.config.records import Config, Metric, Model
from saliency_assay.config.records import Method as Entry
from saliency_assay.methods.cost import Map, passes
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.pipeline.plan import mask_bytes
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import declared
from saliency_assay.runtime.shards import part_of

ROOT = Path(__file__).resolve().parents[1]
TRAINED, EXPLAINED, ASKED = 3, 2, 1
TRAINING, FORWARD = 2470, 1261  # images/s, see docs/scaling.md
IMAGES = {  # to train on, to test: of the data sets as they are published
    "mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "stl10": (5_000, 8_000),
    "imagenet": (1_281_167, 50_000),
}
CLASSES = {"imagenet": 1000}
GPUS = (1, 8, 64)


@dataclass(frozen=True, eq=False)
class Job:
    """A planned job: its rule, wildcards and files."""

    rule: str
    at: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def stand_ins(given: Any, folder: Path) -> None:
    """Empty files and folders for all that a configuration names."""
    if not isinstance(given, dict):
        return
    for key, value in given.items():
        if key in ("path", "miniplaces"):
            (folder / value).mkdir(parents=True, exist_ok=True)
            for half in ("train", "val", "test") if given.get("kind") == "folder" else ():
                (folder / value / half).mkdir(exist_ok=True)
        elif key == "coco":
            for name in ("annotations", "train2017"):
                (folder / value / name).mkdir(parents=True, exist_ok=True)
            (folder / value / "annotations/instances_train2017.json").touch()
        elif key == "weights":
            (folder / value).parent.mkdir(parents=True, exist_ok=True)
            (folder / value).touch()
        stand_ins(value, folder)


def planned(file: Path, folder: Path) -> Iterator[Job]:
    """All jobs of a configuration, as a dry run in ``folder`` prints them."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--dry-run",
        "--forceall",
    ]
    command += ["--profile", str(ROOT / "profiles/local"), "--configfile", str(file), "--nocolor"]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{file}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    for block in re.split(r"\n(?=(?:local)?rule \w+:)", done.stdout + done.stderr):
        if head := re.match(r"(?:local)?rule (\w+):", block):
            rows = dict(re.findall(r"^    (\w+): (.*)$", block, re.MULTILINE))
            at = dict(pair.split("=", 1) for pair in rows.get("wildcards", "").split(", ") if pair)
            files = [tuple(filter(None, rows.get(name, "").split(", "))) for name in ("input", "output")]
            yield Job(head[1], at, *files)


@cache
def network(architecture: str, parameters: str, size: int, classes: int, channels: int) -> tuple[float, int]:
    """Multiplications of one image as a share of ResNet-50's at 224, and the number of weights."""
    flops, weights = _counted(architecture, parameters, size, classes, channels)
    return flops / _counted("resnet50", "{}", 224, 1000, 3)[0], weights


@cache
def _counted(architecture: str, parameters: str, size: int, classes: int, channels: int) -> tuple[int, int]:
    record = CATALOGUE.architectures[architecture]
    given = yaml.safe_load(parameters)
    made = resolve(record.function)(
        classes=classes, channels=channels, generator=torch.Generator().manual_seed(0), **given
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        made.eval()(torch.zeros(1, channels, size, size))
    return counter.get_total_flops(), sum(weight.numel() for weight in made.parameters())


class Counts:
    """The images, sizes and passes of one configuration."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._asked: dict[tuple[str, bool], int] = {}

    def images(self, name: str) -> tuple[int, int]:
        """Of a set, to train on and to test."""
        entry = self.config.sets.get(name)
        if entry is None:  # images beside the same with a change
            [pairs] = [of.pair_sets[name] for of in self.config.studies.values() if name in of.pair_sets]
            return 0, 2 * pairs
        given = entry.parameters
        if entry.source:
            train, test = self.images(entry.source)
            return train // 5, test // 5  # two classes of ten
        if entry.scenes:
            pairs = len(entry.scenes) * (
                given["images_per_scene"]
                if entry.is_common(name)
                else len(entry.objects) * given["images_per_pair"]
            )
            return round(pairs * (1 - given["test_share"])), round(pairs * given["test_share"])
        kind = entry.kind if entry.kind in IMAGES else entry.name
        limits = (given.get("images_per_class", 0), given.get("test_images_per_class", 0))
        limits = (limits[0], limits[1] or limits[0])
        found = zip(IMAGES[kind], limits, strict=True)
        train, test = (
            min(count, limit * CLASSES.get(kind, 10)) if limit else count for count, limit in found
        )
        return train, test

    def size(self, name: str) -> tuple[int, int]:
        """Of a set, channels and pixels a side."""
        entry = self.config.sets.get(name) or next(of for of in self.config.data.values() if of.scenes)
        if entry.source:
            return self.size(entry.source)
        fixed = {"mnist": 28, "cifar10": 32, "stl10": 96}.get(entry.kind, 0)
        return 1 if entry.kind == "mnist" else 3, entry.parameters.get("size") or fixed

    def share(self, model: Model, *, masks: bool = False) -> float:
        """Multiplications of a model, or of its classifier of masks, as a share of ResNet-50's at 224."""
        return self._network(model, masks)[0]

    def weights(self, model: Model) -> int:
        """Bytes of a file of weights."""
        return 4 * self._network(model, masks=False)[1]

    def _network(self, model: Model, masks: bool) -> tuple[float, int]:
        channels, size = self.size(model.data)
        classes = CLASSES.get(self.config.sets[model.data].name, 10)
        if self.config.sets[model.data].source:
            classes, size = 2, size * 2
        return network(
            model.architecture, yaml.safe_dump(model.parameters), size, classes, 1 if masks else channels
        )

    def map_passes(self, method: Entry, model: Model) -> float:
        """Forward passes of one image's map; those of a method that is not registered are not known, and 0."""
        _, size = self.size(model.data)
        base = self.map_passes(method.base, model) if method.base else None
        if not (record := CATALOGUE.methods.get(method.method)):
            return 0
        unit = EXPLAINED if "gradients" in record.needs else ASKED
        share = 1 if base is None else base / EXPLAINED
        given = Map(method.parameters, (size, size), model.batch_size, share, method.background)
        return unit * passes(record.passes, given)

    def training(self, model: Model) -> float:
        """Return passes of one training, validation and test accuracy after its epochs included."""
        train, test = self.images(model.data)
        given = model.training
        held, epochs = round(train * given["validation_share"]), given["epochs"]
        looks = epochs if given["evaluate"] == "epoch" else min(epochs, 1)
        return float(TRAINED * epochs * (train - held) + looks * (held + test))

    def scoring(self, metric: Metric, method: Entry | None, model: Model) -> float:
        """Return passes of one image that a metric asks for, beside a method's own in drawing maps anew; see
        ``asked``."""
        drawn = self.map_passes(method, model) if method else 0.0
        if metric.metric == "sensitivity_max":
            return metric.parameters["samples"] * drawn
        if metric.metric == "randomisation":
            return metric.parameters["stages"] * drawn
        known = metric.name, method is None
        if known not in self._asked:
            self._asked[known] = asked(metric, *self.size(model.data), responding=method is None)
        return float(self._asked[known])


@cache
def _blank(channels: int) -> tuple[Classifier, list[int]]:
    """Return a network that costs nothing, and how many images it has seen."""
    parameters = {"width": 4, "stem_stride": 4}
    blueprint = Blueprint("resnet8", CATALOGUE.architectures["resnet8"].function, parameters, "", ())
    generator = torch.Generator().manual_seed(0)
    made = build(
        blueprint, classes=10, mean=[0.5] * channels, std=[0.25] * channels, generator=generator
    ).eval()
    seen = [0]
    made.register_forward_pre_hook(lambda _, given: seen.__setitem__(0, seen[0] + len(given[0])))
    return made, seen


def asked(metric: Metric, channels: int, size: int, *, responding: bool) -> int:
    """How many images a metric shows the model for one, for its model responses or for the scores of one map."""
    model, seen = _blank(channels)
    image, label = torch.rand(1, channels, size, size), torch.zeros(1, dtype=torch.int64)

    def called(function: str, *positional: torch.Tensor, **more: object) -> Any:
        given = {name: value for name, value in metric.parameters.items() if name in declared(function)}
        given |= {name: value for name, value in more.items() if name in declared(function)}
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            return resolve(function)(model, image, label, *positional, generator=generator, **given)

    mean = torch.full((channels,), 0.5)
    before = seen[0]
    responses = called(metric.responses, mean=mean) if metric.responses else None
    middle = seen[0]
    if responding:
        return middle - before
    mask = torch.zeros(1, size, size, dtype=torch.bool)
    called(metric.function, torch.rand(1, channels, size, size), mean=mean, responses=responses, mask=mask)
    return seen[0] - middle


def explained(job: Job, counts: Counts) -> int:
    """Return the images of a job of maps or scores: the explained ones of its set, or of its part of that."""
    entry = counts.config.sets.get(job.at["data"])
    count = min(entry.max_explained_images if entry else sys.maxsize, counts.images(job.at["data"])[1])
    part = part_of(job.at.get("part", "")).stretch(count)
    return int(part.stop - part.start)


def remasked(job: Job, counts: Counts) -> int:
    """Return the images of a job of masks: all of its set, or those of its part."""
    [name] = counts.config.studies[job.at["study"]].models
    part = part_of(job.at.get("part", "")).stretch(sum(counts.images(counts.config.models[name].data)))
    return int(part.stop - part.start)


def job_work(job: Job, counts: Counts) -> tuple[float, float]:
    """Return passes of a job at a training's speed and at that of float32, in passes of ResNet-50 at 224."""
    config, at = counts.config, job.at
    name = at.get("model") or (config.studies[at["study"]].models[0] if "study" in at else "")
    if job.rule in ("train", "trial", "retrain", "measure_mask_leakage"):
        model = config.models[name]
        share, work = counts.share(model), counts.training(model)
        if job.rule == "measure_mask_leakage":
            retraining = config.studies[at["study"]].settings
            return 2 * retraining.repeats * work * counts.share(model, masks=True), 0
        return work * share, (sum(counts.images(model.data)) * share if job.rule == "retrain" else 0)
    if job.rule in ("attribute", "respond", "score"):
        model = config.models[name]
        count = explained(job, counts)
        method = config.methods[at["method"]] if "method" in at else None
        if job.rule == "attribute":
            assert method is not None
            each = counts.map_passes(method, model)
        else:
            each = counts.scoring(config.metrics[at["metric"]], method, model)
        return 0, count * each * counts.share(model)
    if job.rule == "remask":
        model = config.models[name]
        each = counts.map_passes(config.methods[at["method"]], model) + (model.target == "predicted")
        return 0, remasked(job, counts) * each * counts.share(model)
    if job.rule == "evaluate":
        sets = [Path(path).name.removesuffix(".zarr.zip") for path in job.inputs if "/data/" in path]
        return 0, sum(sum(counts.images(of)) for of in sets) * counts.share(config.models[name])
    if job.rule == "optimize_patch":
        independence = config.studies[at["study"]].settings.independence
        given = config.metrics["iir"].parameters["steps"] * EXPLAINED * independence.images
        return 0, given * counts.share(config.models[independence.model])
    return 0, 0


def stored(jobs: list[Job], counts: Counts) -> float:
    """Bytes of images, masks, maps with all channels in float32, and weights."""
    total = 0.0
    for job in jobs:
        if job.rule in ("build_data", "compose_bam", "compose_caption"):
            channels, size = counts.size(job.at["data"])
            total += sum(counts.images(job.at["data"])) * channels * size**2
        elif job.rule == "attribute":
            channels, size = counts.size(job.at["data"])
            total += 4 * explained(job, counts) * channels * size**2
        elif job.rule in ("train", "retrain", "remask"):
            study = job.at.get("study")
            model = counts.config.models[job.at.get("model") or counts.config.studies[str(study)].models[0]]
            if job.rule == "remask":
                retraining = counts.config.studies[str(study)].settings
                channels, size = counts.size(model.data)
                masks = retraining.iterations if job.at["protocol"] == "roar" else 1
                total += mask_bytes(remasked(job, counts), (channels, size, size), masks)
            else:
                total += counts.weights(model)
    return total


def longest(jobs: list[Job], hours: Mapping[Job, float]) -> float:
    """Hours of the longest chain of jobs that wait for each other."""
    maker = {path: job for job in jobs for path in job.outputs}
    ends: dict[Job, float] = {}
    for job in jobs:
        pending = [job]
        while pending:
            before = {maker[path] for path in pending[-1].inputs if path in maker}
            if waiting := [other for other in before if other not in ends]:
                pending += waiting
            else:
                last = pending.pop()
                ends[last] = hours[last] + max((ends[other] for other in before), default=0.0)
    return max(ends.values(), default=0.0)


def counted(
    file: Path, training: float = TRAINING, forward: float = FORWARD
) -> tuple[Counts, dict[Job, float]]:
    """Return the counts of one configuration, and the hours of each of its jobs on a GPU of these speeds, in
    images/s."""
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        stand_ins(raw, Path(place))
        jobs = list(planned(file.resolve(), Path(place)))
        here = Path.cwd()
        os.chdir(place)
        counts = Counts(read(raw, catalogue=CATALOGUE, source=str(file)))
        os.chdir(here)
    hours = {}
    for job in jobs:
        trained, seen = job_work(job, counts)
        hours[job] = (trained / TRAINED / training + seen / forward) / 3600
    return counts, hours


def report(file: Path, options: argparse.Namespace) -> None:
    """Print what one configuration takes."""
    counts, hours = counted(file, options.training, options.forward)
    jobs, by_rule, models = list(hours), defaultdict(list), 0
    for job in jobs:
        by_rule[job.rule].append(hours[job])
        models += job.rule in ("train", "trial", "retrain")
        if job.rule == "measure_mask_leakage":
            models += 2 * counts.config.studies[job.at["study"]].settings.repeats
    total, chain = sum(hours.values()), longest(jobs, hours)
    held = f"{stored(jobs, counts) / 1e9:,.3g} GB"
    print(f"{file.name}: {len(jobs):,} jobs, {models:,} trainings, {total:,.3g} GPU hours, {held}")
    for rule, each in sorted(by_rule.items(), key=lambda pair: -sum(pair[1])):
        if sum(each) > 0.005 * total:
            per_job = (
                f"{sum(each) / len(each):10.3g} h each, at most {max(each):8.3g}{sum(each) / total:7.0%}"
            )
            print(f"  {rule:12}{len(each):7,} jobs{sum(each):12,.3g} h{per_job}")
    print(f"  longest chain {chain:,.3g} h")
    for gpus in GPUS:
        least = max(total / gpus, chain)
        print(
            f"  on {gpus:3} GPUs  {least:,.3g} to {max(total / gpus + chain * (1 - 1 / gpus), least):,.3g} h"
        )


def measure(options: argparse.Namespace) -> None:
    """Print what this machine's processor makes of a ResNet-50 at 224 × 224."""
    torch.set_num_threads(options.threads)
    made = resolve(CATALOGUE.architectures["resnet50"].function)(
        classes=1000, channels=3, generator=torch.Generator().manual_seed(0)
    ).to(memory_format=torch.channels_last)
    images = torch.rand(16, 3, 224, 224).to(memory_format=torch.channels_last)
    for name, training in (("training", True), ("forward", False)):
        made.train(training)
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            with torch.set_grad_enabled(training):
                made(images).sum().backward() if training else made(images)
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
