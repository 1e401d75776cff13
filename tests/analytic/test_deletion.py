"""Deletion and insertion against closed forms and plain loops."""

import numpy as np
import pytest
import torch
from support import cyclic_targets, generator, hard_maps, random_images, seen_batches, smooth_network
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.deletion import block_ends, deletion, insertion
from saliency_assay.metrics.fills import fill as fill_of

SIZE, PIXELS = 6, 36
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
BOTH = {"deletion": deletion, "insertion": insertion}


class Mean(nn.Module):
    """The logit of class 0 is the mean of all values: a linear output whose pixels count alike."""

    def forward(self, images: Tensor) -> Tensor:
        value = images.flatten(1).mean(1)
        return torch.stack([value, torch.zeros_like(value)], 1)


def slow_area(
    name: str,
    model: nn.Module,
    image: Tensor,
    fill: Tensor,
    raw: Tensor,
    target: int,
    output: str,
    steps: int | str,
) -> tuple[float, list[float]]:
    values = raw.numpy().sum(0).flatten()
    order = sorted(range(PIXELS), key=lambda pixel: -values[pixel])
    blocks = PIXELS if steps == "exact" else min(int(steps), PIXELS)
    shares, curve = [], []
    for block in range(blocks + 1):
        count = int(np.floor(block * PIXELS / blocks + 0.5))
        shown = (image if name == "deletion" else fill).clone()
        for pixel in order[:count]:
            row, column = divmod(pixel, SIZE)
            shown[:, row, column] = (fill if name == "deletion" else image)[:, row, column]
        with torch.no_grad():
            logits = model(shown[None])[0].numpy()
        odds = np.exp(logits)
        curve.append(float(logits[target] if output == "logit" else odds[target] / odds.sum()))
        shares.append(count / PIXELS)
    area = 0.0
    for block in range(blocks):
        area += (shares[block + 1] - shares[block]) * (curve[block] + curve[block + 1]) / 2
    return area, curve


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("steps", [1, 7, 10, PIXELS, 100, "exact"])
@pytest.mark.parametrize(
    ("fill", "output"),
    [
        ("black", "logit"),
        ("mean", "probability"),
        ("image_mean", "logit"),
        ("random", "logit"),
        ("blur", "logit"),
    ],
)
def test_equals_plain_loops(name: str, steps: int | str, fill: str, output: str) -> None:
    model, images, targets, maps = (
        smooth_network(),
        random_images(5, size=SIZE),
        cyclic_targets(5),
        hard_maps(),
    )
    options = {"mean": MEAN, "steps": steps, "fill": fill, "output": output}
    found = BOTH[name](model, images, targets, maps, generator=generator(4), **options)  # type: ignore[arg-type]
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(5, 1, generator(4))).expand_as(images)
    assert set(found.scores) == {(name, "")}
    assert found.scores[name, ""].dtype == found.curves["curve"].dtype == torch.float64
    for index in range(5):
        given = (model, images[index], fills[index], maps[index], int(targets[index]), output, steps)
        area, curve = slow_area(name, *given)
        if index > 2:
            area, curve = np.nan, [np.nan] * len(curve)
        np.testing.assert_allclose(float(found.scores[name, ""][index]), area, atol=1e-12)
        np.testing.assert_allclose(found.curves["curve"][index], curve, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 4, 5, 100, "exact"])
def test_a_linear_output_of_equal_pixels_has_half_the_area(steps: int | str) -> None:
    """Its curve is a straight line from the image's output to the fill's, whatever the order and the blocks."""
    images = torch.full((1, 1, SIZE, SIZE), 0.8, dtype=torch.float64)
    maps = torch.rand(1, 1, SIZE, SIZE, generator=generator(1), dtype=torch.float64)
    options = {"steps": steps, "fill": "black", "output": "logit"}
    for name, function in BOTH.items():
        found = function(Mean(), images, torch.tensor([0]), maps, generator=generator(), **options)  # type: ignore[operator]
        assert float(found.scores[name, ""]) == pytest.approx(0.4, abs=1e-12)
        ends = [0.8, 0.0] if name == "deletion" else [0.0, 0.8]
        np.testing.assert_allclose(found.curves["curve"][0, [0, -1]], ends, atol=1e-15)


def test_one_pass_for_each_block_and_the_original() -> None:
    model, images, targets = smooth_network(), random_images(2, size=SIZE), cyclic_targets(2)
    for function in BOTH.values():
        for steps, passes in ((9, 10), (100, PIXELS + 1), ("exact", PIXELS + 1)):
            with seen_batches(model) as seen:
                function(model, images, targets, hard_maps()[:2], generator=generator(), steps=steps)
            assert sum(map(len, seen)) == 2 * passes


def test_block_ends_are_rounded_shares() -> None:
    found = block_ends(torch.tensor([10, 7, 3, 0]), 4)
    assert found.tolist() == [[0, 3, 5, 8, 10], [0, 2, 4, 5, 7], [0, 1, 2, 2, 3], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps: found 0, expected at least 1 or 'exact'"),
        ({"steps": "every"}, "steps: found 'every', expected at least 1 or 'exact'"),
        ({"fill": "white"}, "fill: found 'white', valid: black, mean, image_mean, random, blur"),
        ({"fill": "mean"}, "mean: found none, expected the data set's mean [3] for fill 'mean'"),
        ({"output": "odds"}, "output: found 'odds', valid: probability, logit, accuracy"),
    ],
)
@pytest.mark.parametrize("name", BOTH)
def test_what_does_not_fit_is_refused(name: str, options: dict[str, object], message: str) -> None:
    given = (smooth_network(), random_images(5, size=SIZE), cyclic_targets(5), hard_maps())
    with pytest.raises(ValueError, match=r"^\w+: found") as error:
        BOTH[name](*given, generator=generator(), **options)  # type: ignore[arg-type]
    assert str(error.value) == message
