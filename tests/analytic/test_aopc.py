"""AOPC and its random baseline against closed forms and plain loops."""

import numpy as np
import pytest
import torch
from support import cyclic_targets, generator, hard_maps, random_images, seen_batches, smooth_network
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.aopc import aopc, prefixes, random_orders
from saliency_assay.metrics.fills import fill as fill_of

SIZE, PIXELS = 6, 36
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
FEW = {"steps": 10, "every": 4}


class OnePixel(nn.Module):
    """The logit of class 0 is three times the gray pixel ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, images: Tensor) -> Tensor:
        value = 3 * images.flatten(1)[:, self.place]
        return torch.stack([value, torch.zeros_like(value)], 1)


def ask(model: nn.Module, image: np.ndarray, target: int, output: str) -> float:
    with torch.no_grad():
        logits = model(torch.from_numpy(image)[None])[0].numpy()
    return float(logits[target] if output == "logit" else np.exp(logits[target]) / np.exp(logits).sum())


def slow_curve(
    model: nn.Module, image: Tensor, fill: Tensor, order: list[int], target: int, output: str, steps: int
) -> list[float]:
    current = image.numpy().copy()
    found = [ask(model, current, target, output)]
    for pixel in order[:steps]:
        row, column = divmod(pixel, SIZE)
        current[:, row, column] = fill[:, row, column].numpy()
        found.append(ask(model, current, target, output))
    return found


def slow_aopc(curve: list[float], length: int) -> float:
    total = 0.0
    for k in range(1, length + 1):
        total += curve[0] - curve[k]
    return total / (length + 1)


def most_relevant_first(raw: Tensor) -> list[int]:
    values = raw.numpy().sum(0).flatten()
    return sorted(range(PIXELS), key=lambda pixel: -values[pixel])


def test_a_model_that_reads_one_pixel_has_a_known_aopc() -> None:
    """It falls by 3x at the step of that pixel, so AOPC is (L − rank) / (L + 1) · 3x, and 0 if that is later."""
    images = random_images(2, 1, 4)
    maps = torch.arange(16.0, 0, -1, dtype=torch.float64).reshape(1, 1, 4, 4).repeat(2, 1, 1, 1)
    found = aopc(
        OnePixel(5), images, torch.tensor([0, 0]), maps, generator=generator(), steps=16, every=5, fill="black",
        output="logit",
    )  # fmt: skip
    value = 3 * images[:, 0, 1, 1].numpy()
    for length in (5, 10, 15, 16):
        expected = {"aopc_morf": max(length - 5, 0), "aopc_lerf": max(length - 10, 0)}
        for name, steps in expected.items():
            scores = found.scores[name, f"L={length}"]
            np.testing.assert_allclose(scores, steps / (length + 1) * value, rtol=1e-12, atol=1e-15)
    assert len(found.scores) == 8


@pytest.mark.parametrize("fill", ["black", "mean", "image_mean", "random", "blur"])
@pytest.mark.parametrize("output", ["probability", "logit"])
def test_equals_plain_loops(fill: str, output: str) -> None:
    model, images, targets, maps = (
        smooth_network(),
        random_images(5, size=SIZE),
        cyclic_targets(5),
        hard_maps(),
    )
    options = {"mean": MEAN, "fill": fill, "output": output}
    found = aopc(model, images, targets, maps, generator=generator(4), **options, **FEW)
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(5, 2, generator(4))[::2]).expand_as(images)
    assert set(found.scores) == {
        (f"aopc_{name}", f"L={length}") for name in ("morf", "lerf") for length in (4, 8, 10)
    }
    for index in range(5):
        order = most_relevant_first(maps[index])
        for name, pixels in (("morf", order), ("lerf", order[::-1])):
            curve = slow_curve(model, images[index], fills[index], pixels, int(targets[index]), output, 10)
            if index > 2:
                curve = [np.nan] * 11
            np.testing.assert_allclose(found.curves[name][index], curve, atol=1e-12)
            for length in (4, 8, 10):
                score = float(found.scores[f"aopc_{name}", f"L={length}"][index])
                np.testing.assert_allclose(score, slow_aopc(curve, length), atol=1e-12)
    for name in ("morf", "lerf"):
        assert found.curves[name].dtype == found.scores[f"aopc_{name}", "L=4"].dtype == torch.float64
    assert float(found.scores["aopc_morf", "L=10"][:3].abs().min()) > 1e-4


@pytest.mark.parametrize("fill", ["mean", "random"])
def test_random_orders_equal_plain_loops(fill: str) -> None:
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)
    found = random_orders(
        model, images, targets, generator=generator(4), mean=MEAN, fill=fill, random_orders=4, **FEW
    )
    seeds = sample_seeds(3, 2, generator(4))
    fills = fill_of(fill, images, mean=MEAN, seeds=seeds[::2]).expand_as(images)
    assert found["random_aopc"].shape == (3, 4, 3)
    for index in range(3):
        child, curves = generator(seeds[2 * index + 1]), []
        for number in range(4):
            ranks = torch.randperm(PIXELS, generator=child).tolist()
            order = [ranks.index(rank) for rank in range(PIXELS)]
            target = int(targets[index])
            curve = slow_curve(model, images[index], fills[index], order, target, "probability", 10)
            expected = [slow_aopc(curve, length) for length in (4, 8, 10)]
            np.testing.assert_allclose(found["random_aopc"][index, number], expected, atol=1e-12)
            curves.append(curve)
        np.testing.assert_allclose(found["random_curve"][index], np.mean(curves, 0), atol=1e-12)
    assert len({round(value, 12) for value in found["random_aopc"][:, :, 2].flatten().tolist()}) == 12


def test_random_orders_are_random_orders() -> None:
    """A pixel that alone counts is among the first 12 of 36 in a third of the orders."""
    images = torch.ones(1, 1, SIZE, SIZE, dtype=torch.float64)
    found = random_orders(
        OnePixel(20), images, torch.tensor([0]), generator=generator(), steps=12, every=12, fill="black",
        random_orders=900, output="logit",
    )  # fmt: skip
    assert float((found["random_aopc"][0, :, 0] > 0).double().mean()) == pytest.approx(1 / 3, abs=0.05)
    # Of the twelve steps each is the pixel's in 1/36 of the orders.
    expected = 3 * (1 - torch.arange(13) / 36)
    np.testing.assert_allclose(found["random_curve"][0], expected, atol=0.15)


def test_metric_and_model_responses_have_the_same_random_fill() -> None:
    """A map that ranks pixels as a random order does gets that order's curve."""
    model, images, targets = smooth_network(), random_images(3, size=SIZE), cyclic_targets(3)
    options = {"fill": "random", **FEW}
    serial, seeds = generator(8), sample_seeds(3, 2, generator(8))[1::2]
    parts = [
        random_orders(model, *part, generator=serial, random_orders=1, **options)
        for part in zip(images.split(2), targets.split(2), strict=True)
    ]
    ranks = [torch.randperm(PIXELS, generator=generator(seed)).reshape(1, SIZE, SIZE) for seed in seeds]
    maps = -torch.stack(ranks).double()
    serial = generator(8)
    for part, responses in zip(
        zip(images.split(2), targets.split(2), maps.split(2), strict=True), parts, strict=True
    ):
        found = aopc(model, *part, generator=serial, **options)
        np.testing.assert_allclose(found.curves["morf"], responses["random_curve"], atol=1e-13)
        for number, length in enumerate((4, 8, 10)):
            scores = found.scores["aopc_morf", f"L={length}"]
            np.testing.assert_allclose(scores, responses["random_aopc"][:, 0, number], atol=1e-13)


def test_the_original_is_evaluated_once() -> None:
    model, images, targets = smooth_network(), random_images(2, size=SIZE), cyclic_targets(2)
    with seen_batches(model) as seen:
        aopc(model, images, targets, hard_maps()[:2], generator=generator(), fill="black", **FEW)
    assert sum(map(len, seen)) == 2 * (1 + 2 * 10)
    with seen_batches(model) as seen:
        random_orders(model, images, targets, generator=generator(), fill="black", random_orders=3, **FEW)
    assert sum(map(len, seen)) == 2 * (1 + 3 * 10)


@pytest.mark.parametrize(
    ("steps", "every", "lengths"),
    [(100, 20, [20, 40, 60, 80, 100]), (10, 4, [4, 8, 10]), (5, 20, [5]), (3, 1, [1, 2, 3])],
)
def test_prefixes_end_with_all_steps(steps: int, every: int, lengths: list[int]) -> None:
    assert prefixes(steps, every) == lengths


@pytest.mark.parametrize("function", [aopc, random_orders])
def test_more_steps_than_pixels_are_refused(function: object) -> None:
    images, targets = random_images(5, size=SIZE), cyclic_targets(5)
    given = (smooth_network(), images, targets, hard_maps())[: 4 if function is aopc else 3]
    with pytest.raises(ValueError, match=r"^steps: found") as error:
        function(*given, generator=generator(), steps=37, fill="black")  # type: ignore[operator]
    assert str(error.value) == "steps: found 37, expected at most 36, the pixels of an image"
