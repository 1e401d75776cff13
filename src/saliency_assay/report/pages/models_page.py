"""Page of the explained models."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def accuracy_table(evaluations: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Return the accuracy in percent of every model, seed, set and split, with the class it is worst at.

    Args:
        evaluations: for each model and seed the content of ``evaluation.json``.
    """
    rows = []
    for (model, seed), sets in evaluations.items():
        for name, splits in sets.items():
            for split, of_split in splits.items():
                worst = min(of_split["per_class"], key=of_split["per_class"].get)
                rows.append(
                    {
                        "model": model,
                        "seed": str(seed),
                        "set": name,
                        "split": split,
                        "images": of_split["images"],
                        "accuracy (%)": 100 * of_split["accuracy"],
                        "worst class": worst,
                        "its accuracy (%)": 100 * of_split["per_class"][worst],
                    }
                )
    return pd.DataFrame(rows)
