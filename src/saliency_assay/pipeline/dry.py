"""Jobs that a run would start, and the causes.

Snakemake prints every job with its old and new settings. This module prints one line for each cause, such as the file
whose code changed or the key of the configuration with both values. It compares the settings that Snakemake recorded
with the new ones.
"""

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from saliency_assay.pipeline.code_record import CodeRecord
from saliency_assay.pipeline.combined import base_rule
from saliency_assay.pipeline.planned import with_plan
from saliency_assay.pipeline.unrecorded import unrecorded_text

UNSET = object()
"""Value of a key that is not set."""
MOST = 12
"""Causes that are printed; the others are counted."""
WIDTH = 110
VALUE_WIDTH = 50


@dataclass(frozen=True)
class Change:
    """A changed value in nested settings or in the configuration."""

    path: tuple[str, ...]
    old: Any
    new: Any

    @property
    def text(self) -> str:
        """Return key, old value and new value; of lists of names in equal order, only the names in one of them."""
        if _are_names(self.old) and _are_names(self.new):
            removed = [name for name in self.old if name not in self.new]
            added = [name for name in self.new if name not in self.old]
            kept = [name for name in self.old if name in self.new]
            if kept and kept == [name for name in self.new if name in self.old]:
                items = [*(f"without {name}" for name in removed), *(f"with {name}" for name in added)]
                return f"{'.'.join(self.path)}: {', '.join(items)}"
        return f"{'.'.join(self.path)}: {value_text(self.old)} → {value_text(self.new)}"

    def is_like(self, key: "Change") -> bool:
        """Return True if a change of the configuration's ``key`` may be the cause of this change of a setting."""
        names = key.path[-1] in self.path or self.path[-1] in key.path
        return names or (self.new, self.old) == (key.new, key.old)


def _are_names(value: Any) -> bool:
    """Return True for a list of different strings."""
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return is_list and len(set(value)) == len(value)


def changes(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield the changed values of nested settings.

    A list is one value unless its items are settings. These are compared by name or, without names, by position.
    """
    before, now = _items(old), _items(new)
    if not path and before is not None and now is not None and ("parts" in before) != ("parts" in now):
        yield Change(("parts",), before.get("parts", UNSET), now.get("parts", UNSET))
    elif before is not None and now is not None:
        for key in dict.fromkeys([*before, *now]):
            yield from changes(before.get(key, UNSET), now.get(key, UNSET), (*path, key))
    elif old != new:
        yield Change(path, old, new)


def _items(value: Any) -> dict[str, Any] | None:
    """Return the values of a dict, or of a list of dicts, by key; None for other values."""
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return {str(item.get("name", number)): item for number, item in enumerate(value)}
    return None


def value_text(value: Any) -> str:
    """Return a value as it is written in a configuration, shortened to ``VALUE_WIDTH`` characters."""
    if value is UNSET:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 1]}…"


def changed_settings(only_old: Iterable[str], only_new: Iterable[str]) -> list[Change]:
    """Return the changes between settings of a job as Snakemake records them, as the text of Python literals.

    The files of a job may have been recorded with different settings. Each of these is compared with the most
    similar of the new settings.
    """
    changed: list[Change] = []
    for old in only_old:
        with suppress(ValueError, SyntaxError):
            candidates = [list(changes(ast.literal_eval(old), ast.literal_eval(new))) for new in only_new]
            fewest: list[Change] = min(candidates, key=len, default=[])
            changed += fewest
    return changed


def configuration_changes(settings: Iterable[Change]) -> list[Change]:
    """Return the changed keys of the configuration, which the settings of the report's jobs contain as a whole."""
    keys: dict[tuple[str, ...], Change] = {}
    for change in settings:
        if "configuration" in change.path:
            start = change.path.index("configuration") + 1
            for key in changes(_parsed(change.old), _parsed(change.new), change.path[start:]):
                keys[key.path] = key
    return list(keys.values())


def _parsed(value: Any) -> Any:
    """Return the content of a configuration that is recorded as YAML text."""
    return yaml.load(value, yaml.CSafeLoader) if isinstance(value, str) and "\n" in value else value


def causes_of_changes(
    settings: Sequence[Change],
    keys: Sequence[Change],
    record: CodeRecord,
    rule: str,
    words: Iterable[str] = (),
) -> set[str]:
    """Return the causes of changed ``settings`` of a job, as lines of text.

    ``keys`` are the changed keys of the configuration. A setting is traced to the key that has its name or its values,
    preferably one whose path contains one of ``words``, the values of the job's wildcards. The settings of a combined
    job contain those of its parts, whose names begin with their rule and end with their wildcards.
    """
    causes: set[str] = set()
    parts: dict[str, list[Change]] = {}
    for change in settings:
        if change.path[0] != "parts":
            parts.setdefault("", []).append(change)
        elif len(change.path) == 1:
            causes.add(f"jobs of {rule} are combined differently")
        elif change.path[2:3] == ("settings",):
            part = Change(change.path[3:], change.old, change.new)
            parts.setdefault(change.path[1], []).append(part)
        elif len(change.path) == 2:
            causes.add("never run" if change.old is UNSET else f"jobs of {rule} are combined differently")
        elif change.path[2] == "input":
            causes.add(f"{change.path[1].split()[0]} has other input files")
    for name, part_settings in parts.items():
        part_rule, *values = name.split() or [rule]
        causes |= _causes_of_part(part_settings, keys, record, part_rule, {*words, *values})
    return causes


def _causes_of_part(
    settings: Sequence[Change], keys: Sequence[Change], record: CodeRecord, rule: str, words: set[str]
) -> set[str]:
    """Return the causes of changed settings of a job that is not combined, or of a part of a combined job."""
    causes: set[str] = set()
    has_other_code = any(change.path[-1] == "code" for change in settings)
    for change in settings:
        name = change.path[-1]
        if name == "code":
            files = record.changed_files(str(change.old), str(change.new))
            causes.update(f"code of {file}" for file in files)
            if not files:
                causes.add(f"code of {rule} (the run that computed the results did not record its files)")
        elif "environment" in change.path[-2:]:
            causes.add(f"package {change.text.removeprefix('.'.join(change.path[:-1]) + '.')}")
        elif name == "files":
            causes.update(f"input {file} changed" for file in _changed_files(change))
        elif "configuration" in change.path:
            causes.update(f"key {key.text}" for key in keys)
        else:
            like = [key for key in keys if change.is_like(key)]
            closest = [key for key in like if words & set(key.path)] or like
            # The summary of a method is the first line of its docstring.
            if len(closest) != 1 and len(keys) == 1 and not has_other_code and name != "summary":
                closest = list(keys)
            if len(closest) == 1:
                [key] = closest
                old = change.old if key.old is UNSET and key.path[-1] == name else key.old
                causes.add(f"key {Change(key.path, old, key.new).text}")
            else:
                causes.add(f"setting {change.text}")
    return causes


def _changed_files(change: Change) -> list[str]:
    """Return the names of the files with another digest, from lists of names and digests."""
    before, now = (
        set(map(tuple, value)) if isinstance(value, list) else set() for value in (change.old, change.new)
    )
    return sorted({str(file[0]) for file in before ^ now})


def job_causes(job: Any, workflow: Any, settings: Sequence[Change], keys: Sequence[Change]) -> set[str]:
    """Return the causes of a planned job; empty if it runs only because of jobs before it."""
    reason, rule = workflow.dag.reason(job), base_rule(job.rule.name)
    record = workflow.globals["JOB_SETTINGS"].record
    causes = causes_of_changes(settings, keys, record, rule, job.wildcards_dict.values())
    has_run = any(workflow.persistence.metadata(file) for file in job.output)
    if reason.forced or reason.noio or reason.nooutput:
        causes.add(f"{rule} is requested" if reason.forced else f"{rule} always runs")
    if reason.missing_output:
        causes.add(f"output of {rule} is missing" if has_run else "never run")
    if reason.incomplete_output:
        causes.add(f"output of {rule} is incomplete")
    causes.update(
        f"input {file} changed" for file in set(reason.updated_input) - set(reason.updated_input_run)
    )
    if reason.input_changed and not causes:
        causes.add(f"{rule} has other input files")
    if reason.code_changed:
        causes.add(f"rule {rule} changed")
    if reason.software_stack_changed:
        causes.add(f"software environment of {rule} changed")
    return causes


def report(workflow: Any) -> str:
    """Return the planned jobs by rule, and the most frequent causes."""
    jobs = list(workflow.dag.needrun_jobs())
    if text := unrecorded_text(workflow):
        print(f"Warning: {text}", file=sys.stderr)
    if not jobs and text:
        return "Nothing to run."
    if not jobs:
        return "Nothing to run: configuration, code and tracked files have not changed. Image files are not tracked."
    settings = {}
    for job in jobs:
        change = workflow.persistence.params_changed(job)
        settings[job] = changed_settings(change.only_old, change.only_new) if change else []
    keys = configuration_changes(change for job in jobs for change in settings[job])
    causes = Counter[str]()
    for job in jobs:
        causes.update(job_causes(job, workflow, settings[job], keys) or [""])
    order = {base_rule(rule.name): None for rule in workflow.rules}
    counts = Counter(base_rule(job.rule.name) for job in jobs)
    return report_text({rule: counts[rule] for rule in order if counts[rule]}, causes)


def report_text(counts: Mapping[str, int], causes: Mapping[str, int]) -> str:
    """Return the numbers of jobs by rule in columns, and a line for each of the most frequent causes.

    The empty cause is that of jobs that run only because of jobs before them.
    """
    cells = [f"{rule} {count:,}" for rule, count in counts.items()]
    width = max(map(len, cells)) + 3
    columns = max(1, WIDTH // width)
    rows = -(-len(cells) // columns)
    lines = [f"Jobs by rule, {sum(counts.values()):,} in total:"]
    lines += ["  " + "".join(cell.ljust(width) for cell in cells[row::rows]).rstrip() for row in range(rows)]
    direct = sorted(
        ((count, cause) for cause, count in causes.items() if cause), key=lambda pair: (-pair[0], pair[1])
    )
    lines += ["Causes, with the number of jobs:"]
    lines += [f"{count:>7,}  {cause}" for count, cause in direct[:MOST]]
    if len(direct) > MOST:
        lines.append(f"         and {len(direct) - MOST} more: snakemake --dry-run shows all")
    if causes.get(""):
        lines.append(f"{causes['']:>7,}  input from the jobs above")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the jobs and their causes for the command line ``arguments`` of Snakemake; return the exit status."""
    return with_plan(arguments, lambda workflow: print(report(workflow)))
