"""Relative stability against closed forms and plain loops."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.relative_stability import relative_stability

COUNT, SAMPLES = 4, 6


def ratio(before: np.ndarray, after: np.ndarray) -> float:
    """‖(before − after) / before‖, with 1e-6 for divisors of 0."""
    total = 0.0
    for old, new in zip(before.flatten().tolist(), after.flatten().tolist(), strict=True):
        total += ((old - new) / (old or 1e-6)) ** 2
    return float(total**0.5)


@pytest.mark.parametrize("noise", [0.05, 4.0])
def test_plain_loops(noise: float) -> None:
    """The greater noise changes some classes, whose neighbors are left out."""
    model, images, targets = conv_classifier(), random_images(COUNT), cyclic_targets(COUNT)
    images[0, :, 2:4] = 0

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        return gradient(model, images, targets, generator=generator())

    maps = explain(images, targets)
    scored = relative_stability(
        model, images, targets, maps, generator=generator(3), explain=explain, noise=noise, samples=SAMPLES
    )
    last = model.network.body[-1]
    hidden: list[Tensor] = []
    handle = last.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0].detach()))
    seeds = sample_seeds(COUNT, SAMPLES, generator(3))
    left_out = 0
    for image in range(COUNT):
        picture, target = images[image : image + 1], targets[image : image + 1]
        logits = model(picture).detach().numpy()
        representation = hidden[-1].numpy()
        best: dict[str, float] = {}
        for sample in range(SAMPLES):
            neighbor = picture + noise * standard_normal(seeds[image * SAMPLES + sample :][:1], picture)
            new_logits = model(neighbor).detach().numpy()
            if new_logits.argmax() != logits.argmax():
                left_out += 1
                continue
            change = ratio(maps[image].numpy(), explain(neighbor, target)[0].numpy())
            divisors = {
                "ris": ratio(picture.numpy(), neighbor.numpy()),
                "rrs": ratio(representation, hidden[-1].numpy()),
                "ros": float(np.linalg.norm(logits - new_logits)),
            }
            for name, divisor in divisors.items():
                best[name] = max(best.get(name, 0), change / divisor)
        for name in ("ris", "rrs", "ros"):
            exact(scored.scores[name, ""][image], np.array(best.get(name, np.nan)), tolerance=1e-6)
    handle.remove()
    assert (left_out > 0) == (noise > 1)


class Linear(nn.Module):
    """One layer, so that the representation is the image."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(48, 3, dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        return self.layer(images.flatten(1))


def scored_by(method: Any, maps: Tensor, images: Tensor, **parameters: Any) -> dict[str, Tensor]:
    scored = relative_stability(
        Linear(), images, cyclic_targets(len(images)) % 3, maps,
        generator=generator(), explain=method, **{"samples": 3, "noise": 0.01, **parameters},
    )  # fmt: skip
    return {name: values for (name, _), values in scored.scores.items()}


class Constant(Linear):
    """Logits that no image changes."""

    def forward(self, images: Tensor) -> Tensor:
        return 0 * super().forward(images)


def test_divisors_are_at_least_1e_6() -> None:
    images = random_images(3, size=4) + 0.1
    scores = {}
    for name, model in (("changing", Linear()), ("constant", Constant())):
        scores[name] = relative_stability(
            model, images, torch.zeros(3, dtype=torch.int64), images,
            generator=generator(), explain=lambda images, targets: images, noise=1e-3, samples=1,
        ).scores  # fmt: skip
    noise = standard_normal(sample_seeds(3, 1, generator()), images)
    changes = [
        ratio(image.numpy(), (image + 1e-3 * each).numpy()) for image, each in zip(images, noise, strict=True)
    ]
    exact(scores["constant"]["ros", ""], np.array(changes) / 1e-6, tolerance=1e-6)
    assert (scores["changing"]["ros", ""] < scores["constant"]["ros", ""] / 10).all()


def test_neighbors_whose_maps_are_infinite_have_no_score() -> None:
    images = random_images(2, size=4) + 0.1
    for values in scored_by(lambda images, targets: images / 0, images, images).values():
        assert values.isnan().all()


class HeadFirst(nn.Module):
    """The layer that is called last is registered first, and called by keyword."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.head, self.features = network.body[-1], network.body[:-1]

    def forward(self, images: Tensor) -> Tensor:
        return self.head(input=self.features(images))


def test_the_representation_is_the_input_of_the_layer_that_is_called_last() -> None:
    plain = conv_classifier()
    other, images, targets = deepcopy(plain), random_images(COUNT), cyclic_targets(COUNT)
    other.network = HeadFirst(other.network)

    def scores(model: nn.Module) -> dict[Any, Tensor]:
        def explain(images: Tensor, targets: Tensor) -> Tensor:
            return gradient(model, images, targets, generator=generator())

        maps = explain(images, targets)
        return relative_stability(
            model, images, targets, maps, generator=generator(3), explain=explain, samples=SAMPLES
        ).scores

    expected = scores(plain)
    for name, values in scores(other).items():
        exact(values, expected[name])
