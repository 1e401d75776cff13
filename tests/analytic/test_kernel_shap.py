"""Kernel SHAP against Shapley's definition, additive models and captum; segments against what they promise."""

from itertools import combinations, pairwise
from math import comb, factorial
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from support import (
    CLASSES,
    SmoothNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    seen_batches,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.kernel_shap import coalitions, kernel_shap
from saliency_assay.methods.segments import segment

IMAGES, TARGETS = random_images(5), cyclic_targets(5)


def patches(rows: int, columns: int, size: int = 16, seed: int = 0) -> Tensor:
    """An image ``[3, size, size]`` of plain patches of random colors with a little noise."""
    colors = torch.rand(3, rows, columns, generator=generator(seed), dtype=torch.float64)
    plain = nn.functional.interpolate(colors[None], size=(size, size))[0]
    noise = torch.rand(3, size, size, generator=generator(seed + 100), dtype=torch.float64)
    return (0.95 * plain + 0.05 * noise).clamp(0, 1)


# Images that SLIC cuts into different numbers of segments.
PATCHES = torch.stack([patches(2, 4, seed=5), patches(1, 1), patches(2, 2), patches(3, 3), patches(2, 3)])


def numbers(labels: Tensor) -> list[int]:
    """Return the number of segments of each image."""
    return [len(each.unique()) for each in labels]


def plain_shapley(model: nn.Module, image: Tensor, target: int, labels: Tensor) -> np.ndarray:
    """φ_i = Σ_S |S|! (M − |S| − 1)! / M! (v(S ∪ i) − v(S)) over all subsets S without i."""
    players = range(int(labels.max()) + 1)
    subsets = [frozenset(s) for size in range(len(players) + 1) for s in combinations(players, size)]
    shown = image.repeat(len(subsets), 1, 1, 1)
    for pixels, subset in zip(shown, subsets, strict=True):
        for player in players:
            if player not in subset:
                pixels[:, labels == player] = 0
    with torch.no_grad():
        worth = dict(zip(subsets, model(shown)[:, target].tolist(), strict=True))
    values = np.zeros(len(players))
    for player in players:
        for subset in subsets:
            if player not in subset:
                share = factorial(len(subset)) * factorial(len(players) - len(subset) - 1)
                gain = worth[subset | {player}] - worth[subset]
                values[player] += share / factorial(len(players)) * gain
    return values


def spread(values: np.ndarray, labels: Tensor) -> np.ndarray:
    """Each segment's value, shared by its pixels."""
    pixels = np.zeros(labels.shape)
    for number, value in enumerate(values):
        inside = labels.numpy() == number
        pixels[inside] = value / inside.sum()
    return pixels


def change(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """f_t(x) − f_t(black)."""
    with torch.no_grad():
        return (model(images) - model(torch.zeros_like(images)))[range(len(images)), targets]


# ------------------------------------------------------------------------------------------------- exact


def test_exact_values_of_a_grid_equal_captum() -> None:
    model, labels = conv_classifier(), segment(IMAGES[:1], "grid", 4)
    mean = model.mean.expand_as(IMAGES[:1])
    expected = captum.attr.ShapleyValues(model).attribute(
        IMAGES, baselines=mean, target=TARGETS, feature_mask=labels[:, None]
    )
    settings = {"segments": 4, "samples": 14, "baseline": "mean"}
    maps = kernel_shap(model, IMAGES, TARGETS, generator=generator(), **settings)
    exact(36 * maps.expand_as(IMAGES), expected, 1e-6, floor=1e-9)  # captum gives each pixel the whole value


def test_superpixels_have_the_shapley_values_of_their_definition() -> None:
    """Images of different numbers of segments share one solve."""
    model = conv_classifier()
    labels = segment(PATCHES, "superpixels", 8)
    assert 8 in numbers(labels)
    assert len(set(numbers(labels))) >= 3
    settings = {"features": "superpixels", "segments": 8, "samples": 2 ** max(numbers(labels)) - 2}
    maps = kernel_shap(model, PATCHES, TARGETS, generator=generator(), **settings)
    for i in range(5):
        values = plain_shapley(model, PATCHES[i], int(TARGETS[i]), labels[i])
        exact(maps[i, 0], spread(values, labels[i]), 1e-8, floor=1e-14)


def test_an_image_with_more_superpixels_than_segments_is_explained() -> None:
    """SLIC returns more superpixels than it is asked for in some images."""
    model = conv_classifier()
    segments = next(n for n in range(9, 40) if max(numbers(segment(PATCHES, "superpixels", n))) > n)
    settings = {"features": "superpixels", "segments": segments, "samples": 2 * segments + 2}
    maps = kernel_shap(model, PATCHES, TARGETS, generator=generator(), **settings)
    exact(maps.sum((1, 2, 3)), change(model, PATCHES, TARGETS), 1e-10)


def test_one_segment_has_the_whole_change() -> None:
    model = conv_classifier()
    maps = kernel_shap(model, IMAGES, TARGETS, generator=generator(), segments=1, samples=1)
    expected = change(model, IMAGES, TARGETS) / 144
    exact(maps, expected[:, None, None, None].expand(5, 1, 12, 12))


# ------------------------------------------------------------------------------------------------ sampled


@pytest.mark.parametrize("samples", [18, 19, 253])
def test_sampled_values_of_an_additive_model_are_exact(samples: int) -> None:
    model = with_random_state(nn.Sequential(nn.Flatten(), nn.Linear(IMAGES[0].numel(), CLASSES)), seed=1)
    maps = kernel_shap(model, IMAGES, TARGETS, generator=generator(), segments=8, samples=samples)
    effects = (model[1].weight.detach()[TARGETS].reshape(IMAGES.shape) * IMAGES).sum(1)
    labels = segment(IMAGES, "grid", 8)
    for effect, values, cells in zip(effects, maps, labels, strict=True):
        exact(values[0], spread(np.bincount(cells.flatten(), effect.flatten()), cells))


def test_sampled_values_approach_the_exact_ones() -> None:
    model = with_random_state(SmoothNet(IMAGES[0].numel()), seed=1)

    def maps(samples: int, seed: int = 0) -> Tensor:
        return kernel_shap(
            model, IMAGES, TARGETS, generator=generator(seed), segments=9, samples=samples
        ).flatten(1)

    every = maps(510)
    errors = [float((maps(samples) - every).norm() / every.norm()) for samples in (20, 60, 180)]
    assert all(more < 0.8 * fewer for fewer, more in pairwise(errors))
    average = torch.stack([maps(60, seed) for seed in range(16)]).mean(0)
    assert (average - every).norm() / every.norm() < errors[1] / 2.5  # errors have no direction of their own


def test_coalitions_are_all_there_are() -> None:
    members, weights = coalitions(5, 30, seed=0)
    assert len({tuple(row) for row in members.tolist()}) == len(members) == 30
    for row, weight in zip(members.tolist(), weights.tolist(), strict=True):
        size = sum(row)
        assert weight == pytest.approx(4 / (comb(5, size) * size * (5 - size)), rel=1e-14)


def test_sampled_coalitions_follow_the_kernel() -> None:
    segments, samples = 12, 4000
    members, weights = coalitions(segments, samples, seed=3)
    assert members.shape == (samples, segments)
    single, sampled = members[:24], members[24:]
    assert sorted(single.sum(1).tolist()) == [1] * 12 + [11] * 12
    assert len(single.unique(dim=0)) == 24
    exact(weights[:24], torch.full((24,), 1 / 12, dtype=torch.float64))
    assert torch.equal(sampled[0::2], ~sampled[1::2])
    totals = np.array([11 / (size * (12 - size)) for size in range(2, 11)])
    exact(weights[24:], torch.full((3976,), totals.sum() / 3976, dtype=torch.float64))
    # The first of each pair, as the second follows from it.
    first = sampled[0::2]
    counts = np.bincount(first.sum(1), minlength=11)[2:]
    assert stats.chisquare(counts, totals / totals.sum() * 1988).pvalue > 1e-3
    for size in (2, 6, 10):
        assert stats.chisquare(first[first.sum(1) == size].sum(0)).pvalue > 1e-3


def test_each_image_has_coalitions_of_its_own() -> None:
    model = conv_classifier()
    images = IMAGES[:1].expand(3, -1, -1, -1)
    with seen_batches(model) as seen:
        kernel_shap(model, images, TARGETS[:3], generator=generator(), segments=9, samples=60)
    rows = torch.stack(seen, 1).reshape(3, 62, -1)
    assert not torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[1], rows[2])


def test_any_split_gives_the_same_maps_of_superpixels() -> None:
    """Some images have all coalitions and others samples, and images of a batch differ in their number."""
    model = conv_classifier()
    counts = numbers(segment(PATCHES, "superpixels", 8))
    assert min(counts) < 5
    assert max(counts) > 6
    settings = {"features": "superpixels", "segments": 8, "samples": 40}
    whole = kernel_shap(model, PATCHES, TARGETS, generator=generator(), **settings)
    serial = generator()
    parts = [
        kernel_shap(model, *part, generator=serial, **settings)
        for part in zip(PATCHES.split(2), TARGETS.split(2), strict=True)
    ]
    exact(torch.cat(parts), whole, 1e-9)


# ----------------------------------------------------------------------------------------------- segments


@pytest.mark.parametrize("segments", [12, 40])
def test_superpixels_cover_the_image_and_are_numbered_without_a_gap(segments: int) -> None:
    labels = segment(PATCHES[..., :14].contiguous(), "superpixels", segments)
    assert labels.shape == (5, 16, 14)
    for each in labels.numpy():
        used = np.unique(each)
        assert used.tolist() == list(range(len(used)))
        assert all(ndimage.label(each == number)[1] == 1 for number in used)  # each in one piece
    assert all(segments / 3 <= number <= 1.5 * segments for number in numbers(labels)[2:])


@pytest.mark.parametrize(
    ("height", "width", "cells", "rows", "columns"),
    [
        (12, 12, 16, 4, 4),
        (12, 12, 8, 2, 4),
        (10, 30, 12, 2, 6),
        (5, 7, 6, 2, 3),
        (4, 9, 7, 1, 7),
        (3, 4, 12, 3, 4),
    ],
)
def test_grid_has_the_squarest_cells(height: int, width: int, cells: int, rows: int, columns: int) -> None:
    labels = segment(torch.zeros(2, 1, height, width), "grid", cells)
    for row in range(rows):
        for column in range(columns):
            top, bottom = -(-row * height // rows), -(-(row + 1) * height // rows)
            left, right = -(-column * width // columns), -(-(column + 1) * width // columns)
            assert (labels[:, top:bottom, left:right] == row * columns + column).all()
            assert bottom - top in (height // rows, height // rows + 1)
            assert right - left in (width // columns, width // columns + 1)


def test_superpixels_follow_the_edges() -> None:
    labels = segment(PATCHES[:1], "superpixels", 8)[0].reshape(2, 8, 4, 4)
    for row in range(2):
        for column in range(4):
            patch = labels[row, :, column]
            assert len(patch.unique()) == 1
    assert len(labels.unique()) == 8


def test_superpixels_of_a_gray_image_are_those_of_its_rgb_copy() -> None:
    gray = PATCHES[:, :1]
    labels = segment(gray, "superpixels", 12)
    assert torch.equal(labels, segment(gray.expand(-1, 3, -1, -1), "superpixels", 12))
    assert max(numbers(labels)) > 4


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(("segments", "least"), [(1, 0), (2, 2), (3, 6), (4, 10), (100, 202)])
def test_the_fewest_samples_determine_the_values(segments: int, least: int) -> None:
    """Whatever is sampled, no two sets of values fit one image: the regression has full rank."""
    for seed in range(5):
        members, weights = coalitions(segments, least, seed)
        assert len(members) == len(weights) == least
        design = members.double()
        assert np.linalg.matrix_rank(np.vstack([design, np.ones(segments)])) == segments
        assert (weights > 0).all()


def test_superpixels_need_one_or_three_channels() -> None:
    model = with_random_state(SmoothNet(2 * 144), seed=1)
    with pytest.raises(ValueError, match=r"^features: found 'superpixels' of 2 channels, expected 1 or 3"):
        kernel_shap(model, IMAGES[:, :2], TARGETS, generator=generator(), features="superpixels")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"segments": 145, "features": "superpixels"}, r"segments: found 145, expected 1 to 144\b"),
        ({"segments": 13}, r"segments: found 13\b.* 12 and 12\b"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_the_image_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        kernel_shap(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)
