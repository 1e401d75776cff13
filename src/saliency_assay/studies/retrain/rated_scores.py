"""Scores of a retrain study that reliability analyses use to rate methods."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from saliency_assay.storage import score_tables
from saliency_assay.studies.retrain.parameters import LEAST_FIRST

ACCURACY = ("metric", "==", "accuracy")


@dataclass(frozen=True)
class RetrainedAccuracies:
    """Accuracies of f_i on occluded test images, without f_0, which does not depend on a method.

    ``accuracy`` (lower is better) becomes ``accuracy_lerf`` (higher is better) where the least important pixels were
    occluded first.

    Models are scored on all test images, which are tens of millions of rows for ImageNet, so tables are read one
    combination of keys at a time.
    """

    paths: Sequence[Path]
    images: Collection[int] | None = None
    """Images whose scores are read; None for all images."""

    def chunks(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield a table for each combination of ``keys``, in order of appearance."""
        accuracy = [ACCURACY, *score_tables.of_images(self.images)]
        for path in self.paths:
            for key_values in score_tables.combinations(path, keys, only=accuracy):
                filters = [*accuracy, *((name, "==", value) for name, value in key_values.items())]
                table = _retrained(score_tables.read([path], compact=True, only=filters))
                if "metric" in keys:  # one of its names at a time
                    yield from (rated for _, rated in table.groupby("metric", sort=False, observed=True))
                elif len(table):
                    yield table


def rated_scores(
    paths: Sequence[Path], *, data: str, models: Sequence[str], images: Collection[int] | None = None
) -> RetrainedAccuracies:
    """Return accuracies after retraining, with a variant for each protocol, fill and iteration.

    Args:
        paths: score tables, in the order of the study's methods; only the needed rows are read.
        data: not used, because the tables contain the name of the set.
        models: not used, because the tables contain the name of the model.
        images: images whose scores are read; None for all images.
    """
    return RetrainedAccuracies(paths, images)


def _retrained(table: pd.DataFrame) -> pd.DataFrame:
    """Rename variants to ``PROTOCOL/FILL iteration I``, drop iteration 0, and name the metric by the order."""
    variants = table["variant"].cat.remove_unused_categories()
    variant_names = {
        variant: " iteration ".join(variant.rsplit("/", 1)) for variant in variants.cat.categories
    }
    table = table.assign(variant=variants.cat.rename_categories(variant_names))
    table = table[
        ~table["variant"].isin([name for name in variant_names.values() if name.endswith(" iteration 0")])
    ]
    is_least_first = table["variant"].str.startswith(f"{LEAST_FIRST}/")
    metrics = np.where(is_least_first, "accuracy_lerf", "accuracy")
    return table.assign(metric=pd.Categorical(metrics))
