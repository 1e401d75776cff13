"""Text of a comparison of two runs for the terminal."""

from collections.abc import Iterable, Iterator
from textwrap import wrap

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
OF_SCORE = ("method", "metric", "variant")
DISTANCE = "relative distance of the old and the new map (0 equal, 2 opposite)"
NOT_COMPARED = "curves, model responses, learning curves, masks of retraining, claims, run times and figures"


def comparison_text(compared: RunComparison) -> str:
    """Return a comparison as text: a summary, what changed, and the largest differences of scores, ranks and maps.

    Lines have at most ``WIDTH`` characters, and each part at most ``MOST`` rows.
    """
    scores, ranks, maps = compared.scores, compared.ranks, compared.maps
    lines = [_wrapped(summary(compared))]
    for heading, texts in compared.causes.items():
        lines += _part(heading, map(_wrapped_row, texts))
    if len(scores.rows):
        places, head, *rows = _score_rows(scores)
        lines += _part(f"Scores, new − old with 95 % interval{places}", [head, *rows], head=1)
        if len(rows) > MOST:
            lines.append(_wrapped(f"  by method: {_by_method(scores.rows)}"))
        if (scores.rows["test"][:MOST] == SIGN).any():
            lines.append(
                "  * too skewed to compare means: p compares the numbers of images that rose and fell"
            )
    lines += _part("Ranks", map(_wrapped_row, map(rank_text, ranks)))
    lines += _part(f"Maps, {DISTANCE}", map(_wrapped_row, map(_map_text, maps)))
    lines += _part("In one run only", map(_wrapped_row, compared.one_sided))
    return "\n".join([*lines, _wrapped(not_compared(compared))])


def not_compared(compared: RunComparison) -> str:
    """Return a sentence on what is not compared."""
    return f"Not compared: {'; '.join([*compared.unknown, NOT_COMPARED])}."


def summary(compared: RunComparison) -> str:
    """Return one sentence with the numbers of scores, ranks and maps that differ."""
    scores, total = compared.scores, len(compared.scores.rows) + compared.scores.equal
    results = (
        f"{total} scores of methods, ranks of {compared.ranked} metrics, {compared.stores} files of maps."
    )
    if compared.is_equal:
        return f"Nothing differs: configuration, code, packages, data, {results}"
    if not (len(scores.rows) or compared.ranks or compared.maps or compared.one_sided):
        return f"No score, rank or map differs: {results}"
    significant = int((scores.rows["p"] <= 1 - LEVEL).sum())
    return (
        f"{len(scores.rows)} of {total} scores of methods differ, {significant} significantly;"
        f" ranks of {len(compared.ranks)} of {compared.ranked} metrics;"
        f" {len(compared.maps)} of {compared.stores} files of maps."
    )


def _part(heading: str, rows: Iterable[str], head: int = 0) -> Iterator[str]:
    """Yield the heading and the rows of a part, if there are some; the first ``head`` rows do not count."""
    texts = list(rows)
    if texts:
        yield _wrapped(f"{heading}:")
        yield from (f"  {text}" for text in texts[: MOST + head])
        if len(texts) > MOST + head:
            yield f"  and {len(texts) - MOST - head} more; --html FILE shows all"


def _wrapped(text: str) -> str:
    """Return text in lines of at most ``WIDTH`` characters, unless a name is longer."""
    return "\n".join(
        wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    )


def _wrapped_row(text: str) -> str:
    return _wrapped(f"  {text}").strip().replace("\n  ", "\n      ")


def _score_rows(scores: ScoreChanges) -> list[str]:
    """Return text on the names that all rows have in common, the heads of the columns, and the rows."""
    table = scores.rows
    varied = [name for name in ("model", "data", "study") if table[name].nunique() > 1]
    common = [f"{name} {table[name].iloc[0]}" for name in ("model", "data", "study") if name not in varied]
    places = ", ".join(text for text in common if not text.endswith(" "))
    intervals = zip(table["low"], table["high"], strict=True)
    columns = {name: table[name].map(number).tolist() for name in ("old", "new", "difference")}
    columns["interval"] = [
        "" if low != low else f"[{number(low, 3)}, {number(high, 3)}]" for low, high in intervals
    ]
    columns["p"] = [p_text(p, test) for p, test in zip(table["p"], table["test"], strict=True)]
    columns[""] = table["verdict"].tolist()
    widths = [max(len(name), *map(len, values)) for name, values in columns.items()]
    cells = [tuple(columns), *zip(*columns.values(), strict=True)]
    numbers = [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells
    ]
    names = [_row_name(*names) for names in zip(*(table[name] for name in (*OF_SCORE, *varied)), strict=True)]
    fits = len(numbers[0]) + 4 + max(map(len, names[:MOST])) <= WIDTH
    indent = "" if fits else "    "
    rows = [
        f"{row}  {name}" if fits else f"{name}\n  {indent}{row.rstrip()}"
        for row, name in zip(numbers[1:], names, strict=True)
    ]
    return [f" ({places})" if places else "", f"{indent}{numbers[0].rstrip()}", *rows]


def _row_name(method: str, metric: str, variant: str, *places: str) -> str:
    place = ", ".join(filter(None, places))
    return f"{method}, {score_name(metric, variant)}{f' ({place})' if place else ''}"


def _by_method(table: pd.DataFrame) -> str:
    """Return for each method the number of scores that differ."""
    significant = table["p"] <= 1 - LEVEL
    counts = table.assign(significant=significant).groupby("method")["significant"].agg(["size", "sum"])
    ordered = counts.sort_values(["sum", "size"], ascending=False, kind="stable")
    shown = [
        f"{method} {size} ({count} significantly)" for method, size, count in ordered[:MOST].itertuples()
    ]
    return ", ".join([*shown, *([f"{len(ordered) - MOST} more"] if len(ordered) > MOST else [])])


def number(value: float, digits: int = 4) -> str:
    """Return a number with significant digits, NaN as a dash."""
    return "–" if value != value else with_minus(f"{value:.{digits}g}")


def p_text(p: float, test: str) -> str:
    """Return a p-value, with ``*`` if it is that of the signs of the differences; a dash if nothing is tested."""
    if p != p:
        return "–"
    return f"{'<0.001' if p < 0.001 else f'{p:.3f}'}{'*' if test == SIGN else ''}"


def rank_text(change: RankChange) -> str:
    """Return the metric, the changed rank sets, and both orders of the methods if they differ."""
    texts = [f"{method} {before} → {now}" for method, (before, now) in change.sets.items()]
    orders = [", ".join(order) for order in change.order]
    texts += [f"order: {orders[0]} → {orders[1]}"] if orders[0] != orders[1] else []
    place = f"{change.study}, {score_name(change.metric, change.variant)} ({change.model}, {change.data})"
    return f"{place}: {'; '.join(texts)}"


def _map_text(change: MapChange) -> str:
    place = f"{change.method} ({change.model} seed {change.seed}, {change.data})"
    return (
        f"{place}: {change.changed} of {change.images} images, median {change.median:.2g},"
        f" largest {change.largest:.2g}"
    )
