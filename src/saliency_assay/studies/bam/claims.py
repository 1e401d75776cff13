"""The claims of Yang & Kim (2019) as statements that a study's tables bear out, or do not.

Scores are means over training seeds. A claim about methods is judged on those that the paper compares and the study
has: what else a study has is named where it scores higher, and decides nothing; a lead is not lost to an equal score.
A claim about metrics is judged on all methods but the controls. A claim's text says what is compared with what; its
check returns whether it holds and what was measured, in words, and raises ``UntestedError`` where its input is not
there.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from saliency_assay.studies.bam.tables import (
    DECIMALS,
    DIRECTIONS,
    LEAST_METHODS,
    SERIES,
    TCAV,
    BamTables,
    Scores,
    UntestedError,
    label,
    named,
    value,
)

COLUMNS = ["claim", "source", "measured", "verdict"]
HOLDS, FAILS, UNTESTED = VERDICTS = ("holds", "does not hold", "not tested")

Claim = tuple[str, str, Callable[[BamTables], tuple[bool, str]]]

KEPT, LOST = 0.9, 0.1  # of the accuracy above chance
FALLS = -0.5  # Spearman's ρ of what generally decreases
BEST = 5.0  # points below the best method that are nearly the best
MUCH = 0.5  # a scale at most this much of another is much smaller
PASSED = 20.0  # percent of images: 100 − the paper's 80
AGREE = 0.8  # Spearman's ρ of two rankings that are called alike
ERRORS = 2  # standard errors
ZERO, HALF = 0.05, 10.0  # how far a baseline is from 0 (saliency) and from 50 % (points)


# --- the models: objects matter to f_o, scenes to f_s, and k decides how far


def falls_to_chance(tables: BamTables, role: str, member: str) -> tuple[bool, str]:
    """Of what the model has above chance on X_os at most ``LOST`` is left, or no more than two standard errors."""
    chance, before, after, images, text = _accuracies(tables, role, member)
    error = _error(chance, images)
    bar = chance + max(LOST * (before - chance), ERRORS * error)
    return round(after - bar, DECIMALS) <= 0, f"{text}; the bar is {bar:.1f} %"


def keeps(tables: BamTables, role: str, member: str) -> tuple[bool, str]:
    """Of what the model has above chance on X_os at least ``KEPT`` is left."""
    chance, before, after, _, text = _accuracies(tables, role, member)
    bar = chance + KEPT * (before - chance)
    return round(after - bar, DECIMALS) >= 0, f"{text}; the bar is {bar:.1f} %"


def more_accurate_without(tables: BamTables) -> tuple[bool, str]:
    """f_s is right about more images of X_0s than of X_os, strictly."""
    _, before, after, _, text = _accuracies(tables, "scene", "0s")
    return round(after - before, DECIMALS) > 0, f"{text}: {after - before:+.1f} points"


def confidence_rises(tables: BamTables) -> tuple[bool, str]:
    """For more than half, by two standard errors, of the images that f_s has right."""
    name = f"{tables.data}_os → {tables.data}_0s"
    percent, images, printed = _premise(tables, tables.scene_model, name)
    error = _error(50, images)
    text = f"{percent:.1f} % of {images:.0f} images ({printed}); the bar is {50 + ERRORS * error:.1f} %"
    return round(percent - 50 - ERRORS * error, DECIMALS) > 0, text


def drop_falls(tables: BamTables) -> tuple[bool, str]:
    """Spearman's ρ between k and the drop of accuracy without the object is at most ``FALLS``."""
    if tables.commonality is None:
        raise UntestedError("no commonality series in the study")
    columns = ["drop", "printed_with", "printed_without"]
    means = tables.commonality.groupby("k")[columns].mean().dropna(subset="drop")
    if len(means) < LEAST_METHODS:
        raise UntestedError(f"{len(means)} values of k with a drop, expected at least {LEAST_METHODS}")
    found = zip(means.index, means["drop"], strict=True)
    text = f"drop in points: {', '.join(f'{drop:.1f} at {k:g}' for k, drop in found)}"
    if np.ptp(means["drop"].round(DECIMALS)) == 0:
        return False, f"{text}; no change"
    rho = _order(means["drop"].round(DECIMALS))
    printed = (means["printed_with"] - means["printed_without"]).dropna()
    of_paper = f" (paper: {_order(printed):.2f})" if len(printed) >= LEAST_METHODS else ""
    return rho <= FALLS, f"{text}; ρ = {rho:.2f}{of_paper}"


def _order(by_k: Scores) -> float:
    return round(float(spearmanr(by_k.index, by_k).statistic), DECIMALS)


def _accuracies(tables: BamTables, role: str, member: str) -> tuple[float, float, float, float, str]:
    """Chance, accuracy on X_os and on the set in percent, images of the set, and all that in words."""
    model = tables.object_model if role == "object" else tables.scene_model
    chance = 100 / tables.classes[role]
    before, of_before, _ = _premise(tables, model, f"{tables.data}_os")
    after, images, printed = _premise(tables, model, f"{tables.data}_{member}")
    if before <= chance + ERRORS * _error(chance, of_before):
        raise UntestedError(f"{model} has learned nothing: {before:.1f} % on X_os, chance {chance:.1f} %")
    text = f"{before:.1f} % on X_os, {after:.1f} % on X_{member} ({printed}), chance {chance:.1f} %"
    return chance, before, after, images, text


def _premise(tables: BamTables, model: str, name: str) -> tuple[float, float, str]:
    """Percent, the fewest images of a seed, and what the paper prints."""
    found = tables.premise[(tables.premise["model"] == model) & (tables.premise["set"] == name)]
    percent = float(found["percent"].mean())
    if np.isnan(percent):
        raise UntestedError(f"{model} has no image of {name} to be judged on")
    return percent, float(found["images"].min()), f"paper: {found['printed'].iloc[0]:.1f} %"


def _error(percent: float, images: float) -> float:
    """Return standard error of a share of images, in percentage points."""
    return float(np.sqrt(percent * (100 - percent) / images))


# --- the methods


def leads(
    tables: BamTables,
    metric: str,
    wanted: tuple[str, ...],
    besides: Iterable[str] = (),
    *,
    in_this_order: bool = False,
) -> tuple[bool, str]:
    """No other method of the paper, those ``besides`` left out, scores higher than any of ``wanted``."""
    scores = tables.scores(metric)
    first = pd.Series({name: tables.score(scores, metric, name) for name in wanted}).round(DECIMALS)
    rest = tables.without(scores, (*wanted, *besides)).round(DECIMALS)
    peers = _others(tables, rest)
    ordered = not in_this_order or first.is_monotonic_decreasing
    text = f"{named(first, metric)}; the best other: {named(peers.nlargest(1), metric)}"
    beyond = rest.drop(peers.index)
    beyond = beyond[beyond > first.min()].sort_values(ascending=False)
    if len(beyond):
        text += f"; higher, but not in the paper: {named(beyond, metric)}"
    return bool(first.min() >= peers.max()) and ordered, text


def exceeds(tables: BamTables, metric: str, better: str, worse: str) -> tuple[bool, str]:
    """Check that the one has the higher score, strictly."""
    scores = tables.scores(metric)
    pair = pd.Series({name: tables.score(scores, metric, name) for name in (better, worse)})
    by_seed = tables.by_seed(metric).pivot_table(index="seed", columns="method", values="score")
    one, other = (by_seed[tables.entry(name)] for name in (better, worse))
    text = f"{named(pair, metric)}; higher in {int((one > other).sum())} of {len(by_seed)} seeds"
    return round(pair[better] - pair[worse], DECIMALS) > 0, text


def nearly_best(tables: BamTables, metric: str, method: str) -> tuple[bool, str]:
    """At most ``BEST`` percentage points below the best of the paper's methods."""
    scores = tables.scores(metric)
    score, peers = tables.score(scores, metric, method), tables.of_paper(scores)
    below = 100 * float(peers.max() - score)
    text = f"{method} {value(score, metric)}, the best: {named(peers.nlargest(1), metric)}"
    return round(below, DECIMALS) <= BEST, f"{text}; {below:.1f} points below"


def most_fail(tables: BamTables, spared: tuple[str, ...]) -> tuple[bool, str]:
    """IIR is below ``PASSED`` for more than half of the paper's other methods, and for none of ``spared``."""
    scores = tables.scores("iir")
    first = pd.Series({name: tables.score(scores, "iir", name) for name in spared})
    others = _others(tables, tables.without(scores, spared))
    failing = int(((100 * others).round(DECIMALS) < PASSED).sum())
    text = f"{failing} of {len(others)} others below {PASSED:.0f} %; {named(first, 'iir')}"
    return 2 * failing > len(others) and bool(((100 * first).round(DECIMALS) >= PASSED).all()), text


def high_but_low(tables: BamTables, method: str, high: tuple[str, ...], low: str) -> tuple[bool, str]:
    """Better than the middle rank of the paper's methods in each of ``high``, worse in ``low``."""
    places, held = [], []
    for metric in (*high, low):
        scores = tables.of_paper(tables.scores(metric)).round(DECIMALS)
        tables.score(scores, metric, method)
        rank = float(scores.rank(ascending=False)[tables.entry(method)])
        middle = (len(scores) + 1) / 2
        held.append(rank > middle if metric == low else rank < middle)
        places.append(f"rank {rank:g} of {len(scores)} in {label(metric)}")
    return all(held), f"{method}: {', '.join(places)}"


def largest_contrast(tables: BamTables) -> tuple[bool, str]:
    """MCS of f_o and f_s is above that of every f_k, k < 1, for more than half of the methods but the controls."""
    series = _series(tables)
    most = series[[k for k in series.columns if float(k) < 1]].T.max()
    both = pd.concat([tables.scores("mcs").rename("models"), most.rename("series")], axis=1, join="inner")
    both = both.dropna()
    if both.empty:
        raise UntestedError("no method has both scores")
    larger = (both["models"] - both["series"]).round(DECIMALS) > 0
    text = f"for {int(larger.sum())} of {len(both)} methods"
    if not larger.all():
        text += f"; not for {', '.join(map(str, larger.index[~larger]))}"
    return bool(2 * larger.sum() > len(both)), text


def changes_least(tables: BamTables, method: str) -> tuple[bool, str]:
    """Check that the range of MCS over k is not above that of any other method of the paper."""
    found, others = _ranges(tables, method)
    text = f"range {found:.3f}; the least other: {named(others.nsmallest(1), 'mcs')}"
    return bool(found <= others.min()), text


def changes_most(tables: BamTables, method: str) -> tuple[bool, str]:
    """Check that the range of MCS over k of every other method of the paper is at most ``MUCH`` of this one's."""
    found, others = _ranges(tables, method)
    text = f"range {found:.3f}; the largest other: {named(others.nlargest(1), 'mcs')}"
    return bool(others.max() <= round(MUCH * found, DECIMALS)), text


def _ranges(tables: BamTables, method: str) -> tuple[float, Scores]:
    """Return the range over k of a method, and of the paper's others that have a score at every k."""
    series, entry = _series(tables).dropna(), tables.entry(method)
    ranges = (series.max(axis=1) - series.min(axis=1)).round(DECIMALS)
    if entry not in ranges:
        raise UntestedError(f"{entry} lacks a score at some k")
    return float(ranges[entry]), _others(tables, tables.without(ranges, [method]))


def _series(tables: BamTables) -> pd.DataFrame:
    """MCS of every method but the controls (rows) at every k (columns)."""
    if tables.series is None:
        raise UntestedError("no commonality series in the study")
    table = tables.series[[method not in tables.controls for method in tables.series["method"]]]
    if table["k"].nunique() < 2:
        raise UntestedError(f"{table['k'].nunique()} value of k, expected at least 2")
    return table.groupby(["method", "k"], sort=False)["mcs"].mean().unstack("k")


def _others(tables: BamTables, scores: Scores) -> Scores:
    found = tables.of_paper(scores)
    if found.empty:
        raise UntestedError("no other method of the paper has a score")
    return found


# --- the metrics: robust, alike in rank, and near what chance gives


def robust(tables: BamTables, metric: str, variant: str) -> tuple[bool, str]:
    """Spearman's ρ between the methods' scores on X_os and on a variant is at least ``AGREE``."""
    name = f"{tables.data}_os_{variant}"
    if name not in set(tables.metrics["data"]):
        raise UntestedError(f"no variant {name} in the study")
    rho, count = _spearman(tables.scores(metric), tables.scores(metric, f"os_{variant}"))
    return rho >= AGREE, f"ρ = {rho:.2f} over {count} methods"


def agrees(tables: BamTables, one: str, other: str) -> tuple[bool, str]:
    """Spearman's ρ between the rankings of two metrics, best first in both, is at least ``AGREE``."""
    rho, count = _between(tables, one, other)
    return rho >= AGREE, f"ρ = {rho:.2f} over {count} methods"


def rankings_differ(tables: BamTables, metrics: Iterable[str]) -> tuple[bool, str]:
    """Spearman's ρ between at least two of the metrics is below ``AGREE``."""
    found, reasons = {}, []
    for one, other in combinations(metrics, 2):
        try:
            found[f"{label(one)} and {label(other)}"] = _between(tables, one, other)[0]
        except UntestedError as reason:
            reasons.append(str(reason))
    if not found:
        raise UntestedError("; ".join(dict.fromkeys(reasons)))
    return min(found.values()) < AGREE, ", ".join(f"{pair} ρ = {rho:.2f}" for pair, rho in found.items())


def baseline_near_zero(tables: BamTables) -> tuple[bool, str]:
    """MCS of random pixels lies within ``ZERO`` of 0 for every method."""
    found = _baselines(tables, "mcs")["baseline"]
    return bool((found.abs().round(DECIMALS) <= ZERO).all()), _span(found, "mcs")


def baseline_near_half(tables: BamTables) -> tuple[bool, str]:
    """IDR of random pixels lies within ``HALF`` points, or two standard errors, of 50 % for every method."""
    found = _baselines(tables, "idr")
    away = (100 * found["baseline"] - 50).abs().round(DECIMALS)
    bar = np.maximum(HALF, ERRORS * 50 / np.sqrt(found["images"]))
    return bool((away <= bar).all()), _span(found["baseline"], "idr")


def _between(tables: BamTables, one: str, other: str) -> tuple[float, int]:
    signs = [1 if DIRECTIONS[metric] == "higher" else -1 for metric in (one, other)]
    return _spearman(signs[0] * tables.scores(one), signs[1] * tables.scores(other))


def _spearman(one: Scores, other: Scores) -> tuple[float, int]:
    """Spearman's ρ over the methods that have both scores, and how many they are."""
    both = pd.concat([one, other], axis=1, join="inner").round(DECIMALS).to_numpy()
    if len(both) < LEAST_METHODS:
        raise UntestedError(f"{len(both)} methods have both scores, expected at least {LEAST_METHODS}")
    if (np.ptp(both, axis=0) == 0).any():
        raise UntestedError(f"all {len(both)} methods score alike")
    return round(float(spearmanr(*both.T).statistic), DECIMALS), len(both)


def _baselines(tables: BamTables, metric: str) -> pd.DataFrame:
    """Return the mean baseline over X_os of every method, and its fewest images."""
    of_metric = tables.metrics["metric"] == metric
    table = tables.metrics[of_metric & (tables.metrics["data"] == f"{tables.data}_os")]
    table = table[[method not in tables.controls for method in table["method"]]]
    found = table.groupby("method", sort=False).agg({"baseline": "mean", "images": "min"}).dropna()
    if found.empty:
        raise UntestedError(f"no method has a baseline of {label(metric)}")
    return found


def _span(found: Scores, metric: str) -> str:
    least, most = named(found.nsmallest(1), metric), named(found.nlargest(1), metric)
    return f"over {len(found)} methods from {least} to {most}"


# --- the claims


_LEFT = "of its accuracy above chance on X_os is left"
_TO_CHANCE = f"at most {100 * LOST:.0f} % {_LEFT}, or no more than two standard errors of a guess"
_KEEPS = f"at least {100 * KEPT:.0f} % {_LEFT}"
_LEADS = "no other method of the paper scores higher than"
_SMOOTHED = {"smoothgrad": "SmoothGrad", "smoothgrad_squared": "SmoothGrad² (the released SmoothGrad)"}
_REST = ("gradcam", *_SMOOTHED)


def _robust(metric: str, source: str) -> tuple[Claim, ...]:
    bar = f"Spearman's ρ of the scores of all methods but the controls with those on X_os is at least {AGREE}"
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
        "f_s is more accurate without the object: its accuracy on X_0s is above that on X_os",
        "section 3.4, Fig. 2",
        more_accurate_without,
    ),
    (
        "most confidence rises when the object is removed: f_s gives the label a higher probability on X_0s for "
        "more than 50 %, by two standard errors, of the images of X_os that it has right",
        "section 3.4, Fig. 2",
        confidence_rises,
    ),
    (
        "the rarer the common feature, the more it matters: as k grows, accuracy on the first scene class drops less "
        f"without it, Spearman's ρ of k and drop at most {FALLS}",
        "section 3.3, Fig. 2",
        drop_falls,
    ),
)
ABOUT_MCS: tuple[Claim, ...] = (
    (
        "MCS is largest between f_o and f_s: above that of every f_k, k < 1, against f_1.0 for more than half of the "
        "methods, with TCAV and without controls",
        "section 4.2",
        largest_contrast,
    ),
    (
        f"GradCAM leads MCS among saliency methods: {_LEADS} GradCAM",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", wanted=("gradcam",)),
    ),
    (
        f"TCAV has the highest MCS, GradCAM the next: {_LEADS} GradCAM, nor GradCAM than TCAV",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", wanted=(TCAV, "gradcam"), in_this_order=True),
    ),
    *(
        (
            f"smoothing improves MCS: {name} is above gradient",
            "section 5.1, Fig. 4",
            partial(exceeds, metric="mcs", better=method, worse="gradient"),
        )
        for method, name in _SMOOTHED.items()
    ),
    *(
        (
            f"{name} outperforms the rest in MCS: {_LEADS} it, GradCAM, TCAV and the other SmoothGrad aside",
            "section 5.1, Fig. 4",
            partial(leads, metric="mcs", wanted=(method,), besides=_REST),
        )
        for method, name in _SMOOTHED.items()
    ),
    *_robust("mcs", "section 5.1, Fig. 4"),
    (
        f"MCS of random pixels is near zero: within ±{ZERO} for every method but the controls",
        "section 5.1, Fig. 4",
        baseline_near_zero,
    ),
    (
        "guided backprop changes least over the series: the range of its MCS over k is above that of no other "
        "method of the paper",
        "section 5.1, Figs. 5, 6",
        partial(changes_least, method="guided_backprop"),
    ),
    (
        "all methods but TCAV and GradCAM change at a much smaller scale over the series: the range of MCS over k of "
        f"every other method of the paper is at most {100 * MUCH:.0f} % of GradCAM's",
        "section 5.1, Fig. 6",
        partial(changes_most, method="gradcam"),
    ),
    (
        "TCAV correlates most with the accuracy drop, GradCAM next (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} GradCAM, nor GradCAM than TCAV",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, wanted=(TCAV, "gradcam"), in_this_order=True),
    ),
    (
        "GradCAM correlates most with the accuracy drop among saliency methods (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} GradCAM",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, wanted=("gradcam",)),
    ),
    (
        "both kinds of MCS rank alike: Spearman's ρ, over TCAV and all methods but the controls, of the MCS between "
        f"f_o and f_s and the correlation with the accuracy drop is at least {AGREE}",
        "section 5.1",
        partial(agrees, one="mcs", other=SERIES),
    ),
)
ABOUT_IDR_AND_IIR: tuple[Claim, ...] = (
    (
        f"GradCAM and gradient lead IDR: {_LEADS} either of the two",
        "section 5.2, Fig. 8",
        partial(leads, metric="idr", wanted=("gradcam", "gradient")),
    ),
    (
        "the cheapest method is nearly the best in IDR: gradient is at most "
        f"{BEST:.0f} points below the best method of the paper",
        "section 5.2",
        partial(nearly_best, metric="idr", method="gradient"),
    ),
    (
        f"IDR of random pixels is near 50 %: within {HALF:.0f} points, or two standard errors if that is more, for "
        "every method but the controls",
        "section 5.2, Fig. 8",
        baseline_near_half,
    ),
    *_robust("idr", "Fig. 8"),
    (
        f"most methods fail IIR on more than {100 - PASSED:.0f} % of the images: IIR is below {PASSED:.0f} % for more "
        "than half of the paper's methods besides GradCAM and gradient, and for neither of these",
        "section 5.3, Fig. 10",
        partial(most_fail, spared=("gradcam", "gradient")),
    ),
    (
        f"GradCAM and gradient lead IIR: {_LEADS} either of the two",
        "section 5.3, Fig. 10",
        partial(leads, metric="iir", wanted=("gradcam", "gradient")),
    ),
    (
        "multiplying by the input hurts IIR: gradient is above gradient × input",
        "section 5.3",
        partial(exceeds, metric="iir", better="gradient", worse="gradient_x_input"),
    ),
    (
        "the average attribution difference ranks roughly as IIR: Spearman's ρ over all methods but the controls, best "
        f"first in both, is at least {AGREE}",
        "appendix C, Fig. 11",
        partial(agrees, one="iir", other="iir_difference"),
    ),
    (
        "rankings differ between metrics: Spearman's ρ over all methods but the controls of some two of MCS, IDR and "
        f"IIR is below {AGREE}",
        "sections 1 and 5",
        partial(rankings_differ, metrics=("mcs", "idr", "iir")),
    ),
    (
        "gradient has high IDR and IIR but low MCS: its rank among the paper's methods is better than the middle one "
        "in IDR and in IIR, and worse in MCS",
        "section 5",
        partial(high_but_low, method="gradient", high=("idr", "iir"), low="mcs"),
    ),
)
CLAIMS = ABOUT_PREMISE + ABOUT_MCS + ABOUT_IDR_AND_IIR


def claims(tables: BamTables, listed: Iterable[Claim] = CLAIMS) -> pd.DataFrame:
    """Every claim, judged.

    Returns:
        ``claim, source`` (where in the paper), ``measured`` and ``verdict``, one of ``VERDICTS``; why a claim is not
        tested stands in ``measured``.
    """
    rows = [(text, source, *_judged(check, tables)) for text, source, check in listed]
    return pd.DataFrame(rows, columns=COLUMNS)


def _judged(check: Callable[[BamTables], tuple[bool, str]], tables: BamTables) -> tuple[str, str]:
    try:
        holds, measured = check(tables)
    except UntestedError as reason:
        return str(reason), UNTESTED
    return measured, HOLDS if holds else FAILS


def summary(found: pd.DataFrame) -> str:
    """Return the number of claims with each verdict, in words."""
    holds, fails, untested = ((found["verdict"] == verdict).sum() for verdict in VERDICTS)
    return f"{holds} hold, {fails} do not, {untested} not tested"


def cautions(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return one sentence on the verdicts of the table ``claims``."""
    found = summary(tables["claims"])
    return [f"Of the paper's claims (Yang & Kim, 2019), {found} here; the report lists each of them."]
