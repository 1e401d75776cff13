"""ROAD and its imputation against dense systems, closed forms and plain loops."""

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, generator, random_images, skip_classifier
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.interpolation import impute
from saliency_assay.metrics.road import road, shares

NAN = float("nan")

# ---------------------------------------------------------------------------------------------- imputation


def plain_system(
    removed: np.ndarray, image: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """A x = b of one image ``[C, H, W]``, pixel by pixel: x_p − Σ_q (w_q / Σ_q w_q) x_q = 0."""
    height, width = removed.shape
    places = [(i, j) for i in range(height) for j in range(width) if removed[i, j]]
    matrix, right = np.zeros((len(places), len(places))), np.zeros((len(places), len(image)))
    for row, (i, j) in enumerate(places):
        weights = {}
        for down in (-1, 0, 1):
            for across in (-1, 0, 1):
                near = (i + down, j + across)
                if (down, across) != (0, 0) and 0 <= near[0] < height and 0 <= near[1] < width:
                    weights[near] = 1 / 12 if down and across else 1 / 6
        matrix[row, row] = 1
        for near, weight in weights.items():
            share = weight / sum(weights.values())
            if removed[near]:
                matrix[row, places.index(near)] -= share
            else:
                right[row] += share * image[:, near[0], near[1]]
    return matrix, right, places


def plain_imputed(removed: np.ndarray, image: np.ndarray) -> np.ndarray:
    matrix, right, places = plain_system(removed, image)
    filled = image.copy()
    if places:
        values = np.linalg.solve(matrix, right)
        for (i, j), value in zip(places, values, strict=True):
            filled[:, i, j] = value
    return filled


def some_removed(kind: str, count: int, height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind == "all but one":
        removed = np.ones((count, height, width), dtype=bool)
        for row in removed:
            row[rng.integers(height), rng.integers(width)] = False
        return removed
    if kind == "corner":
        corner = np.add.outer(np.arange(height), np.arange(width)) < (height + width) // 2 - 1
        return np.repeat(corner[None], count, axis=0)
    removed = rng.random((count, height, width)) < np.linspace(0, 0.97, count)[:, None, None]
    removed[:, height // 2, width // 2] = False
    return removed


@pytest.mark.parametrize("kind", ["all but one", "corner", "scattered"])
@pytest.mark.parametrize("shape", [(3, 9, 7), (2, 1, 6), (2, 6, 1), (1, 2, 2)])
def test_imputation_is_the_dense_solution(kind: str, shape: tuple[int, int, int]) -> None:
    channels, height, width = shape
    images = np.random.default_rng(1).random((5, channels, height, width))
    removed = some_removed(kind, 5, height, width)
    assert removed.sum() > 0
    imputed = impute(torch.tensor(images), torch.tensor(removed)).numpy()
    for image, pattern, filled in zip(images, removed, imputed, strict=True):
        np.testing.assert_allclose(filled, plain_imputed(pattern, image), rtol=1e-10, atol=1e-12)


def test_known_pixels_stay_bit_for_bit_and_removed_ones_stay_between_known_ones() -> None:
    images = random_images(4, dtype=torch.float32)
    removed = torch.tensor(some_removed("scattered", 4, 12, 12))
    imputed = impute(images, removed)
    assert imputed.dtype == torch.float32
    kept = ~removed[:, None].expand_as(images)
    assert torch.equal(imputed[kept], images[kept])
    for image, pattern, filled in zip(images, removed, imputed, strict=True):
        known = image[:, ~pattern]
        assert bool((filled.amax((1, 2)) <= known.amax(1) + 1e-6).all())
        assert bool((filled.amin((1, 2)) >= known.amin(1) - 1e-6).all())


def test_an_image_without_a_known_pixel_is_refused() -> None:
    removed = torch.zeros(3, 4, 4, dtype=torch.bool)
    removed[1] = True
    with pytest.raises(ValueError, match=r"^removed: found all pixels of an image\b"):
        impute(torch.zeros(3, 1, 4, 4), removed)


# ----------------------------------------------------------------------------------------------------- road


def some_maps(count: int, channels: int = 3, size: int = 12) -> Tensor:
    """Signed maps; the second has many ties, the third is negative, the fourth constant, the fifth holds NaN."""
    maps = torch.randn(count, channels, size, size, generator=generator(5), dtype=torch.float64)
    maps[1] = maps[1].round()
    maps[2] = -maps[2].abs()
    maps[3] = 0.3
    maps[4, 0, 2, 3] = NAN
    return maps


def plain_road(
    predict: torch.nn.Module,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    points: int,
    noise: float,
    output: str,
) -> dict[str, np.ndarray]:
    """Curves, image by image and point by point, one forward each."""
    seeds = sample_seeds(len(images), 1, generator(7))
    normal = standard_normal(seeds, images).numpy()
    curves: dict[str, list[list[float]]] = {"morf": [], "lerf": []}
    for index, image in enumerate(images.numpy()):
        saliency = maps[index].sum(0).numpy()
        size = saliency.size
        order = sorted(range(size), key=lambda pixel: -saliency.flat[pixel])
        for name, chosen in (("morf", order), ("lerf", order[::-1])):
            curve = []
            for point in range(points + 1):
                removed = np.zeros(saliency.shape, dtype=bool)
                removed.flat[chosen[: point * size // (points + 1)]] = True
                shown = plain_imputed(removed, image)
                shown[:, removed] += noise * normal[index][:, removed]
                with torch.no_grad():
                    logits = predict(torch.tensor(shown)[None])[0].numpy()
                shares_of = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
                outputs = {"probability": shares_of, "logit": logits, "accuracy": logits == logits.max()}
                curve.append(outputs[output][targets[index]])
            undefined = np.isnan(saliency).any() or saliency.max() == saliency.min()
            curves[name].append([NAN] * (points + 1) if undefined else curve)
    return {name: np.array(rows) for name, rows in curves.items()}


@pytest.mark.parametrize(
    ("output", "channels", "points", "noise"),
    [("probability", 3, 3, 0.05), ("logit", 1, 1, 0.0), ("accuracy", 3, 6, 0.01)],
)
def test_road_equals_plain_loops(output: str, channels: int, points: int, noise: float) -> None:
    model = skip_classifier() if channels == 3 else conv_classifier()
    images, targets, maps = random_images(6), cyclic_targets(6), some_maps(6, channels)
    scored = road(
        model, images, targets, maps, generator=generator(7), points=points, noise=noise, output=output
    )
    expected = plain_road(model, images, targets, maps, points, noise, output)
    assert set(scored.curves) == {"morf", "lerf"}
    assert set(scored.scores) == {("road_morf", ""), ("road_lerf", "")}
    for name, curve in expected.items():
        assert scored.curves[name].dtype == torch.float64
        np.testing.assert_allclose(scored.curves[name], curve, rtol=1e-9, atol=1e-10)
        mean = [sum(row[1:]) / points for row in curve]
        np.testing.assert_allclose(scored.scores[f"road_{name}", ""], mean, rtol=1e-9, atol=1e-10)
    assert scored.scores["road_morf", ""].isnan().tolist() == [False, False, False, True, True, False]


def test_shares_are_exact_whole_numbers() -> None:
    """Floating point makes 28 of 100 pixels at 0.29, as ``int(100 * 0.29)``."""
    assert shares(99, 100) == list(range(1, 100))
    assert shares(9, 1024) == [102, 204, 307, 409, 512, 614, 716, 819, 921]
    assert shares(3, 5) == [1, 2, 3]


def test_points_beyond_the_image_are_refused() -> None:
    images, targets, maps = random_images(2), cyclic_targets(2), some_maps(5)[:2]
    with pytest.raises(ValueError, match=r"^points: found 144, expected at most 143\b"):
        road(conv_classifier(), images, targets, maps, generator=generator(), points=144)
