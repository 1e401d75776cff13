"""What a paper prints, beside the means of a study's own scores."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np
import pandas as pd

from saliency_assay.registry.records import unknown

Pair = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)


def printed_values(
    scored: Iterable[Pair], printed: Mapping[str, Mapping[str, float]]
) -> dict[tuple[str, str, str], float]:
    """The value that is printed for a method, score and variant.

    Args:
        scored: score and variant of everything that a study has.
        printed: for each method the values by name. A name is ``SCORE VARIANT`` in full; an entry (the variant's first
            word) that has one score and one variant; or a score that has one variant in the study. Where two name the
            same, the first of these is taken.

    Raises:
        ValueError: a name is of nothing that was scored, or of several.
    """
    pairs = list(dict.fromkeys(scored))
    named = [
        ((method, *pair), rank, value)
        for method, values in printed.items()
        for name, value in values.items()
        for rank, pair in [_meant(f"printed.{method}", name, pairs)]
    ]
    return _nearest(named)


def printed_alphas(
    scored: Iterable[Pair], printed: Mapping[str, Mapping[str, float]]
) -> dict[tuple[str, str, str], float]:
    """The α that is printed for a score, its variant, and methods ``with``, ``without`` or with no (``none``) controls.

    Args:
        scored: as in ``printed_values``.
        printed: for each score, by a name as in ``printed_values``, the values ``with`` and ``without`` controls; the
            latter is that of a study that has none.

    Raises:
        ValueError: as ``printed_values``.
    """
    pairs = list(dict.fromkeys(scored))
    kinds = {"with": ("with",), "without": ("without", "none")}
    named = [
        ((*pair, kind), rank, value)
        for name, values in printed.items()
        for rank, pair in [_meant("printed_alpha", name, pairs)]
        for given, value in values.items()
        for kind in kinds[given]
    ]
    return _nearest(named)


def printed_correlations(
    scored: Iterable[Pair], printed: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> dict[tuple[str, frozenset[Pair]], float]:
    """Spearman's ρ that is printed for a method between two scores, whichever of them is named first.

    Args:
        scored: as in ``printed_values``.
        printed: for each score, and each other one, by names as in ``printed_values``, the values by method.

    Raises:
        ValueError: as ``printed_values``, or both names are of one score.
    """
    pairs = list(dict.fromkeys(scored))
    named = []
    for name, others in printed.items():
        rank, pair = _meant("printed_correlation", name, pairs)
        for other, values in others.items():
            other_rank, other_pair = _meant(f"printed_correlation.{name}", other, pairs)
            if pair == other_pair:
                raise ValueError(
                    f"printed_correlation.{name}: found {other!r}, the same score; expected another"
                )
            both = frozenset((pair, other_pair))
            named += [((method, both), rank + other_rank, value) for method, value in values.items()]
    return _nearest(named)


def _nearest(named: Iterable[tuple[Key, int, float]]) -> dict[Key, float]:
    """The value of each key; of several the one whose name is nearest to a name in full, of these the smallest."""
    found: dict[Key, tuple[int, float]] = {}
    for key, rank, value in named:
        found[key] = min(found.get(key, (rank, value)), (rank, value))
    return {key: float(value) for key, (_, value) in found.items()}


def _meant(place: str, name: str, pairs: list[Pair]) -> tuple[int, Pair]:
    """What a name is of, and how far it is from a name in full: 0, 1 or 2."""
    kinds = _kinds(name, pairs)
    for rank, meant in enumerate(kinds):
        if len(meant) == 1:
            return rank, meant[0]
    several = [" ".join(pair) for pair in kinds[2] or kinds[1]]
    if several:
        raise ValueError(
            f"{place}: {name} has {len(several)} scores, expected the name of one, such as {several[0]!r}"
        )
    alike = [" ".join(pair) for pair in pairs if name == pair[1] or name.split(" ")[0] == pair[0]]
    words = dict.fromkeys(word for pair in pairs for word in (pair[0], pair[1].split(" ")[0]))
    single = [word for word in words if any(len(meant) == 1 for meant in _kinds(word, pairs))]
    raise ValueError(f"{place}: {unknown('score', name, alike or single)}")


def _kinds(name: str, pairs: list[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """What has this name in full, as its entry, and as its score."""
    return (
        [pair for pair in pairs if " ".join(pair) == name],
        [pair for pair in pairs if pair[1].split(" ")[0] == name],
        [pair for pair in pairs if pair[0] == name],
    )


def side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Methods in rows, and for each metric and variant of a ``summary`` its mean over seeds "ours / printed".

    Only metrics, variants and methods with printed values. Beside each such column stands the same relative to the
    first method that has both numbers, neither zero, if any has: scores that grow with a model's outputs can only be
    compared so. Three significant digits, a dash for none.
    """
    given = table[table["printed"].notna()]
    methods = list(given["method"].unique())
    columns: dict[str, list[str]] = {"method": methods}
    for metric, variant in given[["metric", "variant"]].drop_duplicates().itertuples(index=False, name=None):
        rows = table[(table["metric"] == metric) & (table["variant"] == variant)]
        means = rows.groupby("method")[["mean", "printed"]].mean().reindex(methods)
        name = metric if metric == variant else f"{metric}, {variant}"
        columns[f"{name}: ours / printed"] = _pairs(means)
        both = means.replace(0, np.nan).dropna()
        if len(both):
            columns[f"{name}: relative to {both.index[0]}"] = _pairs(means / both.iloc[0])
    return pd.DataFrame(columns)


def _pairs(means: pd.DataFrame) -> list[str]:
    texts = means.map(lambda value: f"{value:.3g}" if np.isfinite(value) else "–")
    return [f"{ours} / {printed}" for ours, printed in texts.itertuples(index=False)]


def score_tables(table: pd.DataFrame, study: str) -> dict[str, pd.DataFrame]:
    """A ``summary`` by its title; before it, where anything is printed, ours ``side_by_side`` with the paper's."""
    tables = {f"{study}: all scores": table}
    if table["printed"].isna().all():
        return tables
    title = f"{study}: ours beside the paper's (means over images and seeds / printed values)"
    return {title: side_by_side(table), **tables}
