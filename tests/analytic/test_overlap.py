"""MMO, MAMO, CMA and the pairwise overlap against closed forms and plain sets of pixels."""

import re
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
AREA, K = 400, 20
"""τ = 95: masks of 5 % of the pixels."""


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
        overlaps = metric(masks)
        assert overlaps.dtype == torch.int64
        assert overlaps.tolist() == expected[metric]
        assert torch.equal(metric(moved(masks)), overlaps)


@pytest.mark.parametrize("metric", METRICS)
def test_overlaps_leave_masks_alone_and_do_not_depend_on_the_split(
    metric: Callable[[Tensor], Tensor],
) -> None:
    masks = some_masks()
    before = masks.clone()
    overlaps = metric(masks)
    assert torch.equal(masks, before)
    assert torch.equal(torch.cat([metric(part) for part in masks.split((3, 1, 3))]), overlaps)


def test_a_single_mask_overlaps_nothing() -> None:
    masks = some_masks(4, 1)
    pixels = masks.sum((1, 2, 3)).tolist()
    assert mmo(masks).shape == mamo(masks).shape == (4, 0)
    assert mmo(masks).dtype == mamo(masks).dtype == torch.int64
    assert cma(masks).tolist() == [[count] for count in pixels]
    assert pairwise(masks).tolist() == [[[count]] for count in pixels]


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


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "masks", [torch.zeros(2, 3, 4, 5), torch.zeros(2, 4, 5).bool(), torch.zeros(2, 0, 4, 5).bool()]
)
def test_masks_of_another_kind_are_refused(metric: Callable[[Tensor], Tensor], masks: Tensor) -> None:
    value = re.escape(f"{masks.dtype} {list(masks.shape)}")
    with pytest.raises(ValueError, match=rf"^masks: found {value}, expected torch\.bool \[N, I, H, W\]"):
        metric(masks)
