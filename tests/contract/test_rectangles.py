"""Every method and metric on images that are no squares: maps are where the evidence is, and scores are defined."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import test_metrics_contract as contract
import torch
from support import CLASSES, classifier, few_passes, generator, masks_of
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

import saliency_assay
from saliency_assay.methods import METHODS, Method
from saliency_assay.metrics import Metric
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import declared

HEIGHT, WIDTH = 96, 128
PATCH = slice(16, 32), slice(96, 112)
"""Rows and columns of the evidence, whose place would be another one with rows and columns exchanged."""
MORE: dict[str, dict[str, Any]] = {
    "rise": {"samples": 200},
    "extremal_perturbation": {"steps": 40},
    "xrai": {"resolution": 128},
}
"""Parameters with which a method finds the evidence."""
REDUCED = ("optimal_square", "optimal_noisy_baseline")
"""Methods for small images."""
TOKENS = {"attention", "cam_layer"}
"""Needs of methods that read the tokens of a transformer."""
OTHER_MODELS = {"randomized_model", "finetuned_model"}


class BrightPixels(nn.Module):
    """A network of positive weights, whose first class has the evidence of bright pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, CLASSES),
        )
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(1 / 30 if parameter.ndim > 1 else 0)
            self.body[-1].weight.fill_(-2)
            self.body[-1].weight[0] = 10

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images)


@cache
def bright_pixels() -> Classifier:
    return classifier(BrightPixels(), "body.4", dtype=torch.float32).requires_grad_(False)


def images_of(count: int) -> Tensor:
    """Dark images with a bright patch."""
    images = 0.4 + 0.02 * torch.rand(count, 3, HEIGHT, WIDTH, generator=generator())
    images[:, :, *PATCH] += 0.5
    return images


@pytest.mark.parametrize(
    "method",
    [method for method in METHODS if not {"attention", "exact_importance"} & {*method.needs}],
    ids=lambda method: method.name,
)
def test_maps_of_rectangles_are_where_the_evidence_is(method: Method) -> None:
    images, targets, patch = images_of(2), torch.zeros(2, dtype=torch.int64), PATCH
    if method.name in REDUCED:
        images, patch = avg_pool2d(images, 8), (slice(2, 4), slice(12, 14))
    parameters = few_passes(method) | MORE.get(method.name, {})
    if "background" in method.takes:
        parameters["background"] = 0.4 + 0 * images
    if "mask" in method.takes:
        parameters["mask"] = masks_of(images)
    maps = resolve(method.function)(bright_pixels(), images, targets, generator=generator(), **parameters)
    assert maps.shape == (2, 1 if method.one_channel else 3, *images.shape[2:])
    assert maps.isfinite().all()
    if method.uses_model:
        saliency = maps.sum(1)
        assert (saliency[:, *patch].mean((1, 2)) > saliency.mean((1, 2))).all()


@pytest.mark.parametrize(
    "method",
    [
        method
        for method in METHODS
        if TOKENS & {*method.needs} and not {"relu", "pool_linear_head"} & {*method.needs}
    ],
    ids=lambda method: method.name,
)
def test_tokens_of_rectangles_are_a_grid_of_their_shape(method: Method) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    network = timm.create_model(
        "vit_tiny_patch16_224", img_size=(HEIGHT, WIDTH), depth=2, embed_dim=24, num_classes=CLASSES
    )
    model = classifier(network, "blocks.-1.norm1", dtype=torch.float32).requires_grad_(False)
    images = images_of(2)
    maps = resolve(method.function)(
        model, images, torch.arange(2), generator=generator(), **few_passes(method)
    )
    assert maps.shape == (2, 1 if method.one_channel else 3, HEIGHT, WIDTH)
    assert maps.isfinite().all()
    assert (maps.flatten(1).std(1) > 0).all()


@contract.EVERY_ON_MAPS
def test_scores_of_rectangles_are_defined(metric: Metric) -> None:
    if metric.needs:
        pytest.skip("the importance of the network is not known")
    images = avg_pool2d(images_of(2), 4)
    maps, mask = torch.zeros(2, 3, 24, 32), np.zeros((2, 24, 32), bool)
    rows, columns = (slice(edges.start // 4, edges.stop // 4) for edges in PATCH)
    maps += 0.01 * torch.rand(maps.shape, generator=generator())
    maps[:, :, rows, columns] += 1
    mask[:, rows, columns] = True
    parameters: dict[str, Any] = {"mask": mask} if "mask" in metric.takes else {}
    parameters |= {
        key: value for key, value in contract.cheap(metric).items() if key in declared(metric.function)
    }
    if "explain" in metric.takes:
        parameters["method"] = "gradient_x_input"
    for key in OTHER_MODELS & set(metric.takes):
        other = BrightPixels()
        with torch.no_grad():
            for values in other.parameters():
                values *= 2
        parameters[key] = classifier(other, "body.4", dtype=torch.float32)
    scores = saliency_assay.score(metric.name, bright_pixels(), images, [0, 0], maps, **parameters)
    assert all(values.shape == (2,) for values in scores.values())
    assert np.isfinite(list(scores.values())).any()
    if metric.name == "pointing_game":
        assert scores["pointing_game"].tolist() == [1, 1]
