"""Tables of a validity study in words, for its page of the report."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.studies.validity.known_order import ALL
from saliency_assay.studies.validity.rescoring import INPUT, MODEL
from saliency_assay.studies.validity.validity_tables import BLURRED, USABLE, is_usable

HEADS: Mapping[str, str] = MappingProxyType(
    {
        "rho": "ρ with the known order",
        "rho_low": "ρ, lower CI limit",
        "rho_high": "ρ, upper CI limit",
        "macro": "ρ of mean scores",
        "macro_low": "ρ of mean scores, lower CI limit",
        "macro_high": "ρ of mean scores, upper CI limit",
        "micro": "mean ρ of images",
        "micro_low": "mean ρ, lower CI limit",
        "micro_high": "mean ρ, upper CI limit",
        "mc": "MC",
        "mc_model": "MC, model",
        "mc_input": "MC, image",
        "mc_sd": "sd of MC",
        "iac_nr": "IAC, resilience",
        "iac_ar": "IAC, reactivity",
        "iec_nr": "IEC, resilience",
        "iec_ar": "IEC, reactivity",
        "iac_nr_sd": "sd of IAC, resilience",
        "iac_ar_sd": "sd of IAC, reactivity",
        "iec_nr_sd": "sd of IEC, resilience",
        "iec_ar_sd": "sd of IEC, reactivity",
        "ties_ar": "equal scores, reactivity",
        "images_nr": "images, resilience",
        "images_ar": "images, reactivity",
        "best_baseline": "best baseline",
        "baseline_best": "images on which it beats every method",
        "best": "images with the best score",
        "passes": "passes per map",
        "test": "change of",
    }
)
"""Names of columns of the study's tables on its page."""
WORDS = {MODEL: "model", INPUT: "image"}


def in_words(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return a table with labels of methods and tests, and verdicts as sentences."""
    table = table.copy()
    if "method" in table:
        table["method"] = [name if name == ALL else labels.method(name) for name in table["method"]]
    for column in {"baseline", "best_baseline"} & set(table):
        names = {name: name if name in ("", BLURRED) else labels.method(name) for name in set(table[column])}
        table[column] = table[column].map(names)
    if "test" in table:
        table["test"] = table["test"].map(WORDS)
    if "verdict" in table:
        table["verdict"] = [sentence(row) for _, row in table.iterrows()]
    return table


def sentence(row: "pd.Series[Any]") -> str:
    """Return the recommendation for a score."""
    if is_usable(row["verdict"]):
        verdict = row["verdict"].removeprefix(f"{USABLE}; ")
        return f"Usable on this set: it follows the known order (ρ = {row['rho']:.2f}); {verdict}."
    return f"Not recommended on this set: {row['verdict']}."
