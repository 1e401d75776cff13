"""Evidence for and against metrics: reliability, validity, and agreement, from the tables of all studies of a run.

Each kind of evidence is a statistic with an interval. Only the interval decides: a value whose interval contains the
threshold shows nothing. There is no overall score; ``conclusion`` states which evidence a metric has.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from saliency_assay.registry.properties import LOCALIZATION, UNORDERED
from saliency_assay.reliability.across import ALL
from saliency_assay.reliability.verdicts import ALPHA, alpha_row, images_agree

SCORE = ["metric", "variant"]
EVIDENCE = [*SCORE, "evidence", "study", "studies", "value", "low", "high", "finding", "conclusion"]
FOR, AGAINST, OPEN, UNTESTABLE = "for", "against", "open", "does not apply"
"""Values of ``finding``. The last one is that of properties that the kind of evidence does not test."""
NOT_MEASURED = "not measured"
SUPPORTED, CONTRADICTED, NOT_SHOWN = "supported", "contradicted", "not shown"
"""Values of ``conclusion``."""
LEVEL = 0.95


@dataclass(frozen=True)
class Kind:
    """A kind of evidence."""

    name: str
    label: str
    statistic: str
    """Symbol of its statistic."""
    description: str
    threshold: float
    """The interval must lie above it."""
    source: str
    """Part of a configuration from which it comes."""
    range: tuple[float, float] | None = None
    """Ends of the axis of the statistic; None if its unit is that of the scores."""
    compares_with_answer: bool = False
    """True if it compares the metric with a known answer, as neither reliability nor consistency does."""
    tests_validity: bool = True
    """False if evidence against the metric means that its order of methods is not stable, not that it is wrong."""
    untested: Collection[str] = ()
    """Properties (``registry.properties``) whose metrics it does not test."""


RELIABILITY = Kind(
    "reliability",
    "reliability",
    "α",
    f"Krippendorff's α, the agreement of images on the ranking of the methods; threshold {ALPHA}. Its interval has the "
    "level of the configuration, those of the other kinds 95 %. For scores with two "
    "values, concordance may decide.",
    ALPHA,
    "studies that rate methods",
    (-1, 1),
    tests_validity=False,
)
KNOWN_ORDER = Kind(
    "known_order",
    "known order",
    "ρ",
    "Spearman's ρ with the order of maps that are degraded in steps; threshold 0. It does not test robustness, "
    "complexity or randomization.",
    0,
    "a validity study",
    (-1, 1),
    compares_with_answer=True,
    untested=UNORDERED,
)
META_MODEL = Kind(
    "meta_consistency_model",
    "meta-consistency (model)",
    "MC",
    "Meta-consistency under changes of the model; threshold 0.5, the value of a metric that the change cannot affect. "
    "The interval is over random changes, not over images.",
    0.5,
    KNOWN_ORDER.source,
    (0, 1),
)
META_INPUT = replace(
    META_MODEL,
    name="meta_consistency_input",
    label="meta-consistency (image)",
    description=META_MODEL.description.replace("model", "image", 1),
)
TRUTH = Kind(
    "truth",
    "truth on designed networks",
    "ρ",
    "Spearman's ρ between the metric's order of the methods and their order by closeness to the true importance; "
    "threshold 0. Also against the metric if a method is significantly better than the truth. It does not "
    "test localization, robustness, complexity and randomization.",
    0,
    "a designed study",
    (-1, 1),
    compares_with_answer=True,
    # Another map may be simpler than the truth or more robust, and networks may ignore objects of the mask.
    untested=(LOCALIZATION, *UNORDERED),
)
MODELS = Kind(
    "models",
    "agreement between models",
    "ρ",
    "Mean Spearman's ρ between the orders of the methods on different models or data sets; threshold 0.",
    0,
    "several models or data sets",
    (-1, 1),
    tests_validity=False,
)
RANGE = Kind(
    "controls",
    "range between controls",
    "range",
    "Difference of the mean scores of the best possible map and of random maps, positive if the former is better; "
    "threshold 0. It can be against the metric, but does not support it: the best possible map is that of the metric.",
    0,
    "a study with controls",
)
KINDS = (RELIABILITY, KNOWN_ORDER, META_MODEL, META_INPUT, TRUTH, MODELS, RANGE)


def evidence_table(
    studies: Mapping[str, Mapping[str, pd.DataFrame]],
    task_agreement: pd.DataFrame | None,
    measured: Mapping[str, str],
    entries: Iterable[str],
) -> pd.DataFrame:
    """Return all evidence on metrics that score single maps.

    Args:
        studies: for each study its tables: ``reliability`` and ``controls`` if it rates methods, and as far as it has
            them ``known_order``, ``meta_consistency`` and ``metric_truth``, which has a row for each network. A study
            with a model that is not shown to be better than chance must be left out.
        task_agreement: ``agreement`` of ``across.across_tasks``; None if no tasks are compared.
        measured: for each score the property that it measures.
        entries: names of the metrics of single maps, with which ``variant`` begins.

    Returns:
        A row for each score and measured kind of evidence: ``metric, variant, evidence``; ``value, low, high``: its
        statistic with its interval; ``finding``: ``for`` if the interval lies above the threshold of the kind,
        ``against`` if it lies below, else ``open``; ``does not apply`` if the kind does not test the property;
        ``study``: the study of these numbers, and ``studies``: the number of studies with this evidence. If studies or
        networks differ, the numbers are those of one that is against or, without one, for. ``conclusion``: that on the
        metric, see ``conclusion``, the same in all of its rows.
    """
    rows = [row for study, tables in studies.items() for row in _rows_of_study(study, tables)]
    rows += [] if task_agreement is None else list(_model_rows(task_agreement))
    table, names = pd.DataFrame(rows, columns=[*EVIDENCE[:4], *EVIDENCE[5:9]]), set(entries)
    is_scored = [variant.partition(" ")[0] in names for variant in table["variant"]]
    table = table[np.array(is_scored, dtype=bool)]
    chosen, untested = [], {kind.name: kind.untested for kind in KINDS}
    for (metric, _), of_score in table.groupby(SCORE, sort=False):
        kinds = []
        for name, of_kind in of_score.groupby("evidence", sort=False):
            row = _deciding(of_kind) | {"studies": of_kind["study"].nunique()}
            if measured.get(str(metric)) in untested[str(name)]:
                row["finding"] = UNTESTABLE
            kinds.append(row)
        findings = {row["evidence"]: row["finding"] for row in kinds}
        chosen += [row | {"conclusion": conclusion(findings)} for row in kinds]
    return pd.DataFrame(chosen, columns=EVIDENCE)


def conclusion(findings: Mapping[str, str]) -> str:
    """Return the conclusion on a metric from the finding of each kind of evidence, by its name.

    - ``CONTRADICTED``: evidence on its validity is against it.
    - ``SUPPORTED``: no evidence is against it; reliability is for it, and so is a comparison with a known answer.
    - ``NOT_SHOWN``: neither.
    """
    if any(kind.tests_validity and findings.get(kind.name) == AGAINST for kind in KINDS):
        return CONTRADICTED
    is_valid = any(kind.compares_with_answer and findings.get(kind.name) == FOR for kind in KINDS)
    is_stable = findings.get(RELIABILITY.name) == FOR and findings.get(MODELS.name) != AGAINST
    return SUPPORTED if is_valid and is_stable else NOT_SHOWN


def finding_of(low: float, high: float, threshold: float) -> str:
    """Return whether an interval lies above or below a threshold; ``OPEN`` if it contains it, or is NaN."""
    return FOR if low > threshold else AGAINST if high < threshold else OPEN


def _deciding(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the row against a metric or, without one, for it; of several the first."""
    for finding in (AGAINST, FOR):
        if (rows["finding"] == finding).any():
            rows = rows[rows["finding"] == finding]
            break
    return {str(name): value for name, value in rows.iloc[0].items()}


def _rows_of_study(study: str, tables: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Any]]:
    readers = {
        "reliability": _reliability_rows,
        "known_order": _known_order_rows,
        "meta_consistency": _meta_rows,
        "metric_truth": _truth_rows,
        "controls": _range_rows,
    }
    for name, read in readers.items():
        if name in tables:
            for row in read(tables[name]):
                yield row | {"study": study}


def _row(
    score: Sequence[Any], kind: Kind, value: float, low: float, high: float, finding: str = ""
) -> dict[str, Any]:
    finding = finding or finding_of(low, high, kind.threshold)
    numbers = {"value": value, "low": low, "high": high, "finding": finding}
    return {"metric": score[0], "variant": score[1], "evidence": kind.name, **numbers}


def _reliability_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield α; for scores with two values, concordance may decide the finding, see ``verdicts.images_agree``."""
    for score in table[SCORE].drop_duplicates().itertuples(index=False, name=None):
        alpha = alpha_row(table, *score)
        if alpha is None or np.isnan(alpha["alpha"]):
            continue
        finding = {True: FOR, False: AGAINST, None: OPEN}[images_agree(alpha)]
        yield _row(score, RELIABILITY, alpha["alpha"], alpha["alpha_low"], alpha["alpha_high"], finding)


def _known_order_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    # The rows of all methods and degradations are the first of each score.
    columns = [*SCORE, "micro", "micro_low", "micro_high"]
    for *score, value, low, high in table.drop_duplicates(SCORE)[columns].itertuples(index=False, name=None):
        if not np.isnan(value):
            yield _row(score, KNOWN_ORDER, value, low, high)


def _meta_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield MC with Student's t interval of its mean over iterations, which is not that of other images.

    Of several training seeds, the mean with the outermost ends; NaN if all iterations are equal, or there is only one.
    """
    for (metric, variant, test), rows in table.groupby([*SCORE, "test"], sort=False):
        count, value = rows["iterations"].to_numpy(np.float64), rows["mc"].to_numpy(np.float64)
        if np.isnan(value).all():
            continue
        half, sd = np.full(len(rows), np.nan), rows["mc_sd"].to_numpy(np.float64)
        varies = (count > 1) & (sd > 0)
        # The standard deviation of the table is that of the iterations themselves, not of their population.
        half[varies] = stdtrit(count[varies] - 1, (1 + LEVEL) / 2) * sd[varies] / np.sqrt(count[varies] - 1)
        kind = META_MODEL if test == "model" else META_INPUT
        yield _row((metric, variant), kind, value.mean(), (value - half).min(), (value + half).max())


def _truth_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield ρ with the order by closeness to the truth; against a metric under which another method beats the truth."""
    columns = [*SCORE, "rank_low", "rho", "rho_low", "rho_high"]
    for *score, rank, value, low, high in table[columns].itertuples(index=False, name=None):
        if not np.isnan(value) or not np.isnan(rank):
            yield _row(score, TRUTH, value, low, high, AGAINST if rank > 1 else "")


def _model_rows(agreement: pd.DataFrame) -> Iterator[dict[str, Any]]:
    means = agreement[agreement["task"] == ALL]
    columns = [*SCORE, "tasks", "correlation", "low", "high"]
    for *score, tasks, value, low, high in means[columns].itertuples(index=False, name=None):
        yield _row(score, MODELS, value, low, high) | {"study": f"{tasks} tasks"}


def _range_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    both = table[(table["lower"] != "") & (table["upper"] != "")].drop_duplicates(SCORE)
    columns = [*SCORE, "range", "range_low", "range_high"]
    for *score, value, low, high in both[columns].itertuples(index=False, name=None):
        yield _row(score, RANGE, value, low, high, AGAINST if high <= 0 else "")
