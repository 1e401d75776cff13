"""Sentences on the limits of a study's ranks."""

import pandas as pd
import pytest

from saliency_assay.registry.labels import Labels
from saliency_assay.studies.bam import claims
from saliency_assay.studies.retrain.cautions import cautions

NAN = float("nan")


def leakage(*rows: tuple[str, float, float, bool]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["method", "accuracy", "p", "leaks"]).assign(chance=0.1)


def test_methods_whose_masks_leak_are_named_once_with_their_greatest_accuracy() -> None:
    table = leakage(("a", 0.3, 0.0, True), ("a", 0.42, 0.0, True), ("b", 0.9, 0.4, False))
    (words,) = cautions({"leakage": table}, Labels(methods={"a": "A"}))
    assert words.startswith(
        "Masks alone predict the class for A (42 % accuracy), chance 10 %: accuracy may stay"
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (leakage(("b", 0.9, NAN, False)), "could not be tested"),
        (None, "was not measured"),
    ],
)
def test_unknown_leakage_is_a_caution(table: pd.DataFrame | None, words: str) -> None:
    (sentence,) = cautions({} if table is None else {"leakage": table}, Labels())
    assert words in sentence
    assert "Masks alone predict" not in sentence


def test_arms_without_significant_leakage_are_none() -> None:
    table = leakage(("a", 0.9, 0.4, False), ("b", 0.9, NAN, False))
    assert cautions({"leakage": table}, Labels()) == []


@pytest.mark.parametrize("setting", ["", " in this small setting"])
def test_claims_that_were_not_reproduced_are_counted(setting: str) -> None:
    reproduced, failed = claims.REPRODUCED + setting, claims.NOT_REPRODUCED + setting
    table = pd.DataFrame({"verdict": [reproduced, reproduced, claims.TOO_CLOSE, failed, claims.UNTESTED]})
    assert claims.notes({"claims": table}, Labels()) == [
        f"1 of 4 checked claims of Yang & Kim (2019) was not reproduced{setting}; see the table of claims."
    ]
    assert claims.notes({"claims": table[:3]}, Labels()) == []
