"""BAM's rankings and the paper's claims on tables made by hand, with each verdict of each claim."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jobs import run_script
from scipy import stats

from saliency_assay.methods import METHODS as REGISTERED
from saliency_assay.registry.labels import UNLABELED
from saliency_assay.studies.bam.bam_tables import PAPER, BamTables
from saliency_assay.studies.bam.claims import (
    CLAIMS,
    MARGINS,
    NO_TEST,
    NOT_REPRODUCED,
    ONE_IMAGE,
    REPRODUCED,
    TOO_CLOSE,
    TWO_ERRORS,
    UNTESTED,
    claims,
    summary,
)
from saliency_assay.studies.bam.ranking import agreement, displayed_agreement, displayed_ranking, ranking

NAN = float("nan")

# ---- a study in which all that the paper says is so

METHODS = {
    "gradcam": "gradcam",
    "vanilla": "gradient",  # the entry's name is not the method's
    "smoothgrad_guided": "smoothgrad of guided_backprop",
    "smoothgrad": "smoothgrad",
    "smoothgrad_squared": "smoothgrad_squared",
    "integrated_gradients": "integrated_gradients",
    "ig_sg": "smoothgrad_squared of integrated_gradients",
    "gradient_x_input": "gradient_x_input",
    "guided_backprop": "guided_backprop",
    "mine": "",
    "random": "random",
    "edges": "edge",
    "constant": "constant",
}
#                       mcs    idr   iir   change range   ρ
SCORES = {
    "gradcam": (0.40, 0.90, 0.70, 0.2, 0.30, 0.95),
    "vanilla": (0.08, 0.88, 0.60, 0.3, 0.06, 0.50),
    "smoothgrad_guided": (0.02, 0.30, 0.01, 0.95, 0.03, 0.05),
    "smoothgrad": (0.20, 0.70, 0.15, 0.5, 0.08, 0.80),
    "smoothgrad_squared": (0.22, 0.68, 0.14, 0.6, 0.07, 0.85),
    "integrated_gradients": (0.12, 0.50, 0.10, 0.7, 0.05, 0.70),
    "ig_sg": (0.15, 0.55, 0.12, 0.65, 0.055, 0.75),
    "gradient_x_input": (0.10, 0.45, 0.05, 0.8, 0.04, 0.60),
    "guided_backprop": (0.05, 0.65, 0.02, 0.9, 0.02, 0.30),
    "mine": (0.03, 0.60, 0.015, 0.92, 0.01, 0.10),
    "random": (0.9, 1.0, 0.99, 0.01, 0.0, 0.99),  # a baseline decides nothing
    "edges": (-0.9, 0.0, 0.0, 9.0, 2.0, -1.0),
    "constant": (NAN, NAN, NAN, NAN, NAN, NAN),
}
NUMBERS = ("mcs", "idr", "iir", "iir_difference", "range", "series")
BASELINES = {"mcs": 0.01, "idr": 0.52, "iir": 0.9, "iir_difference": 0.1}
KS = (0.1, 0.5, 1.0)
PREMISE = [
    ("f_o", "d_os", 91.0, 91.1),
    ("f_o", "d_og", 93.0, 93.1),
    ("f_o", "d_0s", 10.0, 9.7),
    ("f_o", "d_os → d_og", 20.0, 86.7),
    ("f_s", "d_os", 90.0, 94.0),
    ("f_s", "d_0s", 93.0, 95.5),
    ("f_s", "d_og", 9.0, 9.8),
    ("f_s", "d_os → d_0s", 80.0, 79.5),
]


def of_metric(metric: str) -> dict[str, float]:
    return {name: numbers[NUMBERS.index(metric)] for name, numbers in SCORES.items()}


def premise(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    rows = [
        (model, seed, name, f"a check of {name}", percent, 1000, printed)
        for model, name, percent, printed in PREMISE
        for seed in seeds
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "set", "check", "percent", "images", "printed"])


def measured(
    metrics: tuple[str, ...], sets: Mapping[str, float], seeds: tuple[int, ...] = (0,)
) -> pd.DataFrame:
    """A score of every metric, set, method and seed: that of X_os and something that keeps the order."""
    rows = [
        (metric, data, method, seed, score + more, 0.02, BASELINES[metric], 0.01, 400, 0)
        for metric in metrics
        for data, more in sets.items()
        for method, score in of_metric(metric).items()
        for seed in seeds
    ]
    columns = ["metric", "data", "method", "seed", "score", "spread", "baseline", "baseline_spread"]
    return pd.DataFrame(rows, columns=[*columns, "images", "undefined"])


def commonality(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    rows = [
        (seed, f"f_{k}", k, 95.0, 95.0 - drop, drop, 100, printed[0], printed[1])
        for seed in seeds
        for k, drop, printed in zip(KS, (18.0, 9.0, 1.0), ((97, 78), (96, 78), (95, 93)), strict=True)
    ]
    columns = ["seed", "model", "k", "with_object", "without", "drop", "images", "printed_with"]
    return pd.DataFrame(rows, columns=[*columns, "printed_without"])


def series(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    widths = of_metric("range") | {"tcav": 0.4}
    rows = [
        (seed, f"f_{k}", k, method, width * part)
        for seed in seeds
        for method, width in widths.items()
        for k, part in zip(KS, (1, 0.5, 0), strict=True)
    ]
    return pd.DataFrame(rows, columns=["seed", "model", "k", "method", "mcs"])


def correlation(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    values = of_metric("series") | {"tcav": 0.98}
    rows = [(method, seed, value, 3) for method, value in values.items() for seed in seeds]
    return pd.DataFrame(rows, columns=["method", "seed", "correlation", "points"])


def concepts(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    values = {"f_o": 0.9, "f_s": 0.3, "f_0.1": 0.6}
    rows = [
        (model, seed, layer, score if layer == "mean" else 0.1, 0.5, 0.001, True, 100, 10)
        for model, score in values.items()
        for seed in seeds
        for layer in ("block1", "logits", "mean")
    ]
    columns = ["model", "seed", "layer", "score", "random", "p_value", "kept", "images", "experiments"]
    return pd.DataFrame(rows, columns=columns)


def study(seeds: tuple[int, ...] = (0,)) -> BamTables:
    return BamTables(
        data="d",
        object_model="f_o",
        scene_model="f_s",
        methods=METHODS,
        baselines=["random", "edges", "constant"],
        classes={"object": 10, "scene": 10},
        premise=premise(seeds),
        metrics=measured(
            ("mcs", "idr"), {"d_os": 0.0, "d_os_scale": -0.01, "d_os_location": 0.01}, seeds=seeds
        ),
        independence=measured(("iir", "iir_difference"), {"d_0s": 0.0}, seeds=seeds),
        commonality=commonality(seeds),
        series=series(seeds),
        correlation=correlation(seeds),
        concepts=concepts(seeds),
    )


BARE: dict[str, Any] = dict.fromkeys(("independence", "commonality", "series", "correlation", "concepts"))


def row_of(tables: BamTables, begins: str) -> pd.Series:
    listed = [claim for claim in CLAIMS if claim[0].startswith(begins)]
    assert len(listed) == 1, begins
    return claims(tables, listed).iloc[0]


def verdict(tables: BamTables, begins: str) -> str:
    return str(row_of(tables, begins)["verdict"])


def reason(tables: BamTables, begins: str) -> str:
    row = row_of(tables, begins)
    assert row["verdict"] == UNTESTED, row["measured"]
    return str(row["measured"])


def changed(tables: BamTables, table: str, where: Mapping[str, Any], **values: Any) -> BamTables:
    """The study with other values in the rows that have all of ``where``."""
    frame = getattr(tables, table).copy()
    chosen = np.ones(len(frame), dtype=bool)
    for name, value in where.items():
        chosen &= (frame[name] == value).to_numpy()
    assert chosen.any(), where
    for name, value in values.items():
        frame.loc[chosen, name] = value
    return replace(tables, **{table: frame})


def scored(tables: BamTables, metric: str, method: str, score: float, data: str | None = None) -> BamTables:
    table = "metrics" if metric in ("mcs", "idr") else "independence"
    name = data or ("d_os" if table == "metrics" else "d_0s")
    return changed(tables, table, {"metric": metric, "method": method, "data": name}, score=score)


def without_method(tables: BamTables, *methods: str) -> BamTables:
    frames: dict[str, Any] = {}
    for name in ("metrics", "independence", "series", "correlation"):
        frame = getattr(tables, name)
        frames[name] = frame[~frame["method"].isin(methods)].reset_index(drop=True)
    left = {name: method for name, method in tables.methods.items() if name not in methods}
    return replace(tables, methods=left, **frames)


def at(tables: BamTables, method: str, k: float, mcs: float) -> BamTables:
    return changed(tables, "series", {"method": method, "k": k}, mcs=mcs)


OTHERS = [name for name in SCORES if name not in ("random", "edges", "constant")]
"""The methods that use the model."""
LARGER = {(method, 0.5): 0.7 for method in ("gradcam", "vanilla", "smoothgrad", "tcav")}
CHANCE_OF_40 = 10 + 2 * float(np.sqrt(10 * 90 / 40))  # two standard errors of guessing with 40 images
GUESS = float(np.sqrt(10 * 90 / 1000))


def two_errors(*shares: tuple[float, float]) -> float:
    """Two standard errors of a weighted sum of percentages of 1000 images."""
    return 2 * float(np.sqrt(sum(weight**2 * share * (100 - share) / 1000 for weight, share in shares)))


def test_labels_of_the_papers_methods_are_those_of_the_registry() -> None:
    labels = {record.name: record.label for record in REGISTERED}
    assert {name: " of ".join(labels[part] for part in name.split(" of ")) for name in PAPER} == PAPER


# ---- all claims


@pytest.mark.parametrize("seeds", [(0,), (0, 3, 4)])
def test_all_hold_where_all_is_as_the_paper_says(seeds: tuple[int, ...]) -> None:
    table = claims(study(seeds))
    assert set(table["margin"]) == set(MARGINS)
    assert table.loc[table["verdict"] != REPRODUCED, ["claim", "measured"]].to_numpy().tolist() == []
    assert summary(table) == f"{len(CLAIMS)} reproduced, 0 not reproduced, 0 too close to tell, 0 not tested"
    assert table["claim"].is_unique


def test_claims_on_absent_tables_are_not_tested() -> None:
    table = claims(replace(study(), **BARE, metrics=measured(("mcs", "idr"), {"d_os": 0.0})))
    untested = table["verdict"] == UNTESTED
    assert table.loc[untested, "measured"].value_counts().to_dict() == {
        "no commonality series in the study": 4,
        "TCAV is not in the study": 1,
        "no variant d_os_scale in the study": 2,
        "no variant d_os_location in the study": 2,
        "no method has a score for ρ over the series": 3,
        "no method has a score for IIR": 5,
    }
    assert (table.loc[~untested, "verdict"] == REPRODUCED).all()


@pytest.mark.parametrize(
    ("method", "beginnings"),
    [
        ("gradcam", ["Grad-CAM leads MCS", "TCAV has", "all methods except", "most methods fail"]),
        ("vanilla", ["smoothing improves MCS: SmoothGrad scores", "the cheapest", "Gradient has high"]),
    ],
)
def test_claims_on_a_method_without_scores_are_not_tested(method: str, beginnings: list[str]) -> None:
    without_scores = study()
    for metric in ("mcs", "idr", "iir", "iir_difference"):
        without_scores = scored(without_scores, metric, method, NAN)
    without_scores = at(without_scores, method, 0.5, NAN)
    for claim in beginnings:
        message = reason(without_method(study(), method), claim)
        assert message == f"{PAPER[METHODS[method]]} is not in the study"
        assert reason(without_scores, claim).startswith((f"{method} has no score", f"{method} lacks a score"))


# ---- the premise


@pytest.mark.parametrize(
    ("claim", "model", "name", "changes", "expected"),
    [
        # A tenth of the accuracy above chance is left at 18.1 %; one image is 0.1 %.
        ("f_o falls", "f_o", "d_0s", {"percent": 17.99}, REPRODUCED),
        ("f_o falls", "f_o", "d_0s", {"percent": 18.01}, TOO_CLOSE),
        ("f_o falls", "f_o", "d_0s", {"percent": 18.3}, NOT_REPRODUCED),
        ("f_s falls", "f_s", "d_og", {"percent": CHANCE_OF_40 - 2.51, "images": 40}, REPRODUCED),
        ("f_s falls", "f_s", "d_og", {"percent": CHANCE_OF_40, "images": 40}, TOO_CLOSE),
        ("f_s falls", "f_s", "d_og", {"percent": CHANCE_OF_40 + 2.51, "images": 40}, NOT_REPRODUCED),
        # A model that is not better than chance can lose nothing.
        ("f_o falls", "f_o", "d_os", {"percent": 10 + 1.99 * GUESS}, UNTESTED),
        ("f_o falls", "f_o", "d_os", {"percent": 10 + 2.01 * GUESS}, REPRODUCED),
        # 90 % against 92.5 %: two standard errors are 2.53 points.
        ("f_s is more", "f_s", "d_0s", {"percent": 92.6}, REPRODUCED),
        ("f_s is more", "f_s", "d_0s", {"percent": 92.5}, TOO_CLOSE),
        ("f_s is more", "f_s", "d_0s", {"percent": 90.0}, TOO_CLOSE),
        ("f_s is more", "f_s", "d_0s", {"percent": 87.0}, NOT_REPRODUCED),
        # Two standard errors of 50 % of 1000 images are 3.16 points.
        ("confidence", "f_s", "d_os → d_0s", {"percent": 53.17}, REPRODUCED),
        ("confidence", "f_s", "d_os → d_0s", {"percent": 53.1}, TOO_CLOSE),
        ("confidence", "f_s", "d_os → d_0s", {"percent": 46.83}, NOT_REPRODUCED),
        ("confidence", "f_s", "d_os → d_0s", {"percent": NAN, "images": 0}, UNTESTED),
    ],
)
def test_accuracies_are_compared_by_two_standard_errors(
    claim: str, model: str, name: str, changes: dict[str, float], expected: str
) -> None:
    row = row_of(changed(study(), "premise", {"model": model, "set": name}, **changes), claim)
    assert row["verdict"] == expected
    assert row["margin"] == ("" if expected == UNTESTED else TWO_ERRORS)


@pytest.mark.parametrize(
    ("model", "begins", "name", "role"), [("f_o", "f_o falls", "d_0s", 0), ("f_s", "f_s falls", "d_og", 1)]
)
def test_chance_is_one_class_of_the_models_kind(model: str, begins: str, name: str, role: int) -> None:
    tables = changed(study(), "premise", {"model": model, "set": name}, percent=26.0)
    verdicts = [
        verdict(replace(tables, classes={"object": objects, "scene": scenes}), begins)
        for objects, scenes in ((10, 10), (4, 10), (10, 4))
    ]
    assert verdicts == [NOT_REPRODUCED, *(REPRODUCED if kind == role else NOT_REPRODUCED for kind in (0, 1))]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [(1.1, REPRODUCED), (0.9, TOO_CLOSE), (-0.9, TOO_CLOSE), (-1.1, NOT_REPRODUCED)],
)
def test_what_is_kept_is_nine_tenths_by_two_errors(errors: float, expected: str) -> None:
    for model, begins, name, before in (
        ("f_o", "f_o does not need", "d_og", 91),
        ("f_s", "f_s does not need", "d_0s", 90),
    ):
        bar = 10 + 0.9 * (before - 10)
        accuracy = bar + errors * two_errors((0.9, before), (1, bar))
        tables = changed(study(), "premise", {"model": model, "set": name}, percent=accuracy)
        assert verdict(tables, begins) == expected


def test_perfect_accuracies_differ_by_at_least_one_image() -> None:
    """Their standard error is 0."""
    tables = changed(study(), "premise", {"model": "f_s", "set": "d_os"}, percent=100.0)
    for percent in (100.0, 99.9):
        tables = changed(tables, "premise", {"model": "f_s", "set": "d_0s"}, percent=percent)
        assert verdict(tables, "f_s is more accurate") == TOO_CLOSE


def test_the_premise_is_of_all_seeds() -> None:
    tables = changed(study((0, 1)), "premise", {"model": "f_s", "set": "d_0s", "seed": 1}, percent=81.0)
    row = row_of(tables, "f_s is more accurate")
    assert row["verdict"] == NOT_REPRODUCED
    assert row["measured"].endswith(": -3.0 points (30 images of 1,000)")
    without = changed(study((0, 1)), "premise", {"set": "d_os → d_0s", "seed": 1}, percent=NAN, images=0)
    assert row_of(without, "confidence rises")["measured"].startswith("80.0 % of 1000 images")


@pytest.mark.parametrize(
    ("drops", "rho", "expected"),
    [
        ((3, 2, 1), -1.0, REPRODUCED),
        ((2, 3, 1), -0.5, REPRODUCED),
        ((2, 1, 2), 0.0, NOT_REPRODUCED),
    ],
)
def test_the_drop_falls_with_k(drops: tuple[int, ...], rho: float, expected: str) -> None:
    tables = study((0, 1))
    for k, drop in zip(KS, drops, strict=True):
        tables = changed(tables, "commonality", {"k": k, "seed": 0}, drop=drop - 0.25)
        tables = changed(tables, "commonality", {"k": k, "seed": 1}, drop=drop + 0.25)
    row = row_of(tables, "the rarer")
    assert row["verdict"] == expected
    assert row["measured"].startswith(f"drop in points: {drops[0]:.1f} at 0.1, {drops[1]:.1f} at 0.5")
    printed = stats.spearmanr(KS, (19, 18, 2)).statistic
    assert row["measured"].endswith(f"; ρ = {rho:.2f} (paper: {printed:.2f})")


def test_a_drop_that_does_not_change_or_is_of_two_k() -> None:
    tables = replace(study(), commonality=commonality().assign(drop=3.0))
    assert verdict(tables, "the rarer") == NOT_REPRODUCED
    assert verdict(replace(study(), commonality=commonality().iloc[:2]), "the rarer") == UNTESTED
    unprinted = commonality().assign(printed_with=NAN, printed_without=NAN)
    assert row_of(replace(study(), commonality=unprinted), "the rarer")["measured"].endswith("ρ = -1.00")


# ---- methods

LEADS_MCS, LEADS_IDR, FAIL = "Grad-CAM leads MCS", "Grad-CAM and Gradient lead IDR", "most methods fail"
SMOOTHING, SQUARED = "smoothing improves MCS: SmoothGrad scores", "smoothing improves MCS: SmoothGrad² ("
THREE = {"smoothgrad_squared": 0.3, "ig_sg": 0.4}
"""With SmoothGrad, three of the six other methods that do not fail IIR."""


@pytest.mark.parametrize(
    ("claim", "metric", "changes", "expected"),
    [
        (LEADS_MCS, "mcs", {"ig_sg": 0.40}, REPRODUCED),  # a tie loses no lead
        (LEADS_MCS, "mcs", {"ig_sg": 0.41}, NOT_REPRODUCED),
        (LEADS_MCS, "mcs", {"smoothgrad_guided": 0.41}, REPRODUCED),  # not in the paper
        ("TCAV has the highest", "mcs", {"vanilla": 0.5}, NOT_REPRODUCED),
        (SMOOTHING, "mcs", {"smoothgrad": 0.081}, REPRODUCED),
        (SMOOTHING, "mcs", {"smoothgrad": 0.08}, NOT_REPRODUCED),
        (SMOOTHING, "mcs", {"smoothgrad_squared": 0.07}, REPRODUCED),
        (SQUARED, "mcs", {"smoothgrad_squared": 0.08}, NOT_REPRODUCED),
        ("SmoothGrad outperforms", "mcs", {"smoothgrad_squared": 0.5}, REPRODUCED),
        ("SmoothGrad outperforms", "mcs", {"ig_sg": 0.21}, NOT_REPRODUCED),
        # One image of 400 is 0.0025.
        (LEADS_IDR, "idr", {"smoothgrad": 0.87}, REPRODUCED),
        (LEADS_IDR, "idr", {"smoothgrad": 0.878}, TOO_CLOSE),
        (LEADS_IDR, "idr", {"smoothgrad": 0.882}, TOO_CLOSE),
        (LEADS_IDR, "idr", {"smoothgrad": 0.883}, NOT_REPRODUCED),
        (LEADS_IDR, "idr", {"gradcam": 0.1}, NOT_REPRODUCED),
        ("the cheapest", "idr", {"vanilla": 0.853}, REPRODUCED),
        ("the cheapest", "idr", {"vanilla": 0.848}, TOO_CLOSE),
        ("the cheapest", "idr", {"vanilla": 0.847}, NOT_REPRODUCED),
        (FAIL, "iir", {"smoothgrad": 0.21, **THREE}, NOT_REPRODUCED),
        (FAIL, "iir", {"smoothgrad": 0.201, **THREE}, TOO_CLOSE),
        (FAIL, "iir", {"smoothgrad": 0.199, **THREE}, TOO_CLOSE),
        (FAIL, "iir", {"smoothgrad": 0.2, "smoothgrad_squared": 0.3}, REPRODUCED),
        (FAIL, "iir", {"vanilla": 0.203}, REPRODUCED),
        (FAIL, "iir", {"vanilla": 0.199}, TOO_CLOSE),
        (FAIL, "iir", {"vanilla": 0.197}, NOT_REPRODUCED),
        (FAIL, "iir", {"mine": 0.5, "smoothgrad_guided": 0.6}, REPRODUCED),
        ("multiplication", "iir", {"gradient_x_input": 0.59}, REPRODUCED),
        ("multiplication", "iir", {"gradient_x_input": 0.6}, TOO_CLOSE),
        # Of eight, ranks 1–4 are better than the middle one, 5–8 worse: 4.5 is neither.
        ("Gradient has high", "mcs", {"vanilla": 0.15}, NOT_REPRODUCED),
        ("Gradient has high", "mcs", {"vanilla": 0.149}, REPRODUCED),
        ("Gradient has high", "idr", {"vanilla": 0.65}, NOT_REPRODUCED),
        ("Gradient has high", "idr", {"vanilla": 0.66}, REPRODUCED),
        ("Gradient has high", "iir", {"vanilla": 0.06}, NOT_REPRODUCED),
    ],
)
def test_scores_of_methods_are_compared(
    claim: str, metric: str, changes: dict[str, float], expected: str
) -> None:
    tables = study()
    for method, score in changes.items():
        tables = scored(tables, metric, method, score)
    row = row_of(tables, claim)
    assert row["verdict"] == expected
    assert row["margin"] == (NO_TEST if metric == "mcs" or "high" in claim else ONE_IMAGE)


@pytest.mark.parametrize(
    ("claim", "measured"),
    [
        (
            "f_o falls",
            "91.0 % on X_os, 10.0 % on X_0s (paper: 9.7 %), chance 10.0 %; threshold 18.1 %: -8.1 points",
        ),
        (
            LEADS_IDR,
            "gradcam 90.0 %, vanilla 88.0 %; best other: smoothgrad 70.0 %; lead +18.0 points (72 images",
        ),
        (FAIL, "6 of 6 others below 20 %; gradcam 70.0 %, vanilla 60.0 %; one image is 0.2 points"),
        ("Gradient has", "vanilla: rank 2 of 8 in IDR, rank 2 of 8 in IIR, rank 7 of 8 in MCS"),
        # smoothgrad_guided has 0.02, below its 0.03 of the series; TCAV is included.
        ("MCS is largest", "for 10 of 11 methods; not for smoothgrad_guided"),
        ("Guided Back", "range 0.020; smallest other: gradient_x_input 0.040: -0.020"),  # not mine, with 0.01
    ],
)
def test_measured_values_are_in_the_table(claim: str, measured: str) -> None:
    assert row_of(study(), claim)["measured"].startswith(measured)


def test_another_entry_of_a_method_is_no_rival() -> None:
    tables = study()
    methods = {**METHODS, "mine": "gradcam"}
    tables = scored(replace(tables, methods=methods), "mcs", "mine", 0.7)
    row = row_of(tables, LEADS_MCS)
    assert row["measured"].startswith("gradcam 0.400; ")  # the entry of its name, not the other
    assert row["verdict"] == REPRODUCED
    first = {"mine": "gradcam", **{name: method for name, method in METHODS.items() if name != "mine"}}
    assert replace(tables, methods=first).entry("gradcam") == "gradcam"
    assert replace(tables, methods=first).entry("gradient") == "vanilla"


@pytest.mark.parametrize(
    ("f_o", "expected"),
    [(0.7, REPRODUCED), (0.69, NOT_REPRODUCED), (NAN, UNTESTED)],  # Grad-CAM 0.4; G_c of f_s is 0.3
)
def test_tcav_is_the_difference_of_f_o_and_f_s(f_o: float, expected: str) -> None:
    tables = changed(study(), "concepts", {"model": "f_o", "layer": "mean"}, score=f_o)
    assert verdict(tables, "TCAV has the highest") == expected
    lacking = replace(study(), concepts=concepts().query("model != 'f_s'"))
    assert reason(lacking, "TCAV has the highest") == "tcav has no score for MCS"


def test_equal_means_of_unequal_seeds_are_equal() -> None:
    tables = study((0, 1, 2))
    for method, values in (("smoothgrad", (0.1, 0.2, 0.3)), ("vanilla", (0.3, 0.2, 0.1))):
        for seed, value in enumerate(values):
            where = {"metric": "mcs", "method": method, "data": "d_os", "seed": seed}
            tables = changed(tables, "metrics", where, score=value)
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1  # not by sum, which rounds less from Python 3.12 on
    row = row_of(tables, SMOOTHING)
    assert row["verdict"] == NOT_REPRODUCED
    assert row["measured"] == "smoothgrad 0.200, vanilla 0.200: +0.000; higher in 1 of 3 seeds"


def test_images_are_those_of_the_method_and_seed_with_fewest() -> None:
    where = {"metric": "idr", "data": "d_os", "seed": 3}
    tables = changed(study((0, 3)), "metrics", {**where, "method": "smoothgrad"}, images=300)
    tables = changed(tables, "metrics", {**where, "method": "mine"}, images=10)  # not in the paper
    tables = scored(scored(tables, "idr", "vanilla", 0.993), "idr", "gradcam", 0.996)
    tables = changed(tables, "metrics", {**where, "method": "ig_sg"}, images=0, score=NAN)
    row = row_of(scored(tables, "idr", "smoothgrad", 0.997), LEADS_IDR)
    assert row["measured"].endswith("; lead -0.4 points (1.2 images of 300)")
    assert row["verdict"] == NOT_REPRODUCED
    one = row_of(scored(tables, "idr", "smoothgrad", 0.993 + 1 / 300), LEADS_IDR)
    assert one["measured"].endswith("; lead -0.3 points (one image of 300)")
    assert one["verdict"] == TOO_CLOSE


def test_a_lead_needs_rivals() -> None:
    others = [name for name in METHODS if name not in ("gradcam", "vanilla", "mine", "random")]
    alone = without_method(study(), *others)
    for tables, begins in (
        (alone, LEADS_IDR),
        (alone, FAIL),
        (without_method(study(), *others, "vanilla"), "all methods except"),
    ):
        assert reason(tables, begins) == "no other method of the paper has a score"


# ---- the series


@pytest.mark.parametrize(
    ("claim", "changes", "expected"),
    [
        ("MCS is largest", dict.fromkeys([(name, 1.0) for name in METHODS], 0.9), REPRODUCED),  # f_1.0 itself
        ("MCS is largest", LARGER, REPRODUCED),  # for 6 of 11
        ("MCS is largest", {**LARGER, ("ig_sg", 0.5): 0.15}, NOT_REPRODUCED),  # a tie is not larger
        ("Guided Back", {("gradient_x_input", 0.1): 0.02}, REPRODUCED),
        ("Guided Back", {("gradient_x_input", 0.1): 0.019, ("gradient_x_input", 0.5): 0.0}, NOT_REPRODUCED),
        ("Guided Back", {("guided_backprop", 1.0): -0.03}, NOT_REPRODUCED),  # a range counts what lies below
        ("Guided Back", {("ig_sg", 0.1): 0.001, ("ig_sg", 0.5): 0.001}, NOT_REPRODUCED),
        # One that lacks a k is left out: its range would be too small.
        ("Guided Back", {("ig_sg", 0.1): 0.001, ("ig_sg", 0.5): 0.001, ("ig_sg", 1.0): NAN}, REPRODUCED),
        ("all methods except TCAV", {("vanilla", 0.1): 0.15}, REPRODUCED),
        ("all methods except TCAV", {("vanilla", 0.1): 0.151}, NOT_REPRODUCED),
        ("all methods except TCAV", {("mine", 0.1): 0.9}, REPRODUCED),
    ],
)
def test_mcs_over_the_series(claim: str, changes: dict[tuple[str, float], float], expected: str) -> None:
    tables = study()
    for (method, k), mcs in changes.items():
        tables = at(tables, method, k, mcs)
    assert verdict(tables, claim) == expected


def test_the_largest_contrast_of_half_of_the_methods_is_not_of_most() -> None:
    tables = replace(without_method(study(), "mine"), concepts=None)
    for method in ("gradcam", "vanilla", "smoothgrad"):
        tables = at(tables, method, 0.1, 0.7)
    row = row_of(tables, "MCS is largest")
    assert (row["verdict"], row["measured"][:16]) == (REPRODUCED, "for 5 of 9 metho")
    row = row_of(without_method(tables, "edges", "integrated_gradients"), "MCS is largest")
    assert (row["verdict"], row["measured"][:16]) == (NOT_REPRODUCED, "for 4 of 8 metho")


def test_ranges_are_of_means_over_seeds() -> None:
    tables = study((0, 1))
    where = {"method": "ig_sg", "k": 0.1}
    tables = changed(tables, "series", {**where, "seed": 0}, mcs=0.5)
    tables = changed(tables, "series", {**where, "seed": 1}, mcs=-0.485)  # the means are 0.0075, 0.0275, 0
    row = row_of(tables, "Guided Backpropagation changes")
    assert row["measured"] == "range 0.020; smallest other: ig_sg 0.028: -0.007"


@pytest.mark.parametrize(
    ("method", "value", "with_tcav", "without"),
    [
        ("smoothgrad", 0.95, REPRODUCED, REPRODUCED),
        ("smoothgrad", 0.96, NOT_REPRODUCED, NOT_REPRODUCED),
        ("tcav", 0.94, NOT_REPRODUCED, REPRODUCED),
        ("mine", 0.99, REPRODUCED, REPRODUCED),
        ("gradcam", 0.1, NOT_REPRODUCED, NOT_REPRODUCED),
        ("gradcam", NAN, UNTESTED, UNTESTED),
    ],
)
def test_tcav_and_gradcam_correlate_most(method: str, value: float, with_tcav: str, without: str) -> None:
    tables = changed(study(), "correlation", {"method": method}, correlation=value)
    assert verdict(tables, "TCAV correlates") == with_tcav
    assert verdict(tables, "Grad-CAM correlates") == without


# ---- metrics


def swapped(tables: BamTables, metric: str, data: str, *orders: tuple[str, str]) -> BamTables:
    """The scores of two methods exchanged, for each pair."""
    for one, other in orders:
        first, second = (of_metric(metric)[name] for name in (one, other))
        tables = scored(scored(tables, metric, one, second, data), metric, other, first, data)
    return tables


@pytest.mark.parametrize("metric", ["mcs", "idr"])
@pytest.mark.parametrize(("variant", "other"), [("scale", "location"), ("location", "scale")])
def test_robustness_is_of_ranks(metric: str, variant: str, other: str) -> None:
    name, begins = f"d_os_{variant}", f"{metric.upper()} is robust to the "
    assert row_of(study(), begins + variant)["measured"] == "ρ = 1.00 over 10 methods"  # no baseline, no TCAV
    tables = swapped(study(), metric, name, ("gradcam", "guided_backprop"), ("smoothgrad", "mine"))
    table = tables.metrics[tables.metrics["metric"] == metric].set_index(["data", "method"])["score"]
    rho = stats.spearmanr(table["d_os"][OTHERS], table[name][OTHERS]).statistic
    row = row_of(tables, begins + variant)
    assert (row["verdict"], row["measured"]) == (NOT_REPRODUCED, f"ρ = {rho:.2f} over 10 methods")
    assert verdict(tables, begins + other) == REPRODUCED


def test_a_rank_correlation_of_just_eight_tenths_is_alike() -> None:
    """Of four methods, two neighbors exchanged: ρ = 1 − 6 · 2 / (4 · 15) = 0.8."""
    keep = ("gradcam", "smoothgrad", "ig_sg", "vanilla", "random")
    tables = without_method(study(), *(name for name in METHODS if name not in keep))
    exchanged = swapped(tables, "mcs", "d_os_scale", ("gradcam", "smoothgrad"))
    row = row_of(exchanged, "MCS is robust to the scale")
    assert (row["verdict"], row["measured"]) == (REPRODUCED, "ρ = 0.80 over 4 methods")
    both = swapped(exchanged, "mcs", "d_os_scale", ("ig_sg", "vanilla"))
    assert verdict(both, "MCS is robust to the scale") == NOT_REPRODUCED


def test_a_rank_correlation_needs_three_methods_that_differ() -> None:
    two = without_method(study(), *(name for name in METHODS if name not in ("gradcam", "vanilla", "edges")))
    assert reason(two, "MCS is robust to the scale") == "2 methods have both scores, expected at least 3"
    alike = replace(study(), metrics=study().metrics.assign(score=0.25))
    assert reason(alike, "IDR is robust to the loc") == "all 10 methods have the same score"
    metrics = study().metrics
    none = metrics.assign(score=metrics["score"].where(metrics["data"] == "d_os"))
    message = reason(replace(study(), metrics=none), "MCS is robust to the scale")
    assert message == "no method has a score for MCS on d_os_scale"


def test_differences_rank_as_rates_do_best_first_in_both() -> None:
    table = study().independence
    assert table is not None
    flipped = table.assign(score=table["score"].where(table["metric"] == "iir", -table["score"]))
    row = row_of(replace(study(), independence=flipped), "the average attribution")
    assert (row["verdict"], row["measured"]) == (NOT_REPRODUCED, "ρ = -1.00 over 10 methods")
    endless = scored(study(), "iir_difference", "gradcam", np.inf)  # no score, not the worst
    assert row_of(endless, "the average attribution")["measured"] == "ρ = 1.00 over 9 methods"


def test_both_kinds_of_mcs_rank_alike_with_tcav() -> None:
    assert row_of(study(), "both kinds of MCS")["measured"].endswith(" over 11 methods")
    flipped = correlation().assign(correlation=-correlation()["correlation"])
    assert verdict(replace(study(), correlation=flipped), "both kinds of MCS") == NOT_REPRODUCED


def test_rankings_differ_where_some_two_do() -> None:
    columns = np.array([SCORES[name][:3] for name in OTHERS]).T  # TCAV is in none but MCS
    rho = [stats.spearmanr(columns[one], columns[other]).statistic for one, other in ((0, 1), (0, 2), (1, 2))]
    expected = f"MCS and IDR ρ = {rho[0]:.2f}, MCS and IIR ρ = {rho[1]:.2f}, IDR and IIR ρ = {rho[2]:.2f}"
    assert row_of(study(), "rankings differ")["measured"] == expected
    assert min(rho) < 0.8 < max(rho)
    alike = study()
    for method in METHODS:
        for metric in ("idr", "iir"):
            alike = scored(alike, metric, method, SCORES[method][0])
    assert verdict(alike, "rankings differ") == NOT_REPRODUCED
    one = replace(study(), independence=None, metrics=study().metrics.query("metric == 'mcs'"))
    assert verdict(one, "rankings differ") == UNTESTED


# ---- random pixels


@pytest.mark.parametrize(
    ("metric", "method", "baseline", "images", "expected"),
    [
        ("mcs", "vanilla", 0.05, 400, REPRODUCED),
        ("mcs", "vanilla", -0.051, 400, NOT_REPRODUCED),
        ("mcs", "mine", 0.06, 400, NOT_REPRODUCED),
        ("mcs", "edges", 0.5, 400, REPRODUCED),
        ("idr", "smoothgrad", 0.59, 400, REPRODUCED),
        ("idr", "smoothgrad", 0.6, 400, TOO_CLOSE),
        ("idr", "smoothgrad", 0.61, 400, NOT_REPRODUCED),
        ("idr", "smoothgrad", 0.65, 25, REPRODUCED),
        ("idr", "smoothgrad", 0.75, 25, NOT_REPRODUCED),
    ],
)
def test_random_pixels_are_near_chance_on_x_os(
    metric: str, method: str, baseline: float, images: int, expected: str
) -> None:
    where = {"metric": metric, "method": method, "data": "d_os"}
    tables = changed(study(), "metrics", where, baseline=baseline, images=images)
    tables = changed(tables, "metrics", {**where, "data": "d_os_scale"}, baseline=0.9)
    assert verdict(tables, f"{metric.upper()} over random reference pixels") == expected


def test_no_baseline_or_a_series_of_one_k_is_not_tested() -> None:
    tables = replace(study(), metrics=study().metrics.assign(baseline=NAN), series=series().query("k == 1"))
    assert reason(tables, "MCS over random reference pixels") == "no method has a baseline for MCS"
    assert reason(tables, "Guided Backpropagation changes") == "1 value of k, expected at least 2"


# ---- the ranking


def ranked(tables: BamTables, metric: str) -> pd.DataFrame:
    table = ranking(tables)
    return table[table["metric"] == metric].set_index("method")


def test_ranking_is_best_first() -> None:
    assert ranking(study())["metric"].unique().tolist() == ["mcs", "idr", "iir", "iir_difference", "series"]
    mcs, change = ranked(study(), "mcs"), ranked(study(), "iir_difference")
    assert mcs.index[:4].tolist() == ["random", "tcav", "gradcam", "smoothgrad_squared"]
    assert change.index[:3].tolist() == ["random", "gradcam", "vanilla"]  # lower is better
    assert change.index[-2:].tolist() == ["edges", "constant"]
    assert mcs["rank"].tolist() == [*range(1, 14), pytest.approx(NAN, nan_ok=True)]
    assert mcs.loc["tcav", ["score", "spread"]].tolist() == pytest.approx([0.6, NAN], nan_ok=True)
    assert mcs.loc["gradcam", "spread"] == 0.02
    assert mcs.loc["constant", ["score", "spread", "rank"]].isna().all()
    assert np.isnan(ranked(study(), "series")["spread"]).all()


def test_ties_share_the_mean_of_their_ranks() -> None:
    tables = scored(scored(study(), "idr", "gradcam", 0.3), "idr", "vanilla", 0.1 + 0.2)
    ranks = ranked(tables, "idr")["rank"]
    assert 0.1 + 0.2 != 0.3
    tied = ["gradcam", "vanilla", "smoothgrad_guided"]
    assert ranks[["gradient_x_input", *tied, "edges"]].tolist() == [8, 10, 10, 10, 12]


def test_spread_is_between_seeds_where_there_are_several() -> None:
    tables = study((0, 1, 2))
    for method, scores in (("gradcam", (0.1, 0.4, NAN)), ("vanilla", (0.3, NAN, NAN))):
        for seed, score in enumerate(scores):
            where = {"metric": "mcs", "method": method, "data": "d_os", "seed": seed}
            tables = changed(tables, "metrics", where, score=score)
    mcs = ranked(tables, "mcs")
    assert mcs.loc["gradcam", ["score", "spread"]].tolist() == pytest.approx(
        [0.25, 0.15 * np.sqrt(2)]
    )  # n − 1
    assert mcs.loc["vanilla", ["score", "spread"]].tolist() == [0.3, 0.02]  # one seed: over draws
    assert mcs.loc["smoothgrad", "spread"] == pytest.approx(0)


def test_what_was_not_studied_has_no_rank() -> None:
    tables = replace(study(), **BARE)
    table = ranking(tables)
    assert table["metric"].unique().tolist() == ["mcs", "idr"]
    assert "tcav" not in set(table["method"])
    assert list(displayed_ranking(table, tables).columns) == ["method", "MCS", "IDR (%)"]


def test_the_variants_do_not_rank() -> None:
    other = scored(study(), "mcs", "mine", 0.99, data="d_os_scale")
    pd.testing.assert_frame_equal(ranking(study()), ranking(other))


def test_agreement_is_of_methods_that_both_score() -> None:
    table = agreement(ranking(study()), study())
    assert len(table) == 10
    for row in table.to_dict("records"):
        columns = []
        for metric in (row["one"], row["other"]):
            scores = np.array([of_metric(metric)[name] for name in OTHERS])
            columns.append(-scores if metric == "iir_difference" else scores)
        if (row["one"], row["other"]) == ("mcs", "series"):
            columns = [np.append(column, value) for column, value in zip(columns, (0.6, 0.98), strict=True)]
        assert row["methods"] == len(columns[0])
        assert row["kendall"] == pytest.approx(stats.kendalltau(*columns).statistic)
        assert row["spearman"] == pytest.approx(stats.spearmanr(*columns).statistic)


def test_agreement_of_too_few_or_of_equal_ranks_is_undefined() -> None:
    two = without_method(study(), *(name for name in METHODS if name not in ("gradcam", "vanilla", "edges")))
    table = agreement(ranking(two), two).set_index(["one", "other"])
    assert table.loc[("idr", "iir"), "methods"] == 2
    assert np.isnan(table.loc[("idr", "iir"), ["kendall", "spearman"]].to_numpy(dtype=float)).all()
    alike = replace(study(), **BARE, metrics=study().metrics.assign(score=0.5))
    assert np.isnan(agreement(ranking(alike), alike).loc[0, "kendall"])


def test_the_displayed_ranking() -> None:
    tables = study()
    rows = displayed_ranking(ranking(tables), tables).set_index("method")
    assert list(rows.columns) == ["MCS", "IDR (%)", "IIR (%)", "relative change", "ρ over the series"]
    assert rows.index[:3].tolist() == ["random (baseline)", "tcav", "gradcam"]
    shown = rows.loc["gradcam", ["MCS", "IDR (%)", "ρ over the series"]].tolist()
    assert shown == ["3 (0.400 ± 0.020)", "2 (90.0 ± 2.0)", "3 (0.950)"]
    assert rows.loc["tcav", "IDR (%)"] == "–"
    assert rows.loc["constant (baseline)", "IIR (%)"] == "no score"
    agreed = displayed_agreement(agreement(ranking(tables), tables))
    assert agreed.iloc[0, :2].tolist() == ["MCS", "IDR"]


@pytest.mark.parametrize(("similar", "expected"), [(0.5, REPRODUCED), (0.49, UNTESTED)])
def test_iir_is_tested_only_where_changes_are_without_effect(similar: float, expected: str) -> None:
    """Of two seeds the worse one counts; MCS and IDR do not depend on it."""
    tables = replace(study(), deltas=pd.DataFrame({"seed": [0, 3], "similar": [1.0, similar]}))
    for begins in (FAIL, "Grad-CAM and Gradient lead IIR", "the average attribution"):
        row = row_of(tables, begins)
        assert row["verdict"] == expected
        assert ("49 % of the changed images" in row["measured"]) == (expected == UNTESTED)
    assert verdict(tables, LEADS_IDR) == REPRODUCED


# ---- the setting


def test_verdicts_name_a_setting_that_differs() -> None:
    tables = replace(study(), setting="in this small setting")
    assert verdict(tables, LEADS_MCS) == "reproduced in this small setting"
    worse = scored(tables, "mcs", "vanilla", 0.5)
    assert verdict(worse, LEADS_MCS) == "not reproduced in this small setting"
    assert verdict(scored(tables, "idr", "smoothgrad", 0.88), LEADS_IDR) == TOO_CLOSE
    assert summary(claims(worse)).startswith("24 reproduced, 9 not reproduced, 0 too close")


def test_the_page_lists_the_differences_from_the_paper(tmp_path: Path) -> None:
    tables = study()
    files = {name: tmp_path / f"{name}.csv" for name in ("premise", "metrics")}
    for name, file in files.items():
        getattr(tables, name).to_csv(file, index=False)
    settings = {
        "data": "d",
        "object_model": "f_o",
        "scene_model": "f_s",
        "methods": METHODS,
        "baselines": tables.baselines,
        "classes": tables.classes,
        "study": "bam",
        "labels": asdict(UNLABELED),
        "setting": {"phrase": "in this small setting", "differences": ["64 pixels", "ResNet-8"]},
    }
    output = {
        "ranking": tmp_path / "ranking.csv",
        "claims": tmp_path / "claims.csv",
        "ranking_page": tmp_path / "ranking.html",
        "claims_page": tmp_path / "claims.html",
    }
    run_script("check_claims", tmp_path, settings, files, output)
    verdicts = pd.read_csv(output["claims"])["verdict"]
    assert set(verdicts) == {"reproduced in this small setting", UNTESTED}
    page = output["claims_page"].read_text(encoding="utf-8")
    assert "Unlike in the paper: 64 pixels; ResNet-8" in page
