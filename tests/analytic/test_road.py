"""ROAD and its imputation against dense systems, closed forms and plain loops."""

import numpy as np
import pytest
import torch
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import spsolve
from support import CLASSES, conv_classifier, cyclic_targets, generator, random_images, skip_classifier
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.interpolation import impute, solve
from saliency_assay.metrics.road import road, shares
from saliency_assay.metrics.scored import Scored

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
@pytest.mark.parametrize("shape", [(3, 9, 7), (1, 5, 11), (2, 1, 6), (2, 6, 1), (1, 2, 2)])
def test_imputation_is_the_dense_solution(kind: str, shape: tuple[int, int, int]) -> None:
    channels, height, width = shape
    images = np.random.default_rng(1).random((5, channels, height, width))
    removed = some_removed(kind, 5, height, width)
    assert removed.sum() > 0
    found = impute(torch.tensor(images), torch.tensor(removed)).numpy()
    for image, pattern, filled in zip(images, removed, found, strict=True):
        np.testing.assert_allclose(filled, plain_imputed(pattern, image), rtol=1e-10, atol=1e-12)


def test_imputation_is_that_of_a_general_sparse_solver() -> None:
    image = np.random.default_rng(1).random((3, 24, 20))
    removed = np.random.default_rng(2).random((24, 20)) < 0.8
    matrix, right, _ = plain_system(removed, image)
    found = impute(torch.tensor(image)[None], torch.tensor(removed)[None])[0].numpy()
    np.testing.assert_allclose(found[:, removed].T, spsolve(csc_matrix(matrix), right), rtol=1e-10)


def test_a_pixel_between_known_ones_is_their_weighted_mean() -> None:
    image = torch.arange(9.0, dtype=torch.float64).reshape(1, 1, 3, 3) ** 2
    removed = torch.zeros(1, 3, 3, dtype=torch.bool)
    removed[0, 1, 1] = True
    around = (1 + 9 + 25 + 49) / 6 + (0 + 4 + 36 + 64) / 12
    assert impute(image, removed)[0, 0, 1, 1].item() == pytest.approx(around, rel=1e-14)
    removed = torch.zeros(1, 3, 3, dtype=torch.bool)
    removed[0, 0, 0] = True  # a corner has two direct neighbors and one diagonal: 1/6 + 1/6 + 1/12 of weight
    corner = (1 / 6 + 9 / 6 + 16 / 12) / (5 / 12)
    assert impute(image, removed)[0, 0, 0, 0].item() == pytest.approx(corner, rel=1e-14)


def test_a_plane_is_restored_away_from_the_border() -> None:
    rows, columns = (torch.arange(size, dtype=torch.float64) for size in (12, 10))
    plane = (0.3 + 0.02 * rows[:, None] + 0.05 * columns)[None, None]
    removed = torch.zeros(1, 12, 10, dtype=torch.bool)
    removed[:, 2:9, 1:8] = True
    np.testing.assert_allclose(impute(plane, removed), plane, rtol=1e-12)


def test_known_pixels_stay_bit_for_bit_and_removed_ones_stay_between_known_ones() -> None:
    images = random_images(4, dtype=torch.float32)
    removed = torch.tensor(some_removed("scattered", 4, 12, 12))
    found = impute(images, removed)
    assert found.dtype == torch.float32
    kept = ~removed[:, None].expand_as(images)
    assert torch.equal(found[kept], images[kept])
    for image, pattern, filled in zip(images, removed, found, strict=True):
        known = image[:, ~pattern]
        assert bool((filled.amax((1, 2)) <= known.amax(1) + 1e-6).all())
        assert bool((filled.amin((1, 2)) >= known.amin(1) - 1e-6).all())


def test_a_removed_pixel_is_not_read() -> None:
    images = random_images(3)
    removed = torch.tensor(some_removed("corner", 3, 12, 12))
    other = torch.where(removed[:, None], 0.123, images)
    assert torch.equal(impute(images, removed), impute(other, removed))


def test_one_known_pixel_in_any_corner_decides_all_others() -> None:
    """Every patch of removed pixels touches a known one: neighbors lead from any pixel to any other."""
    for place in ((0, 0), (0, 4), (6, 0), (6, 4), (3, 2)):
        removed = torch.ones(1, 7, 5, dtype=torch.bool)
        removed[(0, *place)] = False
        image = torch.rand(1, 2, 7, 5, generator=generator(), dtype=torch.float64)
        expected = image[:, :, place[0], place[1]][:, :, None, None].expand_as(image)
        np.testing.assert_allclose(impute(image, removed), expected, rtol=1e-9)


def test_an_image_without_a_known_pixel_is_refused() -> None:
    removed = torch.zeros(3, 4, 4, dtype=torch.bool)
    removed[1] = True
    with pytest.raises(ValueError, match=r"^removed: ") as error:
        impute(torch.zeros(3, 1, 4, 4), removed)
    assert str(error.value) == "removed: found all pixels of an image, expected at least one known pixel"


def test_nothing_removed_is_nothing_solved() -> None:
    assert solve(np.zeros((4, 4), dtype=bool), np.ones((4, 4)), np.zeros((0, 3))).shape == (0, 3)


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
    drawn = standard_normal(seeds, images).numpy()
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
                shown[:, removed] += noise * drawn[index][:, removed]
                with torch.no_grad():
                    logits = predict(torch.tensor(shown)[None])[0].numpy()
                shares_of = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
                outputs = {"probability": shares_of, "logit": logits, "accuracy": logits == logits.max()}
                curve.append(outputs[output][targets[index]])
            undefined = np.isnan(saliency).any() or saliency.max() == saliency.min()
            curves[name].append([NAN] * (points + 1) if undefined else curve)
    return {name: np.array(rows) for name, rows in curves.items()}


@pytest.mark.parametrize(("output", "channels"), [("probability", 3), ("logit", 1), ("accuracy", 3)])
@pytest.mark.parametrize(("points", "noise"), [(3, 0.05), (1, 0.0), (6, 0.01)])
def test_road_equals_plain_loops(output: str, channels: int, points: int, noise: float) -> None:
    model = skip_classifier() if channels == 3 else conv_classifier()
    images, targets, maps = random_images(6), cyclic_targets(6), some_maps(6, channels)
    found = road(
        model, images, targets, maps, generator=generator(7), points=points, noise=noise, output=output
    )
    expected = plain_road(model, images, targets, maps, points, noise, output)
    assert set(found.curves) == {"morf", "lerf"}
    assert set(found.scores) == {("road_morf", ""), ("road_lerf", "")}
    for name, curve in expected.items():
        assert found.curves[name].dtype == torch.float64
        np.testing.assert_allclose(found.curves[name], curve, rtol=1e-9, atol=1e-10)
        mean = [sum(row[1:]) / points for row in curve]
        np.testing.assert_allclose(found.scores[f"road_{name}", ""], mean, rtol=1e-9, atol=1e-10)
    assert found.scores["road_morf", ""].isnan().tolist() == [False, False, False, True, True, False]


def scored_in_batches(size: int, dtype: torch.dtype = torch.float64, noise: float = 0.1) -> list[Scored]:
    model = conv_classifier(dtype=dtype)
    images = random_images(5, dtype=dtype).contiguous(memory_format=torch.channels_last)
    targets, maps = cyclic_targets(5), some_maps(5).to(dtype)
    serial = generator(2)
    parts = zip(images.split(size), targets.split(size), maps.split(size), strict=True)
    return [road(model, *part, generator=serial, points=4, noise=noise) for part in parts]


def test_float32_is_near_float64() -> None:
    (wide,), (narrow,) = (scored_in_batches(5, dtype, noise=0) for dtype in (torch.float64, torch.float32))
    for name, curve in narrow.curves.items():
        assert curve.dtype == torch.float64
        np.testing.assert_allclose(curve, wide.curves[name], rtol=1e-4)


def test_the_noise_is_one_draw_an_image_and_grows_with_its_deviation() -> None:
    """A model that sums pixels: two maps give the same noise where they remove the same pixels."""

    def total(images: Tensor) -> Tensor:
        return images.sum((1, 2, 3))[:, None].repeat(1, CLASSES)

    images, targets = torch.full((2, 1, 8, 8), 0.5, dtype=torch.float64), cyclic_targets(2)
    rising = torch.arange(64.0, dtype=torch.float64).reshape(1, 1, 8, 8).repeat(2, 1, 1, 1)

    def curves(maps: Tensor, noise: float, seed: int = 1) -> dict[str, Tensor]:
        found = road(
            total, images, targets, maps, generator=generator(seed), points=1, noise=noise, output="logit"
        )
        return {name: curve[:, 1] - 32 for name, curve in found.curves.items()}  # Σ of the noise of 32 pixels

    one, other = curves(rising, 0.1), curves(-rising, 0.1)
    np.testing.assert_allclose(one["morf"], other["lerf"], rtol=1e-9)  # the same pixels, another map
    np.testing.assert_allclose(one["lerf"], other["morf"], rtol=1e-9)
    np.testing.assert_allclose(curves(rising, 0.3)["morf"], 3 * one["morf"], rtol=1e-9)
    assert not np.isclose(one["morf"][0], one["morf"][1])
    assert not np.isclose(curves(rising, 0.1, seed=9)["morf"][0], one["morf"][0])
    np.testing.assert_allclose(curves(rising, 0.0)["morf"], 0, atol=1e-12)


def test_a_model_that_reads_one_pixel() -> None:
    """Most relevant first it is lost at once; least relevant first it stays to the end."""

    def reads(images: Tensor) -> Tensor:
        return images[:, :1, 2, 5].repeat(1, CLASSES)

    images = torch.full((1, 1, 8, 8), 0.25, dtype=torch.float64)
    images[0, 0, 2, 5] = 1
    maps = torch.randn(1, 1, 8, 8, generator=generator(), dtype=torch.float64)
    maps[0, 0, 2, 5] = 10
    found = road(
        reads, images, torch.tensor([1]), maps, generator=generator(), points=7, noise=0.0, output="logit"
    )
    np.testing.assert_allclose(found.curves["morf"], [[1, *[0.25] * 7]], rtol=1e-12)
    np.testing.assert_allclose(found.curves["lerf"], [[1] * 8], rtol=1e-12)
    np.testing.assert_allclose(found.scores["road_morf", ""], [0.25], rtol=1e-12)
    np.testing.assert_allclose(found.scores["road_lerf", ""], [1], rtol=1e-12)


def test_the_original_is_evaluated_once_and_each_point_once_an_order() -> None:
    seen: list[Tensor] = []
    model = conv_classifier()

    def counted(images: Tensor) -> Tensor:
        seen.append(images)
        return model(images)

    images, maps = random_images(3), some_maps(5)[:3]
    road(counted, images, cyclic_targets(3), maps, generator=generator(), points=4)
    assert sum(len(batch) for batch in seen) == 3 * (1 + 2 * 4)
    assert len(torch.cat(seen).flatten(1).unique(dim=0)) == 3 * (1 + 2 * 4)


def test_shares_are_exact_whole_numbers() -> None:
    """Floating point makes 28 of 100 pixels at 0.29, as ``int(100 * 0.29)``."""
    assert shares(99, 100) == list(range(1, 100))
    assert shares(9, 1024) == [102, 204, 307, 409, 512, 614, 716, 819, 921]
    assert shares(3, 5) == [1, 2, 3]


@pytest.mark.parametrize("points", [0, 144])
def test_points_beyond_the_image_are_refused(points: int) -> None:
    with pytest.raises(ValueError, match=r"^points: ") as error:
        road(
            conv_classifier(),
            random_images(2),
            cyclic_targets(2),
            some_maps(5)[:2],
            generator=generator(),
            points=points,
        )
    assert str(error.value) == f"points: found {points}, expected 1 to 143, fewer than the pixels of an image"
