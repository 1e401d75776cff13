"""Pointing game and attribution on the mask against worked examples and plain loops."""

from itertools import permutations

import numpy as np
import pytest
import torch
from support import generator
from torch import Tensor

from saliency_assay.metrics.localization import dilated, mask_attribution, pointing_game
from saliency_assay.metrics.scored import Scored

NAN = float("nan")


def unused(images: Tensor) -> Tensor:
    raise AssertionError("no metric of this kind asks the model")


def point(maps: Tensor, mask: Tensor, tolerance: int = 0) -> np.ndarray:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    found = pointing_game(
        unused, images, targets, maps, generator=generator(), mask=mask, tolerance=tolerance
    )
    return the_scores(found, ["pointing_game"])["pointing_game"]


def attribute(maps: Tensor, mask: Tensor) -> dict[str, np.ndarray]:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    found = mask_attribution(unused, images, targets, maps, generator=generator(), mask=mask)
    return the_scores(found, ["relevance_mass_accuracy", "relevance_rank_accuracy"])


def the_scores(found: Scored, names: list[str]) -> dict[str, np.ndarray]:
    assert list(found.scores) == [(name, "") for name in names]
    assert found.curves == {}
    assert all(score.dtype == torch.float64 for score in found.scores.values())
    return {name: found.scores[name, ""].numpy() for name in names}


def some_maps(count: int = 12, channels: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Signed maps; some with ties, without positive values, with one, constant, or with NaN."""
    maps = torch.randn(count, channels, 9, 7, generator=generator(5), dtype=dtype)
    maps[1:4] = (maps[1:4] / 2).round()  # many ties, the greatest value among them
    maps[4] = -maps[4].abs()
    maps[5] = -maps[5].abs()
    maps[5, :, 3, 3] = 2
    maps[6] = 0.3
    maps[7] = 0
    maps[8, 0, 2, 3] = NAN
    return maps


def some_masks(count: int = 12) -> Tensor:
    masks = torch.rand(count, 9, 7, generator=generator(6)) < torch.linspace(0.1, 0.9, count)[:, None, None]
    masks[9] = False
    masks[10] = True
    masks[11] = False
    masks[11, 8, 0] = True
    return masks


def undefined(saliency: np.ndarray, mask: np.ndarray) -> bool:
    return bool(np.isnan(saliency).any() or saliency.max() == saliency.min() or not mask.any())


def plain_pointing(raw: np.ndarray, mask: np.ndarray, tolerance: int) -> float:
    saliency = raw.sum(0)
    if undefined(saliency, mask):
        return NAN
    objects = np.argwhere(mask)
    best = np.argwhere(saliency == saliency.max())
    hits = [((objects - place) ** 2).sum(1).min() for place in best]
    return sum(distance <= tolerance**2 for distance in hits) / len(best)


def plain_mass(raw: np.ndarray, mask: np.ndarray) -> float:
    saliency = raw.sum(0)
    total = sum(value for value in saliency.flat if value > 0)
    if undefined(saliency, mask) or total == 0:
        return NAN
    return sum(value for value in saliency[mask] if value > 0) / total


def plain_rank(raw: np.ndarray, mask: np.ndarray) -> float:
    """The mean over all rotations of reading order as the order of equal values: each pixel in each place once."""
    saliency = raw.sum(0)
    if undefined(saliency, mask):
        return NAN
    values, inside, area = saliency.ravel(), mask.ravel(), int(mask.sum())
    weakest = sorted(values, reverse=True)[area - 1]
    tied = [pixel for pixel in range(len(values)) if values[pixel] == weakest]
    above = [pixel for pixel in range(len(values)) if values[pixel] > weakest]
    shares = []
    for turn in range(len(tied)):
        turned = tied[turn:] + tied[:turn]
        strongest = [*above, *turned[: area - len(above)]]
        shares.append(sum(inside[pixel] for pixel in strongest) / area)
    return float(np.mean(shares))


@pytest.mark.parametrize("tolerance", [0, 1, 2, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_pointing_game_equals_plain_loops(tolerance: int, channels: int) -> None:
    maps, masks = some_maps(channels=channels), some_masks()
    pairs = zip(maps.numpy(), masks.numpy(), strict=True)
    expected = [plain_pointing(raw, mask, tolerance) for raw, mask in pairs]
    np.testing.assert_allclose(point(maps, masks, tolerance), expected, rtol=1e-14)
    assert np.isnan(expected).tolist() == [place in (6, 7, 8, 9) for place in range(12)]


@pytest.mark.parametrize("channels", [1, 3])
def test_mask_attribution_equals_plain_loops(channels: int) -> None:
    maps, masks = some_maps(channels=channels), some_masks()
    found = attribute(maps, masks)
    pairs = list(zip(maps.numpy(), masks.numpy(), strict=True))
    expected = {
        "relevance_mass_accuracy": [plain_mass(*pair) for pair in pairs],
        "relevance_rank_accuracy": [plain_rank(*pair) for pair in pairs],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
    assert np.isnan(found["relevance_rank_accuracy"]).tolist() == [
        place in (6, 7, 8, 9) for place in range(12)
    ]
    assert np.isnan(found["relevance_mass_accuracy"]).tolist() == [
        place in (4, 6, 7, 8, 9) for place in range(12)
    ]
    # The object is the image.
    assert found["relevance_mass_accuracy"][10] == found["relevance_rank_accuracy"][10] == 1


def test_scores_of_an_image_do_not_depend_on_the_others() -> None:
    maps, masks = some_maps(dtype=torch.float32)[:5], some_masks()[:5]
    parts = list(zip(maps.split(2), masks.split(2), strict=True))
    assert len(parts) == 3
    pointed = np.concatenate([point(*part, tolerance=1) for part in parts])
    np.testing.assert_array_equal(pointed, point(maps, masks, tolerance=1))
    for name, scores in attribute(maps, masks).items():
        np.testing.assert_array_equal(np.concatenate([attribute(*part)[name] for part in parts]), scores)


def test_a_worked_example() -> None:
    raw = torch.tensor([[3.0, -1.0, 2.0], [2.0, 0.5, -4.0]])[None, None]
    mask = torch.tensor([[False, True, True], [False, True, False]])[None]
    found = attribute(raw, mask)
    assert found["relevance_mass_accuracy"] == pytest.approx([2.5 / 7.5])
    # 3, 2 and 2 are the strongest; one lies inside.
    assert found["relevance_rank_accuracy"] == pytest.approx([1 / 3])
    assert point(raw, mask).tolist() == [0]
    assert point(raw, mask, tolerance=1).tolist() == [1]


def test_negative_values_neither_add_to_mass_nor_take_from_it() -> None:
    raw = torch.tensor([[1.0, -5.0], [3.0, -7.0]])[None, None]
    mask = torch.tensor([[True, True], [False, False]])[None]
    assert attribute(raw, mask)["relevance_mass_accuracy"].tolist() == [0.25]


def test_ties_for_the_last_places_are_the_mean_over_all_orders() -> None:
    values = [5.0, 2.0, 2.0, 2.0, 1.0]
    inside = [True, True, False, True, False]
    shares = [
        sum(inside[pixel] for pixel in sorted(order, key=lambda pixel: -values[pixel])[:3]) / 3
        for order in permutations(range(5))
    ]
    found = attribute(torch.tensor(values)[None, None, None], torch.tensor(inside)[None, None])
    assert found["relevance_rank_accuracy"] == pytest.approx([np.mean(shares)])


def test_ties_for_the_greatest_value_share_the_hit() -> None:
    raw = torch.tensor([[4.0, 4.0, 1.0], [4.0, 0.0, 0.0]])[None, None]
    mask = torch.tensor([[True, False, True], [False, False, True]])[None]
    assert point(raw, mask) == pytest.approx([1 / 3])


def test_a_map_that_is_the_mask_is_perfect_and_its_negative_is_not() -> None:
    masks = some_masks()[:9]
    for sign, expected in ((1, 1), (-1, 0)):
        maps = sign * masks[:, None].double()
        assert point(maps, masks).tolist() == [expected] * 9
    perfect = attribute(masks[:, None].double(), masks)
    assert (
        perfect["relevance_mass_accuracy"].tolist() == perfect["relevance_rank_accuracy"].tolist() == [1] * 9
    )


@pytest.mark.parametrize(("radius", "pixels"), [(0, 1), (1, 5), (2, 13), (3, 29), (5, 81)])
def test_dilation_is_by_a_euclidean_disc(radius: int, pixels: int) -> None:
    """As many points of the integer grid lie within the radius (Gauss's circle problem)."""
    mask = torch.zeros(2, 21, 21, dtype=torch.bool)
    mask[1, 10, 10] = True
    found = dilated(mask, radius)
    assert found.dtype == torch.bool
    assert found.sum((1, 2)).tolist() == [0, pixels]


@pytest.mark.parametrize(
    ("mask", "found"),
    [
        (torch.ones(2, 4, 4).bool(), "torch.bool [2, 4, 4]"),
        (torch.ones(3, 1, 4, 4).bool(), "torch.bool [3, 1, 4, 4]"),
        (torch.ones(3, 4, 4), "torch.float32 [3, 4, 4]"),
    ],
)
@pytest.mark.parametrize("metric", [point, attribute])
def test_a_mask_that_does_not_fit_is_refused(metric: object, mask: Tensor, found: str) -> None:
    assert callable(metric)
    with pytest.raises(ValueError, match=r"^mask: found") as error:
        metric(torch.zeros(3, 2, 4, 4), mask)
    assert str(error.value) == f"mask: found {found}, expected torch.bool [3, 4, 4] like the maps"


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tolerance: found -1, expected at least 0 pixels$"):
        point(torch.zeros(1, 1, 4, 4), torch.ones(1, 4, 4).bool(), tolerance=-1)
