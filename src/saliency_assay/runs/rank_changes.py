"""Changes of the order and the rank sets of methods between two runs."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from saliency_assay.registry.directions import Direction
from saliency_assay.reliability.comparison import WINS
from saliency_assay.reliability.reliability_tables import SCORED
from saliency_assay.runs.results_folder import Results


@dataclass(frozen=True)
class RankChange:
    """Order or rank sets of the methods of both runs under one metric, if they differ."""

    study: str
    metric: str
    variant: str
    data: str
    model: str
    order: tuple[list[str], list[str]]
    """Methods of both runs, best first, in the old and in the new run."""
    sets: dict[str, tuple[str, str]]
    """Methods with another rank set: the old and the new one, such as ``1–2``."""


def rank_changes(old: Results, new: Results) -> tuple[int, list[RankChange]]:
    """Return the number of metrics with ranks of two common methods in both runs, and the changes of their ranks."""
    compared, changes = 0, list[RankChange]()
    for study in old.orders.keys() & new.orders.keys():
        now = dict(_metrics(new.orders[study]))
        for key, before in _metrics(old.orders[study]):
            methods = [name for name in before.index if key in now and name in now[key].index]
            if len(methods) < 2:
                continue
            compared += 1
            tables = before.loc[methods], now[key].loc[methods]
            first, second = map(_order, tables)
            texts = [{name: _set(row) for name, row in table.iterrows()} for table in tables]
            sets = {
                str(name): (text, texts[1][name]) for name, text in texts[0].items() if text != texts[1][name]
            }
            if sets or first != second:
                changes.append(
                    RankChange(study, **dict(zip(SCORED, key, strict=True)), order=(first, second), sets=sets)
                )
    return compared, changes


def _metrics(order: pd.DataFrame) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    for key, table in order.groupby(SCORED, sort=False):
        yield tuple(map(str, key)), table.set_index("method")


def _order(table: pd.DataFrame) -> list[str]:
    """Return the methods with a score, best first, by what decides their ranks."""
    by_wins = (table["ranked_by"] == WINS).all()
    direction = Direction(str(table["direction"].iloc[0]))
    values = table["win_rate"] if by_wins else direction.oriented(table["mean"].to_numpy())
    values = pd.Series(np.asarray(values, dtype=np.float64), index=table.index).dropna()
    return [str(name) for name in values.sort_values(ascending=False, kind="stable").index]


def _set(row: "pd.Series[float]") -> str:
    low, high = row["rank_low"], row["rank_high"]
    if pd.isna(low):
        return "none"
    return f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"
