"""Scores of random maps do not depend on whether map and metric have the same seed."""

import numpy as np
import pytest
import torch
from benchmarks import seeds
from support import cyclic_targets, random_images

import saliency_assay
from saliency_assay.methods import METHODS, sampling
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.registry.records import record_of

NOISY = ("random", "optimal_square", "optimal_noisy_baseline")


def largest_difference(metrics: list[Metric], *methods: str, count: int = 4) -> float:
    """In standard errors."""
    records = [record_of(METHODS, name, "method") for name in methods]
    return max(abs(row.standard_errors) for row in seeds.compare(records, metrics, count=count, seeds=12))


def metrics_named(*names: str) -> list[Metric]:
    return [record_of(METRICS, name, "metric") for name in names]


@pytest.mark.slow
def test_scores_do_not_depend_on_equal_seeds() -> None:
    metrics = seeds.stochastic_metrics(seeds.Net())
    assert len(metrics) >= 15
    assert largest_difference(metrics, *NOISY) < 5  # of over 80 scores


def test_orders_and_fills_do_not_depend_on_equal_seeds() -> None:
    assert largest_difference(metrics_named("region_perturbation", "insertion"), "random", count=30) < 4


def test_one_seed_for_both_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in version 0.2: without the role, a random map is the random color that removes its pixels."""
    with_role = sampling.seed_of

    def without_role(seed: int, *names: str) -> int:
        return with_role(seed, *[name for name in names if name not in ("method", "metric")])

    monkeypatch.setattr(sampling, "seed_of", without_role)
    assert largest_difference(metrics_named("region_perturbation", "insertion"), "random", count=30) > 6
    assert largest_difference(metrics_named("infidelity_noisy_baseline"), "optimal_noisy_baseline") > 10


def test_a_map_is_independent_of_the_colors_that_fill_pixels() -> None:
    images, targets = random_images(40, size=8, dtype=torch.float32), cyclic_targets(40)
    maps = saliency_assay.attribute("random", seeds.Net(), images, targets % 3, seed=0)[:, 0]

    def colors(
        predict: object, images: torch.Tensor, targets: object, maps: object, *, generator: torch.Generator
    ):
        filled.append(sampling.uniform(sampling.sample_seeds(len(images), 1, generator), images))
        return torch.zeros(len(images))

    filled: list[torch.Tensor] = []
    saliency_assay.score(colors, seeds.Net(), images, targets % 3, maps, seed=0)
    correlations = np.corrcoef(maps.flatten(), torch.cat(filled)[:, 0].flatten())
    assert abs(correlations[0, 1]) < 4 / maps.numel() ** 0.5
