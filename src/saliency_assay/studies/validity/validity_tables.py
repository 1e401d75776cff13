"""Tables of a validity study that combine its scores: baselines, pairs of settings, and the summary of each metric."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.registry.directions import Direction
from saliency_assay.registry.properties import UNORDERED
from saliency_assay.reliability.reliability_tables import groups
from saliency_assay.reliability.verdicts import Verdict, alpha_row, verdict

SCORE = ["metric", "variant"]
BLURRED = "blurred copy"
"""Value of ``baseline``: the blurred map of a method, compared with its own map."""
BASELINES = [*SCORE, "baseline", "images", "best", "chance"]
ENDS = ("_morf", "_lerf")
PAIRS = [*SCORE, "other_metric", "other_variant", "setting", "methods", "images", "correlation"]
RECOMMENDED = [*SCORE, "measures", "rho", "rho_low", "rho_high", "macro", "alpha", "alpha_low", "alpha_high"]
RECOMMENDED += ["mc_model", "mc_input", "best_baseline", "baseline_best", "chance", "passes", "verdict"]

AGREES = 0.5
"""ρ with the known order from which a metric follows it."""
USABLE = "usable"
"""Beginning of the recommendation of a usable score."""


def baselines_table(
    scores: pd.DataFrame, rescored: pd.DataFrame, directions: Mapping[str, str], baselines: Collection[str]
) -> pd.DataFrame:
    """Return the share of images on which a map without information on the model scores better than all methods.

    Args:
        scores: score table of all methods of the study.
        rescored: scores of degraded maps, see ``rescoring.rescored``; the weakest blur is compared with the original.
        directions: for each metric the direction of its scores.
        baselines: methods of the study that do not use the model.

    Returns:
        ``metric, variant, baseline``; ``images`` with scores of the baseline and a method, once for each seed;
        ``best``: share of these on which the baseline's score is better than that of every method; ``chance``: that
        share if all maps had equal chances.
    """
    rows = []
    for names, of_score in groups(scores, SCORE):
        of_score = of_score.assign(
            score=Direction(directions[str(names["metric"])]).oriented(of_score["score"].to_numpy())
        )
        wide = of_score.pivot(index=["seed", "image"], columns="method", values="score")
        methods = wide[[name for name in wide if name not in baselines]]
        for name in [name for name in wide if name in baselines]:
            compared = wide[name].notna() & methods.notna().any(axis=1)
            best = (wide[name] > methods.max(axis=1))[compared].mean()
            chance = (1 / (1 + methods.notna().sum(axis=1)))[compared].mean()
            rows.append((*names.values(), name, int(compared.sum()), best, chance))
    blurred = rescored[rescored["test"].isin(["original", "blur"])]
    for (metric, variant), of_score in blurred.groupby(SCORE, sort=False):
        if not (of_score["test"] == "blur").any():
            continue
        weakest = of_score.loc[of_score["test"] == "blur", "level"].min()
        of_score = of_score[of_score["level"].isin([0, weakest])]
        of_score = of_score.assign(
            score=Direction(directions[str(metric)]).oriented(of_score["score"].to_numpy())
        )
        pairs = of_score.pivot(index=["seed", "method", "image"], columns="test", values="score").dropna()
        best = (pairs["blur"] > pairs["original"]).mean() if len(pairs) else np.nan
        rows.append((metric, variant, BLURRED, len(pairs), best, 0.5))
    return pd.DataFrame(rows, columns=BASELINES)


def pairs_table(rankings: pd.DataFrame, pairs: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Return the agreement of scores that differ in one setting: the direction (MoRF and LeRF), or one parameter.

    Args:
        rankings: the study's ``rankings.csv``.
        pairs: ``first`` and ``second``, two entries under ``metrics``, and ``setting``, the one in which they differ.

    Returns:
        ``metric, variant, other_metric, other_variant, setting, methods, images`` and ``correlation``: Spearman's ρ
        over methods, averaged over images.
    """
    settings = {frozenset((pair["first"], pair["second"])): pair["setting"] for pair in pairs}

    def setting_of(row: pd.Series) -> str:
        (entry, _, sub), (other, _, other_sub) = (
            row[name].partition(" ") for name in ("variant", "other_variant")
        )
        if sub != other_sub:
            return ""
        if row["metric"] == row["other_metric"]:
            return settings.get(frozenset((entry, other)), "")
        stems = {
            row[name].removesuffix(end) for name, end in zip(("metric", "other_metric"), ENDS, strict=True)
        }
        return "direction" if entry == other and len(stems) == 1 else ""

    table = rankings.assign(setting=[setting_of(row) for _, row in rankings.iterrows()])
    return table.loc[table["setting"] != "", PAIRS].reset_index(drop=True)


def recommendations_table(
    known_order: pd.DataFrame,
    meta_consistency: pd.DataFrame,
    rated: Mapping[str, pd.DataFrame],
    baselines: pd.DataFrame,
    passes: pd.DataFrame,
    measures: Mapping[str, str],
    *,
    at_chance: bool = False,
) -> pd.DataFrame:
    """Return validity and reliability of every score, and whether it is usable on this set.

    Args:
        known_order: see ``known_order.known_order_table``; empty if no maps are degraded.
        meta_consistency: see ``meta_consistency.meta_consistency_table``; empty without iterations.
        rated: the study's ``order``, ``pairs`` and ``reliability``; α is that of methods without baselines.
        baselines: see ``baselines_table``.
        passes: ``metric, variant, passes``: images that the metric passes through the model for each map.
        measures: for each metric the property that it measures.
        at_chance: True if the model of any training seed is not shown to be better than chance.

    Returns:
        ``metric, variant, measures``; ``rho`` and its interval: the micro average over all degradations; ``macro``;
        ``alpha`` and its interval, means over training seeds; ``mc_model``, ``mc_input``; ``best_baseline``, the one
        that is best on most images, ``baseline_best``, their share, and ``chance``; ``passes``; and ``verdict``, see
        ``recommendation``.
    """
    # The rows of all methods and degradations are the first of each score.
    order = known_order.drop_duplicates(SCORE).rename(columns=lambda name: name.replace("micro", "rho"))
    reliability = rated["reliability"]
    without_baselines = reliability[reliability["baselines"] != "with"]
    candidates = baselines[baselines["baseline"] != BLURRED].sort_values(
        "best", ascending=False, kind="stable"
    )
    best = candidates.drop_duplicates(SCORE).rename(
        columns={"baseline": "best_baseline", "best": "baseline_best"}
    )
    mc = meta_consistency.pivot_table(index=SCORE, columns="test", values="mc", sort=False).add_prefix("mc_")
    table = passes.set_index(SCORE)
    table["measures"] = table.index.get_level_values("metric").map(measures)
    table = table.join(order.set_index(SCORE)[["rho", "rho_low", "rho_high", "macro"]])
    table = table.join(without_baselines.groupby(SCORE)[["alpha", "alpha_low", "alpha_high"]].mean())
    table = table.join(mc.reindex(columns=["mc_model", "mc_input"]))
    table = table.join(best.set_index(SCORE)[["best_baseline", "baseline_best", "chance"]]).reset_index()
    table["best_baseline"] = table["best_baseline"].fillna("")
    texts = [
        recommendation(row, _verdict(rated, row["metric"], row["variant"], at_chance=at_chance))
        for _, row in table.iterrows()
    ]
    return table.assign(verdict=texts)[RECOMMENDED]


def _verdict(rated: Mapping[str, pd.DataFrame], metric: str, variant: str, *, at_chance: bool) -> Verdict:
    order, pairs = (
        table[(table["metric"] == metric) & (table["variant"] == variant)]
        for table in (rated["order"], rated["pairs"])
    )
    return verdict(order, pairs, alpha_row(rated["reliability"], metric, variant), at_chance=at_chance)


def recommendation(row: "pd.Series[Any]", verdict: Verdict) -> str:
    """Return ``usable`` with the verdict on the metric, or else the reasons against it, separated by semicolons.

    A score is usable if it follows the known order (ρ of at least ``AGREES``, with an interval above 0), and if it is
    shown that it orders the methods (``Verdict.is_shown``), baselines among them. No score of a property of
    ``UNORDERED`` is usable, because neither the known order nor baselines test it.
    """
    if row["measures"] in UNORDERED:
        return f"known orders and baselines do not test {row['measures']}"
    reasons = []
    if np.isnan(row["rho"]):
        reasons.append("not compared with a known order")
    elif row["rho_high"] < 0:
        reasons.append("prefers degraded maps")
    elif np.isnan(row["rho_low"]):
        reasons.append("too few images for an interval of ρ")
    elif row["rho_low"] <= 0:
        reasons.append("not shown to distinguish degraded maps")
    elif row["rho"] < AGREES:
        reasons.append("follows the known order weakly")
    if not verdict.is_shown:
        reasons.append(verdict.text)
    elif np.isnan(row["baseline_best"]):
        reasons.append("no baseline to compare with")
    return "; ".join(reasons) or f"{USABLE}; {verdict.text}"


def is_usable(recommendation: str) -> bool:
    """Return True if a recommendation is that of a usable score."""
    return recommendation.startswith(USABLE)
