"""Jobs that a run would start, and the causes, from the plan that Snakemake makes in this process."""

import ast
import json
import logging
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from saliency_assay.pipeline.code_record import CodeRecord
from saliency_assay.pipeline.combined import base_rule
from saliency_assay.pipeline.model_checks import check_models
from saliency_assay.pipeline.sources import check_sources

WORKFLOWS: list[Any] = []
"""Snakemake's workflow, which the Snakefile adds."""
UNSET = "not set"
INPUT = "input files"
"""Name of a part's list of input files among its settings."""
MOST, RULES = 12, 3
"""Numbers of causes that are printed, and of rules of each."""
WIDTH, VALUE_WIDTH = 27, 50
"""Numbers of characters of a column of rules, and of a value."""


def plan_run(arguments: Iterable[str]) -> Any:
    """Return Snakemake's workflow, whose ``dag`` has the jobs of a run with the command line ``arguments``.

    Nothing is run, and of Snakemake's messages only warnings and errors are printed.

    Raises:
        SystemExit: after an error, or an option such as ``--lint`` that plans no jobs.
    """
    from snakemake import cli  # not for the Snakefile: it imports pandas

    logging.disable(logging.INFO)
    try:
        # For exactly this set of --quiet, Snakemake ends a dry run once it knows the jobs.
        cli.main(["--quiet", "rules", "progress", "--dry-run", *arguments])
    except SystemExit as end:  # how Snakemake's command line always ends
        if end.code or not WORKFLOWS or WORKFLOWS[-1].dag is None:
            raise
    workflow = WORKFLOWS[-1]
    os.chdir(workflow.overwrite_workdir or ".")  # --directory, which Snakemake has left
    return workflow


def unrecorded_text(dag: Any) -> str:
    """Return a sentence on results whose settings Snakemake has not recorded, so that no change reruns them; or ""."""
    jobs = [job for job in dag.jobs if dag.reason(job).no_metadata and not dag.needrun(job)]
    files = [str(file) for job in jobs for file in job.output if Path(file).exists()]
    if not files:
        return ""
    return (
        f"{len(files)} result files, such as {files[0]}, have no record in {Path('.snakemake').resolve()}: changes "
        "of configuration or code since they were made are unknown. Start in the folder of the run that made them, with"
        " the same spelling of results; or recompute them with --forceall"
    )


class Change(NamedTuple):
    """A changed value in nested settings; the path is empty if the parts of a combined job have changed."""

    path: tuple[str, ...]
    old: Any
    new: Any

    def text(self, start: int = 0) -> str:
        """Return the path from ``start`` on with both values, or for a name in a list whether it was added."""
        *parents, name = self.path[start:]
        if parents and UNSET in (self.old, self.new) and name in (self.old, self.new):
            return f"{'.'.join(parents)}: {'with' if self.old == UNSET else 'without'} {name}"
        return f"{'.'.join([*parents, name])}: {_value_text(self.old)} → {_value_text(self.new)}"


def _value_text(value: Any) -> str:
    """Return a value as it is written in a configuration, shortened to ``VALUE_WIDTH`` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 1]}…"


def changes(old: Any, new: Any, path: tuple[str, ...] = ()) -> list[Change]:
    """Return the changed values of nested settings. A list is one value unless its items have names."""
    if old == new:
        return []
    before, now = _items(old), _items(new)
    keys = dict.fromkeys([*before, *now]) if before and now else ()
    inner = (changes(before.get(key, UNSET), now.get(key, UNSET), (*path, key)) for key in keys)
    return [change for changed in inner for change in changed] or [Change(path, old, new)]


def _items(value: Any) -> dict[str, Any]:
    """Return the items of a dict, or of a list of names, settings, or files with their digests, by their names."""
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    items = {}
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, list) and len(item) == 2:
            name, content = item
        else:
            name, content = item.get("name", str(number)) if isinstance(item, dict) else item, item
        if not isinstance(name, str) or name in items:
            return {}
        items[name] = content
    return items


def changed_settings(change: Any) -> Iterator[Change]:
    """Yield the changed settings of a job, or of each part of a combined job, from Snakemake's comparison."""
    for old, new in ((old, new) for old in change.only_old for new in change.only_new):
        before, now = (_by_part(ast.literal_eval(text)) for text in (old, new))
        for name in before if ("" in before) != ("" in now) else before | now:
            yield from changes(before.get(name, UNSET), now.get(name, UNSET))


def _by_part(settings: Mapping[str, Any]) -> dict[str, Any]:
    parts = settings.get("parts", ())
    return {part["name"]: {**part["settings"], INPUT: part["input"]["files"]} for part in parts} or {
        "": settings
    }


def configuration_keys(settings: Iterable[Change]) -> dict[str, set[str]]:
    """Return the changed keys of the configuration by their last names with both values.

    Among the settings of the report's job is the whole configuration.
    """
    keys = defaultdict(set)
    for change in settings:
        if "configuration" in change.path[:-1]:
            keys[change.text(-1)].add(f"key {change.text(change.path.index('configuration') + 1)}")
    return keys


def causes_of_setting(
    change: Change, keys: Mapping[str, Collection[str]], record: CodeRecord
) -> Collection[str]:
    """Return the causes of a changed setting, as text: a key if no other one has the same last name and values."""
    *parents, name = change.path or ("",)
    if not change.path:
        return ["never run" if change.old == UNSET else "combined differently"]
    if INPUT in change.path:
        return ["other input files"]
    if name == "code":
        files = record.changed_files(change.old, change.new)
        return [f"code of {file}" for file in files or ["files that the earlier run did not record"]]
    if "environment" in change.path[-2:]:
        return [f"package {change.text(-1)}"]
    if "files" in parents[-1:]:
        return [f"input {name} changed"]
    if "configuration" in change.path:
        return list(chain(*keys.values()))
    same = keys.get(change.text(-1), ())
    return same if len(same) == 1 else [f"setting {change.text()}"]


def report(workflow: Any) -> str:
    """Return the planned jobs by rule, and the most frequent causes."""
    dag, record = workflow.dag, workflow.globals["JOB_SETTINGS"].record
    reasons = {job: dag.reason(job) for job in dag.needrun_jobs()}
    # In the reason, changes are missing if another job before it runs, too.
    compared = {job: workflow.persistence.params_changed(job) for job in reasons}
    settings = {job: list(changed_settings(change)) for job, change in compared.items()}
    keys = configuration_keys(change for changed in settings.values() for change in changed)
    counts, causes = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for job, reason in reasons.items():
        of_job = {cause for change in settings[job] for cause in causes_of_setting(change, keys, record)}
        # Other settings are computed from these causes, or from the only changed key.
        explained = {cause for cause in of_job if not cause.startswith("setting ")}
        only = set(chain(*keys.values())) if of_job else set()
        of_job = explained or (only if len(only) == 1 else of_job)
        of_job |= {f"input {file} changed" for file in reason.updated_input - reason.updated_input_run}
        missing = "output missing" if workflow.persistence.has_metadata(job) else "never run"
        others = {
            "requested": reason.forced,
            missing: reason.missing_output,
            "output incomplete": reason.incomplete_output,
            "other input files": reason.input_changed and not of_job,
            "rule changed": reason.code_changed,
            "software environment changed": reason.software_stack_changed,
        }
        of_job |= {cause for cause, holds in others.items() if holds}
        rule = base_rule(job.rule.name)
        counts[rule] += 1
        for cause in of_job or {""}:
            causes[cause][rule] += 1
    return report_text(counts, causes)


def report_text(counts: Counter[str], causes: Mapping[str, Counter[str]]) -> str:
    """Return the numbers of jobs by rule and a line for each of the most frequent causes.

    The empty cause is that of jobs that run only because of jobs before them.
    """
    cells = [f"{text:{WIDTH}}" for text in _rule_texts(counts)]
    rows = [f"  {''.join(cells[start : start + 4])}".rstrip() for start in range(0, len(cells), 4)]
    lines = [f"Jobs by rule, {counts.total():,} in total:", *rows, "Causes, with the number of jobs:"]
    direct = sorted((-jobs.total(), cause) for cause, jobs in causes.items() if cause)
    for count, cause in direct[:MOST]:
        first, more = _rule_texts(causes[cause])[:RULES], ", …" if len(causes[cause]) > RULES else ""
        lines.append(f"{-count:>7,}  {cause} ({', '.join(first)}{more})")
    if len(direct) > MOST:
        lines.append(f"         and {len(direct) - MOST} more: snakemake --dry-run shows all")
    if "" in causes:
        lines.append(f"{causes[''].total():>7,}  input from the jobs above")
    return "\n".join(lines)


def _rule_texts(counts: Counter[str]) -> list[str]:
    return [f"{-count:,} {rule}" for count, rule in sorted((-count, rule) for rule, count in counts.items())]


def main(arguments: Iterable[str]) -> int:
    """Print the jobs and their causes for the command line ``arguments`` of Snakemake; return the exit status.

    Models are checked as before a run, because the mistakes that this reports would stop it within seconds.
    """
    workflow = plan_run(arguments)
    try:
        check_sources(workflow, workflow.globals["CONFIG"].files)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if unrecorded := unrecorded_text(workflow.dag):
        print(f"Warning: {unrecorded}", file=sys.stderr)
    unchanged = "configuration, code and tracked files have not changed. Image files are not tracked."
    nothing = "Nothing to run." if unrecorded else f"Nothing to run: {unchanged}"
    print(report(workflow) if any(workflow.dag.needrun_jobs()) else nothing, flush=True)
    try:
        check_models(workflow, workflow.globals["PARAMS"])
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
