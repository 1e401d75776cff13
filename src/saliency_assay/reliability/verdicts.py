"""Verdict on a metric of a study: what its tables show about the methods, and what they leave open.

A verdict claims no more than was shown. A difference that is not significant is never read as no difference: only an
interval that excludes all larger differences shows that a difference is negligible.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, isnan, log10
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.reliability.comparison import MEANS
from saliency_assay.reliability.order_tables import BETTER, EQUIVALENT, UNTESTED, WORSE

NO_RANKS = "no ranks"
AT_CHANCE = "model may be at chance"
TRAINING_NOISE = "training noise"
NOT_SEPARATED = "does not separate methods from baseline methods"
TOO_FEW = "too few images to tell"
CLEAR = "clear on average"
RELIABLE = "reliable"
KINDS = (NO_RANKS, AT_CHANCE, TRAINING_NOISE, NOT_SEPARATED, TOO_FEW, CLEAR, RELIABLE)
SHOWN = (CLEAR, RELIABLE)
"""Kinds of verdicts on metrics under which an order of the methods was shown."""

CHANCE_REASON = "a model is not shown to be better than chance"
NOISE_REASON = "one training seed: differences between methods cannot be distinguished from training noise"

DECIDED = (BETTER, WORSE, EQUIVALENT)
"""Values of ``finding`` in ``pairs.csv`` that decide a comparison."""
ALPHA = 0.65
"""Lower end of α's interval from which images agree on the ranking; a common rule (Tomsett et al., 2020)."""
CONCORDANCE = 0.825
"""The same for concordance, (1 + ``ALPHA``) / 2, because it is 0.5 by chance; for scores with two values."""
NEGLIGIBLE = 0.6
"""Probability of a better score than another method up to which an advantage is negligible."""
MISSING = 0.05
"""Share of a method's scores above which missing scores are reported."""
MOST_TIMES = 100
"""Multiple of the number of images above which a required number is not stated."""

Pairs = Mapping[tuple[str, str], Mapping[str, Any]]
"""Rows of ``pairs.csv`` in both directions, by the two methods."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on one metric and variant."""

    kind: str
    """One of ``KINDS``."""
    reasons: tuple[str, ...]
    """Facts that were shown, or that are missing."""
    images: float = np.nan
    """Number of images that would change a verdict ``TOO_FEW`` if differences are as large as observed; infinite if no
    number would, NaN if it is unknown."""

    @property
    def text(self) -> str:
        """The kind with its reasons."""
        return f"{self.kind}: {'; '.join(self.reasons)}"

    @property
    def is_shown(self) -> bool:
        """True if an order of the methods was shown."""
        return self.kind in SHOWN


def verdict(
    order: pd.DataFrame,
    pairs: pd.DataFrame,
    alpha: Mapping[str, Any] | None,
    *,
    at_chance: bool = False,
) -> Verdict:
    """Return the verdict on a metric: the first of ``KINDS`` whose condition holds.

    - ``NO_RANKS``: fewer than two methods, or none that uses the model, have scores.
    - ``AT_CHANCE``: ``at_chance``.
    - ``TRAINING_NOISE``: nothing is tested, because there is a single training seed.
    - ``NOT_SEPARATED``: it is shown that baselines are not outperformed; see ``_not_separated``.
    - ``TOO_FEW``: neither this is shown, nor that a method is better than every baseline method; or fewer than half of
      the pairs of methods that use the model are decided (one is better, or both are equivalent).
    - ``CLEAR``: the order is clear, but something restricts its use; see ``_restrictions``.
    - ``RELIABLE``: the order is clear, and images agree on the ranking.

    Args:
        order: rows of the metric and variant in ``order.csv``.
        pairs: the same in ``pairs.csv``.
        alpha: result of ``alpha_row`` for the metric.
        at_chance: true if a model of the study is not shown to be better than chance.
    """
    ranked = order[order["rank_low"].notna()]
    models, baselines = (list(ranked.loc[ranked["baseline"] == kind, "method"]) for kind in (False, True))
    if len(ranked) < 2:
        return Verdict(NO_RANKS, ("fewer than two methods have scores",))
    if not models:
        return Verdict(NO_RANKS, ("no method that uses the model has scores",))
    if at_chance:
        return Verdict(AT_CHANCE, (CHANCE_REASON,))
    if is_untested(ranked):
        return Verdict(TRAINING_NOISE, (NOISE_REASON,))
    compared = both_ways(pairs, by_means=is_by_means(ranked))
    counts = int(ranked["images"].max()), float(ranked["groups"].max()) if "groups" in ranked else np.nan
    above = list(ranked.loc[ranked["above_baselines"] == 1, "method"])
    if baselines and not above:
        if reason := _not_separated(compared, models, baselines):
            return Verdict(NOT_SEPARATED, (reason,))
        reasons = ["no method is shown to be better than every baseline method"]
        reasons += _skew_texts(compared, [(model, name) for model in models for name in baselines])
        return _too_few(reasons, _images_for_baselines(compared, models, baselines, _rates(ranked)), *counts)
    facts = [f"better than every baseline method: {len(above)} of {len(models)}"] if baselines else []
    every = list(combinations(models, 2))
    open_pairs = [pair for pair in every if _finding(compared, *pair) not in DECIDED]
    decided = len(every) - len(open_pairs)
    facts += [f"pairs of methods that are distinguished: {decided} of {len(every)}"] if every else []
    if decided < len(open_pairs):
        needed = np.sort([compared.get(pair, {}).get("images_needed", np.nan) for pair in open_pairs])
        facts += _skew_texts(compared, open_pairs)
        # NaN is last.
        return _too_few(facts, float(needed[ceil(len(every) / 2) - decided - 1]), *counts)
    if restrictions := _restrictions(ranked, compared, alpha):
        return Verdict(CLEAR, tuple(restrictions))
    return Verdict(RELIABLE, (agreement_text(alpha), *facts))


def is_untested(order: pd.DataFrame) -> bool:
    """Return True if methods are not compared, because there is a single training seed."""
    return bool((order["over"] == UNTESTED).any())


def is_by_means(order: pd.DataFrame) -> bool:
    """Return True if rank sets compare means."""
    return bool((order["ranked_by"] == MEANS).any())


def both_ways(pairs: pd.DataFrame, *, by_means: bool) -> Pairs:
    """Return the rows of ``pairs.csv`` by their methods, and those of the exchanged methods.

    ``images_needed`` is at least ``skew_images``. The latter, which concerns only means, is NaN without ``by_means``.
    """
    compared: dict[tuple[str, str], dict[str, Any]] = {}
    for values in pairs.to_dict("records"):
        row = {str(name): value for name, value in values.items()}
        row["skew_images"] = row["skew_images"] if by_means else np.nan
        row["images_needed"] = float(np.fmax(row["images_needed"], row["skew_images"]))
        compared[row["method"], row["other"]] = row
        exchanged = {**row, "method": row["other"], "other": row["method"], "difference": -row["difference"]}
        exchanged |= {"difference_low": -row["difference_high"], "difference_high": -row["difference_low"]}
        for one, other in (("wins", "wins"), ("wins_low", "wins_high"), ("wins_worst", "wins_best")):
            exchanged |= {one: 1 - row[other], other: 1 - row[one]}
        exchanged["finding"] = {BETTER: WORSE, WORSE: BETTER}.get(row["finding"], row["finding"])
        compared[row["other"], row["method"]] = exchanged
    return compared


def images_text(needed: float, images: int, effect: str = "do", groups: float = np.nan) -> str:
    """Return the clause on the number of images that would have an effect; empty if it is unknown.

    With ``groups`` of the ``images``, groups grow in proportion. The number is rounded up to two significant digits.
    One above ``MOST_TIMES`` × ``images`` is not stated.
    """
    if isnan(needed):
        return ""
    if needed > MOST_TIMES * images:
        purpose = "" if effect == "do" else f" to {effect}"
        return f"more than {MOST_TIMES} times as many images would be needed{purpose}"
    # Approximations of the power can give a number that is not larger.
    number = round_up(max(needed, images + 1))
    of_groups = "" if isnan(groups) else f" of {round_up(max(number * groups / images, 1)):,} groups"
    return f"about {number:,} images{of_groups} would {effect}"


def round_up(number: float) -> int:
    """Return a number rounded up to two significant digits."""
    unit = 10 ** max(floor(log10(number)) - 1, 0)
    return int(ceil(round(number / unit, 6)) * unit)


# ---- baselines


def _not_separated(compared: Pairs, models: Sequence[str], baselines: Sequence[str]) -> str:
    """Return what shows that baselines are not outperformed; empty if nothing does.

    - A baseline method is better than every method that uses the model.
    - No method exceeds the baselines by more than a negligible amount: each is worse than a baseline, equivalent to
      one, or has a better score than one with a probability of at most ``NEGLIGIBLE`` (upper end of the interval).
    """
    if better_baselines(compared, models, baselines):
        return "a baseline method is significantly better than every method that uses the model"
    if all(any(_is_negligible(compared, model, name) for name in baselines) for model in models):
        return (
            "no method exceeds every baseline method by more than a negligible amount"
            f" (CI of the probability of a better score ≤ {NEGLIGIBLE}, or a baseline method is better or equivalent)"
        )
    return ""


def better_baselines(compared: Pairs, models: Sequence[str], baselines: Sequence[str]) -> list[str]:
    """Return the baselines that are better than every method that uses the model; none without such a method."""
    return [
        name
        for name in baselines
        if models and all(_finding(compared, model, name) == WORSE for model in models)
    ]


def _is_negligible(compared: Pairs, model: str, baseline: str) -> bool:
    pair = compared.get((model, baseline), {})
    return pair.get("finding") in (WORSE, EQUIVALENT) or pair.get("wins_high", np.nan) <= NEGLIGIBLE


def _images_for_baselines(
    compared: Pairs, models: Sequence[str], baselines: Sequence[str], rates: Mapping[str, float] | None
) -> float:
    """Return the number of images that would show that a method is better than every baseline method, or that none is.

    The first is that of the method for which the most demanding baseline demands least. The second is the number for
    which ``_not_separated`` would hold if intervals become shorter in proportion to 1 / √images.
    """
    better = [
        _largest(_images_to_exceed(compared, model, name, rates) for name in baselines) for model in models
    ]
    none = _largest(
        _smallest(_images_to_be_negligible(compared, model, name) for name in baselines) for model in models
    )
    return _smallest([*better, none])


def _images_to_exceed(compared: Pairs, model: str, baseline: str, rates: Mapping[str, float] | None) -> float:
    pair = compared.get((model, baseline), {})
    if pair.get("finding") == BETTER:
        return 0.0
    needed = float(pair.get("images_needed", np.nan))
    if isnan(needed):
        return needed
    # More images show the observed difference, which must be one in favor of the method.
    is_ahead = pair["difference"] > 0 if rates is None else rates[model] > rates[baseline]
    return needed if is_ahead else np.inf


def _rates(ranked: pd.DataFrame) -> dict[str, float] | None:
    if is_by_means(ranked):
        return None
    return dict(zip(ranked["method"], ranked["win_rate"], strict=True))


def _images_to_be_negligible(compared: Pairs, model: str, baseline: str) -> float:
    if _is_negligible(compared, model, baseline):
        return 0.0
    pair = compared.get((model, baseline), {})
    wins, high, images = (pair.get(name, np.nan) for name in ("wins", "wins_high", "images"))
    if wins >= NEGLIGIBLE:
        return np.inf
    return float(images * ((high - wins) / (NEGLIGIBLE - wins)) ** 2)


def _largest(values: Iterable[float]) -> float:
    """Return the largest value, NaN if one is NaN."""
    return float(np.max(list(values)))


def _smallest(values: Iterable[float]) -> float:
    """Return the smallest value that is not NaN, NaN if all are."""
    return min((float(value) for value in values if not isnan(value)), default=np.nan)


# ---- comparisons


def _finding(compared: Pairs, method: str, other: str) -> str:
    return str(compared.get((method, other), {}).get("finding", ""))


def _skew_texts(compared: Pairs, names: Iterable[tuple[str, str]]) -> list[str]:
    """Return the clause on pairs that are not tested, because their scores are too skewed for the number of images."""
    skewed = sum(not isnan(compared.get(pair, {}).get("skew_images", np.nan)) for pair in names)
    return [f"pairs with scores too skewed to be tested: {skewed}"] if skewed else []


def _too_few(reasons: Sequence[str], needed: float, images: int, groups: float) -> Verdict:
    text = images_text(needed, images, groups=groups)
    return Verdict(TOO_FEW, tuple(filter(None, [*reasons, text])), needed)


# ---- restrictions of a clear order


def _restrictions(ranked: pd.DataFrame, compared: Pairs, alpha: Mapping[str, Any] | None) -> list[str]:
    """Return what restricts the use of a clear order; empty if nothing does.

    - Images do not agree on the ranking, or it is open whether they do; see ``images_agree``.
    - No baseline has scores.
    - Each method has a better score than some baseline with a probability of at most ``NEGLIGIBLE``.
    - A method lacks more than ``MISSING`` of its scores, and if the missing scores of a pair of methods were the worst
      or the best ones, the one that is better would lose more comparisons than it wins.
    """
    texts = []
    models, baselines = (list(ranked.loc[ranked["baseline"] == kind, "method"]) for kind in (False, True))
    if images_agree(alpha) is not True:
        texts.append(agreement_text(alpha))
    if not baselines:
        texts.append("no baseline method to compare with")
    elif all(any(_is_negligible(compared, model, name) for name in baselines) for model in models):
        texts.append(
            "the advantage over baseline methods is negligible"
            f" (CI of the probability of a better score ≤ {NEGLIGIBLE})"
        )
    lacking = set(ranked.loc[ranked["undefined"] > MISSING, "method"])
    open_pairs = [
        names
        for names, pair in compared.items()
        if lacking & set(names) and pair["finding"] == BETTER and not pair["wins_worst"] >= 0.5
    ]
    if open_pairs:
        texts.append(f"missing scores could reverse comparisons ({len(open_pairs)})")
    return texts


def images_agree(alpha: Mapping[str, Any] | None) -> bool | None:
    """Return whether single images agree on the ranking of the methods; None if it is open.

    They do if the interval of α is at least ``ALPHA``, and do not if the whole interval is below. Scores with two
    values leave most methods tied on an image, so that α is low even if all images agree. For them, ``CONCORDANCE``
    decides.
    """
    if alpha is None:
        return None
    statistic, _, limit = _statistic(alpha)
    if alpha["alpha_low"] >= ALPHA or alpha[f"{statistic}_low"] >= limit:
        return True
    return False if alpha[f"{statistic}_high"] < limit else None


def agreement_text(alpha: Mapping[str, Any] | None) -> str:
    """Return the clause on the agreement of single images on the ranking, with what shows it."""
    if alpha is None or isnan(alpha["alpha"]):
        return "only one method uses the model" if alpha and alpha["methods"] < 2 else "α is undefined"
    if alpha["alpha_low"] >= ALPHA:
        return f"images agree on the ranking (CI of α ≥ {ALPHA})"
    agree, (statistic, name, limit) = images_agree(alpha), _statistic(alpha)
    low, high = alpha[f"{statistic}_low"], alpha[f"{statistic}_high"]
    if agree:
        return f"images agree on the ranking (CI of {name} ≥ {limit})"
    if isnan(low):
        return f"too few {units_text(alpha)} for an interval of {name}"
    if agree is None:
        limits = f"{low:.2f} to {high:.2f}".replace("-", "−")
        return f"it is open whether images agree on the ranking (CI of {name} {limits})"
    return f"images rank methods differently (whole CI of {name} < {limit})"


def units_text(alpha: Mapping[str, Any]) -> str:
    """Return the name of the units that are too few for an interval, see ``alpha_row``."""
    return "groups" if "groups" in alpha else "images"


def deciding_statistic(alpha: Mapping[str, Any]) -> tuple[str, float, float, float]:
    """Return the name of the statistic that decides whether images agree, its value, and the ends of its interval."""
    column, name = ("alpha", "α") if alpha["alpha_low"] >= ALPHA else _statistic(alpha)[:2]
    return name, alpha[column], alpha[f"{column}_low"], alpha[f"{column}_high"]


def _statistic(alpha: Mapping[str, Any]) -> tuple[str, str, float]:
    """Return the column, the name and the limit of the statistic that decides whether images agree."""
    if alpha["two_valued"]:
        return "concordance", "concordance", CONCORDANCE
    return "alpha", "α", ALPHA


def alpha_row(table: pd.DataFrame, metric: str, variant: str) -> dict[str, Any] | None:
    """Return α and concordance of a metric and variant in ``reliability.csv``, without baselines if there are some.

    For several seeds: the mean with the outermost ends of their intervals, NaN if one is missing. ``seeds`` is their
    number, ``undefined_seeds`` the number of seeds without α, and ``images`` the number of images of each; ``groups``
    that of groups, if images have some.
    """
    rows = table[(table["metric"] == metric) & (table["variant"] == variant) & (table["baselines"] != "with")]
    if rows.empty:
        return None
    row = {
        "baselines": rows["baselines"].iloc[0],
        "seeds": len(rows),
        "undefined_seeds": int(rows["alpha"].isna().sum()),
        "methods": rows["methods"].max(),
        "images": list(rows["images"]),
        "two_valued": bool(rows["two_valued"].all()),
    }
    if "groups" in rows:
        row["groups"] = list(rows["groups"])
    for name in ("alpha", "concordance"):
        row[name] = rows[name].mean(skipna=False)
        row[f"{name}_low"] = rows[f"{name}_low"].min(skipna=False)
        row[f"{name}_high"] = rows[f"{name}_high"].max(skipna=False)
    return row
