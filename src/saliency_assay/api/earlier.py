"""Entries of an earlier result in the folder of a benchmark that can be in one result with the requested ones."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

from saliency_assay.api.results import Benchmark, MethodEntry, MetricEntry
from saliency_assay.metrics import METRICS
from saliency_assay.registry.labels import score_labels

Entry = TypeVar("Entry", MethodEntry, MetricEntry)


def without_conflicts(earlier: Benchmark, requested: Benchmark) -> Benchmark:
    """Return an earlier result without the entries that cannot be in one result with the requested ones.

    These are members of a requested family with another function, other fixed settings or other swept parameters, and
    entries whose name is that of a requested family, or whose family has the name of a requested entry. Labels of
    requested entries are changed in the earlier result.
    """
    result = copy(earlier)
    result.methods = _compatible(earlier.methods, requested.methods)
    result.metrics = _compatible(earlier.metrics, requested.metrics)
    methods, metrics = ({each.name for each in entries} for entries in (result.methods, result.metrics))
    result.cells = {
        key: cell for key, cell in earlier.cells.items() if key.method in methods and key.metric in metrics
    }
    result.failures_found = [
        each
        for each in earlier.failures_found
        if each.method in methods and (not each.metric or each.metric in metrics)
    ]
    result.maps = {key: maps for key, maps in earlier.maps.items() if key[1] in methods}
    return result


def check_score_names(metrics: Sequence[MetricEntry], place: str = "metrics") -> None:
    """Check that no custom metric has the name of a score of another metric, whose direction it could contradict.

    Raises:
        ValueError: one has.
    """
    for each in metrics:
        others = [other.name for other in metrics if other is not each and each.name in other.directions]
        if others and not each.registered:
            raise ValueError(
                f"{place}: {each.name}: found the name of a score of {others[0]}, expected another name"
            )


def _compatible(earlier: Sequence[Entry], requested: Sequence[Entry]) -> list[Entry]:
    names = {each.name for each in requested}
    families = {each.member.family: each for each in requested if each.member}
    plain = {each.name for each in requested if not each.member}
    labels = {_row(each)[1] for each in requested}
    kept: list[Entry] = []
    for each in earlier:
        row, label = _row(each)
        if each.name in names:
            kept.append(each)
        elif each.name in families or row in plain:
            continue
        elif row not in families:
            kept.append(_labeled(each, f"{label} ({row})") if label in labels else each)
        elif _is_of_family(each, families[row]):
            kept.append(_labeled(each, _row(families[row])[1]))
    return kept


def _row(entry: MethodEntry | MetricEntry) -> tuple[str, str]:
    """Return name and label of an entry or, of a member, those of its family."""
    member = entry.member
    return (member.family, member.family_label) if member else (entry.name, entry.label)


def _is_of_family(entry: Entry, other: Entry) -> bool:
    """Return True if two members differ only in the values of the swept parameters."""
    keys = [set(each.member.values) for each in (entry, other) if each.member]
    return bool(entry.family_digest) and entry.family_digest == other.family_digest and keys[0] == keys[1]


def _labeled(entry: Entry, label: str) -> Entry:
    """Return an entry with another label, a member with another label of its family."""
    if entry.member:
        member = replace(entry.member, family_label=label)
        entry, label = replace(entry, member=member), member.label
    if isinstance(entry, MethodEntry):
        return replace(entry, label=label)
    record = next((record for record in METRICS if record.name == entry.registered), None)
    scores = {each.name: each.label for each in record.scores} if record else entry.score_labels
    return replace(
        entry, label=label, score_labels=score_labels(scores, label, record.label if record else "")
    )
