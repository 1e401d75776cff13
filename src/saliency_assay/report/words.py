"""What the tables of reliability say, in plain words: which method is first, how surely, and for single maps too?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from saliency_assay.report.material import span_text

Array = npt.NDArray[Any]

SURE = 0.95
"""Share of resamples from which on a method is said to be first without a doubt."""
RELIABLE = 0.65
"""α from which on single images are said to rank methods alike; Tomsett et al. (2020) name it as a usual demand."""
AGREE = 0.5
"""Least mean correlation of the metrics that are said to agree."""
FEW = 30
"""Images below which the words say how few there are."""
LITTLE = 0.1
"""α up to which an interval that holds 0 says that images agree by chance; a wider one says that there are too few."""


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
        mean, low, high = map(number, row[["mean", "low", "high"]])
        text = f"{row['method']} is first in {percent(row['best'])} of the resamples of {counted}"
        text += f" (mean {mean}, 95 % interval {low} to {high})."
    else:
        shares = joined([percent(share) for share in first["best"]])
        text = (
            f"{joined(first['method'])} are not told apart by {counted}: first in {shares} of the resamples."
        )
    if ranked["images"].min() < FEW:
        text += f" So few images ({ranked['images'].min()} for some) say little."
    return text + _control_words(ranked, first)


def _control_words(ranked: pd.DataFrame, first: pd.DataFrame) -> str:
    controls, others = ranked[ranked["control"]], ranked[~ranked["control"]]
    if controls.empty or others.empty:
        return ""
    if first["control"].any():
        led = first.loc[first["control"], "method"]
        knows = "knows" if len(led) == 1 else "know"
        return f" {joined(led)} {knows} no model, so a good score here is no sign that a map explains one."
    unsure = others.loc[others["above_controls"] < SURE, "method"]
    of = f"the control{'' if len(controls) == 1 else 's'} ({joined(controls['method'])})"
    if unsure.empty:
        return f" Every method is better than {of} in at least {percent(SURE)} of the resamples."
    return f" Not surely better than {of}: {joined(unsure)}."


def reliability_words(row: Mapping[str, Any], level: float) -> str:
    """Whether single images rank methods alike: a row as ``alpha_row`` gives it, and the level of its interval."""
    if np.isnan(row["alpha"]):
        return f"α is undefined: {alpha_words(row)}."
    low, high = row["alpha_low"], row["alpha_high"]
    found = f"α{' without controls' if row['controls'] == 'without' else ''} = {row['alpha']:.2f}"
    if not np.isnan(low):
        found += f" ({100 * level:.4g} % interval {low:.2f} to {high:.2f})"
    seeds = f", mean of {row['seeds']} seeds and the outermost ends" if row["seeds"] > 1 else ""
    return f"{found}{seeds}: {alpha_words(row)}."


def alpha_words(row: Mapping[str, Any]) -> str:
    """What the α of a row of ``reliability_table``, or of ``alpha_row``, means for single maps."""
    value, low, high = (row[name] for name in ("alpha", "alpha_low", "alpha_high"))
    if np.isnan(value):
        return "no two images rate the same method, or all methods are ranked alike"
    if low >= RELIABLE:
        return "images rank the methods alike, so what holds on average holds for most single maps"
    if value >= RELIABLE:
        return f"images seem to rank the methods alike, but α may be below {RELIABLE}"
    if high < 0:
        return "images contradict each other more than chance would"
    if low > 0:
        return "the order of the methods differs from image to image, and is the same only in part"
    if high <= LITTLE:
        return "images rank the methods no more alike than by chance: the order of means says nothing of single maps"
    return "these images do not tell whether single maps are ranked more alike than by chance"


def alpha_row(table: pd.DataFrame, metric: str, variant: str) -> dict[str, Any] | None:
    """α of a metric and variant in a ``reliability_table``: without controls where there are some.

    Of several seeds the mean, with the outermost ends of their intervals; ``seeds`` says how many.
    """
    rows = table[(table["metric"] == metric) & (table["variant"] == variant) & (table["controls"] != "with")]
    if rows.empty:
        return None
    ends = {"alpha_low": rows["alpha_low"].min(), "alpha_high": rows["alpha_high"].max()}
    return {"controls": rows["controls"].iloc[0], "seeds": len(rows), "alpha": rows["alpha"].mean(), **ends}


def halves_words(agreement: pd.DataFrame) -> str:
    """What other raters than single images say: rows of one metric and variant of ``agreement_table``."""
    texts = []
    for row in agreement.to_dict("records"):
        if np.isnan(row["correlation"]):
            continue
        raters = {
            "halves": "two random halves of the images",
            "seeds": f"{row['raters']} training seeds",
            "classes": f"the images of {row['raters']} classes",
            "models": f"{row['raters']} models",
            "variants": f"{row['raters']} variants",
        }[row["between"]]
        texts.append(
            f"The orders of all methods by {raters} correlate by {row['correlation']:.2f} on average."
        )
    return " ".join(texts)


def groups(agreement: Array, names: Sequence[str]) -> list[list[str]]:
    """Metrics that agree, by average linkage of 1 − ``agreement`` ``[K, K]``: groups of a mean of at least ``AGREE``.

    Unknown agreement counts as none.
    """
    if len(names) < 2:
        return [list(names)] if names else []
    distance = 1 - np.nan_to_num(agreement)
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
        return (
            f"No metrics form a group that agrees on single maps (mean ρ of at least {AGREE})."
            if alone[1:]
            else ""
        )
    text = "; ".join(joined(group) for group in together)
    rest = f" {joined(alone)} {'belongs' if len(alone) == 1 else 'belong'} to no group." if alone else ""
    return (
        f"Metrics that find the same maps good (rank correlation over images of at least {AGREE} on average) are one"
        f" piece of evidence, not several: {text}.{rest}"
    )


def number(value: float) -> str:
    """A mean with three digits, or whole from a thousand on."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def unsure_words(rows: pd.DataFrame) -> str:
    """The methods of one metric and variant that are not surely better than its controls, a control being no such."""
    return joined(rows.loc[rows["above_controls"] < SURE, "method"])


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
