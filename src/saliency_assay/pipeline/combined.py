"""Combined jobs: small jobs, called parts, that run one after another in one process.

Most jobs of a small study take less time than the start of Python and the import of PyTorch. Parts that belong together
therefore run as one job of a rule without wildcards, such as ``attribute__digits__seed0__digits`` for the maps of
several methods, which has the outputs of all its parts. Each part has the settings and the log that it would have as a
separate job, and ``runtime.parts`` recomputes only the parts whose settings or inputs have changed.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.io import report
from snakemake.iocontainers import Wildcards

from saliency_assay.config.records import Catalog, Config, Method
from saliency_assay.methods.cost import Map, passes
from saliency_assay.pipeline.studies import Studies
from saliency_assay.runtime.parts import FORCED

SEPARATE = "SALIENCY_ASSAY_SEPARATE"
"""Environment variable; with any value no jobs are combined."""
LARGEST = 5e7
"""Pixels times passes through the model of the most expensive part: half a minute of ResNet-8 on a processor core."""

EXPLAINED = ("model", "seed", "data")
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "evaluate": ("evaluate", ("seed",)),
    "attribute": ("attribute", EXPLAINED),
    "respond": ("score", ("metric", *EXPLAINED)),
    "score": ("score", ("metric", *EXPLAINED)),
    "score_bam": ("score_bam", ("study", "seed")),
    "score_series": ("score_series", ("study", "seed")),
    "score_independence": ("score_independence", ("study", "seed")),
    "score_concepts": ("score_concepts", ("study", "seed")),
    **dict.fromkeys(("document_methods", "plot_training", "overview", "provenance"), ("pages", ())),
}
"""For each rule, the first word of the name of its combined jobs, and the wildcards that all parts of one share.

The tables of a study are one job, too, and so are its figures: see ``group_of``."""
PASSES: Mapping[str, float] = {
    "evaluate": 10,
    "respond": 100,
    "score": 100,
    "score_bam": 10,
    "score_series": 10,
    "score_independence": 10,
    "score_concepts": 100,
}
"""Estimates of the passes through the model for each explained image; those of ``attribute`` are counted."""


@dataclass(frozen=True)
class Part:
    """One job of a rule, as a part of a combined job."""

    rule: str
    wildcards: Mapping[str, str]
    input: Any
    """Snakemake's ``InputFiles``."""
    output: Any
    """Snakemake's ``OutputFiles``, with the flags of the rule's output."""
    log: str
    benchmark: str

    @property
    def name(self) -> str:
        """Rule and wildcards: ``attribute digits 0 digits gradient``."""
        return " ".join([self.rule, *filter(None, self.wildcards.values())])


@dataclass(frozen=True)
class CombinedJob:
    """A job that runs several parts; later ones may read files of earlier ones."""

    name: str
    parts: tuple[Part, ...]

    @property
    def rules(self) -> list[str]:
        """The rules of its parts."""
        return list(dict.fromkeys(part.rule for part in self.parts))

    @property
    def outputs(self) -> list[Any]:
        """The outputs of all parts."""
        return [file for part in self.parts for file in part.output]

    @property
    def inputs(self) -> list[Any]:
        """The inputs of all parts, without duplicates and without the outputs of other parts."""
        own = set(map(str, self.outputs))
        return list(
            {str(file): file for part in self.parts for file in part.input if str(file) not in own}.values()
        )


def group_of(rule: str, wildcards: Mapping[str, str]) -> tuple[str, ...]:
    """Return the key that all parts of a combined job share, for a rule that ``is_combinable``."""
    if rule in GROUPS:
        first, shared = GROUPS[rule]
        return (first, *(f"seed{wildcards[name]}" if name == "seed" else wildcards[name] for name in shared))
    is_table = rule.startswith("tabulate_") or rule == "check_claims"
    return "tabulate" if is_table else "plot", wildcards["study"]


def is_combinable(rule: str) -> bool:
    """Return True if the rule's jobs may be parts of combined jobs."""
    return rule in GROUPS or rule == "check_claims" or rule.startswith(("tabulate_", "plot_", "summarize"))


class Costs:
    """Costs of jobs, estimated from the configuration."""

    def __init__(self, config: Config, catalog: Catalog, studies: Studies) -> None:
        self.config = config
        self.catalog = catalog
        self.studies = studies

    def is_small(self, rule: str, wildcards: Mapping[str, str]) -> bool:
        """Return True if a job is cheap enough to be a part of a combined job: at most ``LARGEST``."""
        if wildcards.get("shard"):
            return False
        if rule == "attribute":
            count = self._passes(self.config.methods[wildcards["method"]], wildcards)
        else:
            count = PASSES.get(rule, 0)
        if count is None:
            return False
        return not count or count * max(map(self._pixels, self._sets(rule, wildcards))) <= LARGEST

    def _passes(self, method: Method, wildcards: Mapping[str, str]) -> float | None:
        """Return the passes of one image through the model; None for a custom function, whose cost is unknown."""
        record = self.catalog.methods.get(method.method)
        base = self._passes(method.base, wildcards) if method.base else 1.0
        if record is None or record.passes is None or base is None:
            return None
        size = self._size(wildcards["data"])
        batch = self.config.models[wildcards["model"]].batch_size
        return passes(record.passes, Map(method.parameters, (size, size), batch, base, method.background))

    def _sets(self, rule: str, wildcards: Mapping[str, str]) -> Sequence[str]:
        """Return the sets that a job reads."""
        if "data" in wildcards:
            return [wildcards["data"]]
        models = (
            [wildcards["model"]]
            if "model" in wildcards
            else self.studies.study(wildcards["study"]).all_models
        )
        return [data for model in models for data in self.studies.evaluated_sets(model)]

    def _pixels(self, data: str) -> int:
        """Return the number of pixels of a set's explained images."""
        pairs = self.studies.pair_sets.get(data)
        images = 2 * pairs if pairs else self.config.sets[data].max_explained_images
        return images * self._size(data) ** 2

    def _size(self, data: str) -> int:
        """Return the height of a set's images; sets without this parameter have small images, such as MNIST."""
        if data in self.studies.pair_sets:
            study = next(study for study in self.config.studies.values() if data in study.pair_sets)
            return int(self.config.data[study.data].parameters.get("size", 32))
        return int(self.config.sets[data].parameters.get("size", 32))


class Jobs:
    """The jobs of rules that make files, found by the patterns of the rules' outputs."""

    def __init__(self, rules: Iterable[Any]) -> None:
        """Store Snakemake's rules."""
        self._rules = {rule.name: rule for rule in rules}
        self._patterns = [
            (pattern.constant_prefix(), pattern, rule.name)
            for rule in self._rules.values()
            for pattern in rule.output
        ]
        self._found: dict[tuple[str, tuple[str, ...]], Part | None] = {}

    def of(self, targets: Iterable[str]) -> list[Part]:
        """Return the jobs that make ``targets`` and the files that these jobs read, each after those it depends on."""
        parts: list[Part] = []
        for target in targets:
            self._add(str(target), parts)
        return parts

    def _add(self, file: str, parts: list[Part]) -> None:
        for prefix, pattern, name in self._patterns:
            if file.startswith(prefix) and (match := pattern.match(file)):
                values = match.groupdict()
                key = (name, tuple(values.values()))
                if key not in self._found:
                    self._found[key] = None  # rules have no cycles
                    rule, wildcards = self._rules[name], Wildcards(fromdict=values)
                    inputs = rule.expand_input(wildcards)[0]
                    for path in dict.fromkeys(map(str, inputs)):
                        self._add(path, parts)
                    part = self._found[key] = Part(
                        name,
                        values,
                        inputs,
                        rule.expand_output(wildcards)[0],
                        str(rule.expand_log(wildcards)[0]),
                        str(rule.expand_benchmark(wildcards)),
                    )
                    parts.append(part)
                return


def combine(parts: Iterable[Part], is_small: Callable[[str, Mapping[str, str]], bool]) -> list[CombinedJob]:
    """Return the combined jobs of the small ``parts``; a part that is alone in its group remains a separate job."""
    groups: defaultdict[tuple[str, ...], list[Part]] = defaultdict(list)
    for part in parts:
        if is_small(part.rule, part.wildcards):
            groups[group_of(part.rule, part.wildcards)].append(part)
    return [
        CombinedJob(re.sub(r"\W", "_", "__".join(group)), tuple(members))
        for group, members in groups.items()
        if len(members) > 1
    ]


def inputs_of(job: CombinedJob, workflow: Any) -> Callable[[Any], list[Any]]:
    """Return the input function of a combined job's rule.

    It also applies command-line options that name a rule of the parts to the combined job.
    """

    def inputs(_: Any) -> list[Any]:
        # Snakemake calls this function while it collects the jobs, when it has read the command line.
        dag, settings, names = workflow.dag, workflow.dag_settings, set(job.rules)
        groups = (workflow.group_settings.overwrite_groups.get(name) for name in job.rules)
        workflow.get_rule(job.name).group = next(filter(None, groups), None)
        if names & {rule.name for rule in dag.forcerules}:
            dag.forcerules.add(workflow.get_rule(job.name))
        for selected in (dag.untilrules, dag.omitrules):
            if names & selected:
                selected.add(job.name)
        if workflow.is_main_process:
            forced = [*settings.forcerun, *(settings.targets if settings.forcetargets else [])]
            os.environ[FORCED] = "*" if settings.forceall else "\n".join(map(str, forced))
        return job.inputs

    return inputs


def outputs_of(job: CombinedJob) -> list[str]:
    """Return the outputs of a combined job's rule, each with its place in the report."""
    return [_output(file, Wildcards(fromdict=part.wildcards)) for part in job.parts for file in part.output]


def _output(file: Any, wildcards: Any) -> str:
    """Return an output with the category and the labels that its rule gives it for these wildcards."""
    path, shown = str(file), file.flags.get("report")
    if not shown:
        return path
    category, labels = (
        value(wildcards) if callable(value) else value for value in (shown.category, shown.labels)
    )
    caption = shown.caption.get_path_or_uri(secret_free=True)
    flagged: str = report(path, caption=caption, category=category, labels=labels)
    return flagged


def settings_of(job: CombinedJob, rules: Iterable[Any], state: str) -> Callable[[Any], dict[str, Any]]:
    """Return the function that computes a combined job's parameter ``settings``, which ``runtime.parts`` reads.

    Args:
        job: the combined job.
        rules: Snakemake's rules of its parts.
        state: the folder in which the job keeps the outputs of its parts.
    """
    by_name = {rule.name: rule for rule in rules}

    def describe(part: Part, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": part.name,
            "rule": part.rule,
            "script": Path(by_name[part.rule].script).name,
            "wildcards": part.wildcards,
            "input": _with_names(part.input),
            "output": _with_names(part.output),
            "log": part.log,
            "benchmark": part.benchmark,
            "settings": settings,
        }

    def settings(_: Any) -> dict[str, Any]:
        of_parts = [by_name[part.rule].params.settings(part.wildcards) for part in job.parts]
        device = {"device": "auto"} if any(part.get("device") == "auto" for part in of_parts) else {}
        parts = [
            describe(part, part_settings) for part, part_settings in zip(job.parts, of_parts, strict=True)
        ]
        return {"parts": parts, "state": state, **device}

    return settings


def _with_names(files: Any) -> dict[str, Any]:
    """Return Snakemake's files with their names as plain data."""
    names = {name: [start, end] for name, (start, end) in files._get_names()}
    return {"files": list(map(str, files)), "names": names}
