"""Scores by which the methods of a grid study are rated."""

from collections.abc import Collection, Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables


def rated_scores(
    paths: Sequence[Path], *, data: str, models: Sequence[str], images: Collection[int] | None = None
) -> RatedTable:
    """Return the localization scores of all settings unchanged.

    Args:
        paths: score tables, in the order of the study's methods.
        data: not used; the tables have the name of the set.
        models: not used; the tables have the name of the model.
        images: images of grids whose scores are read; None for all.
    """
    return rated_table(score_tables.read(paths, compact=True, only=score_tables.of_images(images)))
