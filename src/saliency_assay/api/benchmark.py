"""Many methods under many metrics in one call, by the engines of the workflow."""

import logging
import re
import time
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from itertools import chain
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from saliency_assay.api.choices import Bound, bind, record_called
from saliency_assay.api.earlier import check_score_names, without_conflicts
from saliency_assay.api.identity import identity_of, identity_of_record, model_digest
from saliency_assay.api.image_blocks import ImageBlock, image_blocks, image_count, read_batches
from saliency_assay.api.inputs import Arrays, images_of, integer_of
from saliency_assay.api.networks import (
    Model,
    Prediction,
    classifier_of,
    device_of,
    normalizes,
    warn_of_probabilities,
)
from saliency_assay.api.own_functions import adapted_entry
from saliency_assay.api.progress import COST_WITH_GRADIENTS, Progress
from saliency_assay.api.results import Benchmark, Cell, CellKey, Failure, MethodEntry, MetricEntry
from saliency_assay.api.scores import NEEDED, SINGLE, BoundMetric, bind_metric
from saliency_assay.methods import METHODS, engine
from saliency_assay.methods.cost import Map, passes
from saliency_assay.methods.inputs import map_seed
from saliency_assay.metrics import Score
from saliency_assay.metrics import engine as metrics_engine
from saliency_assay.metrics.engine import Explainer, metric_seed, table_of
from saliency_assay.metrics.scored import is_rankable
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.directions import VALID, Direction
from saliency_assay.registry.labels import label_of, score_labels
from saliency_assay.registry.properties import OTHER
from saliency_assay.registry.records import resolve
from saliency_assay.registry.sweeps import LEAST_IMAGES, members_of
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.runtime.shards import BLOCK

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
SECONDS_BETWEEN_SAVES = 10.0
METHODS_OF_NETWORKS = ("gradient", "gradient_x_input", "integrated_gradients", "smoothgrad", "random")
METHODS_OF_FUNCTIONS = ("occlusion", "rise", "random")
DEFAULT_METRICS = ("deletion", "insertion", "complexity")
UNKNOWN_PASSES = 2.0
"""Forward passes of one image by which the bar counts a method or metric that does not state them."""
LEAST_PASSES = 0.1
"""Forward passes of one image by which the bar counts a method or metric that needs none."""
TYPICAL_BATCH = 64

Entries = str | Callable[..., Any] | Iterable[Any] | Mapping[str, Any] | None


def benchmark(
    model: Model,
    data: Any,
    methods: Entries = None,
    metrics: Entries = None,
    *,
    targets: Any = None,
    masks: Any = None,
    groups: Any = None,
    seeds: int | Sequence[int] = 0,
    batch_size: int = 64,
    device: str | torch.device | None = None,
    mean: Any = None,
    background: Arrays | None = None,
    randomized_model: nn.Module | None = None,
    finetuned_model: nn.Module | None = None,
    keep: int = 8,
    path: str | Path | None = None,
    progress: bool = True,
    model_name: str = "model",
    data_name: str = "data",
) -> Benchmark:
    """Score the maps of many methods under many metrics, and rank the methods.

    The images are read in batches, so that memory does not grow with their number. A method or metric that raises an
    exception is listed in ``failures``, and the others continue. Ctrl-C ends the computation and returns the scores
    that are complete.

    Args:
        model: a network that takes images in [0, 1] (``wrap`` turns a network for normalized images into one), or a
            function ``[B, C, H, W] -> [B, K]`` for methods and metrics that use only predictions.
        data: images ``[N, C, H, W]``, uint8 or floating point in [0, 1]; a tuple ``(images, targets[, masks])``; a
            ``Dataset`` or ``DataLoader`` of ``(image, target[, mask])``; or an iterable of batches of these.
        methods: registered names, functions, classes or objects of ``captum.attr``, or dictionaries with the key
            ``method`` and parameters; or all of these by names of your choice, ``{name: …}``, as in a configuration. By
            default a small selection for ``model``. A dictionary with the key ``sweep``, lists of values by parameter,
            is a family of methods.
        metrics: the same with the key ``metric``. A custom metric needs the key ``direction``: ``higher``, ``lower`` or
            ``target X``. Both kinds of dictionaries may have a ``label``, different from those of others.
        targets: explained classes: one for all images, ``[N]``, or ``[N, T]`` for several of each image; ``"label"``
            for those in ``data``; or ``"predicted"``. By default those in ``data``, otherwise the predicted ones.
        masks: for localization metrics the object's pixels, bool ``[N, H, W]``, if ``data`` has none.
        groups: for images that are not independent, the group of each, ``[N]``, such as the patient; or ``{name: …}``
            with these, as the ``clusters`` of ``assess``, of one kind.
        seeds: seeds of the random numbers of methods and metrics.
        batch_size: number of images that the model processes together.
        device: where to compute; by default the device of the model, which it is returned to at the end.
        mean: the mean of the data set, ``[C]``, for ``fill: mean``; by default the classifier's.
        background: images that represent the absence of features, for methods that take them.
        randomized_model: the network with random weights (``randomize``), for metrics that compare with it.
        finetuned_model: the network after fine-tuning (``finetune``), for metrics that evaluate it.
        keep: number of images whose maps are kept, for ``plot.maps`` and ``save``.
        path: folder in which results are saved, at least every ten seconds. Scores that it already contains are not
            computed again if the source code of the function and its settings are unchanged. Results of other methods,
            metrics and seeds in it are kept and returned, so that one can be added; members of a sweep only if they
            differ in the values of the same parameters. Images and weights must be the same.
        progress: True for a progress bar on stderr; if that is a file or a pipe, a line for each method.
        model_name: name of the model in tables and random seeds. With the names of a configuration and
            ``load_model``, maps and scores equal those of the workflow.
        data_name: the same for the data set.

    Raises:
        ValueError: a method, metric, parameter or the data are not valid, an input that a metric needs is missing,
            another network has the weights of the model, or no score could be computed.
        ModuleNotFoundError: ``path`` requires packages that are not installed.

    >>> import torch, saliency_assay
    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    >>> images = torch.rand(12, 1, 4, 4)
    >>> result = saliency_assay.benchmark(network, images, ["gradient", "random"], ["deletion"], progress=False)
    >>> list(result.ranks["method"])
    ['gradient', 'random']
    """
    for name, value in (("model_name", model_name), ("data_name", data_name)):
        _check_name(name, value)
    chosen_seeds = tuple(integer_of(seed, "seeds") for seed in ([seeds] if np.ndim(seeds) == 0 else seeds))  # type: ignore[union-attr]
    if not chosen_seeds or len(set(chosen_seeds)) < len(chosen_seeds):
        raise ValueError(f"seeds: found {list(chosen_seeds)}, expected at least one, each once")
    if integer_of(batch_size, "batch_size") < 1:
        raise ValueError(f"batch_size: found {batch_size}, expected at least 1")
    if not 0 <= integer_of(keep, "keep") <= BLOCK:
        raise ValueError(f"keep: found {keep}, expected 0 to {BLOCK}")
    if isinstance(groups, Mapping):
        if len(groups) != 1:
            kinds = ", ".join(map(str, groups)) or "none"
            raise ValueError(f"groups: found {kinds}, expected one kind: the group of each image, [N]")
        [groups] = groups.values()
    batches = read_batches(data, batch_size)
    first = next(batches)
    with _on_device(model, device):
        pixels = images_of(first[0], "data")
        classifier, size = classifier_of(model, pixels), (pixels.shape[2], pixels.shape[3])
        with_mean = normalizes(model)
        if with_mean:  # other networks have been checked
            warn_of_probabilities(classifier, pixels)
        inputs: dict[str, Any] = {"mean": mean}
        inputs |= {"randomized_model": randomized_model, "finetuned_model": finetuned_model}
        inputs |= {"mask": first[2] if masks is None else masks, "method": True}
        bound_methods = _bind_methods(methods, classifier, background, size, with_mean=with_mean)
        for method in bound_methods:
            record = _record(method.entry.registered, METHODS)
            if record is not None and "mask" in record.takes and inputs["mask"] is None:
                raise ValueError(f"masks: missing for {method.entry.name}, expected {NEEDED['mask'][1]}")
        run = _Run(
            classifier,
            bound_methods,
            _bind_metrics(metrics, classifier, inputs, size, with_mean=with_mean),
            chosen_seeds,
            batch_size,
            keep,
            Names(model_name, data_name),
            None if path is None else Path(path),
            model_digest(classifier, pixels),
        )
        count = image_count(data, targets)
        if run.result.families and np.ndim(groups) == 1:
            _check_divisible(len(set(map(str, groups))), "groups", "groups")
        if run.result.families and count is not None:
            _check_divisible(count, "data", "images")
        blocks = image_blocks(
            chain([first], batches),
            classifier,
            targets=targets,
            masks=masks,
            groups=groups,
            batch_size=batch_size,
        )
        return run.results(blocks, count, progress=progress)


@dataclass(frozen=True)
class _Method:
    """A method that is ready to compute maps."""

    entry: MethodEntry
    bound: Bound
    noise_group: str
    is_deterministic: bool
    passes: float

    def digest(self) -> str:
        """Return what identifies its code and settings."""
        return _digest(self.entry.registered, METHODS, self.bound.function, self.bound.arguments)

    def described(self) -> MethodEntry:
        """Return the entry with the digest of its family."""
        if self.entry.member is None:
            return self.entry
        fixed = _without(self.bound.arguments, self.entry.member.values)
        digest = _digest(self.entry.registered, METHODS, self.bound.function, fixed)
        return replace(self.entry, family_digest=digest)


@dataclass(frozen=True)
class _Metric:
    """A metric that is ready to score maps."""

    entry: MetricEntry
    bound: BoundMetric
    noise_group: str
    passes: float

    def passes_for(self, method: _Method) -> float:
        """Return the passes of one image for the maps of ``method``, which some metrics compute again."""
        return self.passes * (max(method.passes, 1) if "explain" in self.bound.takes else 1)

    def digest(self) -> str:
        """Return what identifies its code, settings and inputs."""
        choice = self.bound.choice
        settings = {**choice.parameters, **self.bound.shared_inputs}
        return _digest(self.entry.registered, SINGLE, choice.function, settings)

    def described(self) -> MetricEntry:
        """Return the entry with the digest of its family."""
        if self.entry.member is None:
            return self.entry
        choice = self.bound.choice
        fixed = {**_without(choice.parameters, self.entry.member.values), **self.bound.shared_inputs}
        digest = _digest(self.entry.registered, SINGLE, choice.function, fixed)
        return replace(self.entry, family_digest=fingerprint([digest, *self.entry.directions.values()]))


def _digest(
    registered: str, records: Iterable[Any], function: Callable[..., Any], settings: Mapping[str, Any]
) -> str:
    record = _record(registered, records)
    code = identity_of(function) if record is None else identity_of_record(record.function)
    return fingerprint([code, identity_of(dict(settings))])


def _check_divisible(count: int, place: str, units: str) -> None:
    """Check that there are enough images or groups for a sweep of methods.

    Raises:
        ValueError: there are fewer.
    """
    if count < LEAST_IMAGES:
        raise ValueError(
            f"{place}: found {count} {units}, expected at least {LEAST_IMAGES}, because half of them select the values "
            "of a sweep"
        )


def _without(settings: Mapping[str, Any], keys: Container[str]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in keys}


def _entries(choices: Entries, default: Sequence[str], key: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each method or metric by name; the name or function is under ``key``.

    Raises:
        ValueError: an entry is of another type, has no ``key``, or has the name or label of another one.
    """
    if choices is None:
        choices = default
    if isinstance(choices, str) or callable(choices) or not isinstance(choices, Iterable):
        choices = [choices]
    named = [*choices.items()] if isinstance(choices, Mapping) else [("", choice) for choice in choices]
    entries: dict[str, dict[str, Any]] = {}
    for name, choice in named:
        entry = dict(choice) if isinstance(choice, Mapping) else {key: choice}
        if key not in entry and not name:
            raise ValueError(f"{key}s: found {sorted(entry)}, expected the key {key}: a name or a function")
        entry = adapted_entry(key, {key: name, **entry})
        function = entry[key]
        if isinstance(function, str):
            if ":" not in function:
                records: Iterable[Any] = METHODS if key == "method" else SINGLE
                function = entry[key] = record_called(records, function, key).name
        if not isinstance(function, str) and not callable(function):
            raise ValueError(
                f"{key}s: found {type(function).__name__}, expected a name, a function or a dictionary"
            )
        default_name = function.rpartition(":")[2] if isinstance(function, str) else _name_of(function)
        name = str(name or default_name)
        _check_name(f"{key}s", name)
        if name in entries:
            raise ValueError(f"{key}s: found {name} twice; name them: {{{name!r}: …, '{name}_2': …}}")
        entries[name] = entry
    if not entries:
        raise ValueError(f"{key}s: found none, expected at least one")
    return _expanded(entries, key)


def _expanded(entries: Mapping[str, dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    """Return the entries with the members of each family, which have their membership under ``member``.

    All have a label.
    """
    complete: dict[str, dict[str, Any]] = {}
    labels = _labels(entries, key)
    for name, entry in entries.items():
        members = {name: {**entry, "label": labels[name]}}
        if "sweep" in entry:
            sweep = entry.pop("sweep")
            members = {
                member.name: {**entry, **member.values, "label": member.label, "member": member}
                for member in members_of(f"{key}s.{name}", name, labels[name], sweep, entry)
            }
        for member in members:
            if member in complete or (member != name and member in entries):
                raise ValueError(f"{key}s.{name}.sweep: found {member}, the name of another entry")
        complete |= members
    _check_labels(labels | {name: entry["label"] for name, entry in complete.items()}, key)
    return complete


def _labels(entries: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, str]:
    """Return the label of each entry; of equal default labels, all but one have the name in parentheses.

    Raises:
        ValueError: two entries state equal labels.
    """
    records = {
        name: _record(entry[key], METHODS if key == "method" else SINGLE) for name, entry in entries.items()
    }
    labels = {name: label_of(name, entry.get("label"), records[name]) for name, entry in entries.items()}
    _check_labels({name: labels[name] for name, entry in entries.items() if entry.get("label")}, key)
    by_precedence = sorted(
        entries,
        key=lambda name: (not entries[name].get("label"), not (records[name] and records[name].name == name)),
    )
    names: dict[str, str] = {}
    for name in by_precedence:
        if names.setdefault(labels[name], name) != name:
            labels[name] = f"{labels[name]} ({name})"
    return labels


def _check_labels(labels: Mapping[str, str], key: str) -> None:
    """Check that labels are different, because rows of tables have them.

    Raises:
        ValueError: two are equal.
    """
    names: dict[str, str] = {}
    for name, label in labels.items():
        if (other := names.setdefault(label, name)) != name:
            raise ValueError(
                f"{key}s: found the label {label!r} of {other} and {name}, expected different labels"
            )


def _check_name(place: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{place}: found the name {name!r}, expected letters, digits and _ . + - (it names files)"
        )


def _name_of(function: Callable[..., Any]) -> str:
    name = str(getattr(function, "__name__", type(function).__name__))
    return name if NAME.fullmatch(name) else "custom"


def _bind_methods(
    choices: Entries,
    classifier: Classifier,
    background: Arrays | None,
    size: tuple[int, int],
    *,
    with_mean: bool,
) -> list[_Method]:
    is_function = isinstance(classifier.network, Prediction)
    default = METHODS_OF_FUNCTIONS if is_function else METHODS_OF_NETWORKS
    if classifier.cam_layer and not is_function:
        default = (*default[:-1], "gradcam", default[-1])
    methods = []
    for name, entry in _entries(choices, default, "method").items():
        label, function, member = entry.pop("label", None), entry.pop("method"), entry.pop("member", None)
        record = _record(function, METHODS)
        takes = record.takes if record else _signature(function)
        if "background" in takes and "background" not in entry and background is not None:
            entry["background"] = background
        bound = bind(function, classifier, has_mean=with_mean, **entry)
        registered = record.name if record else ""
        is_baseline = record is not None and record.is_baseline
        described = MethodEntry(name, label_of(name, label, record), registered, is_baseline, member)
        group = (record.noise_group or record.name) if record else _reference(function)
        is_deterministic = record is not None and not record.stochastic
        background_images = len(bound.arguments.get("background", ()))
        of_image = _passes(record, bound.arguments, size, background_images)
        of_image *= COST_WITH_GRADIENTS if record and "gradients" in record.needs else 1
        methods.append(_Method(described, bound, group, is_deterministic, of_image))
    return methods


def _bind_metrics(
    choices: Entries,
    classifier: Classifier,
    inputs: Mapping[str, Any],
    size: tuple[int, int],
    *,
    with_mean: bool,
) -> list[_Metric]:
    metrics = []
    for name, entry in _entries(choices, DEFAULT_METRICS, "metric").items():
        label, function, member = entry.pop("label", None), entry.pop("metric"), entry.pop("member", None)
        record = _record(function, SINGLE)
        takes = set(record.takes if record else _signature(function))
        takes |= {"method"} if "explain" in takes else set()
        direction, measures = entry.pop("direction", None), entry.pop("measures", OTHER)
        if record and direction is not None:
            raise ValueError(f"metrics: {name}: direction: found with a registered metric, which has its own")
        is_custom = callable(function) or ":" in function
        if is_custom and direction is None:
            raise ValueError(f"metrics: {name}: direction: missing; valid: {VALID}")
        taken = {key: value for key, value in inputs.items() if key in takes}
        bound = bind_metric(function, classifier, normalized=with_mean, **taken, **entry)
        label = label_of(name, label, record)
        scores = record.scores if record else (Score(name, Direction(direction), (-inf, inf), label),)
        described = MetricEntry(
            name,
            label,
            record.name if record else "",
            directions={each.name: str(each.direction) for each in scores},
            ranges={each.name: each.range for each in scores},
            measures=record.measures if record else str(measures),
            score_labels=score_labels(
                {each.name: each.label for each in scores}, label, record.label if record else ""
            ),
            sub_variants=dict(record.sub_variants) if record else {},
            summary=record.summary if record else "",
            output=str(bound.choice.parameters.get("output", "")) if record else "",
            member=member,
        )
        group = (record.noise_group or record.name) if record else _reference(function)
        metrics.append(_Metric(described, bound, group, _passes(record, bound.choice.parameters, size)))
    check_score_names([metric.entry for metric in metrics])
    return metrics


def _record(function: Any, records: Iterable[Any]) -> Any:
    """Return the registered method or metric; None of a custom function."""
    return next((record for record in records if isinstance(function, str) and record.name == function), None)


def _signature(function: Any) -> tuple[str, ...]:
    """Return the names of a custom function's arguments; none of an unknown name, which is refused later."""
    if isinstance(function, str) and ":" not in function:
        return ()
    return tuple(signature(resolve(function) if isinstance(function, str) else function).parameters)


def _reference(function: Any) -> str:
    return function if isinstance(function, str) else _name_of(function)


def _passes(record: Any, parameters: Mapping[str, Any], size: tuple[int, int], background: int = 0) -> float:
    """Return the passes of one image by a method or metric, for the progress bar."""
    if record is None or record.passes is None:
        return UNKNOWN_PASSES
    numbers = {key: value for key, value in parameters.items() if isinstance(value, int | float | str)}
    base = UNKNOWN_PASSES if "base" in parameters else 1
    number = passes(record.passes, Map(numbers, size, TYPICAL_BATCH, base, background))
    return max(number, LEAST_PASSES)


@contextmanager
def _on_device(model: Any, device: str | torch.device | None) -> Iterator[None]:
    """Move a network to ``device`` within the context.

    Raises:
        ValueError: the model is a function, or the device is not available.
    """
    if device is None:
        yield
        return
    if not isinstance(model, nn.Module):
        raise ValueError(
            "device: found a function as the model, expected device=None; the function chooses its device"
        )
    tensors = [*model.parameters(), *model.buffers()]
    before = tensors[0].device if tensors else torch.device("cpu")
    try:
        model.to(device_of(device))
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device: found {str(device)!r}: {str(error).splitlines()[0]}") from None
    try:
        yield
    finally:
        model.to(before)


@dataclass(frozen=True)
class Names:
    """Names of model and data set in tables and random seeds."""

    model: str
    data: str


class _Run:
    """The computation of a benchmark, block by block."""

    def __init__(
        self,
        classifier: Classifier,
        methods: Sequence[_Method],
        metrics: Sequence[_Metric],
        seeds: Sequence[int],
        batch_size: int,
        keep: int,
        names: Names,
        path: Path | None,
        digest: str,
    ) -> None:
        self.classifier, self.methods, self.metrics = classifier, methods, metrics
        self.seeds, self.batch_size, self.path, self.names = seeds, batch_size, path, names
        self.result = Benchmark(
            names.model,
            names.data,
            [method.entry for method in methods],
            [metric.entry for metric in metrics],
            list(seeds),
            keep,
        )
        self.files, self.earlier = _files_of(path), None
        self.digests = {"model": digest}
        if self.files and path:
            self.files.check_folder(path)
            self.result.methods = [method.described() for method in methods]
            self.result.metrics = [metric.described() for metric in metrics]
            self.earlier = self._compatible(self.files.load(path)) if self.files.is_saved(path) else None
            self.digests |= {f"methods {each.entry.name}": each.digest() for each in methods}
            self.digests |= {f"metrics {each.entry.name}": each.digest() for each in metrics}
        self.saved = time.monotonic()

    def _compatible(self, earlier: Benchmark) -> Benchmark:
        """Return an earlier result in the folder without entries that conflict with the requested ones.

        Raises:
            ValueError: a custom metric has the name of a score of another metric.
        """
        kept = without_conflicts(earlier, self.result)
        removed = [
            each.name for each in earlier.methods if each.name not in {one.name for one in kept.methods}
        ]
        removed += [
            each.name for each in earlier.metrics if each.name not in {one.name for one in kept.metrics}
        ]
        if removed:
            log.info("%s: results of another sweep are removed: %s", self.path, ", ".join(removed))
        requested = {each.name for each in self.result.metrics}
        of_both = [*self.result.metrics, *(each for each in kept.metrics if each.name not in requested)]
        check_score_names(of_both, f"path: metrics in {self.path}")
        return kept

    def results(self, blocks: Iterator[ImageBlock], images: int | None, *, progress: bool) -> Benchmark:
        """Compute all scores, and return them; after Ctrl-C those that are complete.

        Raises:
            ValueError: no score could be computed.
        """
        result = self.result
        weights = sum(
            each.passes + sum(one.passes_for(each) for one in self.metrics) for each in self.methods
        )
        weights *= len(self.seeds)
        total = None if images is None else weights * images
        bar = Progress(self.classifier, total, enabled=progress, header=self._cost_text(weights))
        try:
            with _without_warnings_of(metrics_engine.__name__):  # of single blocks, without the method's name
                for block in blocks:
                    self._score(block, bar)
            result.complete = True
        except KeyboardInterrupt:
            bar.close()  # so that the warning is not in its line
            warnings.warn(f"interrupted: {result.state_text()}", stacklevel=3)
        finally:
            bar.close()
            if self.files and result.inputs:
                self.files.save(self._stored(), self.path)
        for text in _failure_texts(result.failures_found):
            warnings.warn(text, stacklevel=3)
        for text in result.undefined_texts():
            log.warning("%s", text)
        if result.complete and result.scores.empty:
            raise ValueError(str(result.failures_found[-1]))
        return result

    def _cost_text(self, weights: float) -> str:
        """Return the number of passes of an image, and the method and metric with most of them."""
        costs = {
            f"{method.entry.label} under {metric.entry.label}": method.passes + metric.passes_for(method)
            for method in self.methods
            for metric in self.metrics
        }
        most = max(costs, key=lambda name: costs[name])
        return f"about {ceil(weights):,} forward passes per image; most expensive: {most} ({ceil(costs[most]):,})"

    def _score(self, block: ImageBlock, bar: Progress) -> None:
        """Compute the scores of one block of images, by all methods and metrics."""
        inputs = fingerprint([block.digest(), self.digests["model"], self.names.model, self.names.data])
        if self.earlier and block.start == 0 and self.files:
            self.files.check_inputs(self.earlier.inputs, [inputs], self.path)
        if (
            block.start == 0 and len(block.targets) < BLOCK and self.result.families
        ):  # there is no other block
            if block.groups is None:
                _check_divisible(len(block.targets), "data", "images")
            else:
                _check_divisible(len(np.unique(block.groups)), "data", "groups of images")
        self.result.add_images(block, inputs)
        if self.earlier:
            stale = self.result.take_over(self.earlier, block, inputs, self.digests)
            if stale:
                log.info("%s: %d results of other images or settings are replaced", self.path, stale)
        self.result.responses = dict(self.earlier.responses) if self.earlier else {}
        for method in self.methods:
            maps: Any = None
            for seed in self.seeds:
                if maps is not None and method.is_deterministic:  # of another seed, and the same for this one
                    bar.skip(method.passes * len(block.targets))
                else:
                    maps = None
                for metric in self.metrics:
                    key = CellKey(seed, method.entry.name, metric.entry.name, block.number)
                    weight = metric.passes_for(method) * len(block.targets)
                    if key in self.result.cells or self.result.has_failed(key):
                        bar.skip(weight)
                        continue
                    if maps is None:
                        maps = self._maps(method, seed, block, inputs, bar)
                    if maps is None:
                        break
                    with bar.cell(method.entry.label, metric.entry.label, weight):
                        self._add_cell(key, method, metric, block, maps, inputs)
                if maps is None and self.result.needs_maps(seed, method.entry.name, block.start):
                    maps = self._maps(method, seed, block, inputs, bar)
                elif maps is None:
                    bar.skip(method.passes * len(block.targets))
                if maps is not None:
                    digest = self.digests.get(f"methods {method.entry.name}", "")
                    self.result.keep_maps(seed, method.entry.name, block.start, maps, digest)
                if not method.is_deterministic:
                    self.result.pending = None
                self._save_at_times()
            self.result.pending = None
        self.result.responses = {}

    def _stored(self) -> Benchmark:
        """Return the result with the cells of an earlier one for later blocks, which an interruption must not delete.

        The images of these blocks are not known yet. Those of the first ones must be the same.
        """
        known = len(self.result.inputs)
        if self.earlier is None or self.earlier.inputs[:known] != self.result.inputs:
            return self.result
        return self.result.with_later_blocks(self.earlier, self.digests)

    def _maps(self, method: _Method, seed: int, block: ImageBlock, inputs: str, bar: Progress) -> Any:
        """Return the maps of a block, None if the method fails."""
        name = method.entry.name
        noise = map_seed(seed, self.names.model, self.names.data, method.noise_group)
        identity = [inputs, self.digests.get(f"methods {name}", ""), name]
        digest = fingerprint(identity if method.is_deterministic else [*identity, seed])
        weight = method.passes * len(block.targets)
        if self.earlier and self.earlier.pending and self.earlier.pending[0] == digest:
            bar.skip(weight)
            self.result.pending = self.earlier.pending
            return self.earlier.pending[1]
        try:
            with bar.cell(method.entry.label, "", weight):
                blocks = engine.attribute(
                    method.bound.function,
                    method.bound.arguments,
                    self.classifier,
                    block.pixels,
                    block.targets,
                    seed=noise,
                    batch_size=self.batch_size,
                    finite=not method.bound.registered,
                    offset=block.start,
                    mask=block.mask if method.bound.takes_mask else None,
                )
                maps = np.concatenate([each["map"] for each in blocks])
        except Exception as error:  # a failed method is a result; the others continue
            self.result.fail(Failure.of(name, "", error))
            return None
        self.result.pending = (digest, maps)
        return maps

    def _add_cell(
        self,
        key: CellKey,
        method: _Method,
        metric: _Metric,
        block: ImageBlock,
        maps: Any,
        inputs: str,
    ) -> None:
        name = metric.entry.name
        batching: dict[str, Any] = {"batch_size": self.batch_size, "offset": block.start}
        batching["seed"] = metric_seed(key.seed, self.names.model, self.names.data, metric.noise_group)
        of_images: dict[str, Any] = {"mask": block.mask} if "mask" in metric.bound.takes else {}
        explainer = None
        if "explain" in metric.bound.takes:
            noise = map_seed(key.seed, self.names.model, self.names.data, method.noise_group)
            explainer = Explainer(method.bound.function, method.bound.arguments, noise)
        arguments = self.classifier, block.pixels, block.targets
        try:
            if metric.bound.has_responses:
                responses = self.result.responses
                digest = fingerprint([inputs, self.digests.get(f"metrics {name}", ""), name, key.seed])
                if digest not in responses:
                    responses[digest] = metric.bound.responses(*arguments, of_images, **batching)
                of_images["responses"] = responses[digest]
            scored = list(metric.bound.score(*arguments, maps, of_images, explainer, **batching))
        except Exception as error:  # as above
            self.result.fail(Failure.of(key.method, name, error))
            return
        images = np.arange(block.start, block.start + len(block.targets))
        table = table_of(scored, images, name)
        if not metric.entry.registered:
            table["metric"] = name
        digests = (self.digests.get(f"methods {key.method}", ""), self.digests.get(f"metrics {name}", ""))
        curves = {
            curve: np.concatenate([each.curves[curve].numpy() for each in scored])
            for curve in scored[0].curves
        }
        causes = _causes_of_missing(table, maps, of_images.get("mask"), block.start)
        self.result.cells[key] = Cell.of(table, curves, causes, inputs, *digests, groups=block.groups)
        self._save_at_times()

    def _save_at_times(self) -> None:
        if self.files and self.path and time.monotonic() - self.saved > SECONDS_BETWEEN_SAVES:
            self.files.save_scores(self._stored(), self.path)
            self.saved = time.monotonic()


def _causes_of_missing(table: "pd.DataFrame", maps: Any, mask: Any, start: int) -> dict[str, dict[str, int]]:
    """Return ``Cell.causes``.

    Args:
        table: rows of ``image, metric, variant, score``.
        maps: ``[n, C, H, W]``.
        mask: bool ``[n, H, W]`` if the metric uses it, else None.
        start: number of the first image.
    """
    causes = {}
    for (metric, variant), rows in table[table["score"].isna()].groupby(["metric", "variant"], sort=False):
        images = rows["image"].to_numpy() - start
        saliency = torch.from_numpy(maps[images].sum(1))
        is_empty = np.zeros(len(images), bool) if mask is None else ~mask[images].any((1, 2))
        is_finite = ~is_empty & saliency.flatten(1).isfinite().all(1).numpy()
        is_constant = is_finite & ~is_rankable(saliency).numpy()
        counts = {
            "with an empty mask": is_empty,
            "with a map that is not finite": ~is_empty & ~is_finite,
            "with a constant map": is_constant,
            "with a map without a positive value": is_finite
            & ~is_constant
            & (saliency.flatten(1) <= 0).all(1).numpy(),
        }
        counted = {cause: int(of_cause.sum()) for cause, of_cause in counts.items()}
        causes[f"{metric} {variant}"] = {cause: count for cause, count in counted.items() if count}
    return causes


@contextmanager
def _without_warnings_of(logger: str) -> Iterator[None]:
    """Drop the messages of a logger within the context."""

    def never(_: logging.LogRecord) -> bool:
        return False

    logging.getLogger(logger).addFilter(never)
    try:
        yield
    finally:
        logging.getLogger(logger).removeFilter(never)


def _failure_texts(failures: Iterable[Failure]) -> list[str]:
    """Return a sentence for each error; methods for which a metric fails in the same way share one."""
    methods: dict[tuple[str, str], list[str]] = {}
    for each in failures:
        methods.setdefault((each.metric, each.error), []).append(each.method)
    named = {
        key: ", ".join(names) if len(names) <= 3 else f"{len(names)} methods"
        for key, names in methods.items()
    }
    return [str(Failure(name, metric, error)) for (metric, error), name in named.items()]


def _files_of(path: Path | None) -> Any:
    """Return the module that saves results; it requires pyarrow and zarr, which are imported before any computation."""
    if path is None:
        return None
    from saliency_assay.api import benchmark_files

    return benchmark_files
