"""Sentences about one metric of a study, each with the condition under which it is written.

``rows`` are the rows of one metric and variant of ``order.csv``; see ``report.reliability.order_table``. The sentences
on several metrics of a study are in ``report.summary``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from saliency_assay.report.material import span_text
from saliency_assay.report.reliability import PAIR

Array = npt.NDArray[Any]

CONFIDENCE = 0.95
"""Simultaneous coverage of the rank sets of one metric."""
RELIABLE = 0.65
"""Lower end of α's interval from which on images rank methods alike; the usual demand (Tomsett et al., 2020)."""
LITTLE = 0.1
"""Upper end of α's interval up to which images rank methods hardly more alike than by chance."""
AGREE = 0.5
"""Least mean correlation within images of metrics that rank methods alike."""
LEAST_METHODS = 3
"""Methods below which metrics are not compared: of two methods ρ is 1 or −1."""
FEW = 30
"""Images below which the number of images is called few."""
UNDEFINED = 0.05
"""Share of a method's scores above which missing ones are a finding."""
MOST = 0.5
"""Share of the images that is most of them when exceeded."""
ONE_SEED = "one training seed or weights file: other trainings may order the methods differently"


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the methods that have a rank set."""
    return rows[rows["rank_low"].notna()]


def top(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the methods that may be first, those with ``rank_low`` 1; the smallest rank sets come first."""
    return rows[rows["rank_low"] == 1].sort_values("rank_high", kind="stable")


def first(rows: pd.DataFrame) -> "pd.Series[Any] | None":
    """Return the method that is ranked first, whose rank set is 1 alone; None where there is none."""
    alone = rows[(rows["rank_low"] == 1) & (rows["rank_high"] == 1)]
    return alone.iloc[0] if len(alone) == 1 else None


def order_words(rows: pd.DataFrame) -> str:
    """Return the sentences on the order of the methods under one metric."""
    return " ".join(filter(None, [top_words(rows), few_words(rows), baseline_words(rows)]))


def top_words(rows: pd.DataFrame) -> str:
    """Return which method is ranked first, or which ones are not distinguishable at the top.

    - One method has the rank set 1: it is ranked first.
    - Several have ``rank_low`` 1: they are not distinguishable at the top.
    - One has ``rank_low`` 1 and ``rank_high`` above 1: it is not distinguishable from some method below the top.
    - None has ``rank_low`` 1, which missing scores can cause: no method is ranked first.
    - Fewer than two methods have a rank set: there is no order.

    Except in the last case the sentence ends with ``basis_words``.
    """
    scored = ranked(rows)
    if len(scored) < 2:
        return "Fewer than two methods have a score, so there are no ranks."
    leading, basis = top(scored), basis_words(scored)
    if (row := first(scored)) is not None:
        mean, low, high = row["mean"], row["low"], row["high"]
        interval = "" if np.isnan(low) else f", 95 % confidence interval {number(low)} to {number(high)}"
        return f"{row['method']} is ranked first (mean {number(mean)}{interval}); {basis}."
    if len(leading) > 1:
        return f"{leading_words(leading)} are not distinguishable at the top {sets_words(leading)}; {basis}."
    if len(leading):
        return (
            f"{leading_words(leading)} may be ranked first {sets_words(leading)} but is not distinguishable from every"
            f" other method; {basis}."
        )
    return (
        "No method is ranked first: each is worse than another one on the images on which both have a score;"
        f" {basis}."
    )


def leading_words(leading: pd.DataFrame) -> str:
    """Return the names of methods, a baseline called so."""
    return joined(
        f"{row['method']} (a baseline)" if row["control"] else row["method"]
        for row in leading.to_dict("records")
    )


def sets_words(leading: pd.DataFrame) -> str:
    """Return the rank sets of methods in brackets, a common one once."""
    sets = [rank_set(*ends) for ends in leading[["rank_low", "rank_high"]].itertuples(index=False, name=None)]
    if len(set(sets)) == 1:
        return f"(rank set {sets[0]}{' each' if len(sets) > 1 else ''})"
    return f"(rank sets {joined(sets)})"


def basis_words(rows: pd.DataFrame) -> str:
    """Return the number of images, the variation that rank sets account for, and the number of training seeds.

    With one seed it says that other trainings may order the methods differently. The model may also come from a weights
    file, which is one training as well.
    """
    seeds = int(rows["seeds"].min())
    training = ONE_SEED if seeds == 1 else f"{seeds} training seeds"
    over = joined(dict.fromkeys(rows["over"]))
    return f"{images_text(rows['images'])}; rank sets account for variation over {over}; {training}"


def few_words(rows: pd.DataFrame) -> str:
    """Return that only large differences can be detected, where a ranked method has fewer than ``FEW`` images."""
    scored = ranked(rows)
    if len(scored) < 2 or scored["images"].min() >= FEW:
        return ""
    return f"With so few images ({span_text(scored['images'])}) only large differences can be detected."


def baseline_words(rows: pd.DataFrame) -> str:
    """Return how the methods compare with the baselines, which do not use the model.

    - A baseline has ``rank_low`` 1, so no method is better than it: a good score is no evidence.
    - ``above_controls`` is 0: the method is not significantly better than every baseline.
    - ``above_controls`` is 1 of every other method that is ranked: all are better.

    Empty where no baseline or no other method is ranked.
    """
    scored = ranked(rows)
    baselines, others = scored[scored["control"]], scored[~scored["control"]]
    if baselines.empty:
        return ""
    texts = []
    if leading := list(baselines.loc[baselines["rank_low"] == 1, "method"]):
        are, do = (
            ("is a baseline that does", "it") if len(leading) == 1 else ("are baselines that do", "them")
        )
        texts.append(
            f"{joined(leading)} {are} not use the model, and no method is significantly better than {do}: under this"
            " metric a good score is no evidence that a map explains the model."
        )
    of = f"the baseline ({joined(baselines['method'])})"
    if len(baselines) > 1:
        of = f"every baseline ({joined(baselines['method'])})"
    if weak := weak_methods(rows):
        texts.append(f"Not significantly better than {of}: {joined(weak)}.")
    elif len(others) and (others["above_controls"] == 1).all():
        texts.append(f"Every other method is significantly better than {of}.")
    return " ".join(texts)


def weak_methods(rows: pd.DataFrame) -> list[str]:
    """Return the methods with ``above_controls`` 0, those that are not significantly better than every baseline."""
    return list(rows.loc[rows["above_controls"] == 0, "method"])


def undefined_words(rows: pd.DataFrame, name: str) -> list[str]:
    """Return which methods lack scores under the metric called ``name``.

    Methods without any score (``undefined`` 1) are not ranked. Those with ``undefined`` above ``UNDEFINED`` are ranked
    by comparisons on fewer images. Up to ``UNDEFINED`` there is no sentence.
    """
    none = list(rows.loc[rows["undefined"] == 1, "method"])
    some = rows[(rows["undefined"] > UNDEFINED) & (rows["undefined"] < 1)]
    texts = []
    if none:
        are = "has no score on any image" if len(none) == 1 else "have no score on any image"
        texts.append(f"{joined(none)} {are} under {name} and {'is' if len(none) == 1 else 'are'} not ranked.")
    if len(some) == 1:
        row = some.iloc[0]
        texts.append(
            f"{row['method']} has no score on {percent(row['undefined'])} of the images under {name}; it is compared"
            " with each other method only on images on which both have a score."
        )
    elif len(some):
        shares = [f"{row['method']} ({percent(row['undefined'])})" for row in some.to_dict("records")]
        texts.append(
            f"{joined(shares)} have no score on a part of the images under {name}; two methods are compared only on"
            " images on which both have a score."
        )
    return texts


def reliability_words(row: Mapping[str, Any], level: float) -> str:
    """Return α with its interval and its meaning, of a row as ``alpha_row`` gives it.

    Args:
        row: as ``alpha_row`` gives it.
        level: of the interval.
    """
    if np.isnan(row["alpha"]):
        return f"α is undefined: {alpha_words(row)}."
    given = [images_text(row["images"])]
    if not np.isnan(row["alpha_low"]):
        given.insert(
            0, f"{100 * level:.4g} % confidence interval {two(row['alpha_low'])} to {two(row['alpha_high'])}"
        )
    if row["seeds"] > 1:
        given.append(f"mean of {row['seeds']} seeds with the outermost ends of their intervals")
    of = " without baselines" if row["controls"] == "without" else ""
    return f"α{of} = {two(row['alpha'])} ({', '.join(given)}): {alpha_words(row)}."


def alpha_words(row: Mapping[str, Any]) -> str:
    """Return the meaning of an α (``alpha, alpha_low, alpha_high``) for the order of methods within images.

    - α is NaN: undefined.
    - The interval is NaN: too few images for one, and nothing follows from the value alone.
    - ``alpha_low`` ≥ ``RELIABLE``: images rank the methods alike.
    - ``alpha_low`` > 0, ``alpha_high`` ≥ ``RELIABLE``: more than by chance; how far is open.
    - ``alpha_low`` > 0 otherwise: the order differs from image to image.
    - ``alpha_high`` ≤ ``LITTLE``: hardly more than by chance. This includes intervals below 0. They have no sentence of
      their own: of a random sample of images α is not negative in the population.
    - Otherwise the interval is too wide.
    """
    value, low, high = (row[name] for name in ("alpha", "alpha_low", "alpha_high"))
    if np.isnan(value):
        return "no two images have scores of the same two methods, or all methods tie"
    if np.isnan(low) or np.isnan(high):
        return "too few images for a confidence interval"
    if low >= RELIABLE:
        return "images rank the methods alike"
    if low > 0 and high >= RELIABLE:
        return f"images rank the methods more alike than by chance, but α may be below {RELIABLE}"
    if low > 0:
        return "the order of the methods differs from image to image, and images agree on it only in part"
    if high <= LITTLE:
        return "images rank the methods hardly more alike than by chance, so the means say little about one image"
    return "the interval is too wide to say whether images rank the methods more alike than by chance"


def single_image_words(rows: pd.DataFrame, alpha: Mapping[str, Any] | None) -> str:
    """Return how far the order of the means holds for single images.

    Written only where ``alpha_low`` ≥ ``RELIABLE`` and one method is ranked first (its rank set is 1):

    - It wins on more than ``MOST`` of the images: the means and most images name the same method.
    - Else it has the best score on only so many of the images; where another method wins on more than ``MOST`` of them,
      the means are decided by few images.
    """
    row = first(rows)
    if row is None or alpha is None or not alpha["alpha_low"] >= RELIABLE or np.isnan(row["wins"]):
        return ""
    if row["wins"] > MOST:
        return (
            f"{row['method']}, which is ranked first by its mean, also has the best score on most single images"
            f" ({percent(row['wins'])})."
        )
    text = f"{row['method']}, which is ranked first by its mean, has the best score on only"
    text += f" {percent(row['wins'])} of the images"
    others = rows[rows["method"] != row["method"]].sort_values("wins", ascending=False, kind="stable")
    if len(others) and others["wins"].iloc[0] > MOST:
        other = others.iloc[0]
        text += f", {other['method']} on {percent(other['wins'])}: the means are decided by few images"
    return f"{text}."


def alpha_row(table: pd.DataFrame, metric: str, variant: str) -> dict[str, Any] | None:
    """Return α of a metric and variant in ``reliability.csv``, without baselines where there are some.

    Of several seeds the mean, with the outermost ends of their intervals, NaN where one of them has none; ``seeds`` is
    their number, ``images`` the images of each.
    """
    rows = table[(table["metric"] == metric) & (table["variant"] == variant) & (table["controls"] != "with")]
    if rows.empty:
        return None
    return {
        "controls": rows["controls"].iloc[0],
        "seeds": len(rows),
        "images": list(rows["images"]),
        "alpha": rows["alpha"].mean(),
        "alpha_low": rows["alpha_low"].min(skipna=False),
        "alpha_high": rows["alpha_high"].max(skipna=False),
    }


def halves_words(agreement: pd.DataFrame) -> str:
    """Return how alike raters other than images order the methods: rows of one metric and variant of ``agreement.csv``.

    One sentence for each kind of rater whose correlation is defined.
    """
    texts = []
    for row in agreement[agreement["correlation"].notna()].to_dict("records"):
        raters = {
            "halves": "two random halves of the images",
            "seeds": f"{row['raters']} training seeds",
            "classes": f"the images of {row['raters']} classes",
            "models": f"{row['raters']} models",
            "variants": f"{row['raters']} variants",
        }[row["between"]]
        texts.append(
            f"Mean Spearman's ρ between the orders of the methods' means over {raters}: {two(row['correlation'])}."
        )
    return " ".join(texts)


def ranking_words(rankings: pd.DataFrame, names: Mapping[tuple[str, str], str]) -> str:
    """Return which metrics rank the methods of single images alike.

    Every two metrics of a group have a correlation of at least ``AGREE`` (complete linkage), over at least
    ``LEAST_METHODS`` methods. It is a likeness of orders, no statement about independent evidence, so metrics outside
    all groups are not named. Empty where no two metrics can be compared.

    Args:
        rankings: as ``rankings.csv`` has it, of one set and model.
        names: metrics and variants to compare, and their labels.
    """
    compared = rankings[(rankings["methods"] >= LEAST_METHODS) & rankings["correlation"].notna()]
    places = {pair: place for place, pair in enumerate(names)}
    correlations = np.eye(len(names))
    images = []
    for *pair, count, correlation in compared[[*PAIR, "images", "correlation"]].itertuples(
        index=False, name=None
    ):
        a, b = places.get((pair[0], pair[1])), places.get((pair[2], pair[3]))
        if a is not None and b is not None:
            correlations[a, b] = correlations[b, a] = correlation
            images.append(int(count))
    if not images:
        return ""
    condition = f"(mean Spearman's ρ ≥ {AGREE}, {images_text(images)})"
    together = [group for group in groups(correlations, list(names.values())) if len(group) > 1]
    if not together:
        return f"No two metrics rank the methods of single images alike {condition}."
    return f"Metrics that rank the methods of single images alike {condition}: {'; '.join(map(joined, together))}."


def groups(correlations: Array, names: Sequence[str]) -> list[list[str]]:
    """Return groups of metrics of which every two correlate by at least ``AGREE``.

    Complete linkage of 1 − ``correlations`` ``[K, K]``, a pair without a correlation at 0.
    """
    distance = 1 - correlations
    found = fcluster(linkage(squareform(distance, checks=False), "complete"), 1 - AGREE, "distance")
    members: dict[int, list[str]] = {}
    for name, group in zip(names, found, strict=True):
        members.setdefault(int(group), []).append(name)
    return list(members.values())


def images_text(counts: Iterable[int]) -> str:
    """Return the least and the greatest number of images: ``40–60 images``."""
    text = span_text(counts)
    return f"{text} image" if text == "1" else f"{text} images"


def rank_set(low: float, high: float) -> str:
    """Return a rank set as text: ``1``, or ``1–2``; empty for NaN."""
    if np.isnan(low):
        return ""
    return f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"


def number(value: float) -> str:
    """Return a mean with three digits, or as a whole number from a thousand on."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def two(value: float) -> str:
    """Return a number with two decimals and no minus before zero."""
    return f"{value:.2f}".replace("-0.00", "0.00")


def percent(share: float) -> str:
    """Return a share in percent, 0 % and 100 % only where it is exactly that."""
    if 0 < share < 0.005:
        return "< 1\u00a0%"
    return "> 99\u00a0%" if 0.995 <= share < 1 else f"{100 * share:.0f}\u00a0%"


def joined(names: Iterable[object]) -> str:
    """Return names as in a sentence: ``a, b and c``."""
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
