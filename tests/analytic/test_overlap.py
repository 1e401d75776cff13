"""MMO, MAMO, CMA and the pairwise overlap against closed forms and plain sets of pixels."""

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
import torch
from support import generator
from torch import Tensor

from saliency_assay.studies.retrain.overlap import (
    cma,
    expected_cma,
    expected_mamo,
    expected_mmo,
    mamo,
    mmo,
    pairwise,
)

METRICS = (mmo, mamo, cma, pairwise)
AREA, SIDE, K, ITERATIONS = 400, 20, 20, 10
"""τ = 95, ρ = 0.5: ten masks of 5 % of the pixels."""


def some_masks(count: int = 7, iterations: int = 5) -> Tensor:
    """Masks of every density; one image's are empty, one's full, one's all the same."""
    shape = (count, iterations, 6, 9)
    masks = (
        torch.rand(shape, generator=generator(1))
        < torch.rand(shape[:2], generator=generator(2))[..., None, None]
    )
    masks[1], masks[2] = False, True
    masks[3] = masks[3, :1]
    return masks


def random_masks(count: int) -> Tensor:
    """Independent masks of exactly K pixels, all equally likely."""
    order = torch.rand(count, ITERATIONS, AREA, generator=generator(3)).argsort(dim=2)
    return (order < K).reshape(count, ITERATIONS, SIDE, SIDE)


def moved(masks: Tensor) -> Tensor:
    """Masks whose pixels do not lie side by side in memory."""
    return masks.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)


def sets_of(masks: Tensor) -> list[list[set[tuple[int, int]]]]:
    """The occluded pixels of each image and iteration."""
    rows, columns = range(masks.shape[2]), range(masks.shape[3])
    return [
        [{(y, x) for y, x in product(rows, columns) if mask[y][x]} for mask in image]
        for image in masks.tolist()
    ]


def test_overlaps_equal_those_of_plain_sets() -> None:
    masks = some_masks()
    expected: dict[Callable[[Tensor], Tensor], list[object]] = {metric: [] for metric in METRICS}
    for image in sets_of(masks):
        last = len(image) - 1
        expected[mmo].append([len(image[i] & image[i + 1]) for i in range(last)])
        expected[mamo].append([len(set().union(*image[: i + 1]) & image[i + 1]) for i in range(last)])
        expected[cma].append([len(set().union(*image[: i + 1])) for i in range(last + 1)])
        expected[pairwise].append([[len(one & other) for other in image] for one in image])
    for metric in METRICS:
        found = metric(masks)
        assert found.dtype == torch.int64
        assert found.tolist() == expected[metric]
        assert torch.equal(metric(moved(masks)), found)


@pytest.mark.parametrize("metric", METRICS)
def test_overlaps_leave_masks_alone_and_do_not_depend_on_the_split(
    metric: Callable[[Tensor], Tensor],
) -> None:
    masks = some_masks()
    before = masks.clone()
    found = metric(masks)
    assert torch.equal(masks, before)
    assert torch.equal(torch.cat([metric(part) for part in masks.split((3, 1, 3))]), found)


def test_a_map_that_never_changes_masks_the_same_pixels_again() -> None:
    """MMO = MAMO = 5 % of A, and so is CMA."""
    masks = random_masks(3)[:, :1].expand(-1, ITERATIONS, -1, -1)
    for found in (mmo(masks), mamo(masks)):
        assert found.tolist() == [[K] * (ITERATIONS - 1)] * 3
    assert cma(masks).tolist() == [[K] * ITERATIONS] * 3
    assert K == 0.05 * AREA
    assert pairwise(masks).tolist() == [[[K] * ITERATIONS] * ITERATIONS] * 3


def test_disjoint_masks_do_not_overlap_and_cover_all_that_is_allowed() -> None:
    """MMO = MAMO = 0 and CMA = ρA, as for ROAR's masks whatever the map."""
    order = torch.rand(3, AREA, generator=generator()).argsort(dim=1)
    first = K * torch.arange(ITERATIONS)[:, None]
    masks = ((order[:, None] >= first) & (order[:, None] < first + K)).reshape(3, ITERATIONS, SIDE, SIDE)
    assert mmo(masks).tolist() == mamo(masks).tolist() == [[0] * (ITERATIONS - 1)] * 3
    assert cma(masks).tolist() == [[K * i for i in range(1, ITERATIONS + 1)]] * 3
    assert cma(masks)[:, -1].tolist() == [0.5 * AREA] * 3
    assert torch.equal(pairwise(masks), (K * torch.eye(ITERATIONS, dtype=torch.int64)).expand(3, -1, -1))


def test_a_mask_that_comes_back_overlaps_the_accumulated_ones_only() -> None:
    """A, B, A: consecutive masks are disjoint, and the third is all within the union of the first two."""
    masks = torch.zeros(1, 3, 2, 3, dtype=torch.bool)
    masks[0, 0::2, 0] = True
    masks[0, 1, 1] = True
    assert mmo(masks).tolist() == [[0, 0]]
    assert mamo(masks).tolist() == [[0, 3]]
    assert cma(masks).tolist() == [[3, 6, 6]]
    assert pairwise(masks).tolist() == [[[3, 0, 3], [0, 3, 0], [3, 0, 3]]]


def test_a_single_mask_overlaps_nothing() -> None:
    masks = random_masks(4)[:, :1]
    assert mmo(masks).shape == mamo(masks).shape == (4, 0)
    assert mmo(masks).dtype == mamo(masks).dtype == torch.int64
    assert cma(masks).tolist() == [[K]] * 4
    assert pairwise(masks).tolist() == [[[K]]] * 4


def test_counts_of_large_masks_are_exact() -> None:
    masks = torch.ones(2, 2, 301, 299, dtype=torch.bool)
    masks[1, 0, 17, 5] = False
    assert pairwise(masks)[1].tolist() == [[301 * 299 - 1] * 2, [301 * 299 - 1, 301 * 299]]
    assert mmo(masks).tolist() == mamo(masks).tolist() == [[301 * 299], [301 * 299 - 1]]
    assert cma(masks)[1].tolist() == [301 * 299 - 1, 301 * 299]


@pytest.mark.parametrize(("area", "k"), [(5, 2), (4, 3), (6, 1), (3, 3)])
def test_expectations_are_the_means_over_all_triples_of_subsets(area: int, k: int) -> None:
    triples = list(product(combinations(range(area), k), repeat=3))
    masks = torch.zeros(len(triples), 3, 1, area, dtype=torch.bool)
    masks[:, :, 0].scatter_(2, torch.tensor(triples), True)
    by_chance = expected_mmo(k, area)
    assert mmo(masks).double().mean(0).tolist() == pytest.approx([by_chance] * 2, rel=1e-12)
    assert mamo(masks).double().mean(0).tolist() == pytest.approx(
        [expected_mamo(i, k, area) for i in range(2)], rel=1e-12
    )
    assert cma(masks).double().mean(0).tolist() == pytest.approx(
        [expected_cma(i, k, area) for i in range(3)], rel=1e-12
    )
    pairs = torch.full((3, 3), by_chance, dtype=torch.float64).fill_diagonal_(k)
    np.testing.assert_allclose(pairwise(masks).double().mean(0), pairs, rtol=1e-12)


def test_random_masks_come_to_their_expectations_within_the_sampling_error() -> None:
    """MMO → (1 − τ)²A and CMA → A(1 − τ^I), τ = 0.95 as a share: every iteration within five standard errors."""
    masks = random_masks(3000)
    expected = {
        mmo: [0.05**2 * AREA] * (ITERATIONS - 1),
        mamo: [0.05 * AREA * (1 - 0.95 ** (i + 1)) for i in range(ITERATIONS - 1)],
        cma: [AREA * (1 - 0.95 ** (i + 1)) for i in range(ITERATIONS)],
    }
    for metric, values in expected.items():
        found = metric(masks).double()
        error = found.std(0) / len(masks) ** 0.5
        assert bool((error < 0.2).all())
        assert bool(((found.mean(0) - torch.tensor(values)).abs() <= 5 * error + 1e-9).all())
    off = ~torch.eye(ITERATIONS, dtype=torch.bool)
    pairs = pairwise(masks).double()[:, off]
    assert bool(((pairs.mean(0) - 1).abs() <= 5 * pairs.std(0) / len(masks) ** 0.5).all())


def test_expectations_of_the_papers_masks() -> None:
    """A(1 − 0.95¹⁰) = 0.401 A after ten masks, far below the ρA = 0.5 A of disjoint ones."""
    assert expected_cma(9, K, AREA) == pytest.approx(AREA * (1 - 0.95**10), rel=1e-14)
    assert expected_cma(9, K, AREA) / AREA == pytest.approx(0.401, abs=5e-4)
    assert expected_mmo(K, AREA) == 1
    assert expected_mamo(0, K, AREA) == pytest.approx(expected_mmo(K, AREA), rel=1e-14)
    # What a mask does not share with those before it is what it adds to them.
    for i in range(9):
        added = expected_cma(i + 1, K, AREA) - expected_cma(i, K, AREA)
        assert K - expected_mamo(i, K, AREA) == pytest.approx(added, rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("masks", "found"),
    [
        (torch.zeros(2, 3, 4, 5), "torch.float32 [2, 3, 4, 5]"),
        (torch.zeros(2, 4, 5, dtype=torch.bool), "torch.bool [2, 4, 5]"),
        (torch.zeros(2, 0, 4, 5, dtype=torch.bool), "torch.bool [2, 0, 4, 5]"),
    ],
)
def test_masks_of_another_kind_are_refused(
    metric: Callable[[Tensor], Tensor], masks: Tensor, found: str
) -> None:
    with pytest.raises(ValueError, match=r"^masks: ") as error:
        metric(masks)
    assert str(error.value) == f"masks: found {found}, expected torch.bool [N, I, H, W] with I of at least 1"
