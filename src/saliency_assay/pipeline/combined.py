"""Combined jobs: small jobs, called parts, that run one after another in one process.

Most jobs of a small study take less time than the start of Python and the import of PyTorch. Parts that belong together
therefore run as one job of a rule without wildcards, such as ``attribute__digits__seed0__digits`` for the maps of
several methods, which has the outputs of all its parts. Each part has the settings and the log that it would have as a
separate job, and ``runtime.parts`` recomputes only the parts whose settings or inputs have changed.
"""

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import report
from snakemake.iocontainers import Wildcards

from saliency_assay.config.checks import Catalog
from saliency_assay.config.configuration import Configuration
from saliency_assay.config.methods import Method
from saliency_assay.methods.cost import Map, passes
from saliency_assay.pipeline.image_sizes import image_shape, one_image_shape
from saliency_assay.pipeline.snakemake_internals import apply_options
from saliency_assay.pipeline.studies import Studies
from saliency_assay.runtime.parts import FORCED
from saliency_assay.runtime.project import ROOT
from saliency_assay.runtime.provenance import digest_of_file

SEPARATE = "SALIENCY_ASSAY_SEPARATE"
"""Environment variable; with any value no jobs are combined."""
LARGEST, LARGEST_SUM = 5e7, 5e8
"""Pixels times passes through the model: of the most expensive part, and of all parts of a combined job.

The first is about half a minute of ResNet-8 on a processor core."""
START = time.time()  # of the run

EXPLAINED = ("model", "seed", "data")
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "attribute": ("attribute", EXPLAINED),
    "respond": ("score", ("metric", *EXPLAINED)),
    "score": ("score", ("metric", *EXPLAINED)),
    "score_validity": ("score_validity", ("study", "metric", "seed")),
    "score_parts": ("score_parts", ("study", "seed")),
    "score_bam": ("score_bam", ("study", "seed")),
    "score_grid": ("score_grid", ("study", "setting", "seed")),
    "score_series": ("score_series", ("study", "seed")),
    "score_independence": ("score_independence", ("study", "seed")),
    "score_concepts": ("score_concepts", ("study", "seed")),
}
"""For each rule, the first word of the name of its combined jobs, and the wildcards that all parts of one share.

The tables of a study are one job, too, and so are its figures; a model is evaluated in the job that explains images of
its training set: see ``Grouping.name``."""
PASSES: Mapping[str, float] = {
    "respond": 100,
    "score": 100,
    "score_validity": 1000,
    "score_bam": 10,
    "score_grid": 1000,
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
        """The rules of its parts; the one that the job is named after is the last, so that its resources apply."""
        return sorted(dict.fromkeys(part.rule for part in self.parts), key=base_rule(self.name).__eq__)

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


def base_rule(name: str) -> str:
    """Return the rule after which a combined job is named; any other rule itself."""
    return name.partition("__")[0]


def is_combinable(name: str, rule: Any) -> bool:
    """Return True if the jobs of one of Snakemake's rules may be parts of combined jobs.

    Rules without wildcards are left out, because Snakemake runs them if an option such as ``--until`` names them.
    """
    is_of_study = name in ("evaluate", "check_claims", "summarize") or name.startswith(("tabulate_", "plot_"))
    return bool(rule.has_wildcards()) and (name in GROUPS or is_of_study)


class Grouping:
    """Names of combined jobs, and the costs of jobs, as estimated from the configuration."""

    def __init__(self, config: Configuration, catalog: Catalog, studies: Studies) -> None:
        self.config = config
        self.catalog = catalog
        self.studies = studies

    def name(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """Return the name of the combined job of which a job may be a part."""
        if rule == "evaluate":
            data = self.config.models[wildcards["model"]].data
            words = ["attribute", wildcards["model"], f"seed{wildcards['seed']}", data]
        elif rule in GROUPS:
            first, shared = GROUPS[rule]
            words = [first, *(f"seed{wildcards[key]}" if key == "seed" else wildcards[key] for key in shared)]
        else:
            is_table = rule.startswith("tabulate_") or rule == "check_claims"
            words = ["tabulate" if is_table else "plot", wildcards["study"]]
        return re.sub(r"\W", "_", "__".join(words))

    def cost(self, rule: str, wildcards: Mapping[str, str]) -> float | None:
        """Return the pixels of a job times the passes through the model; None if the cost is unknown or a shard's."""
        if wildcards.get("shard"):
            return None
        try:
            if rule == "evaluate":
                sets = self.studies.evaluated_sets(wildcards["model"])
                shapes = [image_shape(self.config, name) for name in sets]
                return float(sum(images * height * width for images, _, height, width in shapes))
            passes_of_image = self._passes_of_job(rule, wildcards)
            if not passes_of_image:
                return passes_of_image
            return passes_of_image * max(map(self._pixels, self._explained_sets(wildcards)))
        except KeyError:  # images of unknown number or size
            return None

    def _passes_of_job(self, rule: str, wildcards: Mapping[str, str]) -> float | None:
        """Return the passes through the model for each explained image; None for a custom function."""
        if rule == "attribute":
            return self._passes(self.config.methods[wildcards["method"]], wildcards)
        if rule == "score_parts":
            study = self.studies.study(wildcards["study"])
            of_study = {"model": study.models[0], "data": study.data}
            of_map = self._passes(self.config.methods[wildcards["method"]], of_study)
            return None if of_map is None else 2 * of_map  # maps of two other classes
        if rule not in ("respond", "score", "score_validity"):
            return PASSES.get(rule, 0)
        metric = self.config.metrics[wildcards["metric"]]
        if not metric.metric:
            return None
        if rule == "score_validity":
            return PASSES[rule]
        count = max(PASSES[rule], float(metric.parameters.get("samples", 0)))
        if rule == "respond" or "explain" not in metric.takes:
            return count
        of_map = self._passes(self.config.methods[wildcards["method"]], wildcards)
        return None if of_map is None else count * max(1.0, of_map)

    def _passes(self, method: Method, wildcards: Mapping[str, str]) -> float | None:
        """Return the passes of one image through the model for its map; None if unknown, as for a custom function."""
        record = self.catalog.methods.get(method.method)
        base = self._passes(method.smoothed, wildcards) if method.smoothed else 1.0
        if record is None or record.passes is None or base is None:
            return None
        _, *size = one_image_shape(self.config, wildcards["data"])
        batch = self.config.models[wildcards["model"]].batch_size
        return passes(
            record.passes, Map(method.parameters, (size[0], size[1]), batch, base, method.background)
        )

    def _explained_sets(self, wildcards: Mapping[str, str]) -> Sequence[str]:
        """Return the sets whose images a job explains, or whose maps it scores."""
        if "data" in wildcards:
            return [wildcards["data"]]
        models = self.studies.study(wildcards["study"]).all_models
        return [data for model in models for data in self.studies.evaluated_sets(model)]

    def _pixels(self, data: str) -> int:
        """Return the number of pixels of a set's explained images."""
        pairs = self.studies.pair_sets.get(data)
        images = 2 * pairs if pairs else self.config.sets[data].max_explained_images
        _, height, width = one_image_shape(self.config, data)
        return images * height * width


class Jobs:
    """The jobs of rules that make files, found by the patterns of the rules' outputs."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        """Store Snakemake's rules by name."""
        self._rules = rules
        self._patterns = [
            (pattern.constant_prefix(), pattern, name)
            for name, rule in rules.items()
            for pattern in rule.output
        ]
        self._found: set[tuple[str, tuple[str, ...]]] = set()

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
                    self._found.add(key)
                    rule, wildcards = self._rules[name], Wildcards(fromdict=values)
                    inputs = rule.expand_input(wildcards)[0]
                    for path in dict.fromkeys(map(str, inputs)):
                        self._add(path, parts)
                    part = Part(
                        name,
                        values,
                        inputs,
                        rule.expand_output(wildcards)[0],
                        str(rule.expand_log(wildcards)[0]),
                        str(rule.expand_benchmark(wildcards)),
                    )
                    parts.append(part)
                return


def combine(parts: Iterable[Part], groups: Grouping) -> list[CombinedJob]:
    """Return the combined jobs of ``parts``.

    A part remains a separate job if it is expensive, if it is alone in its group, or if its group is expensive.
    """
    members: defaultdict[str, list[Part]] = defaultdict(list)
    costs: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        cost = groups.cost(part.rule, part.wildcards)
        if cost is not None and cost <= LARGEST:
            name = groups.name(part.rule, part.wildcards)
            members[name].append(part)
            costs[name] += cost
    return [
        CombinedJob(name, tuple(group))
        for name, group in members.items()
        if len(group) > 1 and costs[name] <= LARGEST_SUM
    ]


def inputs_of(job: CombinedJob, rules: Mapping[str, Any], workflow: Any) -> Callable[[Any], list[Any]]:
    """Return the input function of a combined job's rule.

    It also applies command-line options that name a rule of the parts to the combined job.

    Args:
        job: the combined job.
        rules: Snakemake's rules by name, with that of the combined job when Snakemake calls the function.
        workflow: Snakemake's workflow.
    """

    def inputs(_: Any) -> list[Any]:
        # Snakemake calls this function while it collects the jobs, when it has read the command line.
        try:
            forced, is_forced = apply_options(
                workflow, rules[job.name], {name: rules[name] for name in job.rules}
            )
        except ValueError as error:
            raise WorkflowError(str(error)) from None
        if workflow.is_main_process:
            text = "\n".join(forced)
            is_too_long = len(text) > 100_000  # for an environment variable
            os.environ[FORCED] = f"{START}\n{'*' if is_forced or is_too_long else text}"
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
    caption = Path(shown.caption.get_path_or_uri(secret_free=True)).name
    # Relative to the rules, where the combined rule is defined.
    flagged: str = report(path, caption=f"../report/{caption}", category=category, labels=labels)
    return flagged


def settings_of(
    job: CombinedJob, rules: Mapping[str, Any], workflow: Any, state: str
) -> Callable[[Any], dict[str, Any]]:
    """Return the function that computes a combined job's parameter ``settings``, which ``runtime.parts`` reads.

    Args:
        job: the combined job.
        rules: Snakemake's rules by name.
        workflow: Snakemake's workflow.
        state: the folder in which the job keeps the outputs of its parts.
    """

    def describe(part: Part, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": part.name,
            "rule": rules[part.rule].name,
            "script": Path(rules[part.rule].script).name,
            "wildcards": part.wildcards,
            "input": _with_names(part.input),
            "output": _with_names(part.output),
            "log": part.log,
            "benchmark": part.benchmark,
            "settings": settings,
            "software": _software(rules[part.rule], workflow),
        }

    def settings(_: Any) -> dict[str, Any]:
        of_parts = [rules[part.rule].params.settings(part.wildcards) for part in job.parts]
        device = {"device": "auto"} if any(part.get("device") == "auto" for part in of_parts) else {}
        parts = [
            describe(part, part_settings) for part, part_settings in zip(job.parts, of_parts, strict=True)
        ]
        return {"parts": parts, "state": state, **device}

    return settings


def _software(rule: Any, workflow: Any) -> dict[str, str]:
    """Return the digests of a rule's Conda environment and its container, if jobs run in these; else nothing."""
    if not workflow.deployment_settings.deployment_method:
        return {}
    files = sorted((ROOT / "workflow/envs").glob(f"{Path(rule.conda_env).stem}*"))
    return {"container": str(rule.container_img), **{file.name: digest_of_file(file) for file in files}}


def _with_names(files: Any) -> dict[str, Any]:
    """Return Snakemake's files with their names as plain data."""
    names = {name: [start, end] for name, (start, end) in files._get_names()}
    return {"files": list(map(str, files)), "names": names}
