"""Completeness error against closed forms."""

import pytest
import torch
from support import (
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    hard_case,
    random_images,
)

from saliency_assay.methods.deeplift import deeplift
from saliency_assay.metrics.completeness import completeness
from saliency_assay.metrics.fills import fill as fill_of

MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)


def test_deeplift_of_a_network_is_complete() -> None:
    model, images, targets = conv_classifier(), random_images(4), cyclic_targets(4)
    maps = deeplift(model, images, targets, generator=generator())
    scored = completeness(model, images, targets, maps, generator=generator())
    exact(scored.scores["completeness", ""], torch.zeros(4), floor=1e-8)


@pytest.mark.parametrize(("fill", "output"), [("black", "logit"), ("mean", "probability")])
def test_plain_difference(fill: str, output: str) -> None:
    model, images, targets, maps = hard_case()
    filled = fill_of(fill, images, mean=MEAN).expand_as(images)
    rows = torch.arange(len(images))
    outputs = [model(pixels).detach() for pixels in (images, filled)]
    if output == "probability":
        outputs = [logits.softmax(1) for logits in outputs]
    change = outputs[0][rows, targets] - outputs[1][rows, targets]
    expected = (maps.sum((1, 2, 3)) - change).abs()
    scored = completeness(
        model, images, targets, maps, generator=generator(), mean=MEAN, fill=fill, output=output
    )
    exact(scored.scores["completeness", ""], expected)
