"""Text of a comparison of two runs for the terminal."""

from collections.abc import Iterator, Sequence

import pandas as pd

from saliency_assay.plotting.text import with_minus
from saliency_assay.runs.compare import RunComparison, score_name
from saliency_assay.runs.map_changes import MapChange
from saliency_assay.runs.rank_changes import RankChange
from saliency_assay.runs.score_changes import LEVEL, SIGN, ScoreChanges

WIDTH = 100
"""Characters of a line."""
MOST = 12
"""Number of lines of a part."""
NOT_COMPARED = "curves, model responses, learning curves, masks of retraining, claims, run times and figures"


def comparison_text(compared: RunComparison) -> str:
    """Return a comparison as text: a summary, what changed, and the largest differences of scores, ranks and maps.

    Lines have at most ``WIDTH`` characters, and each part at most ``MOST`` rows.
    """
    scores, ranks, maps = compared.scores, compared.ranks, compared.maps
    lines = [summary(compared)]
    for heading, texts in compared.causes.items():
        lines += _part(heading, texts)
    if len(scores.rows):
        rows = _score_rows(scores)
        lines += _part(
            "Scores, new − old with 95 % interval, largest significant differences first", rows, head=2
        )
    lines += _part("Ranks", list(map(rank_text, ranks)))
    lines += _part("Maps, median and largest distance (0 equal, 2 opposite)", list(map(_map_text, maps)))
    lines += _part("In one run only", compared.one_sided)
    not_compared = [*compared.unknown, NOT_COMPARED]
    return "\n".join([*lines, f"Not compared: {'; '.join(not_compared)}."])


def summary(compared: RunComparison) -> str:
    """Return one sentence with the numbers of scores, ranks and maps that differ."""
    scores, total = compared.scores, len(compared.scores.rows) + compared.scores.equal
    if compared.is_equal:
        return (
            f"Nothing differs: configuration, code, packages, data, {total} scores of methods,"
            f" ranks of {compared.ranked} metrics, {compared.stores} files of maps."
        )
    significant = int((scores.rows["p"] <= 1 - LEVEL).sum())
    return (
        f"{len(scores.rows)} of {total} scores of methods differ, {significant} significantly;"
        f" ranks of {len(compared.ranks)} of {compared.ranked} metrics;"
        f" {len(compared.maps)} of {compared.stores} files of maps."
    )


def _part(heading: str, rows: Sequence[str], head: int = 0) -> Iterator[str]:
    """Yield the heading and the rows of a part, if there are some; the first ``head`` rows do not count."""
    if rows:
        yield f"{heading}:"
        yield from (_cut(f"  {row}", WIDTH) for row in rows[: MOST + head])
        if len(rows) > MOST + head:
            yield f"  and {len(rows) - MOST - head} more; --html FILE shows all"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _score_rows(scores: ScoreChanges) -> list[str]:
    """Return what all rows have in common, the heads of the columns, and the rows."""
    table = scores.rows
    places = {name: name for name in ("study", "data", "model") if table[name].nunique() > 1}
    common = [f"{name} {table[name].iloc[0]}" for name in ("study", "data", "model") if name not in places]
    columns = {"method": table["method"].tolist(), "score": _score_names(table)}
    columns |= {name: table[name].tolist() for name in places}
    columns |= {name: table[name].map(number).tolist() for name in ("old", "new", "difference")}
    intervals = zip(table["low"], table["high"], strict=True)
    columns["interval"] = [
        "" if low != low else f"[{number(low)}, {number(high)}]" for low, high in intervals
    ]
    columns["p"] = [p_text(p, test) for p, test in zip(table["p"], table["test"], strict=True)]
    columns[""] = table["verdict"].tolist()
    shown = {name: values[:MOST] for name, values in columns.items()}
    names = ["method", "score", *places]
    widths = {name: max(len(name), *map(len, values)) for name, values in shown.items()}
    # Names are cut if the rows are too long; the longest ones first.
    while (
        sum(widths.values()) + 2 * len(widths) > WIDTH - 2
        and (longest := max(widths[name] for name in names)) > 8
    ):
        widths[next(name for name in names if widths[name] == longest)] -= 1
    right = {"old", "new", "difference", "p"}
    lines = [
        "  ".join(
            f"{_cut(cell, widths[name]):{'>' if name in right else '<'}{widths[name]}}"
            for name, cell in zip(columns, cells, strict=True)
        ).rstrip()
        for cells in [tuple(columns), *zip(*columns.values(), strict=True)]
    ]
    return [", ".join(filter(None, common)), *lines]


def _score_names(table: pd.DataFrame) -> list[str]:
    return [score_name(*names) for names in zip(table["metric"], table["variant"], strict=True)]


def number(value: float) -> str:
    """Return a number with four significant digits, NaN as a dash."""
    return "–" if value != value else with_minus(f"{value:.4g}")


def p_text(p: float, test: str) -> str:
    """Return a p-value, with ``*`` if it is that of the signs of the differences; a dash if nothing is tested."""
    if p != p:
        return "–"
    return f"{'<0.001' if p < 0.001 else f'{p:.3f}'}{'*' if test == SIGN else ''}"


def rank_text(change: RankChange) -> str:
    """Return the metric, the changed rank sets, and both orders of the methods if they differ."""
    texts = [", ".join(f"{method} {before} → {now}" for method, (before, now) in change.sets.items())]
    before, now = change.order
    if before != now:
        first = next(
            place for place, (one, other) in enumerate(zip(before, now, strict=False)) if one != other
        )
        last = max(first + 2, min(len(before), len(now)))
        orders = (", ".join(order[first:last]) for order in change.order)
        texts.append(f"order from {first + 1} on: {' → '.join(orders)}")
    place = f"{change.study}, {score_name(change.metric, change.variant)}, {change.model} on {change.data}"
    return f"{place}: {'; '.join(filter(None, texts))}"


def _map_text(change: MapChange) -> str:
    place = f"{change.method}, {change.model} seed {change.seed} on {change.data}"
    return (
        f"{place}: {change.changed} of {change.images} images, median {change.median:.2g},"
        f" largest {change.largest:.2g}"
    )
