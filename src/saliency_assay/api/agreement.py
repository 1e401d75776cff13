"""Reliability of a metric and order of methods, from arrays of scores."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from saliency_assay.api.scores import Scores
from saliency_assay.metrics import METRICS
from saliency_assay.registry.directions import VALID
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import unknown
from saliency_assay.reliability import statistics
from saliency_assay.reliability.comparison import MEANS, WINS, RankedBy
from saliency_assay.reliability.order_tables import COMPARED, ComparedScores, Rule
from saliency_assay.reliability.reliability_tables import SCORED


@dataclass(frozen=True)
class Assessment:
    """Reliability of one metric, and the order of methods under it."""

    alpha: statistics.Estimate
    """Krippendorff's α: see ``statistics.alpha``."""
    correlation: statistics.Estimate
    """Mean of Spearman's ρ over pairs of methods: see ``statistics.mean_correlation``."""
    concordance: statistics.Estimate
    """Share of untied comparisons on an image that agree with the order on the others: see ``statistics.concordance``;
    for scores 0 and 1, under which α is low because of ties."""
    order: pd.DataFrame
    """A row for each method: ``images`` with a score; ``mean`` with the ends ``low`` and ``high`` of its confidence
    interval, NaN if the scores are too skewed for it; ``win_rate``, the share of the other methods that it beats on an
    image; and ``rank``, 1 + the number of better methods, with its confidence set from ``rank_low`` to ``rank_high``.
    Ranks compare methods on the images that both have a score for, unlike the means."""
    pairs: pd.DataFrame
    """A row for each pair ``method, other``, with the columns of ``reliability.order_tables.order_tables``: difference
    of means, probability of winning on an image, adjusted p-values, images needed, and the ``finding``."""
    correlations: pd.DataFrame
    """Spearman's ρ over images, of each pair of methods; NaN where undefined."""
    rank_level: float
    """Confidence level of the intervals of the means, and joint level of all rank sets."""
    label: str
    """Label of the score; empty if only its values were passed."""


def assess(
    scores: Mapping[str, Any] | pd.DataFrame,
    *,
    score: str = "",
    direction: str = "",
    clusters: Mapping[str, Any] | None = None,
    resamples: int = 10_000,
    level: float = 0.999,
    rank_level: float = 0.95,
    ranks: RankedBy = WINS,
    margin: float | None = None,
    margin_unit: Literal["sd", "score"] = "sd",
    seed: int = 0,
) -> Assessment:
    """Assess one metric from its scores of several methods.

    Args:
        scores: for each method, by name, the result of ``saliency_assay.score``, a data frame of it, or the scores
            ``[N]``, of the same images in the same order; NaN or infinite if an image has no score. Two methods are
            compared on the images that have a score for both. Scores of several metrics are a dictionary by metric for
            each method. Instead of a dictionary, a data frame has one column for each method, or for each method and
            score in two levels.
        score: name of the score to assess, if the methods have several, such as ``aopc_morf L=20``; of several metrics,
            the name of a metric with one score, or of a score. Scores of the same name in several metrics have the name
            of the metric before it.
        direction: ``higher``, ``lower``, or ``target X`` if scores closest to X are best; by default that of the score,
            which results of ``saliency_assay.score`` contain for registered metrics.
        clusters: for images that are not independent, the cluster of each image, ``[N]``, by name of the grouping, such
            as ``{"patients": patient_of_image}``.
        resamples: number of bootstrap resamples for the interval of ``alpha``.
        level: confidence level of the intervals of ``alpha``, ``correlation`` and ``concordance``.
        rank_level: confidence level of the intervals of means and pairs, and joint level of all rank sets.
        ranks: what ranks compare: ``wins``, on how many images methods have the better score, which needs no assumption
            on the shape of the scores, or ``means``.
        margin: largest difference of means of equivalent methods; by default none are called equivalent.
        margin_unit: unit of ``margin``: ``sd``, the standard deviation of all scores, or ``score``.
        seed: seed of the resamples.

    Raises:
        ValueError: there are fewer than two methods or a duplicate one, an unknown or no score of several, scores of
            different metrics, scores or clusters of different lengths, an image without a cluster, no or an invalid
            direction, level, ``ranks`` or margin, or a direction that is not that of the score.

    >>> import numpy as np
    >>> import saliency_assay
    >>> noise = np.random.default_rng(0).normal(size=(3, 20))
    >>> gradcam, gradient, baseline = noise + [[9.0], [9.0], [0.0]]
    >>> scores = {"gradcam": gradcam, "gradient": gradient, "random": baseline}
    >>> result = saliency_assay.assess(scores, direction="higher")
    >>> result.order[["rank_low", "rank_high"]].astype(int).to_numpy().tolist()
    [[1, 2], [1, 2], [3, 3]]
    """
    if isinstance(scores, Scores) or not isinstance(scores, Mapping | pd.DataFrame):
        raise ValueError(
            f"scores: found {type(scores).__name__}, expected a dictionary of the scores of each method"
        )
    if isinstance(scores, pd.DataFrame) and scores.columns.nlevels == 2:
        scores = {name: scores[name] for name in scores.columns.unique(0)}
    names = [str(name) for name in (scores.columns if isinstance(scores, pd.DataFrame) else scores)]
    selected = {str(name): _selected(str(name), values, score) for name, values in scores.items()}
    if len(selected) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"scores: found the method {repeated!r} twice, expected each method once")
    columns = {name: np.asarray(each.values, dtype=np.float64) for name, each in selected.items()}
    direction, label = _direction_and_label(selected, direction)
    limits = next(iter(selected.values())).limits if selected else None
    shapes = {values.shape for values in columns.values()}
    if len(columns) < 2 or len(shapes) != 1 or len(*shapes) != 1:
        shapes_by_name = {name: list(values.shape) for name, values in columns.items()}
        raise ValueError(f"scores: found {shapes_by_name}, expected [N] of at least two methods")
    if not 0 < rank_level < 1:
        raise ValueError(f"rank_level: found {rank_level}, expected a share in (0, 1)")
    if ranks not in (WINS, MEANS):
        raise ValueError(f"ranks: found {ranks!r}, expected {WINS} or {MEANS}")
    if margin is not None and not 0 < margin < float("inf"):
        raise ValueError(f"margin: found {margin}, expected a positive number")
    if margin_unit not in ("sd", "score"):
        raise ValueError(f"margin_unit: found {margin_unit!r}, expected sd or score")
    raw = np.stack(list(columns.values()), axis=1)
    raw = np.where(np.isfinite(raw), raw, np.nan)
    factors = {}
    for name, assignment in ({} if clusters is None else clusters).items():
        if np.shape(assignment) != raw.shape[:1]:
            raise ValueError(f"clusters: {name}: found {list(np.shape(assignment))}, expected [{len(raw)}]")
        labels, _ = pd.factorize(pd.Series(list(assignment), dtype=object))
        if (labels < 0).any():
            raise ValueError(f"clusters: {name}: found images without a cluster, expected one for each")
        factors[f"clusters {name}"] = labels
    if (scored := ~np.isnan(raw).all(axis=1)).any():  # as in the workflow
        raw, factors = raw[scored], {name: labels[scored] for name, labels in factors.items()}
    compared = ComparedScores(
        pd.DataFrame(raw, columns=list(columns)),
        direction,
        factors,
        limits,
        rule=Rule(ranks, margin, margin_unit, rank_level),
    )
    rows = pd.DataFrame(compared.order_rows()).set_index("method")
    rows.insert(0, "rank", compared.ranks.rank)
    values = compared.scores
    return Assessment(
        statistics.alpha(values, clusters=factors, resamples=resamples, level=level, seed=seed),
        statistics.mean_correlation(values, clusters=factors, level=level),
        statistics.concordance(values, clusters=factors, level=level),
        rows[["images", "mean", "low", "high", "win_rate", "rank", "rank_low", "rank_high"]],
        pd.DataFrame(compared.pair_rows(), columns=COMPARED[len(SCORED) :]),
        pd.DataFrame(statistics.correlations(values), index=rows.index, columns=rows.index),
        rank_level,
        label,
    )


class _Selected(NamedTuple):
    """Scores of one method, with what is known of the score."""

    values: Any
    metric: str = ""
    direction: str = ""
    label: str = ""
    limits: tuple[float, float] | None = None


def _selected(method: str, values: Any, score: str) -> _Selected:
    """Return the scores of one method: those called ``score``, or the only ones, of a mapping or data frame."""
    if not isinstance(values, Mapping | pd.DataFrame):
        if score:
            raise ValueError(
                f"score: found {score!r}, but the scores of {method} have no name, expected none"
            )
        return _Selected(values)
    listed, others = _scores_by_name(values)
    if not score and len(listed) != 1:
        raise ValueError(f"score: missing, {method} has several scores; valid: {', '.join(listed)}")
    name = score or next(iter(listed))
    if name not in listed and name not in others:
        raise ValueError(f"{method}: {unknown('score', name, listed)}")
    return listed[name] if name in listed else others[name]


def _scores_by_name(
    values: Mapping[Any, Any] | pd.DataFrame,
) -> tuple[dict[str, _Selected], dict[str, _Selected]]:
    """Return the scores of one method by name, and by other names that are valid, too.

    Values are scores, or those of a metric by name. The only score of a metric has the name of the metric; others
    have their own name, after that of the metric if several metrics have such a score.
    """
    if isinstance(values, Scores):
        ranges = {
            each.name: each.range
            for record in METRICS
            if record.name == values.metric
            for each in record.scores
        }
        return {
            name: _Selected(
                scores,
                values.metric,
                values.directions.get(name, ""),
                values.labels[name],
                ranges.get(name.partition(" ")[0]),
            )
            for name, scores in values.items()
        }, {}
    by_metric = {
        str(key): _scores_by_name(inner)[0]
        for key, inner in values.items()
        if isinstance(inner, Mapping | pd.DataFrame)
    }
    occurrences = Counter(chain(map(str, values), *by_metric.values()))
    listed: dict[str, _Selected] = {}
    others: dict[str, _Selected] = {}
    for key, inner in values.items():
        if str(key) not in by_metric:
            listed[str(key)] = _Selected(inner, label=label_of(str(key), None))
            continue
        of_metric = by_metric[str(key)]
        for name, selected in of_metric.items():
            full, own = f"{key} {name}", {name} if occurrences[name] == 1 else set()
            short = str(key) if len(of_metric) == 1 else name if own else full
            listed[short] = selected
            others |= dict.fromkeys({full, *own} - {short}, selected)
    return listed, others


def _direction_and_label(selected: Mapping[str, _Selected], direction: str) -> tuple[str, str]:
    """Return the direction and label of the scores, after a check that all methods have the same score."""
    known = {each[1:] for each in selected.values()}
    if len(known) > 1:
        metrics = {name: each.metric or "no metric" for name, each in selected.items()}
        raise ValueError(f"scores: found {metrics}, expected scores of one metric")
    _, of_score, label, _ = next(iter(known), ("", "", "", None))
    if not direction and not of_score:
        raise ValueError(f"direction: missing, and the scores state none; valid: {VALID}")
    if direction and of_score and direction != of_score:
        raise ValueError(f"direction: found {direction!r}, but that of {label} is {of_score!r}")
    return direction or of_score, label
