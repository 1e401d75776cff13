"""BAM's metrics against worked examples and plain loops."""

import re

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


def same(scores: Tensor | np.ndarray, expected: list[float]) -> None:
    np.testing.assert_allclose(np.asarray(scores), expected, rtol=1e-12)


# ------------------------------------------------------------------------------- attributions and metrics


@pytest.mark.parametrize("mask", [torch.ones(3, 4, 5).bool(), torch.ones(3, 4, 4)])
def test_a_mask_that_does_not_fit_is_refused(mask: Tensor) -> None:
    shape = re.escape(f"{mask.dtype} {list(mask.shape)}")
    with pytest.raises(ValueError, match=rf"^mask: found {shape}, expected bool \[3, 4, 4\]"):
        concept_attribution(torch.zeros(3, 4, 4), mask)


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
    regions = random_masks(masks, seeded())
    assert regions.dtype == torch.bool
    assert regions.sum((1, 2)).tolist() == masks.sum((1, 2)).tolist() == [0, 1, 2, 3, 4, 5, 81]
    assert not torch.equal(regions, masks)


def test_random_masks_do_not_depend_on_the_split() -> None:
    masks = some_masks()
    serial = seeded(3)
    parts = [random_masks(part, serial) for part in masks.split((2, 4, 1))]
    assert torch.equal(torch.cat(parts), random_masks(masks, seeded(3)))
    assert not torch.equal(random_masks(masks, seeded(4)), random_masks(masks, seeded(3)))


def test_random_masks_outside_leave_the_region_out() -> None:
    masks = torch.rand(9, 8, 7, generator=seeded(2)) < 0.3
    masks[0] = True
    masks[0, 1, :3] = False  # a large region leaves all the rest
    regions = random_masks(masks, seeded(), outside=True)
    assert not (regions & masks).any()
    assert regions[1:].sum((1, 2)).tolist() == masks[1:].sum((1, 2)).tolist()
    assert torch.equal(regions[0], ~masks[0])


def test_random_masks_are_uniform_over_the_image() -> None:
    masks = torch.zeros(2000, 5, 5, dtype=torch.bool)
    masks[:, 0, :] = True
    hits = random_masks(masks, seeded()).sum(0).flatten().numpy()
    assert hits.sum() == 2000 * 5
    assert stats.chisquare(hits).pvalue > 1e-3


# ---------------------------------------------------------------------------------------------- spread


def test_spread_repeats_its_samples_one_by_one() -> None:
    scores = np.array([0.1, 0.9, NAN, 0.4, 0.7, 0.2, NAN, 0.6])
    deviation = spread(scores, samples=3, sample_size=4, generator=np.random.default_rng(5))
    generator, means = np.random.default_rng(5), []
    for _ in range(3):
        shuffled = [scores[position] for position in generator.permutation(8)]
        means.append(sum([score for score in shuffled if score == score][:4]) / 4)
    center = sum(means) / 3
    assert deviation == pytest.approx((sum((mean - center) ** 2 for mean in means) / 2) ** 0.5)


@pytest.mark.parametrize(("valid", "defined"), [(9, False), (10, False), (11, True)])
def test_spread_is_nan_unless_samples_can_differ(valid: int, defined: bool) -> None:
    scores = np.concatenate([np.arange(valid, dtype=float), [NAN, NAN]])
    deviation = spread(scores, sample_size=10, generator=np.random.default_rng(0))
    assert np.isfinite(deviation) == defined


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
    pixels = raw.reshape(len(raw), -1).T
    positive = [sum(max(value, 0) for value in pixel) for pixel in pixels]
    if not np.isfinite(pixels).all() or not mask.any():
        return NAN
    high, low = np.percentile(positive, 99), min(positive)
    if high == low:
        return NAN
    inside = [value for value, chosen in zip(positive, mask.ravel(), strict=True) if chosen]
    return sum((min(value, high) - low) / (high - low) for value in inside) / len(inside)


def random_regions(masks: np.ndarray) -> dict[str, np.ndarray]:
    """The random regions of a study seeded with 0, each from a generator of its own."""
    anywhere, outside = (torch.Generator().manual_seed(seed) for seed in sample_seeds(1, 2, seeded()))
    mask = torch.tensor(masks)
    return {
        "random": random_masks(mask, anywhere).numpy(),
        "outside": random_masks(mask, outside, outside=True).numpy(),
    }


@pytest.mark.parametrize("size", [1, 4, 23])
def test_a_study_equals_plain_loops_for_blocks_of_any_size(size: int) -> None:
    maps, masks, correct = some_study()
    scores = scored(size)
    regions = {"object": masks, **random_regions(masks)}
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
    assert set(scores) == set(expected)
    for key, values in expected.items():
        same(scores[key], values)
    assert np.isnan(scores["mcs_object"][4:7]).all()
    assert np.isfinite(scores["mcs_object"][:4]).all()
    assert set(scores["idr_object"][np.isfinite(scores["idr_object"])]) == {0, 1}


def test_streams_that_do_not_fit_are_refused() -> None:
    maps, masks, correct = some_study()
    blocks = {pair: in_blocks(maps[pair], 4) for pair in PAIRS}
    short = blocks | {"scene_model": in_blocks(maps["scene_model"][:22], 4)}
    two = {pair: blocks[pair] for pair in PAIRS[:2]}
    fewer = correct | {"scene_model": correct["scene_model"][:10]}
    floats = correct | {"object_model": correct["object_model"].astype(float)}
    for maps_of, regions, right, message in (
        (short, masks, correct, r"block 5: found 3 masks and 3 of object_model, 2 of scene_model"),
        (blocks, masks[:8], correct, r"block 2: found 0 masks and 4 of object_model"),
        (two, masks, correct, r"maps: found object_model, scene_model, expected "),
        (blocks, masks, fewer, r"correct: scene_model: found bool \[10\], expected bool \[23\]"),
        (blocks, masks, floats, r"correct: object_model: found float64 \[23\], expected bool"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            score_bam(maps_of, in_blocks(regions, 4), right, generator=seeded())


# ------------------------------------------------------------------------- rows, of X_os and of its variants

ON_OBJECTS = pairs_of("f_o", "f_s", "d_os", "d_0s")


def predictions_of(model: str, data: str, right: str) -> pd.DataFrame:
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


def test_right_images_are_in_the_order_of_their_numbers() -> None:
    tables = [
        predictions_of("f_o", "d_os", "1100"),
        predictions_of("f_o", "d_os_scale", "0011"),
        predictions_of("f_s", "d_os", "1010").iloc[::-1],
        predictions_of("f_s", "d_0s", "0001"),
        predictions_of("f_o", "d_0s", "1111"),  # not one of the pairs
    ]
    correct = right_images(pd.concat(tables), ON_OBJECTS, np.array([13, 10, 11]))
    assert {pair: right.tolist() for pair, right in correct.items()} == {
        "object_model": [False, True, True],
        "scene_model": [False, True, False],
        "scene_model_without": [True, False, False],
    }
    assert all(right.dtype == bool for right in correct.values())


def test_rows_are_scores_of_the_images_that_count() -> None:
    images = np.arange(100, 123)
    scores, (_, _, correct) = scored(size=4), some_study()
    table = score_rows(scores, correct, images, ON_OBJECTS)
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
            same(of_key["score"], scores[f"{key}_{variant}"][keep])
            rows += len(of_key)
    assert rows == len(table)
    assert table.loc[table["metric"] == "mcs", "score"].isna().any()  # a map without a score has a row
    assert 0 < counted["mcs"].sum() < 23


def test_a_variant_has_no_row_of_the_set_without_the_object() -> None:
    """That set is scored with X_os: twice would be two scores of one thing."""
    scores, (_, _, correct) = scored(size=4), some_study()
    models = pairs_of("f_o", "f_s", "d_os_scale", "d_0s")
    table = score_rows(scores, correct, np.arange(23), models, pairs=PAIRS[:2])
    whole = score_rows(scores, correct, np.arange(23), models)
    assert set(table["data"]) == {"d_os_scale"}
    pd.testing.assert_frame_equal(table, whole[whole["data"] == "d_os_scale"].reset_index(drop=True))
    assert set(whole["data"]) == {"d_os_scale", "d_0s"}
