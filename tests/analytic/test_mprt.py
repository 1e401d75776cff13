"""Efficient and smooth randomization tests against closed forms and plain loops."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.mprt import emprt, smprt

COUNT = 3
IMAGES, TARGETS = random_images(COUNT), cyclic_targets(COUNT)
MODEL, RANDOM = conv_classifier(1), conv_classifier(2)


def explain(images: Tensor, targets: Tensor, model: nn.Module = MODEL) -> Tensor:
    return gradient(model, images, targets, generator=generator())


def test_emprt_of_known_histograms() -> None:
    """Two equal bins have the entropy ln 2, four ln 4: the rise is 1."""
    halves = torch.arange(144, dtype=torch.float64).reshape(1, 1, 12, 12) % 2
    quarters = torch.arange(144, dtype=torch.float64).reshape(1, 1, 12, 12) % 4
    scored = emprt(
        MODEL, IMAGES[:1], TARGETS[:1], halves,
        generator=generator(), explain=lambda *_, model: quarters, randomized_model=RANDOM, bins=8,
    )  # fmt: skip
    exact(scored.scores["emprt", ""], np.array([1.0]))


@pytest.mark.parametrize("bins", [2, 100])
def test_emprt_in_plain_loops(bins: int) -> None:
    maps = explain(IMAGES, TARGETS)
    scored = emprt(
        MODEL, IMAGES, TARGETS, maps,
        generator=generator(), explain=explain, randomized_model=RANDOM, bins=bins,
    )  # fmt: skip

    def entropy(raw: Tensor) -> float:
        values = raw.sum(0).flatten().tolist()
        low, width = min(values), (max(values) - min(values)) / bins
        counts = [0] * bins
        for value in values:
            counts[min(int((value - low) / width), bins - 1)] += 1
        return -sum(count / 144 * log(count / 144) for count in counts if count)

    before, after = ([entropy(raw) for raw in each] for each in (maps, explain(IMAGES, TARGETS, RANDOM)))
    expected = [(new - old) / old for old, new in zip(before, after, strict=True)]
    exact(scored.scores["emprt", ""], np.array(expected), tolerance=1e-6)


def test_emprt_of_a_nearly_constant_map() -> None:
    """The histogram does not depend on the offset of the values."""
    steps = torch.arange(144, dtype=torch.float64).reshape(1, 1, 12, 12) % 4
    scored = emprt(
        MODEL, IMAGES[:1], TARGETS[:1], 1 + steps * 2.0**-46,
        generator=generator(), explain=lambda *_, model: steps, randomized_model=RANDOM,
    )  # fmt: skip
    exact(scored.scores["emprt", ""], np.array([0.0]))


def scored_by_smprt(
    method: Callable[..., Tensor] = explain, **parameters: Any
) -> dict[tuple[str, str], Tensor]:
    maps = explain(IMAGES, TARGETS)
    return dict(
        smprt(
            MODEL, IMAGES, TARGETS, maps,
            generator=generator(5), explain=method, randomized_model=RANDOM, **parameters,
        ).scores
    )  # fmt: skip


def test_smprt_in_plain_loops() -> None:
    scores = scored_by_smprt(samples=3, noise=0.2, stages=2)
    names = [variant for _, variant in scores]
    assert names == ["", "bottom-up 1 body.4", "bottom-up 2 body.10"]
    seeds = sample_seeds(COUNT, 3, generator(5))
    noise = standard_normal(seeds, IMAGES)
    for number, variant in enumerate(names[1:], start=1):
        mixed = conv_classifier(1)
        # The last layer, body.10, is the second group; all layers before it are the first one.
        trained = MODEL.state_dict() if number == 1 else {}
        last = {name: value for name, value in trained.items() if name.startswith("network.body.10")}
        mixed.load_state_dict({**RANDOM.state_dict(), **last})
        for image in range(COUNT):
            means = []
            for model in (MODEL, mixed):
                total = np.zeros((12, 12))
                for sample in range(3):
                    picture = IMAGES[image : image + 1]
                    deviation = 0.2 * (picture.max() - picture.min())
                    noisy = picture + deviation * noise[3 * image + sample]
                    total += explain(noisy, TARGETS[image : image + 1], model)[0].sum(0).numpy()
                means.append(total.flatten() / 3)
            exact(scores["smprt", variant][image], np.array(spearmanr(*means).statistic))
    exact(scores["smprt", ""], (scores["smprt", names[1]] + scores["smprt", names[2]]) / 2)


def test_smprt_of_a_map_that_ignores_the_model_is_one() -> None:
    for values in scored_by_smprt(lambda images, targets, model: images).values():
        exact(values, np.ones(COUNT))
