"""Table of what a study lacks because methods or metrics failed, with a sentence for each."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.failure import Failure

COLUMNS = (
    "study",
    "method",
    "metric",
    "sentence",
    "rule",
    "model",
    "seed",
    "data",
    "place",
    "reason",
    "traceback",
)
LONGEST = 300  # characters of a reason in a sentence


def not_computed_table(failures: Iterable[Failure], facts: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row for each failed job, with ``COLUMNS``.

    The sentence names a method if its maps failed, a metric if it failed for all methods whose maps were computed, and
    otherwise the metric of the method. Jobs with the same names share the sentence on the first of them.

    Args:
        failures: failures in the inputs of a study; the same failure may be in several of them.
        facts: ``name``, ``label``, ``labels`` and ``methods`` of the study, and ``rule_labels`` of its kind.
    """
    labels, distinct = Labels(**facts["labels"]), list({repr(each): each for each in failures}.values())
    scored = [each.wildcards.get("metric") or facts["rule_labels"].get(each.rule, "") for each in distinct]
    without_maps = {
        each.wildcards["method"] for each, metric in zip(distinct, scored, strict=True) if not metric
    }
    with_maps = {*facts["methods"]} - without_maps
    failed: dict[str, set[str]] = {}
    for each, metric in zip(distinct, scored, strict=True):
        methods = {each.wildcards["method"]} if "method" in each.wildcards else with_maps
        failed.setdefault(metric, set()).update(methods)
    reasons: dict[str, str] = {}
    rows = []
    for each, metric in zip(distinct, scored, strict=True):
        method = each.wildcards.get("method", "")
        is_of_all = metric and failed[metric] >= with_maps
        names = [labels.metrics.get(metric, metric), "" if is_of_all else labels.method(method)]
        subject = " of ".join(filter(None, names))
        reason = reasons.setdefault(subject, each.reason[:LONGEST])
        row = {
            **each.wildcards,
            **{name: getattr(each, name) for name in ("rule", "place", "reason", "traceback")},
        }
        row["sentence"] = f"Not computed: {subject} in {facts['label']}: {reason}"
        rows.append({**row, "study": facts["name"], "method": method, "metric": metric})
    return pd.DataFrame(rows, columns=list(COLUMNS))
