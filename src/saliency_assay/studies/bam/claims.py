"""Claims of Yang & Kim (2019), checked against the tables of a study.

Scores are means over training seeds. Claims about methods are checked for the methods that both the paper and the study
compare; other methods with higher scores are mentioned, but do not affect the verdict. A method that ties with the best
still leads. Claims about metrics are checked for all methods except baselines, which do not use the model. Each check
returns an ``Outcome``; if its input is missing, it raises ``UntestedError``.

Most checks compare values without a significance test, so no outcome confirms or refutes the paper. Shares of images
that differ by at most one image, or by at most two standard errors where the tables have them, are too close to tell.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.bam_tables import (
    DECIMALS,
    DIRECTIONS,
    LEAST_METHODS,
    SERIES,
    TCAV,
    BamTables,
    Scores,
    UntestedError,
    label,
    value,
)

COLUMNS = ["claim", "source", "measured", "margin", "verdict"]
REPRODUCED, NOT_REPRODUCED, TOO_CLOSE, UNTESTED = VERDICTS = (
    *("reproduced", "not reproduced"),
    *("too close to tell", "not tested"),
)
TWO_ERRORS, ONE_IMAGE, NO_TEST = MARGINS = ("two standard errors", "one image", "none (no test)")
"""Largest distance from a criterion that is too close to tell."""


class Outcome(NamedTuple):
    """Outcome of a check."""

    verdict: str
    """One of ``VERDICTS``."""
    measured: str
    """The measured values as text."""
    margin: str = NO_TEST
    """One of ``MARGINS``."""


Claim = tuple[str, str, Callable[[BamTables], Outcome]]

# Remaining shares of the accuracy above chance: at least KEPT counts as kept, at most LOST as a fall to chance.
KEPT, LOST = 0.9, 0.1
FALLS = -0.5  # largest Spearman's ρ that is considered a decrease
BEST = 5.0  # percentage points; a method at most so far below the best is nearly the best
MUCH = 0.5  # a range is much smaller than another if it is at most this share of it
PASSED = 20.0  # percent of images; the paper: methods fail on more than 80 %
AGREE = 0.8  # smallest Spearman's ρ at which two rankings agree
ERRORS = 2  # standard errors
# Largest distances of a random-pixel baseline from 0 (MCS) and from 50 % (IDR, percentage points).
ZERO, HALF = 0.05, 10.0


# --- the models: f_o needs objects, f_s needs scenes, and f_k depends less on the common object as k increases


def falls_to_chance(tables: BamTables, role: str, member: str) -> Outcome:
    """Check that the accuracy falls to chance on a set.

    At most ``LOST`` of the accuracy above chance on X_os remains, or at most two standard errors of guessing.
    """
    chance, before, after, _, images, text = _accuracies(tables, role, member)
    bar = chance + max(LOST * (before - chance), ERRORS * _standard_error(chance, images))
    margin = bar - after
    text = f"{text}; threshold {bar:.1f} %: {_points(-margin, images)}"
    return _with_margin(margin, 100 / images, text, TWO_ERRORS)


def keeps(tables: BamTables, role: str, member: str) -> Outcome:
    """Check that at least ``KEPT`` of the accuracy above chance on X_os remains."""
    chance, before, after, images_before, images, text = _accuracies(tables, role, member)
    bar = chance + KEPT * (before - chance)
    errors = KEPT * _standard_error(before, images_before), _standard_error(after, images)
    text = f"{text}; threshold {bar:.1f} %: {_points(after - bar, images)}"
    return _with_margin(after - bar, max(ERRORS * float(np.hypot(*errors)), 100 / images), text, TWO_ERRORS)


def more_accurate_without(tables: BamTables) -> Outcome:
    """Check that f_s is more accurate on X_0s than on X_os."""
    _, before, after, images_before, images, text = _accuracies(tables, "scene", "0s")
    errors = _standard_error(before, images_before), _standard_error(after, images)
    text = f"{text}: {_points(after - before, images)}"
    return _with_margin(
        after - before, max(ERRORS * float(np.hypot(*errors)), 100 / images), text, TWO_ERRORS
    )


def confidence_rises(tables: BamTables) -> Outcome:
    """Check that confidence rises for more than half of the images that f_s classifies correctly."""
    name = f"{tables.data}_os → {tables.data}_0s"
    percent, images, printed = _mean_premise(tables, tables.scene_model, name)
    resolution = ERRORS * _standard_error(50, images)
    text = f"{percent:.1f} % of {images:.0f} images ({printed}); two standard errors {resolution:.1f} points"
    return _with_margin(percent - 50, resolution, text, TWO_ERRORS)


def drop_falls(tables: BamTables) -> Outcome:
    """Check that Spearman's ρ between k and the accuracy drop without the object is at most ``FALLS``."""
    if tables.commonality is None:
        raise UntestedError("no commonality series in the study")
    columns = ["drop", "printed_with", "printed_without"]
    means = tables.commonality.groupby("k")[columns].mean().dropna(subset="drop")
    if len(means) < LEAST_METHODS:
        raise UntestedError(f"{len(means)} values of k with a drop, expected at least {LEAST_METHODS}")
    drops = zip(means.index, means["drop"], strict=True)
    text = f"drop in points: {', '.join(f'{drop:.1f} at {k:g}' for k, drop in drops)}"
    if np.ptp(means["drop"].round(DECIMALS)) == 0:
        return _without_test(False, f"{text}; no change")
    rho = _correlation_with_k(means["drop"].round(DECIMALS))
    printed = (means["printed_with"] - means["printed_without"]).dropna()
    paper_text = f" (paper: {_correlation_with_k(printed):.2f})" if len(printed) >= LEAST_METHODS else ""
    return _without_test(rho <= FALLS, f"{text}; ρ = {rho:.2f}{paper_text}")


def _correlation_with_k(by_k: Scores) -> float:
    """Return Spearman's ρ between k (the index) and the values."""
    return round(float(spearmanr(by_k.index, by_k).statistic), DECIMALS)


def _accuracies(tables: BamTables, role: str, member: str) -> tuple[float, float, float, float, float, str]:
    """Return chance, accuracy on X_os and on the set in percent, their numbers of images, and a text."""
    model = tables.object_model if role == "object" else tables.scene_model
    chance = 100 / tables.classes[role]
    before, images_before, _ = _mean_premise(tables, model, f"{tables.data}_os")
    after, images, printed = _mean_premise(tables, model, f"{tables.data}_{member}")
    if before <= chance + ERRORS * _standard_error(chance, images_before):
        raise UntestedError(
            f"{tables.labels.model(model)} is not shown to be better than chance: {before:.1f} % on X_os, chance"
            f" {chance:.1f} %"
        )
    text = f"{before:.1f} % on X_os, {after:.1f} % on X_{member} ({printed}), chance {chance:.1f} %"
    return chance, before, after, images_before, images, text


def _mean_premise(tables: BamTables, model: str, name: str) -> tuple[float, float, str]:
    """Return the mean percentage over seeds, the smallest number of images of a seed, and the paper's value as text."""
    checks = tables.premise[(tables.premise["model"] == model) & (tables.premise["set"] == name)]
    checks = checks.dropna(subset="percent")
    percent = float(checks["percent"].mean())
    if np.isnan(percent):
        raise UntestedError(
            f"no images to compare for {tables.labels.model(model)} on {tables.labels.data_set(name)}"
        )
    return percent, float(checks["images"].min()), f"paper: {checks['printed'].iloc[0]:.1f} %"


def _standard_error(percent: float, images: float) -> float:
    """Return the standard error of a percentage of images, in percentage points."""
    return float(np.sqrt(percent * (100 - percent) / images))


def _points(difference: float, images: float) -> str:
    """Format a difference of two shares of images in percentage points, and as a mean number of images of a seed."""
    count = f"{abs(difference) * images / 100:,.1f}".removesuffix(".0")
    count_text = {"0": "no image", "1": "one image"}.get(count, f"{count} images")
    return f"{difference:+.1f} points ({count_text} of {images:,.0f})"


def _with_margin(margin: float, resolution: float, text: str, kind: str = ONE_IMAGE) -> Outcome:
    """Return the outcome of a check that succeeds if ``margin`` is above 0.

    Args:
        margin: difference from the criterion, in percentage points.
        resolution: largest distance from 0, in percentage points, that is too close to tell.
        text: the measured values.
        kind: what ``resolution`` is, one of ``MARGINS``.
    """
    if round(abs(margin) - resolution, DECIMALS) <= 0:
        return Outcome(TOO_CLOSE, text, kind)
    return Outcome(REPRODUCED if margin > 0 else NOT_REPRODUCED, text, kind)


def _without_test(meets_criterion: bool, text: str) -> Outcome:
    """Return the outcome of a comparison without a margin."""
    return Outcome(REPRODUCED if meets_criterion else NOT_REPRODUCED, text)


# --- the methods


def leads(
    tables: BamTables,
    metric: str,
    leaders: tuple[str, ...],
    except_for: Iterable[str] = (),
    *,
    in_this_order: bool = False,
) -> Outcome:
    """Check that no other method of the paper, except ``except_for``, scores higher than one of ``leaders``.

    With ``in_this_order``, the scores of ``leaders`` must also be in descending order.
    """
    scores = tables.scores(metric)
    leader_scores = pd.Series({name: tables.score(scores, metric, name) for name in leaders}).round(DECIMALS)
    other_scores = tables.without(scores, (*leaders, *except_for)).round(DECIMALS)
    peers = _paper_methods(tables, other_scores)
    lead = float(leader_scores.min() - peers.max())
    margins = [lead, *(-leader_scores.diff().dropna() if in_this_order else ())]
    text = f"{tables.named(leader_scores, metric)}; best other: {tables.named(peers.nlargest(1), metric)}"
    text += f"; lead {_difference(tables, metric, lead)}"
    beyond_paper = other_scores.drop(peers.index)
    beyond_paper = beyond_paper[beyond_paper > leader_scores.min()].sort_values(ascending=False)
    if len(beyond_paper):
        text += f"; higher but not in the paper: {tables.named(beyond_paper, metric)}"
    if tables.is_share(metric):
        return _with_margin(100 * min(margins), 100 / tables.images(metric), text)
    return _without_test(min(margins) >= 0, text)


def exceeds(tables: BamTables, metric: str, better: str, worse: str) -> Outcome:
    """Check that ``better`` has a higher score than ``worse``."""
    scores = tables.scores(metric)
    pair = pd.Series({name: tables.score(scores, metric, name) for name in (better, worse)})
    seed_scores = tables.by_seed(metric).pivot_table(index="seed", columns="method", values="score")
    better_by_seed, worse_by_seed = (seed_scores[tables.entry(name)] for name in (better, worse))
    seeds = int((better_by_seed > worse_by_seed).sum())
    lead = round(float(pair[better] - pair[worse]), DECIMALS)
    text = f"{tables.named(pair, metric)}: {_difference(tables, metric, lead)}"
    text += f"; higher in {seeds} of {len(seed_scores)} seeds"
    if tables.is_share(metric):
        return _with_margin(100 * lead, 100 / tables.images(metric), text)
    return _without_test(lead > 0, text)


def _difference(tables: BamTables, metric: str, difference: float) -> str:
    """Format a difference of two scores, that of a share of images also as a number of images."""
    if tables.is_share(metric):
        return _points(100 * difference, tables.images(metric))
    return f"{difference:+.3f}"


def nearly_best(tables: BamTables, metric: str, method: str) -> Outcome:
    """Check that a share of images is at most ``BEST`` percentage points below the best of the paper's methods."""
    scores = tables.scores(metric)
    score, peers = tables.score(scores, metric, method), tables.of_paper(scores)
    below = 100 * float(peers.max() - score)
    images = tables.images(metric)
    text = (
        f"{tables.label_of(method)} {value(score, metric)}, best: {tables.named(peers.nlargest(1), metric)}"
    )
    return _with_margin(BEST - below, 100 / images, f"{text}: {_points(-below, images)}")


def most_fail(tables: BamTables, spared: tuple[str, ...]) -> Outcome:
    """Check that IIR is below ``PASSED`` for most of the paper's other methods, and for none of ``spared``."""
    scores = tables.scores("iir")
    spared_scores = pd.Series({name: tables.score(scores, "iir", name) for name in spared})
    others = _paper_methods(tables, tables.without(scores, spared))
    one_image = 100 / tables.images("iir")

    def meets_criterion(shift: float) -> bool:
        """Return the result if the claim is helped by ``shift`` points in every share."""
        fail = (100 * others - shift).round(DECIMALS) < PASSED
        pass_ = (100 * spared_scores + shift).round(DECIMALS) >= PASSED
        return bool(2 * fail.sum() > len(others) and pass_.all())

    failing = int(((100 * others).round(DECIMALS) < PASSED).sum())
    text = f"{failing} of {len(others)} others below {PASSED:.0f} %; {tables.named(spared_scores, 'iir')}"
    text += f"; one image is {one_image:.1f} points"
    if meets_criterion(-one_image) != meets_criterion(one_image):
        return Outcome(TOO_CLOSE, text, ONE_IMAGE)
    return Outcome(REPRODUCED if meets_criterion(0) else NOT_REPRODUCED, text, ONE_IMAGE)


def high_but_low(tables: BamTables, method: str, high: tuple[str, ...], low: str) -> Outcome:
    """Check that a method ranks in the better half of the paper's methods by each of ``high``, not so by ``low``."""
    rank_texts, conditions = [], []
    for metric in (*high, low):
        scores = tables.of_paper(tables.scores(metric)).round(DECIMALS)
        tables.score(scores, metric, method)  # raises if the method has no score
        rank = float(scores.rank(ascending=False)[tables.entry(method)])
        middle = (len(scores) + 1) / 2
        conditions.append(rank > middle if metric == low else rank < middle)
        rank_texts.append(f"rank {rank:g} of {len(scores)} in {label(metric)}")
    return _without_test(all(conditions), f"{tables.label_of(method)}: {', '.join(rank_texts)}")


def largest_contrast(tables: BamTables) -> Outcome:
    """Check that for most methods except baselines, MCS of f_o and f_s is above that of every f_k with k < 1."""
    series = _mcs_by_k(tables)
    series_maximum = series[[k for k in series.columns if float(k) < 1]].T.max()
    both = pd.concat(
        [tables.scores("mcs").rename("models"), series_maximum.rename("series")], axis=1, join="inner"
    )
    both = both.dropna()
    if both.empty:
        raise UntestedError("no method has both scores")
    larger = (both["models"] - both["series"]).round(DECIMALS) > 0
    text = f"for {int(larger.sum())} of {len(both)} methods"
    if not larger.all():
        text += f"; not for {', '.join(tables.label_of(str(name)) for name in larger.index[~larger])}"
    return _without_test(bool(2 * larger.sum() > len(both)), text)


def changes_least(tables: BamTables, method: str) -> Outcome:
    """Check that no other method of the paper has a smaller range of MCS over k."""
    method_range, other_ranges = _mcs_ranges(tables, method)
    text = f"range {method_range:.3f}; smallest other: {tables.named(other_ranges.nsmallest(1), 'mcs')}"
    text += f": {method_range - other_ranges.min():+.3f}"
    return _without_test(bool(method_range <= other_ranges.min()), text)


def changes_most(tables: BamTables, method: str) -> Outcome:
    """Check that each other method of the paper has at most ``MUCH`` times this method's range of MCS over k."""
    method_range, other_ranges = _mcs_ranges(tables, method)
    text = f"range {method_range:.3f}; largest other: {tables.named(other_ranges.nlargest(1), 'mcs')}"
    return _without_test(bool(other_ranges.max() <= round(MUCH * method_range, DECIMALS)), text)


def _mcs_ranges(tables: BamTables, method: str) -> tuple[float, Scores]:
    """Return the range of MCS over k of a method, and of the paper's other methods that have a score at every k."""
    series, entry = _mcs_by_k(tables).dropna(), tables.entry(method)
    ranges = (series.max(axis=1) - series.min(axis=1)).round(DECIMALS)
    if entry not in ranges:
        raise UntestedError(f"{tables.label_of(entry)} lacks a score at some k")
    return float(ranges[entry]), _paper_methods(tables, tables.without(ranges, [method]))


def _mcs_by_k(tables: BamTables) -> pd.DataFrame:
    """Return the MCS of every method except baselines (rows) at every k (columns)."""
    if tables.series is None:
        raise UntestedError("no commonality series in the study")
    table = tables.series[[method not in tables.baselines for method in tables.series["method"]]]
    if table["k"].nunique() < 2:
        raise UntestedError(f"{table['k'].nunique()} value of k, expected at least 2")
    return table.groupby(["method", "k"], sort=False)["mcs"].mean().unstack("k")


def _paper_methods(tables: BamTables, scores: Scores) -> Scores:
    """Return the scores of the paper's methods; raise an error if there are none."""
    peers = tables.of_paper(scores)
    if peers.empty:
        raise UntestedError("no other method of the paper has a score")
    return peers


# --- the metrics: robustness, agreement of rankings, and random pixels near chance


def robust(tables: BamTables, metric: str, variant: str) -> Outcome:
    """Check that Spearman's ρ between the methods' scores on X_os and on a variant is at least ``AGREE``."""
    name = f"{tables.data}_os_{variant}"
    if name not in set(tables.metrics["data"]):
        raise UntestedError(f"no variant {tables.labels.data_set(name)} in the study")
    rho, count = _spearman(tables.scores(metric), tables.scores(metric, f"os_{variant}"))
    return _without_test(rho >= AGREE, f"ρ = {rho:.2f} over {count} methods")


def agrees(tables: BamTables, one: str, other: str) -> Outcome:
    """Check that Spearman's ρ between the rankings of two metrics, best first in both, is at least ``AGREE``."""
    rho, count = _metric_correlation(tables, one, other)
    return _without_test(rho >= AGREE, f"ρ = {rho:.2f} over {count} methods")


def rankings_differ(tables: BamTables, metrics: Iterable[str]) -> Outcome:
    """Check that Spearman's ρ of at least one pair of metrics is below ``AGREE``."""
    correlations, reasons = {}, []
    for one, other in combinations(metrics, 2):
        try:
            correlations[f"{label(one)} and {label(other)}"] = _metric_correlation(tables, one, other)[0]
        except UntestedError as reason:
            reasons.append(str(reason))
    if not correlations:
        raise UntestedError("; ".join(dict.fromkeys(reasons)))
    text = ", ".join(f"{pair} ρ = {rho:.2f}" for pair, rho in correlations.items())
    return _without_test(min(correlations.values()) < AGREE, text)


def baseline_near_zero(tables: BamTables) -> Outcome:
    """Check that MCS over random reference pixels is within ``ZERO`` of 0 for every method."""
    baselines = _mean_baselines(tables, "mcs")["baseline"]
    is_near = bool((baselines.abs().round(DECIMALS) <= ZERO).all())
    return _without_test(is_near, _range_text(tables, baselines, "mcs"))


def baseline_near_half(tables: BamTables) -> Outcome:
    """Check that IDR over random reference pixels is near 50 % for every method.

    It may differ by ``HALF`` points, or two standard errors.
    """
    baselines = _mean_baselines(tables, "idr")
    away = (100 * baselines["baseline"] - 50).abs()
    bar = np.maximum(HALF, ERRORS * 50 / np.sqrt(baselines["images"]))
    margins, images = bar - away, int(baselines["images"].min())
    text = f"{_range_text(tables, baselines['baseline'], 'idr')}; one image is {100 / images:.1f} points"
    return _with_margin(float(margins.min()), 100 / images, text, TWO_ERRORS)


def _metric_correlation(tables: BamTables, one: str, other: str) -> tuple[float, int]:
    """Return Spearman's ρ between two metrics, and the number of methods."""
    # Metrics where lower is better change sign, so that ρ = 1 means the same order from best to worst.
    signs = [1 if DIRECTIONS[metric] == "higher" else -1 for metric in (one, other)]
    return _spearman(signs[0] * tables.scores(one), signs[1] * tables.scores(other))


def _spearman(one: Scores, other: Scores) -> tuple[float, int]:
    """Return Spearman's ρ over the methods that have both scores, and their number."""
    both = pd.concat([one, other], axis=1, join="inner").round(DECIMALS).to_numpy()
    if len(both) < LEAST_METHODS:
        raise UntestedError(f"{len(both)} methods have both scores, expected at least {LEAST_METHODS}")
    if (np.ptp(both, axis=0) == 0).any():
        raise UntestedError(f"all {len(both)} methods have the same score")
    return round(float(spearmanr(*both.T).statistic), DECIMALS), len(both)


def _mean_baselines(tables: BamTables, metric: str) -> pd.DataFrame:
    """Return the mean for random pixels on X_os, and the smallest number of images of a seed, of each method.

    Baseline methods are excluded.
    """
    of_metric = tables.metrics["metric"] == metric
    table = tables.metrics[of_metric & (tables.metrics["data"] == f"{tables.data}_os")]
    table = table[[method not in tables.baselines for method in table["method"]]]
    means = table.groupby("method", sort=False).agg({"baseline": "mean", "images": "min"}).dropna()
    if means.empty:
        raise UntestedError(f"no method has a baseline for {label(metric)}")
    return means


def _range_text(tables: BamTables, baselines: Scores, metric: str) -> str:
    """Return the number of methods, and the smallest and largest value for random pixels, as text."""
    least, most = (tables.named(ends, metric) for ends in (baselines.nsmallest(1), baselines.nlargest(1)))
    return f"over {len(baselines)} methods from {least} to {most}"


# --- the claims


_LEFT = "of its accuracy above chance on X_os is left"
_TO_CHANCE = f"at most {100 * LOST:.0f} % {_LEFT}, or it is at most two standard errors above chance"
_KEEPS = f"at least {100 * KEPT:.0f} % {_LEFT}"
_LEADS = "no other method of the paper scores higher than"
_SMOOTHED = {"smoothgrad": "SmoothGrad", "smoothgrad_squared": "SmoothGrad² (released code)"}
_REST = ("gradcam", *_SMOOTHED)


def _robustness_claims(metric: str, source: str) -> tuple[Claim, ...]:
    bar = f"Spearman's ρ with the scores on X_os over all methods except baselines is at least {AGREE}"
    return tuple(
        (
            f"{metric.upper()} is robust to the {variant} of objects: {bar}",
            source,
            partial(robust, metric=metric, variant=variant),
        )
        for variant in ("scale", "location")
    )


ABOUT_PREMISE: tuple[Claim, ...] = (
    (
        f"f_o falls to chance without objects: on X_0s {_TO_CHANCE}",
        "section 3.3, Fig. 2",
        partial(falls_to_chance, role="object", member="0s"),
    ),
    (
        f"f_o does not need scenes: on X_og {_KEEPS}",
        "section 3.3, Fig. 2",
        partial(keeps, role="object", member="og"),
    ),
    (
        f"f_s falls to chance without scenes: on X_og {_TO_CHANCE}",
        "section 3.3, Fig. 2",
        partial(falls_to_chance, role="scene", member="og"),
    ),
    (
        f"f_s does not need objects: on X_0s {_KEEPS}",
        "section 3.3, Fig. 2",
        partial(keeps, role="scene", member="0s"),
    ),
    (
        "f_s is more accurate without the object: its accuracy on X_0s is above that on X_os, by two standard errors",
        "section 3.4, Fig. 2",
        more_accurate_without,
    ),
    (
        "confidence rises for most images when the object is removed: f_s assigns the label a higher probability on "
        "X_0s for more than 50 %, by two standard errors, of the images of X_os that it classifies correctly",
        "section 3.4, Fig. 2",
        confidence_rises,
    ),
    (
        "the rarer the common feature, the more it matters: the accuracy drop on the first scene class without it "
        f"decreases as k increases, with Spearman's ρ of k and drop of at most {FALLS}",
        "section 3.3, Fig. 2",
        drop_falls,
    ),
)
ABOUT_MCS: tuple[Claim, ...] = (
    (
        "MCS is largest between f_o and f_s: above that of every f_k, k < 1, relative to f_1.0 for more than half of "
        "the methods, including TCAV and excluding baselines",
        "section 4.2",
        largest_contrast,
    ),
    (
        f"Grad-CAM leads MCS among saliency methods: {_LEADS} Grad-CAM",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", leaders=("gradcam",)),
    ),
    (
        f"TCAV has the highest MCS, followed by Grad-CAM: {_LEADS} Grad-CAM, and Grad-CAM is not above TCAV",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", leaders=(TCAV, "gradcam"), in_this_order=True),
    ),
    *(
        (
            f"smoothing improves MCS: {name} scores higher than Gradient",
            "section 5.1, Fig. 4",
            partial(exceeds, metric="mcs", better=method, worse="gradient"),
        )
        for method, name in _SMOOTHED.items()
    ),
    *(
        (
            f"{name} outperforms the rest in MCS: {_LEADS} it, except Grad-CAM, TCAV and the other SmoothGrad",
            "section 5.1, Fig. 4",
            partial(leads, metric="mcs", leaders=(method,), except_for=_REST),
        )
        for method, name in _SMOOTHED.items()
    ),
    *_robustness_claims("mcs", "section 5.1, Fig. 4"),
    (
        f"MCS over random reference pixels is near zero: within ±{ZERO} for every method except baselines",
        "section 5.1, Fig. 4",
        baseline_near_zero,
    ),
    (
        "Guided Backpropagation changes least over the series: no other method of the paper has a smaller range of MCS "
        "over k",
        "section 5.1, Figs. 5, 6",
        partial(changes_least, method="guided_backprop"),
    ),
    (
        "all methods except TCAV and Grad-CAM change much less over the series: the range of MCS over k of "
        f"every other method of the paper is at most {100 * MUCH:.0f} % of Grad-CAM's",
        "section 5.1, Fig. 6",
        partial(changes_most, method="gradcam"),
    ),
    (
        "TCAV correlates most with the accuracy drop, followed by Grad-CAM (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} Grad-CAM, and Grad-CAM is not above TCAV",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, leaders=(TCAV, "gradcam"), in_this_order=True),
    ),
    (
        "Grad-CAM correlates most with the accuracy drop among saliency methods (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} Grad-CAM",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, leaders=("gradcam",)),
    ),
    (
        "both kinds of MCS give similar rankings: Spearman's ρ over TCAV and all methods except baselines between the "
        f"MCS of f_o and f_s and the correlation with the accuracy drop is at least {AGREE}",
        "section 5.1",
        partial(agrees, one="mcs", other=SERIES),
    ),
)
ABOUT_IDR_AND_IIR: tuple[Claim, ...] = (
    (
        f"Grad-CAM and Gradient lead IDR: {_LEADS} the lower of the two",
        "section 5.2, Fig. 8",
        partial(leads, metric="idr", leaders=("gradcam", "gradient")),
    ),
    (
        "the cheapest method is nearly the best in IDR: Gradient is at most "
        f"{BEST:.0f} points below the best method of the paper",
        "section 5.2",
        partial(nearly_best, metric="idr", method="gradient"),
    ),
    (
        f"IDR over random reference pixels is near 50 %: within {HALF:.0f} points, or two standard errors if that "
        "is more, for every method except baselines",
        "section 5.2, Fig. 8",
        baseline_near_half,
    ),
    *_robustness_claims("idr", "Fig. 8"),
    (
        f"most methods fail IIR on more than {100 - PASSED:.0f} % of the images: IIR is below {PASSED:.0f} % for more "
        "than half of the paper's methods other than Grad-CAM and Gradient, and for neither of these two",
        "section 5.3, Fig. 10",
        partial(most_fail, spared=("gradcam", "gradient")),
    ),
    (
        f"Grad-CAM and Gradient lead IIR: {_LEADS} the lower of the two",
        "section 5.3, Fig. 10",
        partial(leads, metric="iir", leaders=("gradcam", "gradient")),
    ),
    (
        "multiplication by the input reduces IIR: Gradient scores higher than Gradient × Input",
        "section 5.3",
        partial(exceeds, metric="iir", better="gradient", worse="gradient_x_input"),
    ),
    (
        "the average attribution difference ranks methods approximately as IIR does: Spearman's ρ over all methods "
        f"except baselines, best first in both, is at least {AGREE}",
        "appendix C, Fig. 11",
        partial(agrees, one="iir", other="iir_difference"),
    ),
    (
        "rankings differ between metrics: Spearman's ρ over all methods except baselines of at least one pair of MCS, "
        f"IDR and IIR is below {AGREE}",
        "sections 1 and 5",
        partial(rankings_differ, metrics=("mcs", "idr", "iir")),
    ),
    (
        "Gradient has high IDR and IIR but low MCS: its rank among the paper's methods is better than the middle rank "
        "in IDR and in IIR, and worse in MCS",
        "section 5",
        partial(high_but_low, method="gradient", high=("idr", "iir"), low="mcs"),
    ),
)
CLAIMS = ABOUT_PREMISE + ABOUT_MCS + ABOUT_IDR_AND_IIR


def claims(tables: BamTables, listed: Iterable[Claim] = CLAIMS) -> pd.DataFrame:
    """Check every claim.

    Returns:
        ``claim, source`` (where in the paper), ``measured``, ``margin`` (one of ``MARGINS``) and ``verdict``, one of
        ``VERDICTS``, followed by the study's setting if this differs from that of the paper. If a claim is not tested,
        ``measured`` is the reason.
    """
    rows = [(text, source, *_evaluate(check, tables)) for text, source, check in listed]
    return pd.DataFrame(rows, columns=COLUMNS)


def _evaluate(check: Callable[[BamTables], Outcome], tables: BamTables) -> tuple[str, str, str]:
    """Return the measured values, the margin and the verdict of a check."""
    try:
        verdict, measured, margin = check(tables)
    except UntestedError as reason:
        return str(reason), "", UNTESTED
    is_decided = verdict in (REPRODUCED, NOT_REPRODUCED)
    return measured, margin, f"{verdict} {tables.setting}".strip() if is_decided else verdict


def summary(table: pd.DataFrame) -> str:
    """Return a text with the number of claims for each verdict."""
    return ", ".join(f"{table['verdict'].str.startswith(verdict).sum()} {verdict}" for verdict in VERDICTS)


def notes(tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[str]:
    """Return one sentence on the claims in the table ``claims`` that were not reproduced; none if there are none."""
    if "claims" not in tables:  # no method has MCS and IDR
        return []
    verdicts = tables["claims"]["verdict"]
    failed, tested = verdicts[verdicts.str.startswith(NOT_REPRODUCED)], (verdicts != UNTESTED).sum()
    if failed.empty:
        return []
    be = "was" if len(failed) == 1 else "were"
    return [
        f"{len(failed)} of {tested} checked claims of Yang & Kim (2019) {be} {failed.iloc[0]}; see the table of claims."
    ]
