"""What the tables of reliability say, in plain words: which method is first, how surely, and for single maps too?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from saliency_assay.report.material import span_text

SURE = 0.95
"""Share of resamples from which on a method is said to be first without a doubt."""
RELIABLE = 0.65
"""α from which on single images are said to rank methods alike; Tomsett et al. (2020) name it as a usual demand."""
AGREE = 0.5
"""Least mean correlation of the metrics that are said to agree."""
FEW = 30
"""Images below which the words say how few there are."""


def order_words(rows: pd.DataFrame) -> str:
    """Which methods are first under one metric and variant, and which are no better than a control.

    Args:
        rows: of ``report.reliability.order_table``: ``method, control, images, mean, low, high, rank, best``.
    """
    ranked = rows[rows["rank"].notna()]
    if len(ranked) < 2:
        return "Fewer than two methods have a score, so there is nothing to rank."
    first = ranked[ranked["rank"] == ranked["rank"].min()].sort_values("best", ascending=False, kind="stable")
    counted = f"{span_text(ranked['images'])} images"
    if len(first) == 1:
        row = first.iloc[0]
        text = (
            f"{row['method']} is first in {percent(row['best'])} of the resamples of {counted}"
            f" (mean {number(row['mean'])}, 95 % interval {number(row['low'])} to {number(row['high'])})."
        )
    else:
        shares = joined([percent(share) for share in first["best"]])
        text = (
            f"{joined(first['method'])} are not told apart by {counted}: first in {shares} of the resamples."
        )
    if ranked["images"].max() < FEW:
        text += f" So few images ({span_text(ranked['images'])}) say little."
    return text + _control_words(ranked, first)


def _control_words(ranked: pd.DataFrame, first: pd.DataFrame) -> str:
    controls, others = ranked[ranked["control"]], ranked[~ranked["control"]]
    if controls.empty or others.empty:
        return ""
    if first["control"].any():
        named = joined(first.loc[first["control"], "method"])
        return f" {named} knows no model, so a good score here is no sign that a map explains one."
    best = controls.sort_values("rank", kind="stable").iloc[0]
    beaten = others.loc[others["rank"] >= best["rank"], "method"]
    if beaten.empty:
        return f" All methods rank above the controls ({joined(controls['method'])}), which know no model."
    return f" No better than the control {best['method']}: {joined(beaten)}."


def reliability_words(row: Mapping[str, Any]) -> str:
    """Whether single images rank methods alike: a row of ``report.reliability.reliability_table``."""
    value, low, high = row["alpha"], row["alpha_low"], row["alpha_high"]
    if np.isnan(value):
        return "α is undefined: no two images rank the same methods differently."
    found = f"α = {value:.2f}" if np.isnan(low) else f"α = {value:.2f} ({low:.2f} to {high:.2f})"
    where = " without controls" if row["controls"] == "without" else ""
    return f"{found}{where}: {alpha_words(row)}."


def alpha_words(row: Mapping[str, Any]) -> str:
    """What the α of a row of ``reliability_table`` means for single maps."""
    value, low, high = (row[name] for name in ("alpha", "alpha_low", "alpha_high"))
    if np.isnan(value):
        return "undefined"
    if low >= RELIABLE:
        return "images rank the methods alike, so what holds on average holds for most single maps"
    if value >= RELIABLE:
        return f"images seem to rank the methods alike, but α may be below {RELIABLE}"
    if high < 0:
        return "images contradict each other more than chance would"
    if low <= 0:
        return "images rank the methods no more alike than by chance: an order of means says nothing of single maps"
    return "images agree only in part, so single maps are not ranked reliably"


def alpha_row(table: pd.DataFrame, metric: str, variant: str) -> dict[str, Any] | None:
    """The row of a ``reliability_table`` that words are made of: without controls where there are some."""
    rows = table[(table["metric"] == metric) & (table["variant"] == variant) & (table["controls"] != "with")]
    found: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    return found[0] if found else None


def halves_words(agreement: pd.DataFrame) -> str:
    """What other raters than single images say: rows of one metric and variant of ``agreement_table``."""
    texts = []
    for row in agreement.to_dict("records"):
        if np.isnan(row["correlation"]):
            continue
        who = {
            "halves": "Two random halves of the images",
            "seeds": f"{row['raters']} training seeds",
            "classes": f"The images of {row['raters']} classes",
            "models": f"{row['raters']} models",
            "variants": f"{row['raters']} variants",
        }[row["between"]]
        texts.append(f"{who} order the methods with a mean correlation of {row['correlation']:.2f}.")
    return " ".join(texts)


def groups(agreement: pd.DataFrame, names: Sequence[str]) -> list[list[str]]:
    """Metrics that agree, by average linkage of 1 − ``agreement`` ``[K, K]``: groups of a mean of at least ``AGREE``.

    Unknown agreement counts as none.
    """
    if len(names) < 2:
        return [list(names)] if names else []
    distance = 1 - np.nan_to_num(agreement.to_numpy(dtype=float))
    np.fill_diagonal(distance, 0)
    found = fcluster(linkage(squareform(distance, checks=False), "average"), 1 - AGREE, "distance")
    members: dict[int, list[str]] = {}
    for name, group in zip(names, found, strict=True):
        members.setdefault(int(group), []).append(name)
    return list(members.values())


def group_words(found: Sequence[Sequence[str]]) -> str:
    """The groups of ``groups`` as a sentence."""
    together = [list(group) for group in found if len(group) > 1]
    alone = [group[0] for group in found if len(group) == 1]
    if not together:
        return "No two metrics find the maps of the same images good." if len(alone) > 1 else ""
    text = "; ".join(joined(group) for group in together)
    rest = f" {joined(alone)} agree with none of these, nor with each other." if len(alone) > 1 else ""
    rest = f" {alone[0]} agrees with none of these." if len(alone) == 1 else rest
    return f"Metrics that find the maps of the same images good (mean ρ of at least {AGREE}): {text}.{rest}"


def number(value: float) -> str:
    """A mean with three digits, or whole from ten thousand on."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share as percents that never say "all" of what is not all."""
    if 0 < share < 0.005:
        return "< 1\u00a0%"
    return "> 99\u00a0%" if 0.995 <= share < 1 else f"{100 * share:.0f}\u00a0%"


def joined(names: Iterable[object]) -> str:
    """Names as in a sentence."""
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
