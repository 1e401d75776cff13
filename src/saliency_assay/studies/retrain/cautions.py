"""Limits of the ranks of a retrain study, in words."""

from collections.abc import Mapping

import pandas as pd

from saliency_assay.plotting.text import joined


def cautions(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return one sentence on mask leakage.

    Args:
        tables: ``leakage``, as ``leakage_tables.leakage_table`` gives it, where it was measured.
    """
    return [_leakage(tables.get("leakage"))]


def _leakage(leakage: pd.DataFrame | None) -> str:
    """Return whether masks alone predict the class, so that the ranks of a retrain study need not be about saliency.

    - There is no table, or no arm was tested (``p`` is NaN): unknown.
    - No arm has ``leaks``: no leakage was detected, which does not exclude it.
    - Otherwise the methods with such an arm are named, with their greatest accuracy.
    """
    risk = "if masks alone predict the class, these ranks say nothing about saliency"
    if leakage is None:
        return f"Mask leakage was not measured; {risk}."
    tested = leakage[leakage["p"].notna()]
    if tested.empty:
        return f"Mask leakage could not be tested; {risk}."
    leaks = tested[tested["leaks"].astype(bool)]
    if leaks.empty:
        return f"No mask leakage was detected in any tested arm ({len(tested)})."
    greatest = leaks.groupby("method", sort=False)["accuracy"].max()
    named = joined(f"{method} ({100 * accuracy:.0f} % accuracy)" for method, accuracy in greatest.items())
    chance = f"chance {100 * leaks['chance'].iloc[0]:.0f} %"
    return (
        f"Masks alone predict the class for {named}, {chance}: accuracy may stay high whatever the masks occlude, so"
        " the ranks of these methods need not be about the pixels they mark."
    )
