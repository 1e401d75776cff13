"""Scores by which the methods of a fidelity study are rated."""

from collections.abc import Sequence
from pathlib import Path

from saliency_assay.reliability.rated_scores import RatedTable, rated_table
from saliency_assay.storage import score_tables


def rated_scores(paths: Sequence[Path], *, data: str, models: Sequence[str]) -> RatedTable:
    """Return all scores of the study unchanged.

    Args:
        paths: score tables, in the order of the study's methods.
        data: not used; the tables have the name of the set.
        models: not used; the tables have the name of the model.
    """
    return rated_table(score_tables.read(paths, compact=True))
