"""Random logit against closed forms and scikit-image."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from skimage.metrics import structural_similarity
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient
from saliency_assay.metrics.random_logit import random_logit


def test_other_classes_are_sampled_uniformly() -> None:
    model, images = conv_classifier(), random_images(300)
    targets, chosen = cyclic_targets(300), []

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        chosen.append(targets)
        return images

    random_logit(model, images, targets, images, generator=generator(1), explain=explain)
    classes = torch.cat(chosen)
    assert not (classes == targets).any()
    for target in range(4):
        counts = classes[targets == target].bincount(minlength=4)
        assert counts[target] == 0
        assert chisquare(counts[counts > 0]).pvalue > 1e-3
        assert (counts > 0).sum() == 3


def test_scikit_image() -> None:
    model, images, targets = conv_classifier(), random_images(4), cyclic_targets(4)
    maps = gradient(model, images, targets, generator=generator())
    others = []

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        others.append(gradient(model, images, targets, generator=generator()))
        return others[-1]

    scored = random_logit(model, images, targets, maps, generator=generator(1), explain=explain)
    for image, score in enumerate(scored.scores["random_logit", ""].tolist()):
        pair = [each[image].sum(0).numpy() for each in (maps, others[0])]
        pair = [values / np.abs(values).max() for values in pair]
        exact(np.array(score), np.array(structural_similarity(*pair, win_size=7, data_range=2)))


def test_a_map_that_ignores_the_class_scores_one() -> None:
    images = random_images(3)
    scored = random_logit(
        conv_classifier(), images, cyclic_targets(3), images, generator=generator(), explain=lambda *_: images
    )
    exact(scored.scores["random_logit", ""], np.ones(3))


def test_one_class_has_no_other() -> None:
    images = random_images(2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(432, 1)).double()
    targets = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"^predict: found 1 class, expected at least 2"):
        random_logit(model, images, targets, images, generator=generator(), explain=lambda *_: images)
