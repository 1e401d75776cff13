"""Scores that rate the methods of a retrain study."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from saliency_assay.storage import score_tables

ACCURACY = [("metric", "==", "accuracy")]


@dataclass(frozen=True)
class RetrainedAccuracies:
    """Accuracy on what is left of test images, lower is better, without f_0, which no method has touched.

    Models are scored on all test images, tens of millions of rows on ImageNet, so a part holds one combination of keys.
    """

    paths: Sequence[Path]

    def parts(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield a table for each combination of ``keys``, in the order in which they come."""
        for path in self.paths:
            for shared in score_tables.combinations(path, keys, only=ACCURACY):
                only = [*ACCURACY, *((name, "==", value) for name, value in shared.items())]
                part = _retrained(score_tables.read([path], compact=True, only=only))
                if len(part):
                    yield part


def rated_scores(paths: Sequence[Path], *, data: str, models: Sequence[str]) -> RetrainedAccuracies:
    """Return accuracies after retraining, a variant for each protocol, fill and iteration.

    Args:
        paths: of score tables, in the order of the study's methods; only rows that are needed are read.
        data: not used: the tables name the set.
        models: not used: the tables name the model.
    """
    return RetrainedAccuracies(paths)


def _retrained(table: pd.DataFrame) -> pd.DataFrame:
    variants = table["variant"].cat.remove_unused_categories()
    named = {variant: " iteration ".join(variant.rsplit("/", 1)) for variant in variants.cat.categories}
    table = table.assign(variant=variants.cat.rename_categories(named))
    return table[~table["variant"].isin([name for name in named.values() if name.endswith(" iteration 0")])]
