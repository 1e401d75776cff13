"""Pointing game and attribution on the mask against worked examples and plain loops."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score, jaccard_score, roc_auc_score
from support import generator
from torch import Tensor

from saliency_assay.metrics.localization import (
    dilated,
    mask_attribution,
    mask_overlap,
    mask_ranking,
    pointing_game,
)
from saliency_assay.metrics.scored import Scored

NAN = float("nan")


def unused(images: Tensor) -> Tensor:
    raise AssertionError("no metric of this kind evaluates the model")


def point(maps: Tensor, mask: Tensor, tolerance: int = 0) -> np.ndarray:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = pointing_game(
        unused, images, targets, maps, generator=generator(), mask=mask, tolerance=tolerance
    )
    return the_scores(scored, ["pointing_game"])["pointing_game"]


def attribute(maps: Tensor, mask: Tensor) -> dict[str, np.ndarray]:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = mask_attribution(unused, images, targets, maps, generator=generator(), mask=mask)
    return the_scores(scored, ["relevance_mass_accuracy", "relevance_rank_accuracy"])


def overlap(maps: Tensor, mask: Tensor, threshold: float | str = 0.2) -> dict[str, np.ndarray]:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = mask_overlap(
        unused, images, targets, maps, generator=generator(), mask=mask, threshold=threshold
    )
    return the_scores(scored, ["iou", "dice"])


def ranked(maps: Tensor, mask: Tensor) -> dict[str, np.ndarray]:
    images, targets = torch.zeros(len(maps), 3, *maps.shape[2:]), torch.zeros(len(maps), dtype=torch.int64)
    scored = mask_ranking(unused, images, targets, maps, generator=generator(), mask=mask)
    return the_scores(scored, ["mask_auc", "average_precision"])


def the_scores(scored: Scored, names: list[str]) -> dict[str, np.ndarray]:
    assert list(scored.scores) == [(name, "") for name in names]
    assert scored.curves == {}
    assert all(score.dtype == torch.float64 for score in scored.scores.values())
    return {name: scored.scores[name, ""].numpy() for name in names}


def some_maps(count: int = 12) -> Tensor:
    """Signed maps; some with ties, without positive values, with one, constant, or with NaN."""
    maps = torch.randn(count, 3, 9, 7, generator=generator(5), dtype=torch.float64)
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


@pytest.mark.parametrize("tolerance", [0, 1, 5])
def test_pointing_game_equals_plain_loops(tolerance: int) -> None:
    maps, masks = some_maps(), some_masks()
    pairs = zip(maps.numpy(), masks.numpy(), strict=True)
    expected = [plain_pointing(raw, mask, tolerance) for raw, mask in pairs]
    np.testing.assert_allclose(point(maps, masks, tolerance), expected, rtol=1e-14)
    assert np.isnan(expected).tolist() == [place in (6, 7, 8, 9) for place in range(12)]


@pytest.mark.parametrize(
    ("score", "plain", "undefined"),
    [
        ("relevance_mass_accuracy", plain_mass, [4, 6, 7, 8, 9]),
        ("relevance_rank_accuracy", plain_rank, [6, 7, 8, 9]),
    ],
)
def test_mask_attribution_equals_plain_loops(score: str, plain: Any, undefined: list[int]) -> None:
    maps, masks = some_maps(), some_masks()
    scores = attribute(maps, masks)[score]
    expected = [plain(*pair) for pair in zip(maps.numpy(), masks.numpy(), strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert np.flatnonzero(np.isnan(scores)).tolist() == undefined
    assert scores[10] == 1  # the object is the image


def plain_otsu(saliency: np.ndarray) -> float:
    """The center of the bin that, with the bins below, minimizes the variance within both sides."""
    counts, edges = np.histogram(saliency, 256)
    centers = (edges[:-1] + edges[1:]) / 2
    values = np.repeat(centers, counts)
    splits = [(values[values <= center], values[values > center]) for center in centers[:-1]]
    return float(centers[np.argmin([sum(side.var() * side.size for side in sides) for sides in splits])])


@pytest.mark.parametrize("threshold", [0, 0.2, 0.75, "otsu"])
def test_overlap_equals_scikit_learn_on_pixels_above_the_threshold(threshold: float | str) -> None:
    maps, masks = some_maps(), some_masks()
    scores = overlap(maps, masks, threshold)
    for place, (saliency, mask) in enumerate(zip(maps.sum(1).numpy(), masks.numpy(), strict=True)):
        ours = scores["iou"][place], scores["dice"][place]
        if undefined(saliency, mask):
            assert np.isnan(ours).all()
            continue
        level = plain_otsu(saliency) if isinstance(threshold, str) else threshold * saliency.max()
        above = saliency > level
        expected = [score(mask.ravel(), above.ravel()) for score in (jaccard_score, f1_score)]
        np.testing.assert_allclose(ours, expected, rtol=1e-14)
    assert np.flatnonzero(np.isnan(scores["iou"])).tolist() == [6, 7, 8, 9]
    if not isinstance(threshold, str):
        assert scores["iou"][4] == 0  # no value is positive, so no pixel is selected


def test_overlap_of_the_objects_area_is_the_rank_accuracy() -> None:
    maps, masks = some_maps(), some_masks()
    scores = overlap(maps, masks, "area")
    np.testing.assert_allclose(scores["dice"], attribute(maps, masks)["relevance_rank_accuracy"], rtol=1e-14)
    np.testing.assert_allclose(scores["iou"], scores["dice"] / (2 - scores["dice"]), rtol=1e-14)


def test_ranking_equals_scikit_learn() -> None:
    maps, masks = some_maps(), some_masks()
    scores = ranked(maps, masks)
    for place, (saliency, mask) in enumerate(zip(maps.sum(1).numpy(), masks.numpy(), strict=True)):
        if undefined(saliency, mask):
            continue
        pixels = mask.ravel(), saliency.ravel()
        assert scores["average_precision"][place] == pytest.approx(
            average_precision_score(*pixels), rel=1e-14
        )
        if not mask.all():
            assert scores["mask_auc"][place] == pytest.approx(roc_auc_score(*pixels), rel=1e-14)
    assert np.flatnonzero(np.isnan(scores["average_precision"])).tolist() == [6, 7, 8, 9]
    assert np.flatnonzero(np.isnan(scores["mask_auc"])).tolist() == [6, 7, 8, 9, 10]
    assert scores["average_precision"][10] == 1  # the object is the image


def test_otsu_separates_two_levels_however_close() -> None:
    mask = torch.zeros(1, 4, 5, dtype=torch.bool)
    mask[0, 1:3, 1:4] = True
    for step in (1.0, 1e-12, 1e-300):
        assert overlap((mask.double() * step + (step > 1e-20))[:, None], mask, "otsu")["iou"] == [1]


def test_a_worked_example() -> None:
    raw = torch.tensor([[3.0, -1.0, 2.0], [2.0, 0.5, -4.0]])[None, None]
    mask = torch.tensor([[False, True, True], [False, True, False]])[None]
    scores = attribute(raw, mask)
    assert scores["relevance_mass_accuracy"] == pytest.approx([2.5 / 7.5])
    # 3, 2 and 2 are the strongest; one lies inside.
    assert scores["relevance_rank_accuracy"] == pytest.approx([1 / 3])
    assert point(raw, mask).tolist() == [0]
    assert point(raw, mask, tolerance=1).tolist() == [1]
    # Above 0.6 are 3, 2 and 2; above 2.1 only 3, which lies outside.
    assert overlap(raw, mask) == {"iou": pytest.approx([1 / 5]), "dice": pytest.approx([1 / 3])}
    # Inside, −1, 2 and 0.5 are larger than −4, and 2 is equal to 2, of nine pairs.
    assert ranked(raw, mask) == {
        "mask_auc": pytest.approx([3.5 / 9]),
        "average_precision": pytest.approx([(1 / 3 + 2 / 4 + 3 / 5) / 3]),
    }
    assert overlap(raw, mask, 0.7) == {"iou": [0], "dice": [0]}


@pytest.mark.parametrize(("radius", "pixels"), [(0, 1), (1, 5), (2, 13), (3, 29), (5, 81)])
def test_dilation_is_by_a_euclidean_disc(radius: int, pixels: int) -> None:
    """As many points of the integer grid lie within the radius (Gauss's circle problem)."""
    mask = torch.zeros(2, 21, 21, dtype=torch.bool)
    mask[1, 10, 10] = True
    disc = dilated(mask, radius)
    assert disc.dtype == torch.bool
    assert disc.sum((1, 2)).tolist() == [0, pixels]


@pytest.mark.parametrize(
    ("mask", "value"),
    [
        (torch.ones(2, 4, 4).bool(), r"torch\.bool \[2, 4, 4\]"),
        (torch.ones(3, 4, 4), r"torch\.float32 \[3, 4, 4\]"),
    ],
)
@pytest.mark.parametrize("metric", [point, attribute, overlap, ranked])
def test_a_mask_that_does_not_fit_is_refused(metric: Any, mask: Tensor, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^mask: found {value}, expected torch\.bool \[3, 4, 4\]"):
        metric(torch.zeros(3, 2, 4, 4), mask)
