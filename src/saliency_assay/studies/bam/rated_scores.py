"""Scores of a BAM study that reliability analyses use to rate methods."""

from collections.abc import Collection, Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables

RATING = ("mcs", "idr", "iir", "iir_difference")


def rated_scores(
    paths: Sequence[Path], *, data: str, models: Sequence[str], images: Collection[int] | None = None
) -> RatedTable:
    """Return MCS, IDR, IIR and the relative change of attribution, each in the object's mask.

    The variant is the name of the metric, followed by the changed property for robustness sets (``mcs scale``).

    Args:
        paths: score tables, in the order of the study's methods; only the needed rows are read.
        data: name of the collection, whose sets are ``{data}_os`` and so on.
        models: object model and scene model.
        images: images whose scores are read; None for all images.
    """
    filters = [
        ("metric", "in", list(RATING)),
        ("variant", "==", "object"),
        *score_tables.of_images(images),
    ]
    table = score_tables.read(paths, compact=True, only=filters)
    metric, set_name, prefix = table["metric"].astype(str), table["data"].astype(str), f"{data}_os_"
    variation = set_name.where(set_name.str.startswith(prefix), "").str.removeprefix(prefix)
    variant = (metric + " " + variation).str.strip()
    return rated_table(table.assign(variant=variant, data=data, model=", ".join(models)))
