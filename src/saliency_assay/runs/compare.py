"""Comparison of the results of two runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from saliency_assay.runs.causes import causes
from saliency_assay.runs.images import changed_sets
from saliency_assay.runs.map_changes import MapChange, map_changes, method_of
from saliency_assay.runs.rank_changes import RankChange, rank_changes
from saliency_assay.runs.results_folder import CONFIGURATION, Results, open_results
from saliency_assay.runs.score_changes import KEYS, Key, ScoreChanges, score_changes

MOST_SCORES = 3
"""Number of scores of a method that are named if it has scores in one run only."""


@dataclass(frozen=True)
class RunComparison:
    """Differences between an old and a new run."""

    old: Path
    new: Path
    causes: dict[str, list[str]]
    """Lines on what changed, by heading."""
    scores: ScoreChanges
    ranked: int
    """Number of metrics with ranks in both runs."""
    ranks: list[RankChange]
    stores: int
    """Number of stores of maps in both runs."""
    maps: list[MapChange]
    one_sided: list[str]
    """Lines on what exists in one run only."""
    unknown: list[str]
    """Lines on what is not compared because a run does not record it."""

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        return not any((self.causes, len(self.scores.rows), self.ranks, self.maps, self.one_sided))


def compare(old: Path, new: Path) -> RunComparison:
    """Compare two results folders, folders that ``keep`` wrote, or folders of saved benchmarks.

    Raises:
        ValueError: a folder has no results, or a file in it is damaged or of another version.
    """
    before, now = open_results(old), open_results(new)
    sets = changed_sets(before, now)
    scores = score_changes(before, now, sets)
    ranked, ranks = rank_changes(before, now)
    stores, maps = map_changes(before, now, sets)
    return RunComparison(
        old,
        new,
        causes(before, now, sets),
        scores,
        ranked,
        ranks,
        stores,
        maps,
        one_sided=list(_one_sided(before, now, scores)),
        unknown=list(chain(*map(_unknown, (before, now)))),
    )


def score_name(metric: str, variant: str) -> str:
    """Return the name of a score: its variant, after the metric if the variant does not begin with it."""
    return variant if variant.partition(" ")[0] == metric else f"{metric}: {variant}"


def _unknown(run: Results) -> Iterator[str]:
    if not run.configuration:
        yield f"configuration: {run.folder} has no {CONFIGURATION}, which is written with the report"
    if run.benchmark and not all(run.benchmark.inputs):
        yield f"weights, settings and code: {run.folder} was computed without path, and has no digests of them"


def _one_sided(old: Results, new: Results, scores: ScoreChanges) -> Iterator[str]:
    for side, run, other, keys in (("old", old, new, scores.only_old), ("new", new, old, scores.only_new)):
        yield from (f"only {side}: data set {name}" for name in run.data if name not in other.data)
        yield from (f"only {side}: ranks of study {name}" for name in run.orders if name not in other.orders)
        yield from (f"only {side}: scores of {text}" for text in _by_method(keys))
        stores = [file for file in run.maps if file not in other.maps]
        for method, count in Counter(method_of(file) for file in stores).items():
            yield f"only {side}: maps of {method} ({count} file{'s' if count > 1 else ''})"
        for file, reason in run.failures.items():
            if file not in other.failures:
                yield f"failed only in the {side} run: {file}: {reason}"
    yield from (f"no common image: scores of {text}" for text in _by_method(scores.unpaired))
    for name, counts in scores.images.items():
        for side, count in zip(("old", "new"), counts, strict=True):
            if count:
                yield f"only {side}: {count} scored images of {name}"


def _by_method(keys: Sequence[Key]) -> Iterator[str]:
    """Yield text for each method, model, data set and study of ``keys`` with its scores."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for key in keys:
        names = dict(zip(KEYS, key, strict=True))
        of_method = names["method"], names["model"], names["data"], names["study"]
        groups.setdefault(of_method, []).append(score_name(names["metric"], names["variant"]))
    for (method, model, data, study), scores in groups.items():
        more = f" and {len(scores) - MOST_SCORES} more" if len(scores) > MOST_SCORES else ""
        place = f"{model}, {data}, {study}" if study else f"{model}, {data}"
        yield f"{method} ({place}): {', '.join(scores[:MOST_SCORES])}{more}"
