"""Average drop, average gain and increase in confidence against plain loops and pytorch-grad-cam."""

from typing import Any

import numpy as np
import pytest
import torch
from support import (
    classifier,
    cyclic_targets,
    generator,
    hard_case,
    hard_maps,
    output_of,
    random_images,
    smooth_network,
)
from torch import Tensor, nn

from saliency_assay.metrics.average_drop import average_drop
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict

NAMES = ["average_drop", "average_gain", "increase_in_confidence"]
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)


def scores_of(
    predict: Predict, images: Tensor, targets: Tensor, maps: Tensor, **parameters: Any
) -> dict[str, np.ndarray]:
    scored = average_drop(predict, images, targets, maps, generator=generator(), mean=MEAN, **parameters)
    assert list(scored.scores) == [(name, "") for name in NAMES]
    return {name: scored.scores[name, ""].numpy() for name in NAMES}


@pytest.mark.parametrize(("normalization", "fill"), [("maximum", "black"), ("min_max", "image_mean")])
def test_scores_equal_plain_loops(normalization: str, fill: str) -> None:
    model, images, targets, maps = hard_case()
    fills = fill_of(fill, images, mean=MEAN).expand_as(images)
    scores = scores_of(model, images, targets, maps, normalization=normalization, fill=fill)
    undefined = []
    for place, (image, color, raw) in enumerate(zip(images, fills, maps, strict=True)):
        saliency = raw.sum(0)
        low = 0 if normalization == "maximum" else float(saliency.min())
        high = float(saliency.max())
        if not (np.isfinite(high) and high > low and float(saliency.min()) < high):
            undefined.append(place)
            continue
        share = (saliency.clamp(min=low) - low) / (high - low)
        y = output_of(model, image, int(targets[place]))
        o = output_of(model, share * image + (1 - share) * color, int(targets[place]))
        expected = [max(y - o, 0) / y, max(o - y, 0) / (1 - y), float(o > y)]
        np.testing.assert_allclose([scores[name][place] for name in NAMES], expected, rtol=1e-9, atol=1e-15)
    assert undefined == ([2, 3, 4] if normalization == "maximum" else [3, 4])
    assert all(np.flatnonzero(np.isnan(scores[name])).tolist() == undefined for name in NAMES)


def test_worked_example() -> None:
    """Logits ln(p) of the mean gray: half of it has probability 0.2 of the first class, all of it 0.8, none 0.5."""

    def predict(images: Tensor) -> Tensor:
        gray = images.mean((1, 2, 3))
        return torch.where((gray == 0.5)[:, None], torch.tensor([0.2, 0.8]), torch.tensor([0.8, 0.2])).log()

    images, maps = torch.ones(2, 1, 2, 2), torch.tensor([[1.0, 3.0], [-2.0, 2.0]]).expand(2, 1, 2, 2)
    # The map over its maximum is 1/3, 1, 0 and 2/3, whose mean is a half.
    scores = scores_of(predict, images, torch.tensor([0, 1]), maps)
    np.testing.assert_allclose(scores["average_drop"], [0.75, 0], rtol=1e-6)
    np.testing.assert_allclose(scores["average_gain"], [0, 0.75], rtol=1e-6)
    assert scores["increase_in_confidence"].tolist() == [0, 1]


def test_a_nearly_uniform_map_has_a_perfect_drop_unless_its_minimum_is_subtracted() -> None:
    model, images, targets = smooth_network(), random_images(5, size=6), cyclic_targets(5)
    maps = 1 + 1e-6 * hard_maps()[:1].expand(5, -1, -1, -1)
    assert (scores_of(model, images, targets, maps)["average_drop"] < 1e-5).all()
    assert (scores_of(model, images, targets, maps, normalization="min_max")["average_drop"] > 1e-3).any()


def test_certain_outputs_are_undefined_where_their_change_has_no_unit() -> None:
    def predict(images: Tensor) -> Tensor:
        return torch.tensor([[800.0, 0.0]]).expand(len(images), 2)

    images, maps = random_images(2, size=6), hard_maps()[:2]
    scores = scores_of(predict, images, torch.tensor([0, 1]), maps)
    np.testing.assert_array_equal(scores["average_drop"], [0, np.nan])
    np.testing.assert_array_equal(scores["average_gain"], [np.nan, 0])


def test_scores_equal_pytorch_grad_cam() -> None:
    """It multiplies normalized images, so that its fill is the mean, and does not divide the drop by the output."""
    library = pytest.importorskip("pytorch_grad_cam.metrics.cam_mult_image")
    target = pytest.importorskip("pytorch_grad_cam.utils.model_targets").ClassifierOutputSoftmaxTarget
    network = smooth_network()
    model, images, targets = classifier(network, "layers.1"), random_images(5, size=6), cyclic_targets(5)
    maps = hard_maps()[:2].abs()[:, :1].repeat(3, 1, 1, 1)[:5]
    scored = average_drop(
        model, images, targets, maps, generator=generator(), mean=model.mean.flatten(), fill="mean",
        normalization="min_max",
    )  # fmt: skip
    low, high = maps.amin((2, 3), keepdim=True), maps.amax((2, 3), keepdim=True)
    arguments = (
        (images - model.mean) / model.std,
        ((maps - low) / (high - low))[:, 0].numpy(),
        [target(int(number)) for number in targets],
        nn.Module.eval(network),
    )
    drops, rises = library.DropInConfidence()(*arguments), library.IncreaseInConfidence()(*arguments)
    y = [output_of(model, image, int(number)) for image, number in zip(images, targets, strict=True)]
    np.testing.assert_allclose(scored.scores["average_drop", ""] * torch.tensor(y), drops, atol=1e-6)
    np.testing.assert_array_equal(scored.scores["increase_in_confidence", ""], rises)
    assert 0 < rises.sum() < 5
