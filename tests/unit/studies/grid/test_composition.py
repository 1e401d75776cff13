"""Composition of grids: classes, numbers of images, confidence and groups."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier
from saliency_assay.models.grid_settings import join
from saliency_assay.studies.grid.composition import (
    NO_CLASS,
    Grids,
    compose,
    confident_classes,
    one_of_each,
)


def composed(counts: list[int], grids: int, cells: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Grids of images of which ``counts`` are of each class, and the class of each image."""
    classes = np.repeat([*range(len(counts)), NO_CLASS], [*counts, 5])
    classes = np.random.default_rng(1).permutation(classes)
    generator = np.random.default_rng(0)
    return compose(classes, cells=cells, grids=grids, generator=generator), classes


@pytest.mark.parametrize(("counts", "grids"), [([9] * 10, 20), ([100, 3, 3, 3, 3], 4), ([2, 5, 5, 5, 4], 5)])
def test_classes_of_a_grid_differ_and_images_are_used_once(counts: list[int], grids: int) -> None:
    images, classes = composed(counts, grids)
    assert images.shape == (grids, 4)
    assert len(np.unique(images)) == images.size
    assert NO_CLASS not in classes[images]
    assert all(len(set(row)) == 4 for row in classes[images].tolist())


def test_classes_contribute_equally_whatever_their_number_of_images() -> None:
    images, classes = composed([900, 50, 50, 50, 50], 40)
    assert np.bincount(classes[images.ravel()]).tolist() == [32] * 5
    # A class is in all cells.
    assert set(np.nonzero(classes[images] == 0)[1]) == {0, 1, 2, 3}


def test_too_few_images_or_classes_are_refused_with_the_number_found() -> None:
    expected = r"found 112 images of 5 classes .* enough for 4 grids of 2 × 2 different classes, expected 5"
    with pytest.raises(ValueError, match=expected):
        composed([100, 3, 3, 3, 3], 5)
    with pytest.raises(ValueError, match=r"found 300 images of 3 classes .* enough for 0 grids"):
        composed([100] * 3, 1)


class Brightness(nn.Module):
    """Logits that grow with the number of the class times the mean of the image, times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, images: Tensor) -> Tensor:
        return self.factor * images.mean((1, 2, 3))[:, None] * torch.arange(3)


def of_factor(factor: float) -> Classifier:
    settings: dict[str, Any] = {
        "classes": 3,
        "mean": [0.5],
        "std": [1.0],
        "cam_layer": "",
        "concept_layers": (),
    }
    return Classifier(Brightness(factor), **settings)


def test_an_image_counts_if_all_models_predict_its_class_with_confidence() -> None:
    values = torch.tensor([0.0, 0.45, 0.6, 1.0])
    images = values[:, None, None, None].expand(-1, 1, 2, 2).clone()
    arguments: dict[str, Any] = {"confidence": 0.9, "batch_size": 3}
    # The probability of class 2 is 1 / (1 + e⁻ᶻ + e⁻²ᶻ) with z the factor times the mean: 5 · 0.5 and 5 · 0.1.
    assert confident_classes([of_factor(5)], images, None, **arguments).tolist() == [0, NO_CLASS, NO_CLASS, 2]
    labels = np.array([0, 0, 2, 1])
    assert confident_classes([of_factor(5)], images, labels, **arguments).tolist() == [0] + [NO_CLASS] * 3
    both = [of_factor(5), of_factor(1)]
    assert confident_classes(both, images, None, **arguments).tolist() == [NO_CLASS] * 4
    assert confident_classes(both, images, None, confidence=0.5, batch_size=2).tolist() == [
        0,
        NO_CLASS,
        NO_CLASS,
        2,
    ]


def test_a_group_contributes_one_image() -> None:
    classes, groups = np.array([NO_CLASS, 4, 4, 1, 2]), np.array([7, 7, 7, 3, 3])
    assert one_of_each(groups, classes).tolist() == [NO_CLASS, 4, NO_CLASS, 1, NO_CLASS]


def test_grids_are_composed_of_the_requested_rows() -> None:
    images = np.random.default_rng(0).integers(0, 256, (13, 3, 4, 4), dtype=np.uint8)
    grids = Grids(images, 2)
    assert len(grids) == 3
    assert torch.equal(grids[1:], join(torch.from_numpy(images[4:12]), 2))
