"""Evidence on metrics: what the intervals of each kind show, and the conclusion from all kinds."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from saliency_assay.reliability.across import ALL
from saliency_assay.reliability.evidence import (
    AGAINST,
    CONTRADICTED,
    FOR,
    NOT_SHOWN,
    OPEN,
    SUPPORTED,
    UNTESTABLE,
    conclusion,
    evidence_table,
    finding_of,
)

NAN = np.nan
SCORE = {"metric": "deletion", "variant": "del"}


def one(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame([{**SCORE, **columns}])


def reliability(low: float, high: float, **columns: Any) -> pd.DataFrame:
    values = {"alpha": (low + high) / 2, "alpha_low": low, "alpha_high": high}
    values |= {"concordance": 0.9, "concordance_low": 0.85, "concordance_high": 0.95}
    values |= {"baselines": "without", "methods": 5, "images": 60, "two_valued": False}
    return one(**{**values, **columns})


def truth(low: float, high: float, rank_low: float = 1) -> pd.DataFrame:
    """The contract of ``metric_truth.csv``, which has a row for each network."""
    return one(
        rank_low=rank_low, rank_high=3, first=rank_low == 1, rho=(low + high) / 2, rho_low=low, rho_high=high
    )


def known_order(low: float, high: float) -> pd.DataFrame:
    first = one(method="all", micro=0.5, micro_low=low, micro_high=high)
    return pd.concat([first, first.assign(method="gradient", micro=-1, micro_low=-1, micro_high=-1)])


def ends(low: float, high: float, **columns: Any) -> pd.DataFrame:
    """The contract of ``controls.csv``."""
    values = {"lower": "random", "upper": "object_mask", "range": (low + high) / 2}
    return one(**{**values, "range_low": low, "range_high": high, **columns})


def meta(value: float, sd: float, iterations: int = 4, test: str = "model", seed: int = 0) -> pd.DataFrame:
    return one(test=test, seed=seed, mc=value, mc_sd=sd, iterations=iterations)


def found(tables: dict[str, pd.DataFrame], measures: str = "faithfulness") -> dict[str, Any]:
    """The only row."""
    table = evidence_table({"s": tables}, None, {"deletion": measures}, ["del"])
    (row,) = table.to_dict("records")
    return {str(key): value for key, value in row.items()}


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [(0.1, 0.9, FOR), (-0.9, -0.1, AGAINST), (-0.1, 0.9, OPEN), (0, 0, OPEN), (NAN, NAN, OPEN)],
)
def test_only_a_whole_interval_above_or_below_the_threshold_shows_something(
    low: float, high: float, finding: str
) -> None:
    assert finding_of(low, high, 0) == finding
    for name, tables in (("known_order", known_order(low, high)), ("metric_truth", truth(low, high))):
        if not np.isnan(low) or name == "known_order":
            assert found({name: tables})["finding"] == finding


@pytest.mark.parametrize(
    ("low", "high", "two_valued", "finding"),
    [
        (0.65, 0.9, False, FOR),
        (0.6, 0.9, False, OPEN),
        (0.2, 0.6, False, AGAINST),
        (0.2, 0.6, True, FOR),  # by concordance
    ],
)
def test_alpha_is_compared_with_its_limit(low: float, high: float, two_valued: bool, finding: str) -> None:
    row = found({"reliability": reliability(low, high, two_valued=two_valued)})
    assert (row["evidence"], row["finding"], row["low"], row["high"]) == ("reliability", finding, low, high)


def test_a_method_that_beats_the_truth_is_evidence_against_a_metric() -> None:
    assert found({"metric_truth": truth(0.5, 0.9, rank_low=2)})["finding"] == AGAINST
    assert found({"metric_truth": truth(0.5, 0.9)})["finding"] == FOR


def test_one_network_on_which_a_metric_prefers_another_map_decides() -> None:
    tables = pd.concat([truth(0.5, 0.9), truth(-0.9, -0.5).assign(model="other")])
    row = found({"metric_truth": tables})
    assert (row["finding"], row["low"], row["studies"], row["conclusion"]) == (AGAINST, -0.9, 1, CONTRADICTED)


def test_the_range_between_the_controls_must_be_positive() -> None:
    assert found({"controls": ends(0.2, 0.4)})["finding"] == FOR
    assert found({"controls": ends(-0.2, 0.4)})["finding"] == OPEN
    assert found({"controls": ends(-0.2, 0.0)})["finding"] == AGAINST
    without = {"controls": ends(NAN, NAN, upper="")}
    assert evidence_table({"s": without}, None, {}, ["del"]).empty


def test_the_interval_of_meta_consistency_is_over_iterations() -> None:
    values = np.array([0.55, 0.6, 0.7, 0.65])
    row = found({"meta_consistency": meta(values.mean(), values.std())})
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert (row["evidence"], row["finding"]) == ("meta_consistency_model", FOR)
    assert found({"meta_consistency": meta(0.5, 0.0, test="input")})["finding"] == OPEN
    assert np.isnan(found({"meta_consistency": meta(0.9, NAN, iterations=1)})["low"])
    two = pd.concat([meta(0.6, 0.01), meta(0.8, 0.01, seed=1)])
    row = found({"meta_consistency": two})
    assert row["value"] == pytest.approx(0.7)
    assert row["low"] < 0.6 < 0.8 < row["high"]


def test_models_agree_by_the_mean_over_their_pairs() -> None:
    table = pd.concat(
        [
            one(task="a", other="b", tasks=2, correlation=-1, low=-1, high=-1),
            one(task=ALL, other="", tasks=3, correlation=0.8, low=0.1, high=1),
        ]
    )
    (row,) = evidence_table({}, table, {}, ["del"]).to_dict("records")
    assert (row["evidence"], row["finding"], row["value"], row["study"]) == ("models", FOR, 0.8, "3 tasks")


@pytest.mark.parametrize(
    ("measures", "by_order", "by_truth"),
    [
        ("faithfulness", AGAINST, AGAINST),
        ("other", AGAINST, AGAINST),
        ("localization", AGAINST, UNTESTABLE),
        ("complexity", UNTESTABLE, UNTESTABLE),
        ("robustness", UNTESTABLE, UNTESTABLE),
    ],
)
def test_known_answers_do_not_test_every_property(measures: str, by_order: str, by_truth: str) -> None:
    assert found({"known_order": known_order(-1, -0.5)}, measures)["finding"] == by_order
    for tables in (truth(-1, -0.5), truth(0.1, 0.5, rank_low=2)):
        row = found({"metric_truth": tables}, measures)
        assert row["finding"] == by_truth
        assert row["conclusion"] == (NOT_SHOWN if by_truth == UNTESTABLE else CONTRADICTED)


def test_one_study_against_a_metric_decides_and_otherwise_one_for_it() -> None:
    intervals = {"open": (-0.5, 0.5), "for": (0.1, 0.5), "against": (-0.5, -0.1)}
    studies = {name: {"known_order": known_order(*ends)} for name, ends in intervals.items()}
    (row,) = evidence_table(studies, None, {}, ["del"]).to_dict("records")
    assert (row["study"], row["finding"], row["studies"], row["high"]) == ("against", AGAINST, 3, -0.1)
    del studies["against"]
    (row,) = evidence_table(studies, None, {}, ["del"]).to_dict("records")
    assert (row["study"], row["finding"], row["conclusion"]) == ("for", FOR, NOT_SHOWN)


def test_metrics_that_compare_models_are_left_out() -> None:
    assert evidence_table({"s": {"reliability": reliability(0.7, 0.9)}}, None, {}, ["mcs"]).empty


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ({"reliability": FOR, "known_order": FOR}, SUPPORTED),
        ({"reliability": FOR, "truth": FOR, "models": OPEN}, SUPPORTED),
        ({"reliability": FOR, "controls": FOR}, NOT_SHOWN),
        ({"reliability": FOR, "known_order": FOR, "controls": AGAINST}, CONTRADICTED),
        ({"reliability": FOR, "known_order": FOR, "models": AGAINST}, NOT_SHOWN),
        ({"reliability": AGAINST, "known_order": FOR}, NOT_SHOWN),
        ({"reliability": FOR, "known_order": FOR, "truth": AGAINST}, CONTRADICTED),
        ({"reliability": FOR, "known_order": FOR, "meta_consistency_input": AGAINST}, CONTRADICTED),
        ({"reliability": FOR, "models": FOR, "meta_consistency_model": FOR}, NOT_SHOWN),
        ({"reliability": OPEN, "truth": FOR}, NOT_SHOWN),
        ({"reliability": FOR, "known_order": UNTESTABLE}, NOT_SHOWN),
        ({}, NOT_SHOWN),
    ],
)
def test_a_metric_is_supported_by_reliability_and_a_comparison_with_an_answer(
    findings: dict[str, str], expected: str
) -> None:
    assert conclusion(findings) == expected
