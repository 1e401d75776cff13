"""Scores by which the methods of a parts study are rated."""

from collections.abc import Collection, Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables

OF_IMAGES = ("image", ">=", 0)
"""Condition on rows that excludes the values of a whole set, such as the threshold."""


def rated_scores(
    paths: Sequence[Path], *, data: str, models: Sequence[str], images: Collection[int] | None = None
) -> RatedTable:
    """Return the scores of single images.

    Args:
        paths: score tables, in the order of the study's methods.
        data: not used; the tables have the name of the set.
        models: not used; the tables have the name of the model.
        images: images whose scores are read; None for all images.
    """
    only = [*score_tables.of_images(images), OF_IMAGES]
    return rated_table(score_tables.read(paths, compact=True, only=only))
