"""BAM's metrics against worked examples and plain loops."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.studies.bam.mcs_and_idr import (
    concept_attribution,
    input_dependence,
    model_contrast,
    random_masks,
)
from saliency_assay.studies.bam.metric_tables import spread
from saliency_assay.studies.bam.scores import (
    PAIRS,
    REGIONS,
    pairs_of,
    right_images,
    score_bam,
    score_rows,
)

NAN = float("nan")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(found: Tensor | np.ndarray, expected: list[float]) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


# ------------------------------------------------------------------------------- attributions and metrics


def test_concept_attribution_is_the_mean_over_the_region() -> None:
    saliency = torch.tensor([[[0.0, 0.25], [0.5, 1.0]]], dtype=torch.float64).repeat(4, 1, 1)
    saliency[3, 0, 0] = NAN
    mask = torch.tensor([[[0, 0], [1, 1]], [[1, 1], [1, 1]], [[0, 0], [0, 0]], [[0, 0], [1, 1]]]).bool()
    # An empty region has no mean; a map with a NaN has none either, even where the region is elsewhere.
    same(concept_attribution(saliency, mask), [0.75, 0.4375, NAN, NAN])


@pytest.mark.parametrize(
    ("mask", "found"),
    [
        (torch.ones(2, 4, 4).bool(), "torch.bool [2, 4, 4]"),
        (torch.ones(3, 4, 5).bool(), "torch.bool [3, 4, 5]"),
        (torch.ones(3, 4, 4), "torch.float32 [3, 4, 4]"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask: Tensor, found: str) -> None:
    with pytest.raises(ValueError, match=r"^mask: found") as error:
        concept_attribution(torch.zeros(3, 4, 4), mask)
    assert str(error.value) == f"mask: found {found}, expected bool [3, 4, 4] like the maps"


def test_model_contrast_is_a_difference_where_both_are_right() -> None:
    important = torch.tensor([0.9, 0.2, 0.5, NAN, 0.7], dtype=torch.float64)
    unimportant = torch.tensor([0.1, 0.6, 0.5, 0.3, 0.2], dtype=torch.float64)
    correct = torch.tensor([True, True, True, True, False])
    scores = model_contrast(important, unimportant, correct)
    same(scores, [0.8, -0.4, 0.0, NAN, NAN])
    # MCS = G_c(f_1) − G_c(f_2), each a mean over X_corr: here 1.6 / 3 − 1.2 / 3.
    assert np.nanmean(scores) == pytest.approx(1.6 / 3 - 1.2 / 3)


def test_input_dependence_counts_strictly() -> None:
    with_object = torch.tensor([0.1, 0.3, 0.3, NAN, 0.1, 0.1])
    without = torch.tensor([0.2, 0.3, 0.2, 0.9, NAN, 0.2])
    correct = torch.tensor([True, True, True, True, True, False])
    same(input_dependence(with_object, without, correct), [1, 0, 0, NAN, NAN, NAN])


# -------------------------------------------------------------------------------------------- baseline


def some_masks(count: int = 7, size: int = 9) -> Tensor:
    """Regions of 0, 1, … pixels, and one of all."""
    order = torch.arange(size * size).reshape(size, size)
    return torch.stack([order < area for area in [*range(count - 1), size * size]])


def test_random_masks_have_each_regions_area() -> None:
    masks = some_masks()
    found = random_masks(masks, seeded())
    assert found.dtype == torch.bool
    assert found.sum((1, 2)).tolist() == masks.sum((1, 2)).tolist() == [0, 1, 2, 3, 4, 5, 81]
    assert not torch.equal(found, masks)


def test_random_masks_do_not_depend_on_the_split() -> None:
    masks = some_masks()
    serial = seeded(3)
    parts = [random_masks(part, serial) for part in masks.split((2, 4, 1))]
    assert torch.equal(torch.cat(parts), random_masks(masks, seeded(3)))
    assert not torch.equal(random_masks(masks, seeded(4)), random_masks(masks, seeded(3)))


def test_random_masks_outside_leave_the_region_out() -> None:
    masks = torch.rand(9, 8, 7, generator=seeded(2)) < 0.3
    found = random_masks(masks, seeded(), outside=True)
    assert not (found & masks).any()
    assert found.sum((1, 2)).tolist() == masks.sum((1, 2)).tolist()


def test_random_masks_outside_a_large_region_are_all_the_rest() -> None:
    masks = torch.ones(2, 4, 4, dtype=torch.bool)
    masks[0, 1, :3] = False
    found = random_masks(masks, seeded(), outside=True)
    assert torch.equal(found, ~masks)


def test_random_masks_are_uniform_over_the_image() -> None:
    masks = torch.zeros(2000, 5, 5, dtype=torch.bool)
    masks[:, 0, :] = True
    hits = random_masks(masks, seeded()).sum(0).flatten().numpy()
    assert hits.sum() == 2000 * 5
    assert stats.chisquare(hits).pvalue > 1e-3


# ---------------------------------------------------------------------------------------------- spread


def test_spread_is_the_deviation_of_means_of_samples() -> None:
    scores = np.random.default_rng(0).normal(size=50_000)
    scores[::5] = NAN
    found = spread(scores, samples=400, sample_size=25, generator=np.random.default_rng(1))
    assert found == pytest.approx(1 / np.sqrt(25), rel=0.15)


def test_spread_repeats_its_samples_one_by_one() -> None:
    scores = np.array([0.1, 0.9, NAN, 0.4, 0.7, 0.2, NAN, 0.6])
    found = spread(scores, samples=3, sample_size=4, generator=np.random.default_rng(5))
    generator, means = np.random.default_rng(5), []
    for _ in range(3):
        shuffled = [scores[position] for position in generator.permutation(8)]
        means.append(sum([score for score in shuffled if score == score][:4]) / 4)
    center = sum(means) / 3
    assert found == pytest.approx((sum((mean - center) ** 2 for mean in means) / 2) ** 0.5)


def test_spread_judges_methods_on_the_same_images() -> None:
    """One that lacks an image shares all others of a draw: the means differ by little, not by another sample."""
    scores = np.random.default_rng(0).normal(size=200)
    lacking = scores.copy()
    lacking[7] = NAN
    one, two = (
        spread(each, samples=50, sample_size=150, generator=np.random.default_rng(2))
        for each in (scores, lacking)
    )
    assert one != two
    assert one == pytest.approx(two, rel=0.1)


@pytest.mark.parametrize(("valid", "defined"), [(9, False), (10, False), (11, True)])
def test_spread_is_nan_unless_samples_can_differ(valid: int, defined: bool) -> None:
    scores = np.concatenate([np.arange(valid, dtype=float), [NAN, NAN]])
    found = spread(scores, sample_size=10, generator=np.random.default_rng(0))
    assert np.isfinite(found) == defined


@pytest.mark.parametrize(("samples", "sample_size"), [(1, 5), (10, 0)])
def test_spread_refuses_what_has_no_deviation(samples: int, sample_size: int) -> None:
    message = f"^samples, sample_size: found {samples}, {sample_size}, expected at least 2 and 1$"
    with pytest.raises(ValueError, match=message):
        spread(np.arange(9.0), samples=samples, sample_size=sample_size, generator=np.random.default_rng(0))


# ---------------------------------------------------------------------------------- a study, start to end


def some_study(count: int = 23) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    maps = {
        pair: rng.normal(size=(count, channels, 12, 10))
        for pair, channels in zip(PAIRS, (3, 1, 1), strict=True)
    }
    maps["scene_model"][4] = -1  # no positive value: constant once reduced
    maps["object_model"][5, 0, 0, 0] = np.nan
    masks = rng.random((count, 12, 10)) < 0.3
    masks[6] = False
    correct = {pair: rng.random(count) < 0.7 for pair in PAIRS}
    for pair in PAIRS:
        correct[pair][:7] = True
    return maps, masks, correct


def in_blocks(values: np.ndarray, size: int) -> list[np.ndarray]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def scored(size: int) -> dict[str, np.ndarray]:
    maps, masks, correct = some_study()
    blocks = {pair: iter(in_blocks(maps[pair], size)) for pair in PAIRS}
    return score_bam(blocks, in_blocks(masks, size), correct, generator=seeded())


def plain_concept(raw: np.ndarray, mask: np.ndarray) -> float:
    """g_c of one raw map, pixel by pixel."""
    positive = [sum(v if np.isnan(v) else max(v, 0) for v in pixel) for pixel in raw.reshape(len(raw), -1).T]
    high = np.percentile(positive, 99)
    clipped = [min(value, high) for value in positive]
    inside = [value for value, chosen in zip(clipped, mask.ravel(), strict=True) if chosen]
    if np.isnan(positive).any() or high == min(clipped) or not inside:
        return NAN
    return sum((value - min(clipped)) / (high - min(clipped)) for value in inside) / len(inside)


def drawn_regions(masks: np.ndarray) -> dict[str, np.ndarray]:
    """The random regions of a study seeded with 0, each from a generator of its own."""
    anywhere, outside = (torch.Generator().manual_seed(seed) for seed in sample_seeds(1, 2, seeded()))
    mask = torch.tensor(masks)
    return {
        "random": random_masks(mask, anywhere).numpy(),
        "outside": random_masks(mask, outside, outside=True).numpy(),
    }


def test_a_study_equals_plain_loops() -> None:
    maps, masks, correct = some_study()
    found = scored(size=4)
    regions = {"object": masks, **drawn_regions(masks)}
    expected: dict[str, list[float]] = {}
    for region in REGIONS:
        g = {
            pair: [plain_concept(*both) for both in zip(maps[pair], regions[region], strict=True)]
            for pair in PAIRS
        }
        mcs, idr = [], []
        for i, (f_o, f_s, bare) in enumerate(zip(*(g[pair] for pair in PAIRS), strict=True)):
            right = {pair: correct[pair][i] for pair in PAIRS}
            mcs.append(f_o - f_s if right["object_model"] and right["scene_model"] else NAN)
            defined = right["scene_model"] and right["scene_model_without"] and not np.isnan(f_s + bare)
            idr.append(float(f_s < bare) if defined else NAN)
        expected |= {f"concept_{pair}_{region}": g[pair] for pair in PAIRS}
        expected |= {f"mcs_{region}": mcs, f"idr_{region}": idr}
    del expected["mcs_outside"], expected["idr_random"]  # the baseline of IDR, and of MCS, only
    assert set(found) == set(expected)
    for key, values in expected.items():
        same(found[key], values)
    assert np.isnan(found["mcs_object"][4:7]).all()
    assert np.isfinite(found["mcs_object"][:4]).all()
    assert set(found["idr_object"][np.isfinite(found["idr_object"])]) == {0, 1}


@pytest.mark.parametrize("size", [1, 5, 23])
def test_blocks_of_any_size_give_the_same_scores(size: int) -> None:
    reference = scored(size=4)
    for key, values in scored(size).items():
        np.testing.assert_allclose(values, reference[key], rtol=1e-12, err_msg=key)


def test_a_perfect_method_scores_one_and_its_baseline_near_nothing() -> None:
    """f_o's maps lie on the object alone, f_s's on the scene alone; without the object on the whole image."""
    rng = np.random.default_rng(0)
    masks = np.zeros((40, 16, 16), dtype=bool)
    masks[:, 2:10, 3:12] = True
    on_object, noise = masks[:, None].astype(float), rng.random((40, 1, 16, 16))
    maps = {"object_model": on_object, "scene_model": 1 - on_object, "scene_model_without": noise}
    correct = dict.fromkeys(PAIRS, np.ones(40, dtype=bool))
    scores = score_bam({pair: [maps[pair]] for pair in PAIRS}, [masks], correct, generator=seeded())
    assert scores["mcs_object"].tolist() == [1] * 40
    assert scores["idr_object"].tolist() == [1] * 40
    # Random pixels hold the object as often as the image does: 72 / 256 against 184 / 256.
    assert scores["mcs_random"].mean() == pytest.approx(72 / 256 - 184 / 256, abs=0.03)
    # Outside the object f_s's map is 1, and noise is not.
    assert scores["idr_outside"].tolist() == [0] * 40


def test_streams_that_do_not_fit_are_refused() -> None:
    maps, masks, correct = some_study()
    blocks = {pair: in_blocks(maps[pair], 4) for pair in PAIRS}
    short = blocks | {"scene_model": in_blocks(maps["scene_model"][:22], 4)}
    with pytest.raises(
        ValueError, match=r"^block 5: found 3 masks and 3 of object_model, 2 of scene_model, 3 of "
    ):
        score_bam(short, in_blocks(masks, 4), correct, generator=seeded())
    with pytest.raises(
        ValueError, match=r"^block 2: found 0 masks and 4 of object_model, 4 of scene_model, "
    ):
        score_bam(blocks, in_blocks(masks[:8], 4), correct, generator=seeded())
    with pytest.raises(
        ValueError, match=r"^maps: found object_model, scene_model, expected object_model, scene_mo"
    ):
        score_bam(
            {pair: blocks[pair] for pair in PAIRS[:2]}, in_blocks(masks, 4), correct, generator=seeded()
        )
    wrong = correct | {"scene_model": correct["scene_model"][:10]}
    with pytest.raises(ValueError, match=r"^correct: scene_model: found bool \[10\], expected bool \[23\]$"):
        score_bam(blocks, in_blocks(masks, 4), wrong, generator=seeded())
    wrong = correct | {"object_model": correct["object_model"].astype(float)}
    with pytest.raises(
        ValueError, match=r"^correct: object_model: found float64 \[23\], expected bool \[23\]$"
    ):
        score_bam(blocks, in_blocks(masks, 4), wrong, generator=seeded())


# ------------------------------------------------------------------------- rows, of X_os and of its variants

ASKED = pairs_of("f_o", "f_s", "d_os", "d_0s")


def test_pairs_are_models_on_sets() -> None:
    assert ASKED == {
        "object_model": ("f_o", "d_os"),
        "scene_model": ("f_s", "d_os"),
        "scene_model_without": ("f_s", "d_0s"),
    }


def said(model: str, data: str, right: str) -> pd.DataFrame:
    predicted = [1 if digit == "1" else 2 for digit in right]
    return pd.DataFrame(
        {
            "model": model,
            "data": data,
            "image": range(10, 10 + len(right)),
            "label": 1,
            "predicted": predicted,
        }
    )


def test_right_images_are_those_asked_for_in_their_order() -> None:
    tables = [
        said("f_o", "d_os", "1100"),
        said("f_o", "d_os_scale", "0011"),
        said("f_s", "d_os", "1010").iloc[::-1],
        said("f_s", "d_0s", "0001"),
        said("f_o", "d_0s", "1111"),  # nobody asks f_o there
    ]
    found = right_images(pd.concat(tables), ASKED, np.array([13, 10, 11]))
    assert {pair: right.tolist() for pair, right in found.items()} == {
        "object_model": [False, True, True],
        "scene_model": [False, True, False],
        "scene_model_without": [True, False, False],
    }
    assert all(right.dtype == bool for right in found.values())
    other = right_images(
        pd.concat([*tables, said("f_s", "d_os_scale", "0110")]),
        pairs_of("f_o", "f_s", "d_os_scale", "d_0s"),
        np.array([13, 10, 11]),
    )
    assert [other[pair].tolist() for pair in PAIRS] == [
        [True, False, False],
        [False, False, True],
        [True, False, False],
    ]


def test_rows_are_what_was_found_of_the_images_that_count() -> None:
    images = np.arange(100, 123)
    found, (_, _, correct) = scored(size=4), some_study()
    table = score_rows(found, correct, images, ASKED)
    assert set(table.columns) == {"data", "model", "metric", "variant", "image", "score"}
    expected = {
        ("f_o-f_s", "d_os", "mcs"): ("mcs", ("object", "random")),
        ("f_s", "d_os", "idr"): ("idr", ("object", "outside")),
        ("f_o", "d_os", "concept_attribution"): ("concept_object_model", REGIONS),
        ("f_s", "d_os", "concept_attribution"): ("concept_scene_model", REGIONS),
        ("f_s", "d_0s", "concept_attribution"): ("concept_scene_model_without", REGIONS),
    }
    counted = {
        "mcs": correct["object_model"] & correct["scene_model"],
        "idr": correct["scene_model"] & correct["scene_model_without"],
    }
    rows = 0
    for (model, data, metric), (key, variants) in expected.items():
        keep = counted.get(metric, np.ones(23, dtype=bool))
        for variant in variants:
            of_key = table[
                (table[["model", "data", "metric", "variant"]] == [model, data, metric, variant]).all(axis=1)
            ]
            assert of_key["image"].tolist() == images[keep].tolist()
            same(of_key["score"], found[f"{key}_{variant}"][keep])
            rows += len(of_key)
    assert rows == len(table)
    assert table.loc[table["metric"] == "mcs", "score"].isna().any()  # a map without a score has a row
    assert 0 < counted["mcs"].sum() < 23


def test_a_variant_has_no_row_of_the_set_without_the_object() -> None:
    """That set is scored with X_os: twice would be two scores of one thing."""
    found, (_, _, correct) = scored(size=4), some_study()
    asked = pairs_of("f_o", "f_s", "d_os_scale", "d_0s")
    table = score_rows(found, correct, np.arange(23), asked, pairs=PAIRS[:2])
    whole = score_rows(found, correct, np.arange(23), asked)
    assert set(table["data"]) == {"d_os_scale"}
    pd.testing.assert_frame_equal(table, whole[whole["data"] == "d_os_scale"].reset_index(drop=True))
    assert set(whole["data"]) == {"d_os_scale", "d_0s"}
