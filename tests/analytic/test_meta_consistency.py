"""Meta-consistency of metrics: closed forms and the definitions of Hedström et al. (2023) in plain loops."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from saliency_assay.studies.validity.meta_consistency import inter_resilience, intra, meta_consistency_table

METHODS, IMAGES, ITERATIONS, PERTURBATIONS = 4, 30, 2, 3
DIRECTIONS = {"metric": "higher"}


def rescored(
    generator: np.random.Generator, small: float, large: float, *, kept: float = 0.8
) -> pd.DataFrame:
    """Return scores that small and large changes of the model move by normal noise, and large ones also by −1."""
    original = generator.normal(size=(METHODS, IMAGES))
    tables = [("original", 0.0, 0, np.ones(IMAGES, bool), original)]
    for sample in range(ITERATIONS * PERTURBATIONS):
        near = original + small * generator.normal(size=original.shape)
        far = original - large * (1 + 0.1 * generator.normal(size=original.shape))
        tables.append(("model", 0.001, sample, generator.random(IMAGES) < kept, near))
        tables.append(("model", 2.0, sample, generator.random(IMAGES) < 1 - kept, far))
    rows = [
        (
            "metric",
            "metric",
            test,
            level,
            sample,
            bool(keep[image]),
            image,
            scores[method, image],
            0,
            f"m{method}",
        )
        for test, level, sample, keep, scores in tables
        for method in range(METHODS)
        for image in range(IMAGES)
    ]
    columns = ["metric", "variant", "test", "level", "sample", "kept", "image", "score", "seed", "method"]
    return pd.DataFrame(rows, columns=columns)


def test_a_metric_that_no_change_affects_scores_one_half() -> None:
    row = meta_consistency_table(
        rescored(np.random.default_rng(0), 0, 0), DIRECTIONS, perturbations=PERTURBATIONS
    )
    assert row.loc[0, ["iac_nr", "iac_ar", "iec_nr", "iec_ar", "ties_ar", "mc"]].tolist() == [
        1,
        0,
        1,
        0,
        1,
        0.5,
    ]


def test_iterations_without_changed_predictions_do_not_count() -> None:
    table = rescored(np.random.default_rng(2), 0.1, 5)
    in_first = table["sample"] < PERTURBATIONS
    table.loc[in_first & (table["level"] == 2.0), "kept"] = True
    without, rest = (
        meta_consistency_table(part, DIRECTIONS, perturbations=PERTURBATIONS).loc[0]
        for part in (table, table[~in_first | (table["test"] == "original")])
    )
    assert without["mc"] == pytest.approx(rest["mc"])
    assert without["iterations"] == rest["iterations"] == ITERATIONS - 1


def test_the_direction_decides_what_is_worse() -> None:
    table = rescored(np.random.default_rng(0), 0.1, 5)
    lower = meta_consistency_table(table, {"metric": "lower"}, perturbations=PERTURBATIONS)
    assert lower.loc[0, "iec_ar"] == 0


def test_means_are_over_methods_then_changes_then_iterations() -> None:
    table = rescored(np.random.default_rng(1), 0.3, 0.2)
    result = meta_consistency_table(table, DIRECTIONS, perturbations=PERTURBATIONS).loc[0]
    before = (
        table[table["test"] == "original"].pivot(index="method", columns="image", values="score").to_numpy()
    )
    terms = {name: np.zeros((ITERATIONS, PERTURBATIONS)) for name in ("iac_nr", "iac_ar", "iec_nr", "iec_ar")}
    for sample in range(ITERATIONS * PERTURBATIONS):
        at = divmod(sample, PERTURBATIONS)
        for level, end in ((0.001, "nr"), (2.0, "ar")):
            rows = table[(table["level"] == level) & (table["sample"] == sample) & (table["test"] == "model")]
            after = rows.pivot(index="method", columns="image", values="score").to_numpy()
            kept = rows[rows["method"] == "m0"].sort_values("image")["kept"].to_numpy()
            chosen = kept if end == "nr" else ~kept
            p_values = [
                wilcoxon(one[chosen], other[chosen], zero_method="zsplit").pvalue
                for one, other in zip(before, after, strict=True)
            ]
            terms[f"iac_{end}"][at] = np.mean(p_values) if end == "nr" else 1 - np.mean(p_values)
            hits = []
            for image in np.flatnonzero(chosen):
                if end == "nr":
                    hits += list(np.argsort(before[:, image]) == np.argsort(after[:, image]))
                else:
                    hits += [
                        one > other for one, other in zip(before[:, image], after[:, image], strict=True)
                    ]
            terms[f"iec_{end}"][at] = np.mean(hits)
    for name, values in terms.items():
        assert result[name] == pytest.approx(values.mean(), abs=1e-12)
        assert result[f"{name}_sd"] == pytest.approx(values.mean(1).std(), abs=1e-12)
    of_iterations = np.mean([values.mean(1) for values in terms.values()], 0)
    assert result["mc"] == pytest.approx(of_iterations.mean(), abs=1e-12)
    assert result["mc_sd"] == pytest.approx(of_iterations.std(), abs=1e-12)


@pytest.mark.parametrize("images", [1, 5, 20])
def test_scores_that_do_not_change_have_a_p_value_of_one(images: int) -> None:
    before = np.zeros((2, 40))
    chosen = np.arange(40)[None] < images
    assert intra(before, before[None], chosen).tolist() == [1]


def test_few_differences_with_zeros_or_ties_have_the_normal_approximation() -> None:
    after = np.array([[0.0, 1, -2, 3, 4, 5, 6, 6, -7, 8]])
    expected = wilcoxon(after[0], zero_method="zsplit", method="asymptotic").pvalue
    chosen = np.ones((1, 10), bool)
    assert intra(np.zeros((1, 10)), after[None], chosen).tolist() == [expected]


def test_missing_scores_and_empty_choices_are_left_out() -> None:
    generator = np.random.default_rng(2)
    before, after = generator.normal(size=(2, METHODS, IMAGES))
    chosen = np.zeros((1, IMAGES), bool)
    assert np.isnan(intra(before, after[None], chosen)).all()
    assert np.isnan(inter_resilience(before, after[None], chosen)).all()
    chosen[:, :20] = True
    before[0, 3] = np.nan
    values = [
        wilcoxon(
            np.delete(one[:20], 3) if row == 0 else one[:20],
            np.delete(other[:20], 3) if row == 0 else other[:20],
        )
        for row, (one, other) in enumerate(zip(before, after, strict=True))
    ]
    expected = np.mean([value.pvalue for value in values])
    assert intra(before, after[None], chosen)[0] == pytest.approx(expected, abs=1e-12)


def test_images_without_scores_are_not_counted() -> None:
    """Of 30 images, ten have an object."""
    table = rescored(np.random.default_rng(0), 0.1, 1)
    missing = table.assign(score=table["score"].where(table["image"] < 10))
    of_objects = table[table["image"] < 10]
    expected, counted = (
        meta_consistency_table(each, DIRECTIONS, perturbations=PERTURBATIONS)
        for each in (of_objects, missing)
    )
    pd.testing.assert_frame_equal(counted, expected)
