"""Scores of noisy maps with equal and with different seeds of map and metric, which must not differ.

If a map's noise and a metric's noise were the same numbers for equal seeds, a random map would no longer be random to
the metric. For each stochastic method and each metric with random numbers, the program prints the mean score over all
images and seeds with equal seeds, that with different ones, and the mean of their differences in standard errors over
the seeds, since images share some random numbers. Metrics with a parameter ``fill`` fill pixels with random colors.

    python benchmarks/seeds.py
"""

import argparse
import json
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.methods import METHODS, Method
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.registry.signatures import declared

SIZE, CLASSES, OTHER = 8, 3, 1_000_000
FEW: dict[str, dict[str, Any]] = {
    "kernel_shap": {"segments": 8, "samples": 24},
    "lime": {"segments": 8, "samples": 24},
    "rise": {"samples": 8, "cells": 4},
    "optimal_square": {"squares": 60, "ridge": 1e-3, "largest": 4},
    "optimal_noisy_baseline": {"samples": 400},
    "expected_gradients": {"samples": 4},
    "gradient_shap": {"samples": 4},
    "integrated_gradients_smoothgrad": {"samples": 4, "steps": 3},
}
OF_METRIC: dict[str, dict[str, Any]] = {
    "aopc": {"steps": 12, "every": 6},
    "faithfulness": {"pixels": 30},
    "faithfulness_correlation": {"subsets": 20, "size": 10},
    "f_fidelity": {"points": 5, "samples": 4, "output": "probability"},
    "infidelity_square": {"squares": 60, "largest": 4},
    "infidelity_noisy_baseline": {"samples": 60},
    "infidelity_subset": {"samples": 60},
    "infidelity_shap": {"samples": 60},
    "irof": {"segments": 9},
    "local_lipschitz": {"samples": 2},
    "necessity_sufficiency": {"steps": 8},
    "non_sensitivity": {"pixels": 30},
    "region_perturbation": {"side": 2, "regions": 6},
    "relative_stability": {"samples": 2},
    "road": {"points": 3},
    "sensitivity_max": {"samples": 2},
    "sensitivity_n": {"points": 3, "subsets": 12},
    "smprt": {"samples": 2, "stages": 2},
}


class Comparison(NamedTuple):
    """Means over images and seeds, and the difference of equal minus different seeds in standard errors."""

    method: str
    metric: str
    score: str
    equal: float
    different: float
    standard_errors: float


class Net(nn.Module):
    """A small network in which every pixel matters, and class k is the more likely the brighter color k is."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, CLASSES)
        )
        for values in self.parameters():
            values.data.normal_(generator=generator).mul_(2 / max(1, values[0].numel()) ** 0.5)
        self.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images - 0.5) / 2 + 8 * images.mean((2, 3))


def inputs(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return images, targets and the background of methods that take one.

    All targets are one class: over all classes, the effect of a color on their probabilities would cancel.
    """
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(count, 3, SIZE, SIZE, generator=generator)
    return images, torch.zeros(count, dtype=torch.int64), torch.rand(8, 3, SIZE, SIZE, generator=generator)


def maps_of(method: Method, model: nn.Module, count: int, seed: int) -> Tensor:
    images, targets, background = inputs(count)
    parameters = FEW.get(method.name, {"samples": 4} if "samples" in method.parameters else {})
    offered = {"background": background} if "background" in method.takes else {}
    maps: Tensor = saliency_assay.attribute(
        method.name, model, images, targets, seed=seed, batch_size=len(images), **parameters, **offered
    )
    return maps


def scores_of(
    metric: Metric, model: nn.Module, maps: Tensor, seed: int, method: Method, method_seed: int
) -> dict[str, np.ndarray]:
    images, targets, background = inputs(len(maps))
    # Other parameters are those of a baseline that only the workflow computes.
    own = metric.parameters if "responses" in metric.takes else declared(metric.function)
    parameters = {key: value for key, value in OF_METRIC.get(metric.name, {}).items() if key in own}
    if "fill" in own and "random" in metric.parameters["fill"].choices:
        parameters["fill"] = "random"
    offered: dict[str, Any] = {}
    if "mask" in metric.takes:
        mask = np.zeros((len(images), SIZE, SIZE), bool)
        mask[:, 2:6, 2:6] = True
        offered["mask"] = mask
    if "mean" in metric.takes:
        offered["mean"] = [0.5] * 3
    if "explain" in metric.takes:
        few = FEW.get(method.name, {"samples": 4} if "samples" in method.parameters else {})
        explainer = {"method": method.name, **few}
        explainer |= {"background": background} if "background" in method.takes else {}
        offered |= {"method": explainer, "method_seed": method_seed}
    for key in {"randomized_model", "finetuned_model"} & set(metric.takes):
        offered[key] = Net(seed=7)
    return saliency_assay.score(
        metric.name, model, images, targets, maps, seed=seed, batch_size=len(images), **offered, **parameters
    )


def stochastic_metrics(model: nn.Module) -> list[Metric]:
    """Return the metrics whose scores of one map differ between seeds."""
    (random,) = (method for method in METHODS if method.name == "random")
    maps = maps_of(random, model, 6, 0)
    found = []
    for metric in METRICS:
        if metric.scores_single_maps and "exact_importance" not in metric.needs:  # which this network lacks
            first, second = (scores_of(metric, model, maps, seed, random, 0) for seed in (1, 2))
            if any(not np.array_equal(first[key], second[key], equal_nan=True) for key in first):
                found.append(metric)
    return found


def compare(methods: list[Method], metrics: list[Metric], count: int, seeds: int) -> Iterator[Comparison]:
    """Compare all scores of ``metrics`` for maps of ``methods``, of ``count`` images with each of ``seeds`` seeds."""
    model = Net()
    for method in methods:
        maps = [maps_of(method, model, count, seed) for seed in range(seeds)]
        for metric in metrics:
            pairs = [
                [scores_of(metric, model, maps[seed], seed + offset, method, seed) for offset in (0, OTHER)]
                for seed in range(seeds)
            ]
            for name in pairs[0][0]:
                equal, different = (
                    np.array([np.nanmean(pair[kind][name]) for pair in pairs]) for kind in (0, 1)
                )
                error = np.std(equal - different, ddof=1) / seeds**0.5
                difference = np.mean(equal - different)
                yield Comparison(
                    method.name,
                    metric.name,
                    name,
                    float(np.mean(equal)),
                    float(np.mean(different)),
                    float(difference / error) if error else 0.0,
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable()  # of images without a score
    methods = [method for method in METHODS if method.stochastic or method.name == "optimal_square"]
    rows = list(compare(methods, stochastic_metrics(Net()), options.images, options.seeds))
    if options.json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    print(f"{'method':32}{'metric':28}{'score':28}{'equal':>10}{'different':>11}{'errors':>8}")
    for row in rows:
        print(
            f"{row.method:32}{row.metric:28}{row.score:28}{row.equal:10.4f}{row.different:11.4f}{row.standard_errors:8.3f}"
        )
    largest = sorted((abs(row.standard_errors) for row in rows), reverse=True)
    print(
        f"{len(rows)} scores; largest differences in standard errors: {', '.join(f'{e:.3f}' for e in largest[:3])}"
    )


if __name__ == "__main__":
    main()
