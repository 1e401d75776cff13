"""Region perturbation and IROF against closed forms and plain loops."""

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, output_of, random_images
from test_deletion import Mean
from torch import Tensor, nn

from saliency_assay.methods.segments import segment
from saliency_assay.metrics.necessity_sufficiency import necessity_sufficiency
from saliency_assay.metrics.regions import irof, region_perturbation

MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
NAN = float("nan")


def some_maps(count: int, size: int) -> Tensor:
    """Any values, ties, constant, NaN."""
    maps = torch.randn(count, 3, size, size, generator=generator(3), dtype=torch.float64)
    maps[1] = maps[1].round()
    maps[-2], maps[-1, 0, 1, 2] = 0.5, NAN
    return maps


def plain_curve(
    model: nn.Module, image: Tensor, fill: Tensor, regions: list[list[tuple[int, int]]], target: int
) -> list[float]:
    """Probability after 0, 1, 2 … regions show the fill."""
    shown, curve = image.clone(), [output_of(model, image, target)]
    for region in regions:
        for row, column in region:
            shown[:, row, column] = fill
        curve.append(output_of(model, shown, target))
    return curve


def pixels_of(labels: np.ndarray) -> list[list[tuple[int, int]]]:
    return [
        [(int(row), int(column)) for row, column in np.argwhere(labels == number)]
        for number in range(labels.max() + 1)
    ]


@pytest.mark.parametrize(("side", "regions"), [(1, 5), (5, 3), (5, 100), (20, 7)])
def test_region_perturbation_in_plain_loops(side: int, regions: int) -> None:
    model, images, targets, maps = conv_classifier(), random_images(5), cyclic_targets(5), some_maps(5, 12)
    options = {"mean": MEAN, "side": side, "regions": regions, "fill": "mean"}
    scored = region_perturbation(model, images, targets, maps, generator=generator(), **options)
    blocks = [
        [
            (row, column)
            for row in range(top, min(top + side, 12))
            for column in range(left, min(left + side, 12))
        ]
        for top in range(0, 12, side)
        for left in range(0, 12, side)
    ]
    for image in range(3):
        saliency = maps[image].sum(0)
        means = [sum(float(saliency[place]) for place in block) / len(block) for block in blocks]
        most = sorted(range(len(blocks)), key=lambda number: (-round(means[number], 9), number))
        for name, order in (("morf", most), ("lerf", most[::-1])):
            removed = [blocks[number] for number in order[:regions]]
            curve = plain_curve(model, images[image], MEAN, removed, int(targets[image]))
            exact(scored.curves[name][image], np.array(curve))
            expected = sum(curve[0] - value for value in curve) / len(curve)
            exact(scored.scores[f"region_perturbation_{name}", ""][image], np.array(expected), floor=1e-9)
    for values in scored.scores.values():
        assert values[3:].isnan().all()


def test_squares_cut_off_at_the_border_are_not_ranked_last() -> None:
    """Of a map with equal means, the first square is the first."""
    maps = torch.ones(1, 1, 5, 5, dtype=torch.float64)
    maps[..., 4] = 2  # the squares at the right border are 1 pixel wide
    images, targets = torch.ones(1, 3, 5, 5, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    scored = region_perturbation(
        Mean(), images, targets, maps, generator=generator(), side=4, regions=1, fill="black", output="logit"
    )
    exact(scored.curves["morf"][0], np.array([1, 21 / 25]))


@pytest.mark.parametrize("segments", [1, 9, 40])
def test_irof_in_plain_loops(segments: int) -> None:
    model, images, targets, maps = conv_classifier(), random_images(5), cyclic_targets(5), some_maps(5, 12)
    scored = irof(model, images, targets, maps, generator=generator(), mean=MEAN, segments=segments)
    labels = segment(images, "superpixels", segments).numpy()
    assert segments < 40 or len(set(labels[:3].max((1, 2)).tolist())) > 1  # images have different numbers
    for image in range(3):
        saliency, regions = maps[image].sum(0), pixels_of(labels[image])
        means = [sum(float(saliency[place]) for place in region) / len(region) for region in regions]
        order = sorted(range(len(regions)), key=lambda number: (-round(means[number], 9), number))
        curve = plain_curve(
            model, images[image], MEAN, [regions[number] for number in order], int(targets[image])
        )
        relative = np.array(curve) / curve[0]
        area = sum((relative[i] + relative[i + 1]) / 2 for i in range(len(regions))) / len(regions)
        exact(scored.scores["irof", ""][image], np.array(1 - area), floor=1e-9)
    assert scored.scores["irof", ""][3:].isnan().all()


class Underflow(nn.Module):
    """The first class has almost no probability unless the last pixel is black."""

    def forward(self, images: Tensor) -> Tensor:
        brightness = images[:, :, -1, -1].mean(1)
        return torch.stack([-735 * brightness, torch.zeros_like(brightness)], 1)


def test_ratios_that_are_not_finite_are_undefined() -> None:
    """The probability of the image is about 1e-319, that of the black image ½."""
    images, targets = torch.ones(1, 3, 8, 8, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    maps = torch.arange(64, dtype=torch.float64).reshape(1, 1, 8, 8)
    inputs = (Underflow(), images, targets, maps)
    assert irof(*inputs, generator=generator(), fill="black", segments=4).scores["irof", ""].isnan().all()
    scores = necessity_sufficiency(*inputs, generator=generator(), steps=8).scores
    assert {name for (name, _), values in scores.items() if values.isnan().any()} == {"tpn", "tps"}
