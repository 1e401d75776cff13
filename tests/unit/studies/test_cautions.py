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
        (leakage(("a", 0.9, 0.4, False), ("b", 0.9, NAN, False)), "detected in any tested arm (1)"),
        (leakage(("b", 0.9, NAN, False)), "could not be tested"),
        (None, "was not measured"),
    ],
)
def test_no_leakage_is_claimed_without_a_significant_test(table: pd.DataFrame | None, words: str) -> None:
    (sentence,) = cautions({} if table is None else {"leakage": table}, Labels())
    assert words in sentence
    assert "Masks alone predict" not in sentence


def test_claims_of_a_paper_are_counted_by_verdict() -> None:
    table = pd.DataFrame({"verdict": ["holds", "holds", "does not hold"]})
    (words,) = claims.cautions({"claims": table}, Labels())
    assert "2 hold, 1 do not hold, 0 not tested" in words
