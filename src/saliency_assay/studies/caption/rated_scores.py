"""Scores of a caption study that reliability analyses use to rate methods."""

from collections.abc import Collection, Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables


def rated_scores(
    paths: Sequence[Path], *, data: str, models: Sequence[str], images: Collection[int] | None = None
) -> RatedTable:
    """Return infidelity for halves, with one variant per model.

    Args:
        paths: score tables, in the order of the study's methods; only the needed rows are read.
        data: not used, because the tables contain the name of the set, which is the same for both models.
        models: models of the study.
        images: images whose scores are read; None for all images.
    """
    filters = [("metric", "==", "infidelity"), *score_tables.of_images(images)]
    table = score_tables.read(paths, compact=True, only=filters)
    variant = table["variant"].astype(str) + " " + table["model"].astype(str)
    return rated_table(table.assign(variant=variant, model=", ".join(models)))
