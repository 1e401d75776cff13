"""SaCo against closed forms and plain loops."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, output_of, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient_x_input
from saliency_assay.metrics.saco import saco


def scored(
    model: nn.Module, images: Tensor, targets: Tensor, maps: Tensor, groups: int, **options: str
) -> Tensor:
    result = saco(model, images, targets, maps, generator=generator(), groups=groups, **options)
    return result.scores["saco", ""]


def linear(weights: Tensor) -> nn.Module:
    """A logit that is the sum of the pixels of images ``[N, 1, H, W]`` times ``weights``, and a logit 0."""
    head = nn.Linear(weights.numel(), 2, bias=False, dtype=torch.float64)
    head.weight.data = torch.stack([weights.flatten(), torch.zeros(weights.numel())])
    return nn.Sequential(nn.Flatten(), head)


def coefficient(salience: list[float], impact: list[float]) -> float:
    """The pairwise comparisons of algorithm 1."""
    total = weights = 0.0
    for i in range(len(salience)):
        for j in range(i + 1, len(salience)):
            difference = salience[i] - salience[j]
            total += difference if impact[i] >= impact[j] else -difference
            weights += abs(difference)
    return total / weights


@pytest.mark.parametrize("groups", [2, 10, 144])
def test_plain_loops(groups: int) -> None:
    model, images, targets = conv_classifier(), random_images(5), cyclic_targets(5)
    maps = torch.randn(5, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    maps[2] = maps[2].round()
    maps[3], maps[4, 1, 2, 2] = 0.5, torch.nan
    scores = scored(model, images, targets, maps, groups)
    ends = [number * 144 // groups for number in range(groups + 1)]
    for image in range(3):
        relevance, target = maps[image].sum(0).flatten(), int(targets[image])
        order = sorted(range(144), key=lambda pixel: (-float(relevance[pixel]), pixel))
        salience, impact = [], []
        for start, end in pairwise(ends):
            shown = images[image].clone().flatten(1)
            shown[:, order[start:end]] = images[image].flatten(1).mean(1, keepdim=True)
            salience.append(float(relevance[order[start:end]].mean()))
            before = output_of(model, images[image], target)
            impact.append(before - output_of(model, shown.reshape(3, 12, 12), target))
        exact(scores[image], np.array(coefficient(salience, impact)), floor=1e-9)
    assert scores[3:].isnan().all()


def test_contributions_of_a_linear_model_are_faithful() -> None:
    model, images, targets = (
        linear(torch.randn(6, 6)).double(),
        random_images(4, size=6)[:, :1],
        torch.zeros(4),
    )
    maps = gradient_x_input(model, images, targets.long(), generator=generator())
    for change, expected in ((lambda m: m, 1), (lambda m: 3 * m + 2, 1), (torch.neg, -1)):
        scores = scored(model, images, targets.long(), change(maps), 9, fill="black", output="logit")
        exact(scores, np.full(4, expected))


def test_a_worked_example() -> None:
    """Of the pairs, weighted 1, 2, 3, 1, 2 and 1, the first and the last agree."""
    maps = torch.tensor([[[[4.0, 3.0], [2.0, 1.0]]]], dtype=torch.float64)
    images, targets = torch.ones_like(maps), torch.zeros(1, dtype=torch.int64)
    model = linear(torch.tensor([2.0, 1.0, 4.0, 3.0], dtype=torch.float64))
    exact(scored(model, images, targets, maps, 4, fill="black", output="logit"), np.array([-0.6]))
    # Groups of an image that equals its fill change nothing, and ties agree.
    exact(scored(model, images, targets, maps, 4), np.array([1]))


def test_groups_have_pixels() -> None:
    images, targets = torch.ones(1, 1, 2, 2, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"^groups: found 5, expected at most 4"):
        scored(linear(torch.ones(4)), images, targets, images, 5)
