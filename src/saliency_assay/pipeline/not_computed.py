"""Methods and metrics that are left out of studies because their jobs failed."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from saliency_assay.config.configuration import Configuration as Config
from saliency_assay.config.configuration import read
from saliency_assay.config.studies import Study
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.failures import Failure

KEY = "not_computed"
"""Key of Snakemake's option ``--config``; its value is a list of ``NotComputed`` as dictionaries."""
LEFT_OUT = ".state/left_out.json"
"""File in the results folder: ``entries``, and ``sentences`` on them."""
NAMING = ("printed", "printed_alpha", "printed_correlation", "reductions")
"""Keys of studies whose values are mappings from methods or scores."""
BEFORE_SCORES = ("respond", "finetune")
"""Rules whose jobs belong to a metric but to no single method."""
LONGEST = 300  # characters of a reason


@dataclass(frozen=True)
class NotComputed:
    """A method or a metric that is left out of a study."""

    study: str
    section: str
    """``methods`` or ``metrics``."""
    name: str
    reason: str


def left_out(
    config: Config, kinds: Mapping[str, StudyKind], failures: Sequence[Failure]
) -> list[NotComputed]:
    """Return the methods and metrics of studies that the failed jobs leave without a result.

    A metric is left out if it failed for all methods whose maps could be computed, or in one of ``BEFORE_SCORES``. A
    method is left out of a study if its maps could not be computed, or if a metric that is not left out failed for it.
    Studies of a kind with fixed metrics only leave out methods.

    Args:
        config: the complete configuration.
        kinds: registry of kinds of study.
        failures: failed jobs, see ``is_of_method_or_metric``.
    """
    entries = []
    for study in config.studies.values():
        own = [failure for failure in failures if _concerns(failure, study, config)]
        methods: dict[str, str] = {}
        metrics: dict[str, str] = {}
        for failure in own:
            if "metric" not in failure.wildcards:
                methods.setdefault(failure.wildcards["method"], failure.reason)
        others = [method for method in study.methods if method not in methods]
        for metric in study.metrics:
            of_metric = [failure for failure in own if failure.wildcards.get("metric") == metric]
            by_method = {
                method: failure.reason
                for failure in reversed(of_metric)
                for method in ([failure.wildcards["method"]] if "method" in failure.wildcards else others)
            }
            has_failed = bool(others) and by_method.keys() >= {*others}
            if has_failed and not kinds[study.kind].metrics:
                metrics[metric] = of_metric[0].reason
            else:
                methods = {**by_method, **methods}
        entries += [
            NotComputed(study.name, section, name, reasons[name][:LONGEST])
            for section, names, reasons in (
                ("methods", study.methods, methods),
                ("metrics", study.metrics, metrics),
            )
            for name in names
            if name in reasons
        ]
    return entries


def is_of_method_or_metric(failure: Failure) -> bool:
    """Return True if the failed job belongs to one method, or to one metric of single maps."""
    return "method" in failure.wildcards or failure.rule in BEFORE_SCORES


def _concerns(failure: Failure, study: Study, config: Config) -> bool:
    """Return True if a study reads the results of the failed job."""
    wildcards = failure.wildcards
    if "study" in wildcards:
        return wildcards["study"] == study.name and wildcards["method"] in study.methods
    model, data = wildcards["model"], wildcards.get("data", study.data)
    training_sets = (
        config.models[study.models[0]].data,
        config.models[model].data,
    )  # that of the gallery first
    return (
        model in study.all_models
        and wildcards.get("method", study.methods[0]) in study.methods
        and ("metric" not in wildcards or wildcards["metric"] in study.metrics)
        and data in (study.data, *training_sets, *study.evaluated.get(model, ()), *study.pair_sets)
    )


def remaining(raw: Mapping[str, Any], config: Config, entries: Iterable[NotComputed]) -> dict[str, Any]:
    """Return the configuration without ``entries``, and without studies that have no methods or no metrics left.

    Args:
        raw: content of the configuration file.
        config: the same as ``config.configuration.read`` returns it.
        entries: methods and metrics to leave out.
    """
    rest = copy.deepcopy(dict(raw))
    gone: dict[str, dict[str, set[str]]] = {}
    for entry in entries:
        gone.setdefault(entry.study, {"methods": set(), "metrics": set()})[entry.section].add(entry.name)
    for name in gone.keys() & config.studies.keys():
        study, settings = config.studies[name], rest["studies"][name]
        methods = [method for method in study.methods if method not in gone[name]["methods"]]
        metrics = [metric for metric in study.metrics if metric not in gone[name]["metrics"]]
        if not methods or (study.metrics and not metrics):
            del rest["studies"][name]
            continue
        settings["methods"] = methods
        kept = [method for method in settings.pop("degraded_methods", None) or () if method in methods]
        if kept:  # of a validity study, which degrades all methods without this key
            settings["degraded_methods"] = kept
        if len(metrics) < len(study.metrics):
            settings["metrics"] = metrics
        lost = gone[name]["methods"] | _scores(study.metrics, config) - _scores(metrics, config)
        use_model = [config.methods[method].uses_model for method in methods]
        if all(use_model):
            lost.add("with")
        if not any(use_model):
            lost.add("without")
        for key in NAMING:
            if settings.get(key):
                settings[key] = _without(settings[key], lost)
    return rest


def read_remaining(
    raw: Mapping[str, Any], config: Config, entries: Sequence[Mapping[str, str]], **options: Any
) -> Config:
    """Return the checked configuration without ``entries``, which are ``NotComputed`` as dictionaries.

    ``options`` are those of ``config.configuration.read``, and the other arguments those of ``remaining``.
    """
    omitted = [NotComputed(**entry) for entry in entries]
    rest = read(remaining(raw, config, omitted), **options)
    rest.not_computed = sentences(config, omitted)
    return rest


def write_left_out(
    raw: Mapping[str, Any], config: Config, kinds: Mapping[str, StudyKind], failures: Sequence[Failure]
) -> None:
    """Write the file ``LEFT_OUT``, by which ``make run`` runs again without the methods and metrics that failed.

    It is not written if another job failed, or if no study would be left.
    """
    entries = left_out(config, kinds, [*filter(is_of_method_or_metric, failures)])
    others = [failure for failure in failures if not is_of_method_or_metric(failure)]
    if not entries or others or not remaining(raw, config, entries)["studies"]:
        return
    texts = [text for of_study in sentences(config, entries).values() for text in of_study]
    with replacing(Path(config.results, LEFT_OUT)) as temporary:
        content = {"entries": list(map(asdict, entries)), "sentences": texts}
        temporary.write_text(json.dumps(content), encoding="utf-8")


def _scores(metrics: Iterable[str], config: Config) -> set[str]:
    """Return the names of metrics and of their scores."""
    return {name for metric in metrics for name in (metric, *config.metrics[metric].directions)}


def _without(values: Any, lost: set[str]) -> Any:
    """Return a nested mapping without the keys in ``lost``, their sub-variants (``aopc L=20``) and empty mappings."""
    if not isinstance(values, Mapping):
        return values
    kept = {
        key: _without(value, lost)
        for key, value in values.items()
        if not lost & {key, str(key).partition(" ")[0]}
    }
    return {key: value for key, value in kept.items() if value != {}}


def sentences(config: Config, entries: Iterable[NotComputed]) -> dict[str, tuple[str, ...]]:
    """Return for each study the sentences on its methods and metrics that were not computed.

    Args:
        config: the complete configuration.
        entries: methods and metrics that are left out.
    """
    texts: dict[str, list[str]] = {}
    for entry in entries:
        is_method = entry.section == "methods"
        label = (config.methods[entry.name] if is_method else config.metrics[entry.name]).label
        study = config.studies[entry.study].label
        texts.setdefault(entry.study, []).append(f"Not computed: {label} in {study}: {entry.reason}")
    return {study: tuple(lines) for study, lines in texts.items()}
