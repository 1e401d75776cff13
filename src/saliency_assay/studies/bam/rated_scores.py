"""Scores that rate the methods of a BAM study."""

from collections.abc import Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables

RATING = ("mcs", "idr", "iir", "iir_difference")


def rated_scores(paths: Sequence[Path], *, data: str, models: Sequence[str]) -> RatedTable:
    """Return MCS, IDR, IIR and its relative change in the object's mask.

    Variants are the metric and, of sets for robustness, what they vary (``mcs scale``).

    Args:
        paths: of score tables, in the order of the study's methods; only rows that are needed are read.
        data: name of the collection, whose sets are ``{data}_os`` and so on.
        models: object model and scene model.
    """
    only = [("metric", "in", list(RATING)), ("variant", "==", "object")]
    table = score_tables.read(paths, compact=True, only=only)
    metric, of_set, robust = table["metric"].astype(str), table["data"].astype(str), f"{data}_os_"
    varied = of_set.where(of_set.str.startswith(robust), "").str.removeprefix(robust)
    variant = (metric + " " + varied).str.strip()
    return rated_table(table.assign(variant=variant, data=data, model=", ".join(models)))
