"""Values printed in a paper, and tables that compare them with the means of a study's scores."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np
import pandas as pd

from saliency_assay.plotting.display import displayed
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.registry.records import unknown

Pair = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)


def printed_values(
    scored: Iterable[Pair], printed: Mapping[str, Mapping[str, float]], failed: Collection[str] = ()
) -> dict[tuple[str, str, str], float]:
    """Return the printed value of each method, score and variant.

    Args:
        scored: all pairs of score and variant of a study.
        printed: for each method the values by name. A name is ``SCORE VARIANT`` in full; an entry (the variant's first
            word) that has one score and one variant; or a score that has one variant in the study. If two names refer
            to the same pair, the form that comes first in this list takes precedence.
        failed: entries of the study without scores, because they failed; their values are left out.

    Raises:
        ValueError: a name refers to no scored pair, or to several.
    """
    pairs = list(dict.fromkeys(scored))
    named = [
        ((method, *pair), rank, value)
        for method, values in printed.items()
        for name, value in values.items()
        if not _has_failed(name, pairs, failed)
        for rank, pair in [_resolve_name(f"printed.{method}", name, pairs)]
    ]
    return _best_named(named)


def printed_alphas(
    scored: Iterable[Pair], printed: Mapping[str, Mapping[str, float]], failed: Collection[str] = ()
) -> dict[tuple[str, str, str], float]:
    """Return the printed α of each score, variant and set of methods (``with``, ``without`` or ``none``).

    ``none`` is for a study without baselines.

    Args:
        scored: as in ``printed_values``.
        printed: for each score, by a name as in ``printed_values``, the values ``with`` and ``without`` baselines; the
            latter also applies to ``none``.
        failed: as in ``printed_values``.

    Raises:
        ValueError: as ``printed_values``.
    """
    pairs = list(dict.fromkeys(scored))
    kinds = {"with": ("with",), "without": ("without", "none")}
    named = [
        ((*pair, kind), rank, value)
        for name, values in printed.items()
        if not _has_failed(name, pairs, failed)
        for rank, pair in [_resolve_name("printed_alpha", name, pairs)]
        for printed_kind, value in values.items()
        for kind in kinds[printed_kind]
    ]
    return _best_named(named)


def printed_correlations(
    scored: Iterable[Pair],
    printed: Mapping[str, Mapping[str, Mapping[str, float]]],
    failed: Collection[str] = (),
) -> dict[tuple[str, frozenset[Pair]], float]:
    """Return the printed Spearman's ρ of each method and unordered pair of scores.

    Args:
        scored: as in ``printed_values``.
        printed: for each score and each other score, by names as in ``printed_values``, the values by method.
        failed: as in ``printed_values``.

    Raises:
        ValueError: as in ``printed_values``, or both names refer to one score.
    """
    pairs = list(dict.fromkeys(scored))
    named = []
    for name, others in printed.items():
        if _has_failed(name, pairs, failed):
            continue
        rank, pair = _resolve_name("printed_correlation", name, pairs)
        for other, values in others.items():
            if _has_failed(other, pairs, failed):
                continue
            other_rank, other_pair = _resolve_name(f"printed_correlation.{name}", other, pairs)
            if pair == other_pair:
                raise ValueError(
                    f"printed_correlation.{name}: found {other!r}, the same score; expected another"
                )
            score_pair = frozenset((pair, other_pair))
            named += [((method, score_pair), rank + other_rank, value) for method, value in values.items()]
    return _best_named(named)


def _best_named(named: Iterable[tuple[Key, int, float]]) -> dict[Key, float]:
    """Return for each key the value with the name of highest precedence; the smallest value of a tie."""
    best: dict[Key, tuple[int, float]] = {}
    for key, rank, value in named:
        best[key] = min(best.get(key, (rank, value)), (rank, value))
    return {key: float(value) for key, (_, value) in best.items()}


def _has_failed(name: str, pairs: list[Pair], failed: Collection[str]) -> bool:
    """Return True if a name contains one of the ``failed`` entries, or is a score that only such an entry has."""
    return bool(failed) and (not set(failed).isdisjoint(name.split(" ")) or not any(_candidates(name, pairs)))


def _resolve_name(place: str, name: str, pairs: list[Pair]) -> tuple[int, Pair]:
    """Return the precedence of a name's form (0 for a full name, 1 or 2) and the score that it refers to."""
    candidates = _candidates(name, pairs)
    for rank, matches in enumerate(candidates):
        if len(matches) == 1:
            return rank, matches[0]
    several = [" ".join(pair) for pair in candidates[2] or candidates[1]]
    if several:
        raise ValueError(
            f"{place}: {name} has {len(several)} scores, expected the name of one, such as {several[0]!r}"
        )
    similar = [" ".join(pair) for pair in pairs if name == pair[1] or name.split(" ")[0] == pair[0]]
    words = dict.fromkeys(word for pair in pairs for word in (pair[0], pair[1].split(" ")[0]))
    single = [word for word in words if any(len(matches) == 1 for matches in _candidates(word, pairs))]
    raise ValueError(f"{place}: {unknown('score', name, similar or single)}")


def _candidates(name: str, pairs: list[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Return the scores whose full name, entry or score name is ``name``, in this order."""
    return (
        [pair for pair in pairs if " ".join(pair) == name],
        [pair for pair in pairs if pair[1].split(" ")[0] == name],
        [pair for pair in pairs if pair[0] == name],
    )


def side_by_side(table: pd.DataFrame, labels: Labels = UNLABELED) -> pd.DataFrame:
    """Return a table of methods × scores of a ``summary`` with means over seeds as "this study / published".

    It contains only metrics, variants and methods with printed values. Each column is followed by the same values
    relative to the first method that has both numbers, neither of them zero, because scores that scale with a model's
    outputs can only be compared as ratios; this second column is left out if there is no such method. Three significant
    digits, a dash for missing values.
    """
    with_printed = table[table["printed"].notna()]
    methods = list(with_printed["method"].unique())
    columns: dict[str, list[str]] = {"method": [labels.method(method) for method in methods]}
    for metric, variant in (
        with_printed[["metric", "variant"]].drop_duplicates().itertuples(index=False, name=None)
    ):
        rows = table[(table["metric"] == metric) & (table["variant"] == variant)]
        means = rows.groupby("method")[["mean", "printed"]].mean().reindex(methods)
        name = labels.score(metric, variant)
        columns[f"{name}: this study / published"] = _pair_texts(means)
        complete = means.replace(0, np.nan).dropna()
        if len(complete):
            columns[f"{name}: relative to {labels.method(complete.index[0])}"] = _pair_texts(
                means / complete.iloc[0]
            )
    return pd.DataFrame(columns)


def _pair_texts(means: pd.DataFrame) -> list[str]:
    texts = means.map(lambda value: f"{value:.3g}" if np.isfinite(value) else "–")
    return [f"{ours} / {printed}" for ours, printed in texts.itertuples(index=False)]


def score_tables(table: pd.DataFrame, study: str, labels: Labels = UNLABELED) -> dict[str, pd.DataFrame]:
    """Return a ``summary`` by its title, after the table ``side_by_side`` if there are printed values."""
    title = labels.study(study)
    tables = {f"{title}: all scores": displayed(table, labels)}
    if table["printed"].isna().all():
        return tables
    title = f"{title}: this study / published values (means over images and seeds)"
    return {title: side_by_side(table, labels), **tables}
