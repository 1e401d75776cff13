"""Sentences on the limits of the ranks of a retrain study."""

from collections.abc import Mapping

import pandas as pd

from saliency_assay.plotting.text import joined
from saliency_assay.registry.labels import UNLABELED, Labels


def cautions(tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[str]:
    """Return one sentence on mask leakage, or none if it was measured and no arm leaks, which does not exclude it.

    Args:
        tables: ``leakage`` from ``leakage_tables.leakage_table``, if it was measured.
        labels: labels of methods.
    """
    sentence = _leakage_sentence(tables.get("leakage"), labels)
    return [sentence] if sentence else []


def _leakage_sentence(leakage: pd.DataFrame | None, labels: Labels) -> str:
    """Return a sentence on leakage: if masks alone predict the class, ranks may not reflect saliency.

    - Without a table, or if no arm was tested (``p`` is NaN), leakage is unknown.
    - If no arm has ``leaks``, no leakage was detected, and the sentence is empty.
    - Otherwise, the methods with leaking arms are listed with their highest accuracy.
    """
    risk = "if masks alone predict the class, these ranks are not evidence about saliency"
    if leakage is None:
        return f"Mask leakage was not measured; {risk}."
    tested = leakage[leakage["p"].notna()]
    if tested.empty:
        return f"Mask leakage could not be tested; {risk}."
    leaking = tested[tested["leaks"].astype(bool)]
    if leaking.empty:
        return ""
    greatest_accuracy = leaking.groupby("method", sort=False)["accuracy"].max()
    methods = joined(
        f"{labels.method(str(method))} ({100 * accuracy:.0f} % accuracy)"
        for method, accuracy in greatest_accuracy.items()
    )
    chance = f"chance {100 * leaking['chance'].iloc[0]:.0f} %"
    return (
        f"Masks alone predict the class for {methods}, {chance}: accuracy may stay high whichever pixels the masks "
        "occlude, so the ranks of these methods need not reflect the pixels that they highlight."
    )
