"""The local Lipschitz estimate against closed forms and a plain loop."""

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, generator, random_images
from torch import Tensor

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.sampling import sample_seeds, uniform
from saliency_assay.metrics.local_lipschitz import local_lipschitz

COUNT, SAMPLES = 4, 5


def scored(explain, images: Tensor, maps: Tensor, radius: float = 0.1) -> Tensor:
    return local_lipschitz(
        conv_classifier(),
        images,
        cyclic_targets(len(images)),
        maps,
        generator=generator(2),
        explain=explain,
        radius=radius,
        samples=SAMPLES,
    ).scores["local_lipschitz", ""]


@pytest.mark.parametrize("radius", [0.01, 1.0])
def test_a_linear_map_has_its_factor(radius: float) -> None:
    images = random_images(COUNT)
    scores = scored(lambda images, targets: 3 * images, images, 3 * images, radius)
    np.testing.assert_allclose(scores, 3, rtol=1e-4)


def test_a_map_that_does_not_depend_on_the_image_scores_zero() -> None:
    images = random_images(COUNT)
    maps = torch.ones_like(images)
    assert (scored(lambda images, targets: maps, images, maps) == 0).all()


def test_plain_loop() -> None:
    model, images, targets = conv_classifier(), random_images(COUNT), cyclic_targets(COUNT)

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        return gradient(model, images, targets, generator=generator())

    maps = explain(images, targets)
    scores = scored(explain, images, maps)
    seeds = sample_seeds(COUNT, SAMPLES, generator(2))
    for image in range(COUNT):
        ratios = []
        for sample in range(SAMPLES):
            one = images[image : image + 1]
            neighbor = one + 0.1 * uniform(seeds[image * SAMPLES + sample :][:1], one)
            change = explain(neighbor, targets[image : image + 1])[0].double() - maps[image].double()
            ratios.append(float(change.norm() / (neighbor - one).double().norm()))
        assert scores[image].item() == pytest.approx(max(ratios), rel=1e-5)


def test_a_map_that_is_not_finite_has_no_score() -> None:
    images = random_images(COUNT)
    maps = images.clone()
    maps[1, 0, 0, 0] = torch.nan
    scores = scored(lambda images, targets: images, images, maps)
    assert scores.isnan().tolist() == [False, True, False, False]
