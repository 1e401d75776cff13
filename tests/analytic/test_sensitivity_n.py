"""Sensitivity-n against closed forms and plain loops."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from support import conv_classifier, cyclic_targets, exact, generator, output_of, random_images
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.scored import Scored
from saliency_assay.metrics.sensitivity_n import random_subsets, sensitivity_n, subset_sizes

NAN, SIZE, SEED = float("nan"), 6, 11
SIZES = [1, 3, 9, 29]  # 1, 3.07, 9.40, 28.8 of 36 pixels
COUNT = 80
PARAMETERS = {"points": 4, "largest": 0.8, "subsets": COUNT}
RESPONSES_ONLY = {"fill", "output", "mean"}  # read by the model responses only


def scored(model: Any, images: Tensor, maps: Tensor, **more: Any) -> Scored:
    """The metric and its model responses, each with a generator of one seed."""
    parameters, targets = {**PARAMETERS, **more}, cyclic_targets(len(images))
    responses = random_subsets(model, images, targets, generator=generator(SEED), **parameters)
    kept = {name: value for name, value in parameters.items() if name not in RESPONSES_ONLY}
    return sensitivity_n(model, images, targets, maps, generator=generator(SEED), responses=responses, **kept)


def some_maps(channels: int) -> Tensor:
    """One of each: any values, ties and many zeros, negative values alone, constant, zero, NaN."""
    maps = torch.randn(6, channels, SIZE, SIZE, generator=generator(3), dtype=torch.float64)
    maps[1] = (maps[1] / 2).round()
    maps[2] = -maps[2].abs()
    maps[3], maps[4] = 0.7, 0.0
    maps[5, 0, 2, 1] = NAN
    return maps


def plain_subsets() -> list[list[list[int]]]:
    """By size, the pixels of each subset: those with the smallest of as many random keys as there are pixels."""
    keys = torch.rand(len(SIZES) * COUNT, SIZE * SIZE, generator=generator(SEED), dtype=torch.float64)
    order = [sorted(range(SIZE * SIZE), key=row.__getitem__) for row in keys.tolist()]
    return [[row[:n] for row in order[i * COUNT : (i + 1) * COUNT]] for i, n in enumerate(SIZES)]


def plain(model: Any, images: Tensor, fills: Tensor, maps: Tensor, output: str) -> tuple[list, list]:
    """The mean and the ρ of every size, image by image and subset by subset."""
    means, curves, subsets = [], [], plain_subsets()
    for i, (image, filled, raw) in enumerate(zip(images, fills, maps.numpy(), strict=True)):
        before, curve = output_of(model, image, i % 4, output), []
        for same_size in subsets:
            summed, drop = [], []
            for subset in same_size:
                shown, total = image.clone(), 0.0
                for pixel in subset:
                    row, column = divmod(pixel, SIZE)
                    shown[:, row, column] = filled[:, row, column]
                    total += sum(float(channel[row, column]) for channel in raw)
                summed.append(total)
                drop.append(before - output_of(model, shown, i % 4, output))
            flat = np.isnan(raw).any() or np.ptp(raw.sum(0)) == 0 or np.ptp(summed) == 0
            curve.append(NAN if flat else stats.pearsonr(summed, drop).statistic)
        means.append(sum(curve) / len(curve))
        curves.append(curve)
    return means, curves


@pytest.mark.parametrize(
    ("channels", "output", "fill"),
    [(1, "logit", "black"), (3, "probability", "mean"), (3, "logit", "random")],
)
def test_it_equals_plain_loops(channels: int, output: str, fill: str) -> None:
    model, images, maps = conv_classifier(), random_images(6, size=SIZE), some_maps(channels)
    mean = torch.tensor([0.3, 0.5, 0.6], dtype=torch.float64)
    seeds = sample_seeds(6, 1, generator(SEED))
    fills = fill_of(fill, images, mean=mean, seeds=seeds).expand(images.shape)
    outcome = scored(model, images, maps, fill=fill, output=output, mean=mean)
    means, curves = plain(model, images, fills, maps, output)
    exact(outcome.scores["sensitivity_n", ""], means, 1e-9)
    exact(outcome.curves["correlation"], np.array(curves), 1e-9)
    assert [variant for _, variant in outcome.scores] == ["", "n=1", "n=3", "n=9", "n=29"]
    for i, n in enumerate(SIZES):
        exact(outcome.scores["sensitivity_n", f"n={n}"], np.array(curves)[:, i], 1e-9)
    assert np.isnan(means).tolist() == [False] * 3 + [True] * 3


def test_gradient_times_input_explains_a_linear_model() -> None:
    images = random_images(4, size=SIZE)
    weights = torch.randn(4, *images.shape[1:], generator=generator(5), dtype=torch.float64)

    def predict(pixels: Tensor) -> Tensor:
        return pixels.flatten(1) @ weights.flatten(1).T + 2

    maps = weights[cyclic_targets(4)] * images
    for sign in (1, -1):
        for values in scored(predict, images, 3 * sign * maps).scores.values():
            exact(values, np.full(4, sign), 1e-12)


def test_sizes_where_the_output_is_still_are_left_out() -> None:
    """An output that depends on whether half of the image is there: no small subset changes it."""
    images = torch.ones(2, 1, SIZE, SIZE, dtype=torch.float64)
    images[1] = 0  # already black: nothing moves it

    def predict(pixels: Tensor) -> Tensor:
        return (pixels.sum((1, 2, 3)) * (pixels[:, 0, 0, 0] + 1) * (pixels.sum((1, 2, 3)) < 18))[
            :, None
        ].repeat(1, 4)

    maps = torch.randn(2, 1, SIZE, SIZE, generator=generator(2), dtype=torch.float64)
    scores = scored(predict, images, maps).scores
    for n in (1, 3, 9):
        assert scores["sensitivity_n", f"n={n}"].isnan().all()
    assert scores["sensitivity_n", "n=29"].isnan().tolist() == [False, True]
    exact(scores["sensitivity_n", ""], scores["sensitivity_n", "n=29"])


def test_a_map_that_cannot_tell_subsets_apart_has_no_score() -> None:
    """One pixel alone counts, which none of the subsets of one pixel holds; the output varies all the same."""
    images = random_images(2, size=SIZE)
    missed = sorted(set(range(SIZE * SIZE)) - {subset[0] for subset in plain_subsets()[0]})
    # Its mean over 80 is another number.
    maps = torch.full((2, 1, SIZE * SIZE), 0.123456789, dtype=torch.float64)
    maps[0, 0, missed[0]] = 5.0
    maps[1, 0, plain_subsets()[0][0][0]] = 5.0
    scores = scored(conv_classifier(), images, maps.reshape(2, 1, SIZE, SIZE)).scores
    for variant in ("n=1", ""):
        assert scores["sensitivity_n", variant].isnan().tolist() == [True, False], variant
    assert scores["sensitivity_n", "n=9"].isfinite().all()


def test_an_image_that_is_its_fill_has_no_score() -> None:
    """In float32 a row's logits depend on its place in the batch, in their last bits, and bits would correlate."""
    model = conv_classifier(dtype=torch.float32)
    images = random_images(3, size=SIZE, dtype=torch.float32)
    images[1] = 0
    places: list[int] = []

    def predict(pixels: Tensor) -> Tensor:
        places.append(len(pixels))
        return model(pixels) + 1e-6 * torch.arange(len(pixels))[:, None]

    scores = scored(predict, images, some_maps(3)[:3].float())
    assert places
    for values in scores.scores.values():
        assert values.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("points", "largest", "pixels", "sizes"),
    [
        (4, 0.8, 36, SIZES),
        (1, 0.8, 36, [1]),
        (2, 0.5, 36, [1, 18]),
        (2, 1, 36, [1, 35]),
        (3, 0, 36, [1]),
        (3, 0.01, 36, [1]),
        (9, 0.2, 36, [1, 2, 3, 4, 6, 7]),  # 1, 1.28, 1.64, 2.10, 2.68, 3.43, 4.39, 5.62, 7.2
        (3, 1, 1, [1]),
    ],
)
def test_sizes_are_even_in_log_n(points: int, largest: float, pixels: int, sizes: list[int]) -> None:
    images = torch.zeros(2, 3, 1, pixels)
    assert subset_sizes(images, points, largest) == sizes


def test_responses_of_other_parameters_are_refused() -> None:
    model, images, targets = conv_classifier(), random_images(2, size=SIZE), cyclic_targets(2)
    for responses, shape in [({}, "none"), ({"drop": torch.zeros(2, 4, 30)}, r"\[2, 4, 30\]")]:
        with pytest.raises(ValueError, match=rf"^responses: found drop {shape}, expected \[2, 4, 80\]"):
            sensitivity_n(
                model, images, targets, images, generator=generator(), responses=responses, **PARAMETERS
            )
