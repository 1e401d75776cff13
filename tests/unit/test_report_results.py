"""Sentences on the limits of a study's ranks."""

import pandas as pd
import pytest

from saliency_assay.report.pages.results import claims_words, leakage_words

NAN = float("nan")


def leakage(*rows: tuple[str, float, float, bool]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["method", "accuracy", "p", "leaks"]).assign(chance=0.1)


def test_methods_whose_masks_leak_are_named_once_with_their_greatest_accuracy() -> None:
    words = leakage_words(leakage(("a", 0.3, 0.0, True), ("a", 0.42, 0.0, True), ("b", 0.9, 0.4, False)))
    assert words.startswith(
        "Masks alone predict the class for a (42 % accuracy), chance 10 %: accuracy may stay"
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
    assert words in leakage_words(table)
    assert "Masks alone predict" not in leakage_words(table)


def test_claims_of_a_paper_are_counted_by_verdict() -> None:
    claims = pd.DataFrame({"verdict": ["holds", "holds", "does not hold"]})
    assert "2 hold, 1 do not, 0 not tested here" in claims_words(claims)
