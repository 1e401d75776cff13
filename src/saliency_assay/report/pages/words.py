"""Sentences about one metric of a study, with the conditions under which they are written.

``rows`` are the rows of one metric and variant in ``order.csv``, ``pairs`` those in ``pairs.csv``; see
``reliability.order_tables.order_tables``. Sentences about several metrics of a study are in ``report.pages.summary``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import groups_text, joined, significant, span_text, with_minus
from saliency_assay.reliability import verdicts
from saliency_assay.reliability.comparison import MEANS, WINS
from saliency_assay.reliability.order_tables import BETTER
from saliency_assay.reliability.reliability_tables import PAIR, rank_text
from saliency_assay.reliability.sweeps import SELECTED, SELECTION_IMAGES

CONFIDENCE = 0.95  # simultaneous coverage of the rank sets of one metric
POWER = 0.8  # power of the smallest detectable differences and of the required numbers of images in pairs.csv
RELIABLE = verdicts.ALPHA
LITTLE = 0.1  # largest upper end of α's interval for "at most slightly more than by chance"
AGREE = 0.5  # smallest mean correlation within images of two metrics that agree on the ranking
LEAST_METHODS = 3  # fewest methods to compare metrics: with two, ρ can only be 1 or −1
MOST_PAIRS = 6  # most pairs of metrics that a sentence lists
FEW = 30  # images ranked by two metrics below which these are not compared
UNDEFINED = verdicts.MISSING
MOST = 0.5  # a larger share of the images counts as "most images"
CIRCLE = "every method is significantly worse than another one on the images for which both have a score"
NOISE = "There is one training seed: differences between methods cannot be distinguished from training noise."
RANKED_BY = {
    WINS: "compare win rates (the probability of a better score than another method on an image)",
    MEANS: "compare means",
}
ONE_SEED = "The results are for one training seed or weights file, so retraining may change the order of the methods."


def rows_of(table: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    """Return the rows of a metric and variant."""
    return table[(table["metric"] == metric) & (table["variant"] == variant)]


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the methods that have a rank set."""
    return rows[rows["rank_low"].notna()]


def top(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the methods with ``rank_low`` 1, which may be ranked first, in the order of ``rank_high``."""
    return rows[rows["rank_low"] == 1].sort_values("rank_high", kind="stable")


def first(rows: pd.DataFrame) -> "pd.Series[Any] | None":
    """Return the method that ranks first, with the rank set 1; None if no single method does."""
    ranked_first = rows[(rows["rank_low"] == 1) & (rows["rank_high"] == 1)]
    return ranked_first.iloc[0] if len(ranked_first) == 1 else None


def order_words(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Return the sentences on the order of the methods under one metric; ``pairs`` are its rows in ``pairs.csv``."""
    return " ".join(filter(None, [top_words(rows), power_words(rows, pairs), baseline_words(rows, pairs)]))


def no_order_words(rows: pd.DataFrame) -> str:
    """Return the sentence on why there are no ranks; empty if there are some.

    - Fewer than two methods have a rank set.
    - Nothing is tested, because there is a single training seed.
    """
    scored = ranked(rows)
    if len(scored) < 2:
        return "Fewer than two methods have a score, so there are no ranks."
    return f"{NOISE} No method is ranked." if verdicts.is_untested(scored) else ""


def top_words(rows: pd.DataFrame) -> str:
    """Return the sentences on the method that ranks first, or on the best methods if they are not distinguishable.

    - There are no ranks: the sentence of ``no_order_words``.
    - One method has the rank set 1: it ranks first.
    - Several have ``rank_low`` 1: they are not distinguishable.
    - One has ``rank_low`` 1 and ``rank_high`` above 1: it is not distinguishable from at least one other method.
    - None has ``rank_low`` 1, which is possible if scores are missing: no method ranks first.
    """
    if text := no_order_words(rows):
        return text
    scored = ranked(rows)
    leading = top(scored)
    if (row := first(scored)) is not None:
        mean, low, high = row["mean"], row["low"], row["high"]
        interval = "" if np.isnan(low) else f", 95 % CI {number(low)} to {number(high)}"
        return f"{row['method']} ranks first (mean {number(mean)}{interval})."
    if len(leading) > 1:
        return (
            f"No method ranks first: {leading_words(leading)} are not distinguishable {sets_words(leading)}."
        )
    if len(leading):
        return f"{open_words(leading)}."
    return f"No method ranks first: {CIRCLE}."


def open_words(leading: pd.DataFrame, on: str = "") -> str:
    """Return the sentence on a single method with ``rank_low`` 1 and ``rank_high`` above 1; ``on`` names the metric."""
    return (
        f"{leading_words(leading)} may rank first{on} {sets_words(leading)} but is not distinguishable from at least"
        " one other method"
    )


def leading_words(leading: pd.DataFrame) -> str:
    """Return the names of methods as text, baselines marked as such."""
    return joined(
        f"{row['method']} (baseline)" if row["baseline"] else row["method"]
        for row in leading.to_dict("records")
    )


def sets_words(leading: pd.DataFrame) -> str:
    """Return the rank sets of methods in parentheses; a common one is named once."""
    sets = [
        rank_text(*ends) for ends in leading[["rank_low", "rank_high"]].itertuples(index=False, name=None)
    ]
    if len(set(sets)) == 1:
        return f"(rank set {sets[0]}{' each' if len(sets) > 1 else ''})"
    return f"(rank sets {joined(sets)})"


def basis_words(rows: pd.DataFrame) -> str:
    """Return the sentences on what rank sets compare, the number of images and seeds, and the sources of variation.

    For one training seed, or a model from a weights file, they add that retraining may change the order of the methods.
    """
    seeds = int(rows["seeds"].min())
    images, over = scored_text(rows), joined(dict.fromkeys(rows["over"]))
    images += f" image{'' if images == '1' else 's'}{groups_text(rows.get('groups', ()))}"
    sampled = images if seeds == 1 else f"{images} and {seeds} training seeds"
    compared = joined(RANKED_BY[name] for name in dict.fromkeys(rows["ranked_by"]))
    text = f"Rank sets {compared} on {sampled} and account for variation over {over}."
    return f"{text} {ONE_SEED}" if seeds == 1 else text


def power_words(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Return the sentence on the differences that can be detected, and on the images that would distinguish the best.

    It is about the best method and the next one that is neither worse nor equivalent (see ``best_first``); empty if
    there is none, or if there are no ranks.

    - ``skew_images`` is a number: the scores are too skewed for a comparison of means.
    - ``detectable`` or ``images_needed`` is NaN: there is no clause on it.
    - ``images_needed`` is above ``verdicts.MOST_TIMES`` × the number of images: it is not stated.
    """
    if no_order_words(rows):
        return ""
    by_means = verdicts.is_by_means(rows)
    compared, (best, *others) = verdicts.both_ways(pairs, by_means=by_means), best_first(rows)
    open_pairs = (compared.get((best, other), {"finding": BETTER}) for other in others)
    pair = next((pair for pair in open_pairs if pair["finding"] not in verdicts.DECIDED), None)
    if pair is None:
        return ""
    sampled = images_text([pair["images"]], [pair["groups"]] if "groups" in pair else None)
    other, counts = pair["other"], (pair["images"], pair.get("groups", np.nan))
    if not np.isnan(pair["skew_images"]):
        required = verdicts.images_text(pair["images_needed"], counts[0], groups=counts[1])
        return f"The scores of {best} and {other} are too skewed to compare their means on {sampled}; {required}."
    texts = []
    if not np.isnan(pair["detectable"]):
        quantity = "mean" if by_means else "win rate"
        texts.append(
            f"with {sampled}, differences in {quantity} below {number(pair['detectable'])} cannot be detected reliably"
            f" (power {POWER})"
        )
    effect = f"distinguish {best} from {other} if they differ as much as observed"
    texts.append(verdicts.images_text(pair["images_needed"], counts[0], effect, counts[1]))
    text = "; ".join(filter(None, texts))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def best_first(rows: pd.DataFrame) -> list[str]:
    """Return the ranked methods by win rate, or by mean if rank sets compare means; first those with ``rank_low`` 1."""
    # The method with the best mean has the only positive lead; the lead of each other one is over this method.
    value = "lead" if verdicts.is_by_means(rows) else "win_rate"
    scored = ranked(rows)
    scored = scored.assign(first=scored["rank_low"] == 1)
    return list(scored.sort_values(["first", value], ascending=False, kind="stable")["method"])


def baseline_words(rows: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Return the sentence that compares the methods with the baselines, which do not use the model.

    - A baseline method is better than every other method that uses the model: a good score is not evidence.
    - Else a baseline has ``rank_low`` 1, so no method is shown to be better: a good score is not evidence so far.
    - Else ``above_baselines`` is 0: the method is not significantly better than at least one baseline.
    - Else ``above_baselines`` is 1 for every other ranked method: all are better.

    Empty if no baseline or no other method is ranked, or if nothing is tested.
    """
    scored = ranked(rows)
    baselines, others = scored[scored["baseline"]], scored[~scored["baseline"]]
    if baselines.empty or verdicts.is_untested(scored):
        return ""
    names, compared = (
        joined(baselines["method"]),
        verdicts.both_ways(pairs, by_means=verdicts.is_by_means(rows)),
    )
    if better := verdicts.better_baselines(compared, list(others["method"]), list(baselines["method"])):
        are = "is a baseline method, which does" if len(better) == 1 else "are baseline methods, which do"
        return (
            f"{joined(better)} {are} not use the model, and significantly better than every method that does: a good"
            " score under this metric is not evidence that a map explains the model."
        )
    if leading := list(baselines.loc[baselines["rank_low"] == 1, "method"]):
        are = "is a baseline method, which does" if len(leading) == 1 else "are baseline methods, which do"
        return (
            f"{joined(leading)} {are} not use the model, and no method is shown to be better: so far, a good score"
            " under this metric is not evidence that a map explains the model."
        )
    if not_better := weak_methods(rows):
        if len(baselines) > 1:
            return f"Not significantly better than every baseline method ({names}): {joined(not_better)}."
        return f"Not significantly better than the baseline method ({names}): {joined(not_better)}."
    if len(others) and (others["above_baselines"] == 1).all():
        every = "every" if len(baselines) > 1 else "the"
        return f"Every other method is significantly better than {every} baseline method ({names})."
    return ""


def weak_methods(rows: pd.DataFrame) -> list[str]:
    """Return the methods that are not significantly better than all baselines: ``above_baselines`` is 0."""
    return list(rows.loc[rows["above_baselines"] == 0, "method"])


def undefined_words(rows: pd.DataFrame, name: str) -> list[str]:
    """Return the sentences on methods that lack scores under the metric ``name``.

    Methods without any score (``undefined`` 1) are not ranked. Methods with ``undefined`` above ``UNDEFINED`` are
    ranked by comparisons on fewer images. There is no sentence for smaller shares. With several seeds, ``undefined`` is
    a share of images × seeds.
    """
    unscored = list(rows.loc[rows["undefined"] == 1, "method"])
    incomplete = rows[(rows["undefined"] > UNDEFINED) & (rows["undefined"] < 1)]
    share_text, where = "for {} of the images", "on images for which"
    if (rows["seeds"] > 1).any():
        share_text, where = "for {} of the cases (images × seeds)", "in cases for which"
    texts = []
    if unscored:
        have, are = ("has", "is") if len(unscored) == 1 else ("have", "are")
        texts.append(f"{joined(unscored)} {have} no score for any image under {name} and {are} not ranked.")
    if len(incomplete) == 1:
        row = incomplete.iloc[0]
        texts.append(
            f"{row['method']} has no score {share_text.format(percent(row['undefined']))} under {name}; it is compared"
            f" with each other method only {where} both have a score."
        )
    elif len(incomplete):
        shares = [f"{row['method']} ({percent(row['undefined'])})" for row in incomplete.to_dict("records")]
        texts.append(
            f"{joined(shares)} have no score {share_text.format('some')} under {name}; two methods are compared only"
            f" {where} both have a score."
        )
    return texts


def reliability_words(row: Mapping[str, Any], level: float) -> str:
    """Return the sentence on α with its interval and meaning, or that of concordance for scores with two values.

    Args:
        row: result of ``verdicts.alpha_row``.
        level: confidence level of the intervals.
    """
    without = " without baselines" if row["baselines"] == "without" else ""
    if np.isnan(row["alpha"]):
        return f"Inter-rater reliability of the ranking: Krippendorff's α{without} is {alpha_words(row)}."
    details = [images_text(row["images"], row.get("groups"))]
    if row["seeds"] > 1:
        details.append(f"mean of {row['seeds']} seeds")
    if not np.isnan(row["alpha_low"]):
        ends = f"{two(row['alpha_low'])} to {two(row['alpha_high'])}"
        details.insert(0, f"{100 * level:.4g} % CI {ends}")
        if row["seeds"] > 1:
            details[-1] += " with the outermost limits of their CIs"
    value = f"{two(row['alpha'])}{without} ({', '.join(details)})"
    meaning = concordance_words(row, level) or alpha_words(row)
    return f"Inter-rater reliability of the ranking: Krippendorff's α = {value}; {meaning}."


def alpha_words(row: Mapping[str, Any]) -> str:
    """Return the interpretation of an α (``alpha, alpha_low, alpha_high``) of the ranking of methods within images.

    - α is NaN: undefined for some of several seeds (``undefined_seeds`` of ``seeds``, if the row has them), for fewer
      than two ``methods``, or because of the scores.
    - The interval is NaN: too few images, or groups of them; the value alone allows no conclusion.
    - ``alpha_low`` ≥ ``RELIABLE``: images agree on the ranking.
    - ``alpha_low`` > 0, ``alpha_high`` ≥ ``RELIABLE``: more than by chance, to an unknown extent.
    - ``alpha_low`` > 0 otherwise: images agree only partly.
    - ``alpha_high`` ≤ ``LITTLE``: at most slightly more than by chance. This includes intervals below 0, which have no
      separate sentence: if images are a random sample, α of the population is not negative.
    - ``alpha_high`` < ``RELIABLE``: below the threshold, and not shown to be above chance.
    - Otherwise the interval is too wide.

    An interval that contains 0, the value of chance, shows neither agreement nor disagreement.
    """
    value, low, high = (row[name] for name in ("alpha", "alpha_low", "alpha_high"))
    if np.isnan(value):
        missing, seeds = row.get("undefined_seeds", 1), row.get("seeds", 1)
        if missing < seeds:
            return f"undefined for {missing} of {seeds} seeds"
        if row["methods"] < 2:
            return "undefined: fewer than two methods"
        return "undefined: no two images have scores of the same two methods, or all methods tie"
    if np.isnan(low) or np.isnan(high):
        return f"too few {verdicts.units_text(row)} for a confidence interval"
    if low >= RELIABLE:
        return f"images agree on the ranking (CI ≥ {RELIABLE})"
    if low > 0 and high >= RELIABLE:
        return f"images agree on the ranking more than by chance, but α may be below {RELIABLE}"
    if low > 0:
        return f"images agree only partly on the ranking (CI above 0 and below {RELIABLE})"
    if high <= LITTLE:
        return (
            f"images agree on the ranking at most slightly more than by chance (CI ≤ {LITTLE}), so mean scores hardly"
            " predict the order on a single image"
        )
    if high < RELIABLE:
        return (
            f"images are not shown to agree on the ranking more than by chance (whole CI of α < {RELIABLE})"
        )
    return "the CI is too wide to show whether images agree on the ranking more than by chance"


def concordance_words(alpha: Mapping[str, Any], level: float) -> str:
    """Return the clause on the concordance of single images with the order of the methods.

    Empty unless scores have two values, for which α is low even if images agree, or if concordance is undefined.
    """
    if np.isnan(alpha["concordance"]) or not alpha["two_valued"]:
        return ""
    low, high = alpha["concordance_low"], alpha["concordance_high"]
    interval = "" if np.isnan(low) else f" ({100 * level:.4g} % CI {two(low)} to {two(high)})"
    return (
        "scores have two values, so that ties lower α; without ties, a share of"
        f" {two(alpha['concordance'])}{interval} of the comparisons on single images agrees with the order of the win"
        " rates on the other images"
    )


def concordance_text(alpha: Mapping[str, Any]) -> str:
    """Return concordance with its interval if it decides whether images agree, in place of α; else empty."""
    name, value, low, high = verdicts.deciding_statistic(alpha)
    if name == "α" or np.isnan(value):
        return ""
    return f"{name}\u00a0{two(value)}" + ("" if np.isnan(low) else f" [{two(low)}, {two(high)}]")


def single_image_words(rows: pd.DataFrame, alpha: Mapping[str, Any] | None) -> str:
    """Return the sentence on how often the method that ranks first has the best score on a single image.

    Empty unless images agree on the ranking (``verdicts.images_agree``) and one method ranks first (rank set 1).
    ``best_share`` is a share of the images on which a method has a score, so methods without a score on more than
    ``UNDEFINED`` of them are left out. Methods that tie for the best score share the image.

    - The share is more than ``MOST``: the method is best on average and on most images.
    - Else the share of images is stated; another method with a share of more than ``MOST`` is named.
    """
    row = first(rows)
    if row is None or not verdicts.images_agree(alpha) or np.isnan(row["best_share"]):
        return ""
    if row["undefined"] > UNDEFINED:
        return ""
    name, share = row["method"], percent(row["best_share"])
    if row["best_share"] > MOST:
        return f"{name}, which ranks first, also has the best score on most single images ({share}, ties shared)."
    text = f"{name}, which ranks first, has the best score on only {share} of the images (ties shared)"
    others = rows[(rows["method"] != name) & (rows["undefined"] <= UNDEFINED) & (rows["best_share"] > MOST)]
    if len(others):
        other = others.loc[others["best_share"].idxmax()]
        share = percent(other["best_share"])
        text += f", {other['method']} on {share}: {name} is best on average, but not on most images"
    return f"{text}."


def halves_words(agreement: pd.DataFrame) -> str:
    """Return sentences on the agreement of raters other than single images, one for each kind of rater.

    ``agreement`` has the rows of one metric and variant in ``agreement.csv``; undefined correlations are left out.
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
            f"Mean Spearman's ρ between the rankings of the methods by {raters}: {two(row['correlation'])}."
        )
    return " ".join(texts)


def ranking_words(rankings: pd.DataFrame, names: Mapping[tuple[str, str], str]) -> str:
    """Return the sentence on the pairs of metrics that agree on the ranking of the methods within images.

    Their mean correlation is at least ``AGREE``. Pairs are compared if they have at least ``LEAST_METHODS`` methods on
    at least ``FEW`` images, or groups of images; at most ``MOST_PAIRS``, those with the highest correlations, are
    listed. The correlation measures similarity of orders and does not show that metrics are independent evidence. Empty
    if no pair can be compared.

    Args:
        rankings: content of ``rankings.csv`` for one set and model.
        names: labels of the metrics and variants to compare.
    """
    defined = rankings["correlation"].notna()
    compared = rankings[(rankings["methods"] >= LEAST_METHODS) & enough_images(rankings) & defined]
    pairs = compared[PAIR].itertuples(index=False, name=None)
    compared = compared[[pair[:2] in names and pair[2:] in names for pair in pairs]]
    statistic = "mean Spearman's ρ over methods within images"
    if compared.empty:
        return ""
    agreeing = compared[compared["correlation"] >= AGREE].sort_values(
        "correlation", ascending=False, kind="stable"
    )
    if agreeing.empty:
        if len(compared) == 1:
            return f"The only comparable pair of scores has a {statistic} below {AGREE}."
        return (
            f"None of the {len(compared)} comparable pairs of scores has a {statistic} of at least {AGREE}."
        )
    counts = ["images", *({"groups"} & set(agreeing))]
    rows = agreeing[[*PAIR, *counts]].head(MOST_PAIRS).itertuples(index=False, name=None)
    texts = [
        f"{names[row[:2]]} and {names[row[2:4]]} ({images_text(row[4:5], row[5:] or None)})" for row in rows
    ]
    if others := len(agreeing) - len(texts):
        texts.append(f"and {others} other pair{'s' if others > 1 else ''}")
    return f"{statistic[0].upper()}{statistic[1:]} is at least {AGREE} for: {'; '.join(texts)}."


def enough_images(rankings: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows of ``rankings.csv`` have at least ``FEW`` images or, if images are in groups, groups."""
    return rankings.get("groups", rankings["images"]) >= FEW


def images_text(counts: Iterable[int], groups: Iterable[float] | None = None) -> str:
    """Return the smallest and the largest number of images as text, such as ``40–60 images``, and that of groups."""
    text = span_text(counts)
    return f"{text} image{'' if text == '1' else 's'}{groups_text(() if groups is None else groups)}"


def scored_text(rows: pd.DataFrame) -> str:
    """Return the numbers of images with a score in rows of ``order.csv`` as text, such as ``24–26 of 60``.

    The number of all images is left out if a method has a score for all of them.
    """
    total = int(rows["all_images"].max())
    return f"{span_text(rows['images'])}{f' of {total}' if rows['images'].max() < total else ''}"


def grouped_text(rows: pd.DataFrame) -> str:
    """Return the numbers of groups of these images as text, such as ``12 groups``; empty if they have none."""
    return groups_text(rows.get("groups", ())).removeprefix(" of ")


def number(value: float) -> str:
    """Return a mean with three significant digits, or as an integer from 1,000 on."""
    return with_minus(f"{value:,.0f}" if abs(value) >= 999.5 else significant(value, 3))


def two(value: float) -> str:
    """Return a number with two decimals and no minus sign before zero."""
    return with_minus(f"{value:.2f}")


def p_text(p: float) -> str:
    """Return a p-value as text, such as ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(share: float) -> str:
    """Return a share in percent; 0 % and 100 % only if it is exactly 0 or 1."""
    if 0 < share < 0.005:
        return "< 1\u00a0%"
    return "> 99\u00a0%" if 0.995 <= share < 1 else f"{100 * share:.0f}\u00a0%"


def sweep_words(order: pd.DataFrame | None) -> list[str]:
    """Return a sentence on the images of the ranks if values of sweeps were selected on others; else none."""
    if order is None or SELECTED not in order or order.empty:
        return []
    families = dict.fromkeys(order.loc[order[SELECTED].fillna("") != "", "method"])
    held_out, selecting = span_text(order["all_images"]), span_text(order[SELECTION_IMAGES])
    if not families:
        unused = "were for the selection of values of a sweep, none of which has a score"
        return [f"Ranks refer to {held_out} images; the other {selecting} {unused}."]
    swept = f"the best values of {joined(families)}"
    return [f"Ranks refer to {held_out} images; the other {selecting} selected {swept}, under each metric."]
