"""How good the models are that everything else explains."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def accuracy_table(evaluations: Mapping[tuple[str, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Accuracy in percent of every model, seed, set and split, with the class it is worst at.

    Args:
        evaluations: for each model and seed what ``evaluation.json`` holds.
    """
    rows = []
    for (model, seed), sets in evaluations.items():
        for name, splits in sets.items():
            for split, found in splits.items():
                worst = min(found["per_class"], key=found["per_class"].get)
                rows.append(
                    {
                        "model": model,
                        "seed": str(seed),
                        "set": name,
                        "split": split,
                        "images": found["images"],
                        "accuracy (%)": 100 * found["accuracy"],
                        "worst class": worst,
                        "its accuracy (%)": 100 * found["per_class"][worst],
                    }
                )
    return pd.DataFrame(rows)
