"""What may be claimed of the methods of a BAM study.

Each returns whether it holds and what was measured, in words; it raises ``UntestedError`` where its input is not
there. Scores are means over training seeds. Methods are compared with those that the paper compares; what else a study
has is named where it scores higher, and decides nothing. A lead is not lost to an equal score.
"""

from collections.abc import Iterable

import pandas as pd

from saliency_assay.studies.bam.tables import DECIMALS, BamTables, Scores, UntestedError, label, named, value

BEST = 5.0  # points below the best method that are nearly the best
MUCH = 0.5  # a scale at most this much of another is much smaller
PASSED = 20.0  # percent of images: 100 − the paper's 80


def leads(
    tables: BamTables,
    metric: str,
    wanted: tuple[str, ...],
    besides: Iterable[str] = (),
    *,
    in_this_order: bool = False,
) -> tuple[bool, str]:
    """No other method of the paper, those ``besides`` left out, scores higher than any of ``wanted``."""
    scores = tables.scores(metric)
    first = pd.Series({name: tables.score(scores, metric, name) for name in wanted}).round(DECIMALS)
    rest = tables.without(scores, (*wanted, *besides)).round(DECIMALS)
    peers = _others(tables, rest)
    ordered = not in_this_order or first.is_monotonic_decreasing
    text = f"{named(first, metric)}; the best other: {named(peers.nlargest(1), metric)}"
    beyond = rest.drop(peers.index)
    beyond = beyond[beyond > first.min()].sort_values(ascending=False)
    if len(beyond):
        text += f"; higher, but not in the paper: {named(beyond, metric)}"
    return bool(first.min() >= peers.max()) and ordered, text


def exceeds(tables: BamTables, metric: str, better: str, worse: str) -> tuple[bool, str]:
    """The one has the higher score, strictly."""
    scores = tables.scores(metric)
    pair = pd.Series({name: tables.score(scores, metric, name) for name in (better, worse)})
    by_seed = tables.by_seed(metric).pivot_table(index="seed", columns="method", values="score")
    one, other = (by_seed[tables.entry(name)] for name in (better, worse))
    text = f"{named(pair, metric)}; higher in {int((one > other).sum())} of {len(by_seed)} seeds"
    return round(pair[better] - pair[worse], DECIMALS) > 0, text


def nearly_best(tables: BamTables, metric: str, method: str) -> tuple[bool, str]:
    """At most ``BEST`` percentage points below the best of the paper's methods."""
    scores = tables.scores(metric)
    score, peers = tables.score(scores, metric, method), tables.of_paper(scores)
    below = 100 * float(peers.max() - score)
    text = f"{method} {value(score, metric)}, the best: {named(peers.nlargest(1), metric)}"
    return round(below, DECIMALS) <= BEST, f"{text}; {below:.1f} points below"


def most_fail(tables: BamTables, spared: tuple[str, ...]) -> tuple[bool, str]:
    """IIR is below ``PASSED`` for more than half of the paper's other methods, and for none of ``spared``."""
    scores = tables.scores("iir")
    first = pd.Series({name: tables.score(scores, "iir", name) for name in spared})
    others = _others(tables, tables.without(scores, spared))
    failing = int(((100 * others).round(DECIMALS) < PASSED).sum())
    text = f"{failing} of {len(others)} others below {PASSED:.0f} %; {named(first, 'iir')}"
    return 2 * failing > len(others) and bool(((100 * first).round(DECIMALS) >= PASSED).all()), text


def high_but_low(tables: BamTables, method: str, high: tuple[str, ...], low: str) -> tuple[bool, str]:
    """Better than the middle rank of the paper's methods in each of ``high``, worse in ``low``."""
    places, held = [], []
    for metric in (*high, low):
        scores = tables.of_paper(tables.scores(metric)).round(DECIMALS)
        tables.score(scores, metric, method)
        rank = float(scores.rank(ascending=False)[tables.entry(method)])
        middle = (len(scores) + 1) / 2
        held.append(rank > middle if metric == low else rank < middle)
        places.append(f"rank {rank:g} of {len(scores)} in {label(metric)}")
    return all(held), f"{method}: {', '.join(places)}"


def largest_contrast(tables: BamTables) -> tuple[bool, str]:
    """MCS of f_o and f_s is above that of every f_k, k < 1, for more than half of the methods but the controls."""
    series = _series(tables)
    most = series[[k for k in series.columns if float(k) < 1]].T.max()
    both = pd.concat([tables.scores("mcs").rename("models"), most.rename("series")], axis=1, join="inner")
    both = both.dropna()
    if both.empty:
        raise UntestedError("no method has both scores")
    larger = (both["models"] - both["series"]).round(DECIMALS) > 0
    text = f"for {int(larger.sum())} of {len(both)} methods"
    if not larger.all():
        text += f"; not for {', '.join(map(str, larger.index[~larger]))}"
    return bool(2 * larger.sum() > len(both)), text


def changes_least(tables: BamTables, method: str) -> tuple[bool, str]:
    """The range of MCS over k is not above that of any other method of the paper."""
    found, others = _ranges(tables, method)
    text = f"range {found:.3f}; the least other: {named(others.nsmallest(1), 'mcs')}"
    return bool(found <= others.min()), text


def changes_most(tables: BamTables, method: str) -> tuple[bool, str]:
    """The range of MCS over k of every other method of the paper is at most ``MUCH`` of this one's."""
    found, others = _ranges(tables, method)
    text = f"range {found:.3f}; the largest other: {named(others.nlargest(1), 'mcs')}"
    return bool(others.max() <= round(MUCH * found, DECIMALS)), text


def _ranges(tables: BamTables, method: str) -> tuple[float, Scores]:
    """The range over k of a method, and of the paper's others that have a score at every k."""
    series, entry = _series(tables).dropna(), tables.entry(method)
    ranges = (series.max(axis=1) - series.min(axis=1)).round(DECIMALS)
    if entry not in ranges:
        raise UntestedError(f"{entry} lacks a score at some k")
    return float(ranges[entry]), _others(tables, tables.without(ranges, [method]))


def _series(tables: BamTables) -> pd.DataFrame:
    """MCS of every method but the controls (rows) at every k (columns)."""
    if tables.series is None:
        raise UntestedError("no commonality series in the study")
    table = tables.series[[not tables.is_control(method) for method in tables.series["method"]]]
    if table["k"].nunique() < 2:
        raise UntestedError(f"{table['k'].nunique()} value of k, expected at least 2")
    return table.groupby(["method", "k"], sort=False)["mcs"].mean().unstack("k")


def _others(tables: BamTables, scores: Scores) -> Scores:
    """The paper's methods among ``scores``, at least one."""
    found = tables.of_paper(scores)
    if found.empty:
        raise UntestedError("no other method of the paper has a score")
    return found
